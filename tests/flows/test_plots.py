"""Every picture is drawn from what its experiment measures, and from what the command has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.flows.claims import CLAIMS, race
from upheld.flows.plots import PICTURES, ess_over_time, sample_grid
from upheld.report.content import drawn

METRICS = {
    "flows.importance-degenerates": ("ESS share",),
    "flows.linear-cost": ("seconds",),
    "flows.beats-rivals": ("energy distance", "judge accuracy"),
}


def frame(claim: str) -> pd.DataFrame:
    metrics = METRICS.get(claim) or (PICTURES[claim].keywords["metric"],)
    rng = np.random.default_rng(0)
    rows = [
        {"d": d, "K": d, "seed": seed, "method": method, "metric": metric, "value": rng.uniform(0.1, 1)}
        for d in (2, 8)
        for seed in range(4)
        for method in race.METHODS
        for metric in metrics
    ]
    return pd.DataFrame(rows)


def test_pictures_are_of_claims():
    assert set(PICTURES) <= {claim.id for claim in CLAIMS}


@pytest.mark.parametrize("claim", sorted(PICTURES))
def test_each_is_drawn(claim):
    assert drawn(PICTURES[claim](frame(claim)), "png")[:4] == b"\x89PNG"


@pytest.mark.parametrize("shape", [(5, 64), (3, 10), (70, 1, 8, 8), (9, 3, 8, 8), (2, 4), (70, 2)])
def test_samples_of_every_kind_are_drawn(shape):
    made = sample_grid(np.random.default_rng(0).normal(size=shape))
    pictures = sum(len(axes.images) for axes in made.axes)
    assert pictures == (0 if shape in ((3, 10), (70, 2)) else min(64, shape[0]))


def test_effective_particles_are_drawn():
    made = ess_over_time({"time": [0.2, 0.5, 1.0], "mean": [8.0, 4.0, 6.0], "resampled": [0.0, 0.5, 0.0]}, 8)
    assert made.axes[0].get_ylim()[1] > 8
