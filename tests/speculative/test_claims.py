"""The experiments of speculative: each runs small, measures what the rules of its claims read, and would notice what is wrong."""

from __future__ import annotations

import os
import sys
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from upheld.claims import Measurements, Outcome, Scale, Trial
from upheld.speculative import DFlashDrafter
from upheld.speculative.claims import CLAIMS, costs, exactness, real
from upheld.speculative.claims.costs import ceilings, slope
from upheld.speculative.claims.exactness import (
    PREFIXES,
    SAMPLING,
    WRONG,
    Unrejected,
    divergence,
    law_of_texts,
    noise,
    pearson,
    place,
    tiny,
)
from upheld.speculative.claims.race import drafter_alone, nats, paces
from upheld.speculative.claims.trained import HeldStates
from upheld.speculative.heads import EagleHead, MedusaHeads
from upheld.speculative.rivals import Decoded

sys.path.insert(0, str(Path(__file__).parent))
from tokenizers_of_bytes import byte_tokenizer

EXPERIMENTS = {claim.experiment.name: claim.experiment for claim in CLAIMS}
BEYOND_SMOKE = {"speculative.lossless-6x-somewhere"}  # reads every family


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if Scale.SMOKE in one.conditions])
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


# -- what no smoke run reaches, on a tiny target in the place of SmolLM2


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Standard-scale experiments with a random Llama as the real model, its folder of prepared files apart."""
    target, tokenizer = deepcopy(tiny(0)).float(), byte_tokenizer()
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path))
    for module in (costs, exactness, real):
        for name in ("smollm2", "real"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, lambda *_: (target, tokenizer))
    untrained = DFlashDrafter.from_target(target, block_size=4, num_layers=1)
    for module in (exactness, real):
        monkeypatch.setattr(module, "drafter_for", lambda _target: untrained)
    heads = {"EAGLE-style": EagleHead, "Medusa": MedusaHeads}
    made = {name: partial(kind.from_target, block_size=8) for name, kind in heads.items()}
    monkeypatch.setattr(real, "KINDS", {**real.KINDS, "five taps": partial(real.block_drafter, taps=1), **made})
    real.trained.cache_clear()
    yield target
    real.trained.cache_clear()


def judged(experiment, conditions, scale, seeds=(0,)):
    """Outcome of every claim on the experiment, measured so small."""
    rows = []
    for condition in conditions:
        for seed in seeds:
            trial = Trial(experiment.name, condition, seed, scale)
            rows += [
                {**condition, "seed": seed, "item": one.item, "method": one.method, "metric": one.metric, "value": one.value}
                for one in experiment.measure(trial)
            ]  # fmt: skip
    frame = pd.DataFrame(rows)
    data = Measurements(frame, experiment.units)
    return frame, {c.id: c.rule.judge(data).outcome for c in CLAIMS if c.experiment is experiment}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "scale", "tokens"), [(real.REAL, Scale.STANDARD, 12), (real.REAL_CHANGED, Scale.FULL, 24)]
)
def test_drafters_of_the_real_model_are_trained_once_and_raced(small, experiment, scale, tokens):
    condition = {"family": "prose", "seconds": 0.1, "answers": 12, "tokens": tokens, "repeats": 1}
    trial = Trial(experiment.name, condition, 0, scale)
    for recipe in experiment.prepare(trial):
        recipe.folder()
    before = {path: path.stat().st_mtime_ns for path in Path(os.environ["UPHELD_CACHE"]).rglob("weights.pt")}
    _, outcomes = judged(experiment, [condition], scale)
    assert set(outcomes.values()) == {Outcome.INCONCLUSIVE}, outcomes
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert len(before) == len(real.RACED if experiment is real.REAL else real.CHANGED)


def test_batches_are_measured_at_every_size(small):
    conditions = [{"batch": batch, "tokens": 6} for batch in (1, 3)]
    frame, outcomes = judged(real.BATCHES, conditions, Scale.STANDARD)
    assert set(outcomes.values()) == {Outcome.INCONCLUSIVE}
    assert len(frame) == 6


def test_the_same_layers_token_after_token_take_a_forward_each(small, monkeypatch):
    monkeypatch.setattr(costs, "DRAFTED", (2, 4))
    found = list(costs.measure_autoregressive(Trial(costs.COSTS_OF_STEPS.name, {"turns": 1}, 0, Scale.STANDARD)))
    forwards = {(one.method, one.item): one.value for one in found if one.metric == "forwards a cycle"}
    assert forwards == {("DFlash", "2"): 1, ("DFlash", "4"): 1, ("autoregressive", "2"): 2, ("autoregressive", "4"): 4}


def test_the_first_token_has_the_targets_law_and_a_wrong_verifier_is_caught(small):
    frame, outcomes = judged(exactness.FIRST_TOKEN, [{"rows": 20_000}], Scale.STANDARD, seeds=(0, 1))
    assert set(outcomes.values()) == {Outcome.UPHELD}
    assert frame[frame["method"] == WRONG]["value"].max() < 1e-3


def test_ids_are_the_package_s_and_stand_once():
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(claim.method == "speculative" and claim.rule.words() for claim in CLAIMS)


def test_a_trial_of_sampling_repeats_itself_and_catches_the_wrong_verifier():
    trial = Trial(SAMPLING.name, {"rows": 4_000, "draws": 5}, 0, Scale.SMOKE)
    first = list(SAMPLING.measure(trial))
    assert first == list(SAMPLING.measure(trial))
    p = {
        name: [one.value for one in first if one.method == name and one.metric == "p"] for name in ("rejection", WRONG)
    }
    assert len(p["rejection"]) == len(p[WRONG]) == 5
    assert max(p[WRONG]) < 1e-3 < min(p["rejection"])


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([0.02, 0.5, 0.9], Outcome.UPHELD),
        ([0.003, 0.5, 0.9], Outcome.INCONCLUSIVE),  # 0.009 after Holm
        ([0.0003, 0.5, 0.9], Outcome.NOT_UPHELD),
        ([0.0004, *[0.5] * 29], Outcome.UPHELD),  # 0.012 among thirty
    ],
)
def test_holm_weighs_how_many_tests_there_were(values, outcome):
    frame = pd.DataFrame(
        {"seed": range(len(values)), "item": "", "method": "rejection", "metric": "p", "value": values}
    )
    assert Unrejected("p", ("rejection",)).judge(Measurements(frame)).outcome is outcome


def test_law_of_texts_is_the_product_along_the_prefixes():
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(8), size=73)
    whole = law_of_texts(torch.from_numpy(laws))
    assert whole.sum() == pytest.approx(1)
    number = {prefix: i for i, prefix in enumerate(PREFIXES)}
    for text in ((0, 0, 0), (3, 7, 1), (7, 0, 5)):
        chance = np.prod([laws[number[text[:k]], text[k]] for k in range(3)])
        assert whole[text[0] * 64 + text[1] * 8 + text[2]] == pytest.approx(chance)
        for length in range(3):
            assert int(place(torch.tensor([text]), length)[0]) == number[text[:length]]


def test_pearson_on_a_table_by_hand():
    """Counts 45 and 55 where 50 and 50 are expected: chi-square 1 with one degree of freedom, p = 0.3173."""
    assert pearson(np.array([45, 55]), np.array([0.5, 0.5])) == pytest.approx(0.3173, abs=1e-4)
    assert pearson(np.array([99, 1]), np.array([1.0, 0.0])) == 0
    assert pearson(np.array([2, 2]), np.array([0.5, 0.5])) == 1


def test_divergence_is_the_gap_where_texts_part():
    target, prompt = tiny(0), torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        logits = target(input_ids=torch.tensor([[1, 2, 3, 9]])).logits[0, -1]
    first, second = logits.topk(2).values.tolist()
    theirs = torch.tensor([9, int(logits.argmax()), 4])
    assert divergence(target, prompt, theirs, theirs) is None
    assert divergence(target, prompt, theirs, torch.tensor([9, 0, 4])) == pytest.approx(first - second, rel=1e-5)
    assert divergence(target, prompt, theirs, theirs[:2]) == float("inf")


def test_noise_of_float64_is_rounding():
    assert noise(tiny(0), torch.tensor([[1, 2, 3]]), torch.arange(20)) < 1e-11


def test_nats_by_hand():
    target, prompt = tiny(0), torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        laws = target(input_ids=torch.tensor([[1, 2, 3, 7]])).logits[0].float().log_softmax(-1)
        assert nats(target, prompt, torch.tensor([7, 8])) == pytest.approx(
            -float(laws[2, 7] + laws[3, 8]) / 2, rel=1e-5
        )


def test_what_the_drafter_says_alone_is_its_own_blocks():
    target, prompt = tiny(0), torch.tensor([[1, 2, 3]])
    drafter = DFlashDrafter.from_target(target, block_size=4, num_layers=1)
    with torch.inference_mode():
        text = drafter_alone(target, drafter, prompt, 7)
        assert torch.equal(drafter_alone(target, drafter, prompt, 3), text[:3])
        # The second block follows the first as it would follow a prompt that ends with it.
        assert torch.equal(drafter_alone(target, drafter, torch.cat([prompt, text[None, :3]], dim=1), 3), text[3:6])
    assert len(text) == 7


def test_paces_leave_out_the_prefill():
    texts = [Decoded(torch.arange(5), 9.0, 2.0, 4.0, 4), Decoded(torch.arange(5), 9.0, 4.0, 8.0, 4)]
    assert paces(texts) == {
        "seconds a token": 0.75,
        "wall seconds a token": 1.5,
        "prefill seconds": 9.0,
        "tokens": 5.0,
    }


def test_what_is_left_of_a_speed_up_is_the_ratio_of_two_unit_by_unit():
    """Speed-ups 4 and 9 greedily, 2 and 3 sampled: 1/2 and 1/3 are left, 1/sqrt(6) in geometric mean."""
    seconds = {("a", 0.0): (8.0, 2.0), ("a", 1.0): (8.0, 4.0), ("b", 0.0): (9.0, 1.0), ("b", 1.0): (9.0, 3.0)}
    rows = [
        {"temperature": temperature, "seed": 0, "item": item, "method": method, "metric": "seconds a token", "value": value}
        for (item, temperature), values in seconds.items()
        for method, value in zip(("plain", "DFlash"), values, strict=True)
    ]  # fmt: skip
    (asked,) = next(claim for claim in CLAIMS if claim.id == "speculative.sampling-speed-kept").rule.of
    found = asked.interval(Measurements(pd.DataFrame(rows), "item"), 0.025, 0.025)
    assert found.estimate == pytest.approx(6**-0.5)
    assert (found.n_units, found.low < found.estimate < found.high) == (2, True)
    assert str(asked) == "seconds a token: plain ÷ DFlash, temperature = 1.0, over the same, temperature = 0.0"


def test_ceiling_and_slope_by_hand():
    """Costs that grow as the square root of the tokens: 8 texts' block costs sqrt(8) steps at any batch."""
    step = {k: float(np.sqrt(k)) for k in (1, 2, 4, 8, 16, 32)}
    found = {one.metric: one.value for one in ceilings("float32", step)}
    assert found["ceiling at batch 1"] == pytest.approx(8 / np.sqrt(8))
    assert found["slope of log ceiling in log batch"] == pytest.approx(0, abs=1e-9)
    assert slope({2: 4.0, 8: 64.0}) == pytest.approx(2)


def test_held_states_are_those_of_the_taps():
    states = [torch.arange(8.0).view(2, 4), torch.arange(4.0).view(1, 4)]
    found = HeldStates(states, 1, (0, 3)).of([1, 0])
    assert [one.tolist() for one in found] == [[[0, 3]], [[0, 3], [4, 7]]]
