"""Pictures: they show the numbers they are given, at every scale, and come out the same every time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pictures import check_picture, claim_named, pictured
from upheld.bandits import plots
from upheld.bandits.claims import ALL_POLICIES, CLAIMS
from upheld.claims import Scale
from upheld.report.content import drawn

METRICS = (
    "regret", "threshold regret", "refined regret", "refined regret before", "growth of refined regret", "ends on a bad arm",
    "last bad pull", "refined regret over bound", "refined regret over lower bound",
)  # fmt: skip


def measurements(claim, scale: Scale) -> pd.DataFrame:
    """What a claim's experiment might measure: its conditions, all policies, 20 runs, values of their own for each policy."""
    rng = np.random.default_rng(1)
    rows = []
    for condition in claim.experiment.conditions[scale]:
        for p, policy in enumerate(ALL_POLICIES):
            for metric in METRICS:
                values = (p + 1) * rng.lognormal(size=20)
                rows += [
                    {
                        **condition,
                        "seed": 0,
                        "item": str(run),
                        "method": policy,
                        "metric": metric,
                        "value": float(value),
                    }
                    for run, value in enumerate(values)
                ]
    return pd.DataFrame(rows)


WITH_PICTURE = pictured(CLAIMS, plots.PICTURES)


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.QUICK])
@pytest.mark.parametrize("claim", WITH_PICTURE, ids=lambda claim: claim.id)
def test_every_claim_s_picture_is_drawn_from_its_experiment(claim, scale):
    check_picture(plots.PICTURES[claim.id](measurements(claim, scale)))


def test_missing_measurements_are_named():
    frame = measurements(claim_named(CLAIMS, "near-threshold"), Scale.QUICK)
    with pytest.raises(ValueError, match="refined regret was not measured"):
        plots.tails(frame[frame["metric"] == "regret"])


def paths(runs: dict[str, list[list[float]]]) -> pd.DataFrame:
    """Regret at marks 1, 10 and 100, runs in rows."""
    return pd.DataFrame(
        {
            "policy": policy,
            "run": run,
            "mark": mark,
            "regret_refined": value,
            "regret": value,
            "regret_threshold": value,
        }
        for policy, table in runs.items()
        for run, values in enumerate(table)
        for mark, value in zip((1, 10, 100), values, strict=True)
    )


def test_regret_over_time_shows_mean_and_quantiles():
    frame = paths({"uncertain-ucb": [[0, 1, 1], [0, 3, 5]], "ucb": [[0, 2, 9], [0, 2, 11]]})
    axes = plots.regret_over_time(frame, title="bootstrap of log.csv").axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    np.testing.assert_allclose(lines["uncertain-ucb"].get_ydata(), [0, 2, 3])
    np.testing.assert_allclose(lines["ucb"].get_ydata(), [0, 2, 10])
    np.testing.assert_allclose(lines["ucb"].get_xdata(), [1, 10, 100])
    band = axes.collections[0].get_paths()[0].vertices
    at_end = band[band[:, 0] == 100][:, 1]
    np.testing.assert_allclose([at_end.min(), at_end.max()], [1.4, 4.6])  # of 1 and 5
    assert axes.get_xscale() == "log"
    assert "bootstrap of log.csv" in axes.get_title(loc="left")


def timeline(lower: dict[str, list[float]], threshold: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"mark": 10**i, "arm": arm, "pulls": i, "lower": value, "certified": value >= threshold}
        for arm, values in lower.items()
        for i, value in enumerate(values)
    )


def test_certificates_are_thick_where_they_hold():
    seen = timeline({"a": [-np.inf, 0.2, 0.6, 0.4, 0.7], "b": [-np.inf, 0.1, 0.1, 0.1, 0.1]}, 0.5)
    axes = plots.certificates(seen, 0.5, title="one run").axes[0]
    (thick,) = [line for line in axes.get_lines() if line.get_linewidth() > 2]
    assert thick.get_label() == "a"
    np.testing.assert_allclose(thick.get_ydata(), [np.nan, 0.6, np.nan, 0.7])


@pytest.mark.parametrize("threshold", [0.7, 70.0])
def test_certificates_show_the_threshold_however_far_the_bounds_are(threshold):
    picture = plots.certificates(timeline({"a": [7.0, 7.1, 7.2], "b": [7.0, 6.9, 6.8]}, threshold), threshold)
    low, high = picture.axes[0].get_ylim()
    assert low <= threshold < high


@pytest.mark.parametrize("threshold", [0.5, 2.0, np.inf, -np.inf])
def test_certificates_of_a_run_that_certified_nothing_or_everything(threshold):
    picture = plots.certificates(timeline({"a": [-np.inf, 0.2, 0.3], "b": [-np.inf, 0.1, 0.1]}, threshold), threshold)
    title = picture.axes[0].get_title(loc="left")
    assert ("no arm was certified" in title) == (threshold > 0.3)
    drawn(picture, "svg")


def test_tails_are_shares_of_runs_above():
    claim = claim_named(CLAIMS, "near-threshold")
    frame = measurements(claim, Scale.QUICK)
    frame.loc[(frame["method"] == "sat-ucb") & (frame["metric"] == "refined regret"), "value"] = [4.0, *19 * [2.0]] * 3
    axes = plots.tails(frame).axes[-1]
    (line,) = [line for line in axes.get_lines() if line.get_label() == "sat-ucb"]
    assert 0.05 in np.round(line.get_ydata(), 6)
    assert set(line.get_xdata()) == {2.0, 4.0}


def test_fits_are_those_of_numpy_on_known_curves():
    """Regret that is exactly 5 + 3 ln(1/excess): the dashed fit goes through it."""
    frame = measurements(claim_named(CLAIMS, "bounds-match"), Scale.QUICK)
    frame["value"] = 5 + 3 * np.log(1 / frame["excess"])
    axes = plots.excess(frame).axes[0]
    (fit,) = [line for line in axes.get_lines() if line.get_linestyle() == "--" and len(line.get_xdata()) > 2][:1]
    np.testing.assert_allclose(fit.get_ydata(), 5 + 3 * np.log(1 / fit.get_xdata()))


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_bytes_every_time(ending):
    frame = paths({"uncertain-ucb": [[0, 1, 1], [0, 3, 5]]})
    first, second = (drawn(plots.regret_over_time(frame), ending) for _ in range(2))
    assert first == second


def test_policies_keep_their_colour_and_unknown_ones_get_one():
    colours = {plots.style(policy)[:2] for policy in ALL_POLICIES}
    assert len(colours) == len(ALL_POLICIES)
    assert plots.style("my-own") == plots.style("my-own")
