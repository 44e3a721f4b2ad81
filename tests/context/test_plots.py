"""Pictures: every claim's is drawn from its experiment; missing measurements are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pictures import check_picture, claim_named, pictured
from upheld.claims import Scale
from upheld.context import plots
from upheld.context.claims import CAPS, CLAIMS, DOMAINS
from upheld.context.claims.race import BUDGETS
from upheld.context.plots.of_claims import LOOKS

METHODS = [
    *LOOKS,
    *CAPS,
    "learned with embedding",
    "learned with tfidf",
    "learned with model 1",
    "learned with model 2",
    "learned with model 3",
    "embedding",
    "SmolLM2",
    "first skill",
]
METRICS = [
    "score", "tokens", "rollouts to ACE's score", "seconds to ACE's score", "reaches ACE's score", "tokens of the store", "gain",
    "gain, same reader", "gain, other reader",
]  # fmt: skip
ITEMS = {
    "score within a budget": BUDGETS, "tokens within a budget": BUDGETS, "score of a batch": range(1, 11), "test by iteration": range(7),
    "validation by iteration": range(7), "score of a skill": DOMAINS,
}  # fmt: skip


def measurements(claim, scale: Scale) -> pd.DataFrame:
    """What a claim's experiment might measure, values of its own for each method."""
    rng = np.random.default_rng(1)
    named = [(metric, "") for metric in METRICS] + [
        (metric, str(item)) for metric, items in ITEMS.items() for item in items
    ]
    rows = [
        {
            **condition,
            "seed": seed,
            "item": item,
            "method": method,
            "metric": metric,
            "value": float(rng.random() + 0.1),
        }
        for condition in claim.experiment.conditions[scale]
        for seed in range(2)
        for method in METHODS
        for metric, item in named
    ]
    rows += [{**row, "method": "skill of another domain"} for row in rows if row["method"] == "first skill"]
    return pd.DataFrame(rows)


WITH_PICTURE = pictured(CLAIMS, plots.PICTURES)


def test_every_claim_has_a_picture():
    assert {claim.id for claim in CLAIMS} == set(plots.PICTURES)


DRAWN = {
    (repr(plots.PICTURES[claim.id]), claim.experiment.name, scale): (claim, scale)
    for claim in WITH_PICTURE
    for scale in (Scale.SMOKE, Scale.QUICK, Scale.FULL)
    if scale is not Scale.FULL or Scale.QUICK not in claim.experiment.conditions
    if scale in claim.experiment.conditions
}
"""Claims of one experiment with the same picture are drawn once."""


@pytest.mark.parametrize(("claim", "scale"), DRAWN.values(), ids=lambda one: getattr(one, "id", str(one)))
def test_every_claim_s_picture_is_drawn_from_its_experiment(claim, scale):
    check_picture(plots.PICTURES[claim.id](measurements(claim, scale)))


def test_missing_measurements_are_named():
    frame = measurements(claim_named(CLAIMS, "ctx-eff"), Scale.SMOKE)
    with pytest.raises(ValueError, match="tokens within a budget was not measured"):
        plots.PICTURES["context.ctx-eff"](frame[frame["metric"] != "tokens within a budget"])


def test_a_domain_shows_the_means_of_its_own_seeds():
    frame = measurements(claim_named(CLAIMS, "offline"), Scale.QUICK)
    ours = (
        (frame["method"] == "MCE")
        & (frame["metric"] == "score")
        & (frame["domain"] == "triage")
        & (frame["length"] == "own")
    )
    frame.loc[ours, "value"] = [0.25, 0.75]
    axes = plots.PICTURES["context.offline"](frame).axes[0]
    means = next(line for line in axes.lines if line.get_label() == "MCE")
    row = round(float(np.asarray(means.get_ydata())[list(np.asarray(means.get_xdata())).index(0.5)]))
    assert axes.get_yticklabels()[row].get_text() == "triage"
