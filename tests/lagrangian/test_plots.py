"""Pictures: they show the numbers they are given, at every scale, and come out the same every time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pictures import check_picture, claim_named, pictured
from upheld.claims import Scale
from upheld.lagrangian import bounds, plots
from upheld.lagrangian.claims import CLAIMS, CONSTANTS, LAGRANGIAN_TREES, ONE_VECTOR
from upheld.lagrangian.rivals import STARTS
from upheld.report.content import drawn

MEASURED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # methods and metrics of every experiment
    "oracle": (("lagrangian",), ("violation of supergradient inequality", "violation of concavity", "length of supergradient over bound")),
    "learning": (
        (*ONE_VECTOR, "SGA, tuned", "SGA, default", "warm start", "best constant"),
        ("excess", "excess, relative", "generalisation gap", "squared distance", "contextual gap, relative"),
    ),
    "race": (tuple(STARTS), ("calls to 0.1%", "gap after 0 steps", "gap after 10 steps", "gap after 30 steps")),
    "bounds": (("lagrangian", "HiGHS, LP", "HiGHS, root with cuts", "CP-SAT"), ("bound over optimum", "closed share of the LP's gap")),
    "columns": (("lagrangian", "GCG, our blocks", "GCG, root"), ("root bound above u*, relative", "seconds")),
    "workers": (("lagrangian",), ("speed-up", "seconds of a call")),
    "trees": (("LP", "HiGHS", *LAGRANGIAN_TREES), ("nodes", "seconds")),
    "contextual": (("contextual", "contextual, unguarded", *CONSTANTS, "own LP dual", "own optimum"), ("held-out mean u",)),
}  # fmt: skip


def measurements(claim, scale: Scale) -> pd.DataFrame:
    """What a claim's experiment might measure: its conditions, methods and metrics, six seeds, values of each method's own size."""
    rng = np.random.default_rng(1)
    methods, metrics = MEASURED[claim.experiment.name.removeprefix("lagrangian.")]
    rows = []
    for condition in claim.experiment.conditions[scale]:
        for number, method in enumerate(methods):
            for metric in metrics:
                values = (number + 1) * rng.lognormal(-1, 0.2, size=6)
                values = values if metric != "held-out mean u" else 100 + values
                rows += [
                    {**condition, "seed": seed, "item": "", "method": method, "metric": metric, "value": float(value)}
                    for seed, value in enumerate(values)
                ]
    return pd.DataFrame(rows)


WITH_PICTURE = pictured(CLAIMS, plots.PICTURES)


def labelled(axes) -> dict[str, object]:
    """Lines (of error bars too) by their label."""
    return dict(zip(axes.get_legend_handles_labels()[1], axes.get_legend_handles_labels()[0], strict=True))


def test_every_claim_has_a_picture():
    assert set(plots.PICTURES) == {claim.id for claim in CLAIMS}


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.QUICK])
@pytest.mark.parametrize("claim", WITH_PICTURE, ids=lambda claim: claim.id)
def test_every_claim_s_picture_is_drawn_from_its_experiment(claim, scale):
    check_picture(plots.PICTURES[claim.id](measurements(claim, scale)))


@pytest.mark.parametrize("claim", WITH_PICTURE, ids=lambda claim: claim.id)
def test_missing_measurements_are_named(claim):
    frame = measurements(claim, Scale.SMOKE)
    with pytest.raises(ValueError, match="was not measured"):
        plots.PICTURES[claim.id](frame.assign(metric="nothing"))


def test_rates_show_means_beside_theory():
    frame = measurements(claim_named(CLAIMS, "sga-rate"), Scale.QUICK)
    at = (frame["method"] == "SGA") & (frame["metric"] == "excess") & (frame["s"] == 64) & (frame["n"] == 1024)
    frame.loc[at & (frame["family"] == "hard"), "value"] = [1.0, 3.0] * 3
    left = plots.sga_rate(frame).axes[0]
    measured = labelled(left)["SGA"].lines[0]
    assert dict(zip(measured.get_xdata(), measured.get_ydata(), strict=True))[1024] == pytest.approx(2.0)
    proved = labelled(left)["proved: 2 s / √N"]
    assert proved.get_ydata()[0] == pytest.approx(bounds.sga_bound(64, 256, 1.0, 1.0))


def test_the_paired_difference_has_its_sign():
    """SGA's excess three times ERM's everywhere: (3 - 1) / 2 = 1 above the line."""
    frame = measurements(claim_named(CLAIMS, "sga-beats-erm"), Scale.QUICK)
    frame = frame[frame["metric"] == "excess"].assign(value=1.0)
    frame.loc[frame["method"] == "SGA", "value"] = 3.0
    axes = plots.sga_against_erm(frame).axes[0]
    for container in axes.containers:
        np.testing.assert_allclose(np.asarray(container.lines[0].get_ydata(), dtype=float), 1.0)


def test_bars_are_what_is_missing_to_the_optimum():
    frame = measurements(claim_named(CLAIMS, "tighter-than-lp"), Scale.SMOKE)
    frame.loc[frame["method"] == "HiGHS, LP", "value"] = 0.9
    frame.loc[frame["method"] == "lagrangian", "value"] = 0.99
    axes = plots.bound_bars(frame).axes[0]
    bars = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers if hasattr(bars, "patches")}
    np.testing.assert_allclose(bars["LP"], 10.0)
    np.testing.assert_allclose(bars["Lagrangian, u*"], 1.0)


def test_what_lacks_to_the_own_optima_is_relative():
    frame = measurements(claim_named(CLAIMS, "from-the-instance"), Scale.QUICK)
    frame.loc[frame["method"] == "own optimum", "value"] = 200.0
    frame.loc[frame["method"] == "contextual", "value"] = 199.0
    axes = plots.from_the_instance(frame).axes[0]
    place = [label.get_text() for label in axes.get_yticklabels()].index("contextual")
    dots = [
        line.get_xdata()
        for line in axes.get_lines()
        if len(line.get_ydata()) == 6 and (line.get_ydata() == place).all()
    ]
    np.testing.assert_allclose(dots[0], 0.5)


# -- a user's run


def run_of(best: dict[str, list[float]], instances: int = 1) -> pd.DataFrame:
    return pd.DataFrame(
        {"instance": f"day {k}", "start": start, "oracle_calls": step + 1, "u": u + 10 * k}
        for k in range(instances)
        for start, values in best.items()
        for step, u in enumerate(values)
    )


def test_bounds_so_far_never_fall_and_stand_beside_the_plan():
    frame = run_of({"learned": [5.0, 4.0, 6.0], "zero": [0.0, 1.0, 3.0]})
    axes = plots.convergence(frame, levels={"plan": 8.0, "lp_bound": 5.5, "highs_root_bound": None}).axes[0]
    lines = labelled(axes)
    np.testing.assert_allclose(lines["from learned multipliers"].get_ydata(), [5, 5, 6])
    np.testing.assert_allclose(lines["from zero"].get_ydata(), [0, 1, 3])
    assert set(lines) == {"from learned multipliers", "from zero", "plan", "LP bound"}
    assert axes.get_title(loc="left") == "day 0: the optimum lies between bounds and plan"
    low, high = axes.get_ylim()
    assert 2 < low < 3 < 8 < high  # what starts far off is cut away, its end is not


def test_upper_bounds_fall():
    frame = run_of({"learned": [5.0, 6.0, 4.0]})
    axes = plots.convergence(frame, maximise=True).axes[0]
    np.testing.assert_allclose(labelled(axes)["from learned multipliers"].get_ydata(), [5, 5, 4])
    assert axes.get_ylabel() == "certified upper bound so far"
    assert "lies below" in axes.get_title(loc="left")


def test_several_instances_show_the_distance_to_the_best_known():
    frame = run_of({"learned": [90.0, 100.0], "zero": [50.0, 80.0]}, instances=3)
    axes = plots.convergence(frame).axes[0]
    ours = labelled(axes)["from learned multipliers"].get_ydata()
    np.testing.assert_allclose(ours, [100 * 10 / 110, 0.0])  # the median instance's best is 110
    assert "3 instances" in axes.get_title(loc="left")


def test_a_picture_is_the_same_every_time():
    frame = run_of({"learned": [5.0, 4.0, 6.0]})
    first, second = (drawn(plots.convergence(frame), "svg") for _ in range(2))
    assert first == second
