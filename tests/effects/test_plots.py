"""Pictures: they show the numbers they are given, at every scale, and come out the same every time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pictures import check_picture, claim_named, pictured
from upheld.claims import Scale
from upheld.effects import plots
from upheld.effects.claims import CLAIMS, PRESETS, REWEIGHTED, SIZES, TIME_KERNEL
from upheld.effects.rivals import RIVALS
from upheld.report.content import drawn

SHARES = ("covered", "covered throughout")
METRICS = (
    "squared error", "absolute error", "bytes", "seconds", "imbalance", "seconds of an update, 99 %", "seconds of a query, 99 %", *SHARES,
)  # fmt: skip
RESERVOIRS = tuple(f"reservoir of equal size, {name}" for name in PRESETS)
METHODS = (*PRESETS, *REWEIGHTED, TIME_KERNEL, *RIVALS, *RESERVOIRS)


def measurements(claim, scale: Scale) -> pd.DataFrame:
    """What a claim's experiment might measure: its conditions, every method, six seeds, values of their own for each method."""
    rng = np.random.default_rng(1)
    rows = []
    conditions = claim.experiment.conditions
    for condition in conditions.get(scale) or conditions[Scale.STANDARD][:8]:
        for number, method in enumerate(METHODS):
            items = [(metric, "") for metric in METRICS] + [("distance", f"k={k}") for k in SIZES]
            for metric, item in items:
                values = rng.random(6) < 0.9 if metric in SHARES else (number + 1) * rng.lognormal(size=6)
                rows += [
                    {**condition, "seed": seed, "item": item, "method": method, "metric": metric, "value": float(value)}
                    for seed, value in enumerate(values)
                ]
    return pd.DataFrame(rows)


WITH_PICTURE = pictured(CLAIMS, plots.PICTURES)


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.QUICK])
@pytest.mark.parametrize("claim", WITH_PICTURE, ids=lambda claim: claim.id)
def test_every_claim_s_picture_is_drawn_from_its_experiment(claim, scale):
    check_picture(plots.PICTURES[claim.id](measurements(claim, scale)))


def test_missing_measurements_are_named():
    frame = measurements(claim_named(CLAIMS, "memory-bounded"), Scale.SMOKE)
    with pytest.raises(ValueError, match="seconds was not measured"):
        plots.seconds(frame[frame["metric"] == "bytes"])


def test_errors_are_roots_of_mean_squares():
    frame = measurements(claim_named(CLAIMS, "both-shifts"), Scale.QUICK)
    ours = (frame["method"] == "as shipped") & (frame["metric"] == "squared error")
    frame.loc[ours & (frame["scenario"] == "none"), "value"] = [0.01, 0.07] * 3
    frame.loc[ours & (frame["scenario"] == "both"), "value"] = 0.25
    axes = plots.PICTURES["effects.both-shifts"](frame).axes[0]
    place = [label.get_text() for label in axes.get_yticklabels()].index("as shipped")
    ends = [line.get_xdata() for line in axes.get_lines() if list(line.get_ydata()) == [place, place]]
    np.testing.assert_allclose(ends, [[0.2, 0.5]])


def way(arms: dict[object, list[float | None]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "n": 1000 * (i + 1),
            "arm": arm,
            "ate": ate,
            "low": None if ate is None else ate - 1,
            "high": None if ate is None else ate + 2,
        }
        for arm, values in arms.items()
        for i, ate in enumerate(values)
    )


def test_the_estimate_has_its_band_and_the_difference_in_means():
    axes = plots.estimate_so_far(way({1: [None, 3.0, 4.0]}), difference={"1": 2.5}).axes[0]
    drawn_lines = {line.get_label(): line for line in axes.get_lines()}
    np.testing.assert_allclose(drawn_lines["effect so far"].get_ydata(), [np.nan, 3, 4])
    np.testing.assert_allclose(drawn_lines["difference in means"].get_ydata(), [2.5, 2.5])
    band = axes.collections[0].get_paths()[0].vertices
    at_end = band[band[:, 0] == 3000][:, 1]
    assert (at_end.min(), at_end.max()) == (3, 6)


@pytest.mark.parametrize("arms", [{1: [3.0]}, {"a": [1.0, 2.0], "b": [2.0, None]}])
def test_one_report_and_several_arms(arms):
    drawn(plots.estimate_so_far(way(arms), difference={str(arm): 0.0 for arm in arms}), "svg")


def test_love_orders_covariates_and_takes_the_worst_arm():
    balance = pd.DataFrame(
        [
            ("age", 1, 0.1, 0.01), ("sex", 1, 0.5, 0.02), ("age", 2, 0.3, 0.05), ("sex", 2, 0.2, 0.01), ("none", 1, 0.0, 0.0),
            ("(all features)", 1, 0.9, 0.1),
        ],
        columns=["covariate", "arm", "smd_before", "smd_after"],
    )  # fmt: skip
    axes = plots.love(balance).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age", "sex"]  # the worst on top
    marks = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    np.testing.assert_allclose(marks["before"], [0.3, 0.5])
    np.testing.assert_allclose(marks["after weighting"], [0.05, 0.02])
    many = pd.DataFrame({"covariate": [f"x{i}" for i in range(40)], "arm": 1, "smd_before": 0.2, "smd_after": 0.1})
    assert "15 more" in plots.love(many).axes[0].get_title(loc="left")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_bytes_every_time(ending):
    first, second = (drawn(plots.estimate_so_far(way({1: [3.0, 4.0]})), ending) for _ in range(2))
    assert first == second
