"""The experiments of memory: each runs small, and measures what the rules of its claims read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.claims import Measurements, Scale, Trial
from upheld.memory.claims import CLAIMS, ENTROPY, SURVIVAL, boundary, measure_entropy, temperatures

EXPERIMENTS = {claim.experiment.name: claim.experiment for claim in CLAIMS}
BEYOND_SMOKE = {  # read what only larger scales measure: every load, several N, M = 1,500, N = 70
    "memory.lse-line", "memory.lse-finite-line", "memory.lsr-any-temperature-large-N", "memory.lsr-line", "memory.exponentially-many",
    "memory.capacity-half", "memory.capacity-half-gaussian",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.filterwarnings("ignore")
def test_a_smoke_run_measures_what_the_rules_read(name):
    experiment = EXPERIMENTS[name]
    rows = [
        {**trial.condition, "seed": trial.seed, "item": one.item, "method": one.method, "metric": one.metric, "value": one.value}
        for trial in experiment.trials(Scale.SMOKE)
        for one in experiment.measure(trial)
    ]  # fmt: skip
    data = Measurements(pd.DataFrame(rows), experiment.units)
    for claim in CLAIMS:
        if claim.experiment is experiment and claim.id not in BEYOND_SMOKE:
            assert claim.rule.judge(data).findings, claim.id


def test_ids_are_the_package_s_and_stand_once():
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(claim.method == "memory" and claim.rule.words() for claim in CLAIMS)


def test_a_trial_repeats_itself():
    trial = Trial(SURVIVAL.name, SURVIVAL.conditions[Scale.SMOKE][0], 3, Scale.SMOKE)
    assert list(SURVIVAL.measure(trial)) == list(SURVIVAL.measure(trial))


def test_the_entropy_of_another_dimension_would_be_noticed(monkeypatch):
    """The measure is no identity: a curve of the wrong dimension differs by more than the margin."""
    import upheld.memory.claims as claims

    trial = Trial(ENTROPY.name, {"T": 0.6, "sweeps": 30_000}, 0, Scale.SMOKE)
    right = {one.method: one.value for one in measure_entropy(trial) if one.metric == "largest difference"}
    sphere = claims.energy_density
    monkeypatch.setattr(claims, "energy_density", lambda phi, kernel: 1.15 * sphere(phi, kernel))
    wrong = {one.method: one.value for one in measure_entropy(trial) if one.metric == "largest difference"}
    assert right["lse"] < 0.01 < wrong["lse"]


def test_boundary_and_temperatures():
    assert boundary([0.1, 0.2, 0.3], [True, True, False]) == pytest.approx(0.25)
    assert boundary([0.1, 0.2, 0.3], [False, True, True]) == pytest.approx(0.1)
    assert boundary([0.1, 0.2, 0.3], [True, True, True]) == pytest.approx(0.3)
    assert temperatures(0.02, 5)[-1] == 6
    assert np.all(np.diff(temperatures(0.3, 12)) > 0)
