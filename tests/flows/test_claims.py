"""Every experiment measures what the rules read, at smoke scale; the parts that decide are checked on cases with a known answer."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from upheld.claims import NotRun, Outcome, Scale, Trial, judge
from upheld.claims.measurements import Measurements
from upheld.claims.rules import Reported
from upheld.flows import claims
from upheld.flows.claims import CLAIMS, cifar, pictures, race
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
NOT_HERE = "flows.cifar"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
        for name, experiment in EXPERIMENTS.items()
        if experiment.conditions.get(Scale.SMOKE) and name != NOT_HERE
    ],
)
def test_every_experiment_measures_what_its_claims_read(name):
    data = measured(EXPERIMENTS[name])
    for claim in CLAIMS:
        if claim.experiment.name == name:
            judgement = claim.rule.judge(data)  # raises where a cell is missing
            assert judgement.findings
            if isinstance(claim.rule, Reported):
                assert judgement.outcome is Outcome.REPORTED


FEW = {"each": 2, "tune_each": 2, "settings": 1, "epochs": 0.2, "width": 8}


@pytest.fixture
def race_of_two(monkeypatch):
    """Few steps and two methods: what is tested is that pictures go through."""
    monkeypatch.setattr(race, "STEPS", 8)
    monkeypatch.setattr(race, "PARTICLES", 2)
    for table in (race.METHODS, race.GRIDS):
        for name in set(table) - {"TFTF", "FlowChef"}:
            monkeypatch.delitem(table, name)


@pytest.fixture
def folder_of_pictures(tmp_path, monkeypatch):
    """Forty pictures of each of ten classes, a bright square whose place is the class."""
    random = np.random.default_rng(0)
    for part, each in (("train", 40), ("t10k", 20)):
        labels = np.tile(np.arange(10), each).astype(np.uint8)
        images = random.integers(0, 60, (len(labels), 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 + 5 * (label // 2) : 7 + 5 * (label // 2), 3 + 14 * (label % 2) : 11 + 14 * (label % 2)] = 250
        for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
            head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
            (tmp_path / f"{part}-{kind}-ubyte").write_bytes(head + values.tobytes())
    monkeypatch.setenv(pictures.FOLDER, str(tmp_path))


def test_pictures_are_raced_and_judged_by_two_judges_that_did_not_guide(folder_of_pictures, race_of_two):
    trial = Trial(EXPERIMENTS["flows.pictures"].name, FEW, 0, Scale.STANDARD)
    found = pd.DataFrame([vars(one) for one in pictures.measure_pictures(trial)])
    assert set(found["method"]) == {"TFTF", "FlowChef"}
    assert np.isfinite(found["value"]).all()
    shares = found[found["metric"].str.endswith("accuracy")]["value"]
    assert shares.between(0, 1).all()
    assert set(found["metric"]) == {
        "FD-judge",
        "judge accuracy",
        "guide accuracy",
        "nearest-neighbour accuracy",
        "guide above judge",
    }


def test_guide_and_judge_share_no_picture(folder_of_pictures):
    of = pictures.rows()
    assert [len(part[0]) for part in (of.train, of.judges, of.held_out)] == [200, 200, 200]
    assert float(torch.cdist(of.train[0].flatten(1), of.judges[0].flatten(1)).min()) > 0


def test_without_pictures_the_claim_is_not_run_and_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv(pictures.FOLDER, str(tmp_path / "none"))
    with pytest.raises(NotRun, match=r"apt install dataset-fashion-mnist, or .* UPHELD_PICTURES"):
        pictures.rows()


@pytest.mark.slow
def test_captions_of_a_trained_network(race_of_two):
    condition = {"captions": 2, "model_steps": 5, "flow_steps": 2, "width": 8}
    trial = Trial(EXPERIMENTS["flows.captions-trained"].name, condition, 0, Scale.STANDARD)
    found = list(claims.measure_captions(trial))
    assert {one.method for one in found} >= {"TFTF", "importance sampling", "unconditional"}
    assert all(one.value in (0.0, 1.0) for one in found if one.metric == "caption found again")


def test_what_only_a_user_has_is_not_run(tmp_path, monkeypatch):
    monkeypatch.delenv(cifar.FOLDER, raising=False)
    for scale in (Scale.QUICK, Scale.FULL):
        trial = next(iter(EXPERIMENTS["flows.cifar"].trials(scale)))
        with pytest.raises(
            NotRun, match=r"CIFAR-10 and a flow checkpoint .* name with UPHELD_CIFAR the folder that holds"
        ):
            list(EXPERIMENTS["flows.cifar"].measure(trial))
    monkeypatch.setenv(cifar.FOLDER, str(tmp_path))
    with pytest.raises(NotRun, match=r"which UPHELD_CIFAR names, has no flow.pt; put the TorchScript file there"):
        list(EXPERIMENTS["flows.cifar"].measure(trial))


class Still(torch.nn.Module):
    """The velocity of data N(0, I)."""

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return x * (2 * t - 1) / (t * t + (1 - t) * (1 - t))


def test_cifar_is_measured_where_the_user_has_it(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in [*(f"data_batch_{part}" for part in range(1, 6)), "test_batch"]:
        rows = np.c_[np.arange(20) % 10, rng.integers(0, 256, (20, 3072))].astype(np.uint8)
        (tmp_path / f"{name}.bin").write_bytes(rows.tobytes())
    nets = {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)) for name in ("guide", "judge")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, net in {"flow": Still(), **nets}.items():
            torch.jit.script(net).save(str(tmp_path / f"{name}.pt"))
    monkeypatch.setenv(cifar.FOLDER, str(tmp_path))
    for constant, value in (
        ("PUBLISHED", {"n_steps": 8, "n_particles": 2}),
        ("EACH", 2),
        ("STEPS", (0.1, 1.0)),
        ("TUNED_AT", 2),
    ):
        monkeypatch.setattr(cifar, constant, value)
    found = list(cifar.measure_cifar(next(iter(EXPERIMENTS["flows.cifar"].trials(Scale.FULL)))))
    assert {one.method for one in found} == {"TFTF", "FlowChef"}
    assert all(0 <= one.value <= 1 for one in found if one.metric.endswith("accuracy"))
    assert len(found) == 8


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
