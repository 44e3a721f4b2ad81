"""Pictures: each shows what the measurements say, at any scale's conditions; how they look, eyes have judged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from upheld.claims import Scale
from upheld.hubs import JointHubs, claims, hub_table
from upheld.hubs.data import make_hub_networks
from upheld.hubs.detector import two_sd_line
from upheld.hubs.plots import PICTURES, influence_plot

LASSOS = claims.GRAPHICAL_LASSOS
RACED = {
    "F": ["jic", *claims.AUTHORS_PROTOCOL, *claims.CAREFUL_USER, "average-ipc, score", "random, score",
          *(f"{name}, oracle, score" for name in LASSOS)],
    "AUC": ["jic", *claims.RANKINGS, "random"],
    "seconds, one fit": ["jic", *LASSOS, *claims.INVERSE_COMPONENTS],
}  # fmt: skip
MEASURED = {
    "hubs.race": RACED,
    "hubs.coexistence": RACED,
    "hubs.near-common": RACED,
    "hubs.average": {"F": ["jic", "average-ipc, score"]},
    "hubs.population": {"influence margin": ["jic"], "separated": ["jic"]},
    "hubs.consistency": {"largest error of influence": ["jic"], "TPR": ["jic"], "deviation over bound": ["jic"]},
    "hubs.dimension": {"TPR": [f"jic, s = {factor} sqrt(p)" for factor in ("0.5", "1", "1.5")]},
    "hubs.tumours": {"Jaccard of top 10": ["tumours", "permuted", "rotated"]},
    "hubs.certificate": {"objective over bound": ["jic", "stiefel"]},
}
DRAWN = {claim.id: claim for claim in claims.CLAIMS if claim.id in PICTURES}


def measurements(experiment, scale, repeats=3, seed=0):
    """As the bench would hand them over, with numbers that mean nothing."""
    rng = np.random.default_rng(seed)
    rows = [
        {**condition, "seed": repeat, "item": "", "method": method, "metric": metric, "value": rng.uniform(0.1, 1)}
        for condition in experiment.conditions[scale]
        for repeat in range(repeats)
        for metric, methods in MEASURED[experiment.name].items()
        for method in methods
    ]
    if experiment.name == "hubs.tumours":
        rows += [
            {
                "seed": repeat,
                "item": f"G{gene:04}",
                "method": "jic",
                "metric": "chosen in half",
                "value": float(gene < 3),
            }
            for repeat in range(repeats)
            for gene in range(12)
        ]
    return pd.DataFrame(rows)


def texts(figure):
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_every_picture_belongs_to_a_claim():
    assert set(DRAWN) == set(PICTURES)
    assert {claim.id for claim in claims.CLAIMS} - set(PICTURES) == {"hubs.biology"}


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.QUICK, Scale.FULL])
@pytest.mark.parametrize("claim", DRAWN.values(), ids=DRAWN)
def test_draws_at_every_scale(claim, scale):
    # The average experiment's smoke scale holds the balanced design alone.
    if claim.id == "hubs.minimax-needed" and scale == "smoke":
        pytest.skip("the smoke scale has no near-common design")
    figure = PICTURES[claim.id](measurements(claim.experiment, scale))
    assert figure.get_figwidth() <= 4.2, "wider is not read at 380 pixels"
    assert figure.get_figheight() <= 9
    for axes in figure.axes:
        assert axes.get_xlabel(), "an axis without a name"
        assert axes.get_ylabel() or [label.get_text() for label in axes.get_yticklabels()]


def test_draws_fit_into_the_figure():
    for name, claim in DRAWN.items():
        figure = PICTURES[name](measurements(claim.experiment, Scale.QUICK))
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        assert box.width <= figure.get_figwidth() + 0.35, name


def planted(means, metric, by=("n", [30, 60])):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"p": 60, by[0]: level, "seed": seed, "item": "", "method": method, "metric": metric, "value": mean + 0.01 * rng.random()}
            for method, mean in means.items() for level in by[1] for seed in range(4)
        ]
    )  # fmt: skip


def test_race_names_the_best_rival_and_puts_the_best_on_top():
    frame = planted({"jic": 0.6, "fused-lasso, ic, intersection": 0.8, "hub-lasso, ic, intersection": 0.1}, "F")
    figure = PICTURES["hubs.beats-existing"](frame)
    assert figure.get_suptitle().startswith("F: ours 0.6")
    assert "best rival 0.8" in figure.get_suptitle()
    assert "fused lasso" in figure.get_suptitle()
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["fused lasso", "joint hubs (ours)", "hub lasso"]


def test_race_marks_draws_in_which_the_rival_was_ahead():
    frame = planted({"jic": 0.6, "fused-lasso, ic, intersection": 0.8, "hub-lasso, ic, intersection": 0.1}, "F")
    figure = PICTURES["hubs.beats-existing"](frame)
    hollow = {}
    for dots in figure.axes[0].collections:
        row = round(dots.get_offsets()[0, 1])
        hollow.setdefault(row, set()).update(tuple(colour[:3]) == (1, 1, 1) for colour in dots.get_facecolors())
    assert hollow == {0: {True}, 1: {False}, 2: {False}}


def test_seconds_are_better_when_fewer():
    frame = planted({"jic": 0.02, "fused-lasso": 0.5, "hub-lasso": 2.0}, "seconds, one fit")
    figure = PICTURES["hubs.no-networks-needed"](frame)
    assert "best rival 0.5" in figure.get_suptitle()
    assert figure.axes[0].get_yticklabels()[0].get_text() == "joint hubs (ours)"
    assert figure.axes[0].get_xscale() == "log"


def test_tuned_rivals_show_their_better_rule():
    means = {"jic": 0.6, "fused-lasso, cv, score": 0.3, "fused-lasso, cv, intersection": 0.7,
             "fused-lasso, ic, score": 0.99, "fused-lasso, oracle, score": 0.9}  # fmt: skip
    assert "best rival 0.7" in PICTURES["hubs.beats-tuned"](planted(means, "F")).get_suptitle()


def test_slope_of_the_error_is_that_of_the_measurements():
    frame = pd.DataFrame(
        [{"n": n, "seed": s, "method": "jic", "metric": "largest error of influence", "value": n**-0.5}
         for n in (500, 2000, 8000) for s in range(3)]
    )  # fmt: skip
    assert PICTURES["hubs.consistent"](frame).get_suptitle() == "The error falls like n to the −0.50"


def test_what_was_not_measured_is_an_error_not_an_empty_picture():
    frame = measurements(DRAWN["hubs.tumours"].experiment, Scale.QUICK)
    with pytest.raises((KeyError, IndexError, ValueError)):
        PICTURES["hubs.tumours"](frame[frame["metric"] != "chosen in half"])


# -- one data set


@pytest.fixture(scope="module")
def fitted():
    networks = make_hub_networks(40, 120, n_common=3, n_individual=2, random_state=0)
    X, groups = networks.stacked()
    names = [f"gene_{j}" for j in range(40)]
    return JointHubs().fit(pd.DataFrame(X, columns=names), groups=np.array(["BL", "EWS", "NB"])[groups])


def test_line_is_that_of_the_selection(fitted):
    w = fitted.influence_
    assert set(np.flatnonzero(w > two_sd_line(w))) == set(fitted.hubs_)


def test_influences_by_variable(fitted):
    figure = influence_plot(fitted, null_lines={"permutation": 0.5, "rotation": 0.6})
    left = figure.axes[0]
    labels = left.get_yticklabels()
    table = hub_table(fitted).head(30)
    assert [label.get_text() for label in labels] == list(table["variable"])
    assert [label.get_fontweight() == "bold" for label in labels] == list(table["selected"])
    assert {line.get_xdata()[0] for line in left.lines} >= {two_sd_line(fitted.influence_), 0.5, 0.6}
    shown = texts(figure)
    individual = table.loc[table["kind"].str.startswith("individual"), "kind"]
    assert [text for text in shown if text.startswith("hub of ")] == [
        kind.replace("individual to", "hub of") + " only" for kind in individual
    ]
    assert any(text.startswith("EWS (n = 120)") for text in shown)


def test_there_is_no_picture_before_a_fit():
    with pytest.raises(NotFittedError, match="'fit'"):
        influence_plot(JointHubs())


def test_labels_do_not_overlap(fitted):
    figure = influence_plot(fitted)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))


def test_many_variables_and_odd_names():
    rng = np.random.default_rng(0)
    names = [f"$x_{j}$ [bold] of a name that never seems to end" for j in range(300)]
    X = pd.DataFrame(rng.standard_normal((40, 300)), columns=names)
    estimator = JointHubs(screen=25).fit(X, groups=np.repeat(["a", "b"], 20))
    figure = influence_plot(estimator)
    figure.draw_without_rendering()
    assert figure.axes[0].get_title(loc="left").startswith("Influence of 300 variables, the 30 largest")
    assert len(figure.axes[0].get_yticklabels()) == 30
