"""Every experiment measures what the rules read, at smoke scale; the parts that decide are checked on cases with a known answer."""

from __future__ import annotations

import math

import pandas as pd
import pytest
import torch

from upheld.claims import NotRun, Outcome, Scale, judge
from upheld.claims.measurements import Measurements
from upheld.claims.rules import Reported
from upheld.flows import claims, race
from upheld.flows.claims import CLAIMS
from upheld.flows.likelihoods import ClassifierLikelihood
from upheld.flows.mixture import GaussianMixtureFlow
from upheld.flows.rivals import at_cost

EXPERIMENTS = {claim.experiment.name: claim.experiment for claim in CLAIMS}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPHELD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def measured(experiment):
    """All smoke trials of an experiment as a table."""
    rows = []
    for trial in experiment.trials(Scale.SMOKE):
        for recipe in experiment.prepare(trial):
            recipe.folder()
        base = {**trial.condition, "seed": trial.seed}
        rows.extend({**base, **vars(one)} for one in experiment.measure(trial))
    return Measurements(pd.DataFrame(rows), experiment.units)


SLOW = ("flows.race", "flows.captions")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXPERIMENTS if name != "flows.cifar"],
)
def test_every_experiment_measures_what_its_claims_read(name):
    data = measured(EXPERIMENTS[name])
    for claim in CLAIMS:
        if claim.experiment.name == name:
            judgement = claim.rule.judge(data)  # raises where a cell is missing
            assert judgement.findings
            if isinstance(claim.rule, Reported):
                assert judgement.outcome is Outcome.REPORTED


def test_what_only_a_user_has_is_not_run():
    (trial,) = EXPERIMENTS["flows.cifar"].trials(Scale.QUICK)
    with pytest.raises(NotRun, match="CIFAR-10 and a flow checkpoint"):
        EXPERIMENTS["flows.cifar"].measure(trial)


def test_ids_are_unique_and_every_scale_repeats_enough():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.id.startswith("flows.") for claim in CLAIMS)
    assert callable(judge)


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0.01154), (0.5, 0.00948), (1.0, 0.00431), (2.0, 0.00062)])
def test_the_linear_chain_ends_where_the_specification_says(noise, expected):
    mean, variance = claims._end_of_chain(256, noise)
    assert math.hypot(mean - 1, math.sqrt(variance) - 2) == pytest.approx(expected, abs=2.5e-5)


def test_one_batch_of_all_classes_is_every_class_alone():
    """The likelihood of a group is that of its own class, whatever number of particles a group has."""
    guide = torch.nn.Linear(64, 10)
    many = race.PerGroup(lambda x: torch.log_softmax(guide(x), 1), torch.tensor([3, 7]))
    x = torch.randn(6, 64)
    each = torch.cat([ClassifierLikelihood(guide, c).log_prob(x[i : i + 3]) for i, c in ((0, 3), (3, 7))])
    torch.testing.assert_close(many.log_prob(x), each)


def test_every_method_of_the_race_has_the_same_budget():
    flow = GaussianMixtureFlow(torch.zeros(1, 64), 1.0)
    likelihood = race.PerGroup(lambda x: torch.log_softmax(x[:, :10], 1), torch.arange(10))
    allowed = race.budget(flow, likelihood)
    assert allowed == 16 * (64 + 2 * 44)
    for name, grid in race.GRIDS.items():
        for setting in grid + race.WIDER.get(name, []):
            method = race.built(name, flow, likelihood, setting, allowed)
            assert method.cost <= allowed
            if setting.get("restarts") != "one":
                assert method.cost > 0.6 * allowed
    assert set(race.GRIDS) == set(race.METHODS)
    assert at_cost(race.tftf(flow, likelihood), allowed).cost == allowed


def test_distance_is_the_mean_over_classes():
    x = torch.arange(10.0).repeat_interleave(3)[:, None]
    labels = torch.arange(10).repeat_interleave(3)
    assert race.distance(x, labels, (x, labels)) == 0
    assert race.distance(x + 1, labels, (x, labels)) == pytest.approx(2.0)
