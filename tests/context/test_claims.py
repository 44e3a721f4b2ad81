"""The experiments of context: each runs small, and measures what the rules of its claims read."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from upheld.claims import Measurements, Outcome, Scale, Trial
from upheld.claims.measurements import Missing
from upheld.context.claims import CLAIMS, ENDPOINT, ENDPOINT_STREAMS, ENDPOINT_TRANSFER, GROWTH, ORIGINAL
from upheld.context.claims.race import lengths
from upheld.context.claims.relative import BehindInFew, GainOverBest, mean_gain

WITH_MODELS = (ENDPOINT, ENDPOINT_STREAMS, ORIGINAL)
"""Language models are the agents."""
AT_ENDPOINTS = (*WITH_MODELS, ENDPOINT_TRANSFER)
"""Run in llm_agents/test_endpoint_claims.py, at an endpoint."""
EXPERIMENTS = {claim.experiment.name: claim.experiment for claim in CLAIMS if claim.experiment not in AT_ENDPOINTS}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_smoke_run_measures_what_the_rules_read(name):
    experiment = EXPERIMENTS[name]
    rows = [
        {**trial.condition, "seed": trial.seed, "item": one.item, "method": one.method, "metric": one.metric, "value": one.value}
        for trial in experiment.trials(Scale.SMOKE)
        for one in experiment.measure(trial)
    ]  # fmt: skip
    data = Measurements(pd.DataFrame(rows), experiment.units)
    for claim in CLAIMS:
        if claim.experiment is experiment:
            assert claim.rule.judge(data).findings, claim.id


def test_ids_are_the_package_s_stand_once_and_name_the_agents():
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(claim.method == "context" and claim.rule.words() for claim in CLAIMS)
    for claim in CLAIMS:
        who = "language models as agents" if claim.experiment in WITH_MODELS else "program agents"
        if claim.id not in ("context.race", "context.lengths"):
            assert claim.statement.startswith(who), claim.id


@pytest.mark.slow
def test_a_trial_repeats_itself():
    trial = Trial(GROWTH.name, GROWTH.conditions[Scale.SMOKE][0], 3, Scale.SMOKE)
    assert list(GROWTH.measure(trial)) == list(GROWTH.measure(trial))


# -- the rule of relative gains


def frame(scores: dict[str, dict[str, list[float]]]) -> Measurements:
    """domain -> method -> a score a seed."""
    return Measurements(pd.DataFrame([
        {"domain": domain, "seed": seed, "item": "", "method": method, "metric": "score", "value": value}
        for domain, methods in scores.items() for method, values in methods.items() for seed, value in enumerate(values)
    ]))  # fmt: skip


NOISE = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])


def gained(mce: float, ace: float, gepa: float) -> dict[str, list[float]]:
    return {"MCE": list(mce + NOISE), "ACE": list(ace - NOISE / 2), "GEPA": list(gepa + NOISE[::-1] / 3)}


GAIN = GainOverBest("score", "MCE", ("ACE", "GEPA", "Dynamic Cheatsheet"))


def test_each_domain_has_its_own_best_rival_and_one_that_did_not_run_is_left_out():
    data = frame({"a": gained(0.6, 0.5, 0.4), "b": gained(0.6, 0.2, 0.8)})
    assert GAIN.interval(data, 0.025, 0.025).estimate == pytest.approx((0.6 / 0.5 + 0.6 / 0.8) / 2 - 1)
    points = GainOverBest("score", "MCE", ("ACE", "GEPA"), relative=False)
    assert points.interval(data, 0.025, 0.025).estimate == pytest.approx((0.1 - 0.2) / 2)


def test_a_rival_near_zero_has_no_relative_gain():
    data = frame({"a": gained(0.6, 0.03, 0.04), "b": gained(0.6, 0.5, 0.4)})
    assert GAIN.interval(data, 0.025, 0.025).estimate == pytest.approx(0.2)
    with pytest.raises(Missing, match=r"every rival lies below 0\.05"):
        GAIN.at({"domain": "a"}).interval(data, 0.025, 0.025)


def test_behind_in_few():
    ahead, behind = gained(0.7, 0.5, 0.4), gained(0.4, 0.5, 0.4)
    names = "abcdef"
    outcomes = []
    for n in range(3):
        data = frame({name: behind if place < n else ahead for place, name in enumerate(names)})
        outcomes.append(BehindInFew(GAIN).judge(data).outcome)
    assert outcomes == [Outcome.UPHELD, Outcome.UPHELD, Outcome.NOT_UPHELD]
    a_little = gained(0.499, 0.5, 0.4)
    data = frame({name: a_little if place < 2 else ahead for place, name in enumerate(names)})
    assert BehindInFew(GAIN).judge(data).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("relative", [True, False])
def test_derivatives_of_the_mean_gain(relative):
    of, m, step = mean_gain(2, relative=relative), np.array([0.7, 0.5, 0.3, 0.6]), 1e-6
    for place, e in enumerate(np.eye(4) * step):
        assert (of.value(m + e) - of.value(m - e)) / 2 / step == pytest.approx(of.gradient(m)[place], abs=1e-6)
        change = (of.gradient(m + e) - of.gradient(m - e)) / 2 / step
        assert change == pytest.approx(of.hessian(m)[place], abs=1e-5)


# -- what is read off a curve


def test_the_fewest_tokens_that_are_enough(monkeypatch):
    """A context that is good from 200 tokens on, and a playbook that is not before 800; who never is has all cases' tokens."""
    from upheld.context.claims import race

    def tested(context):
        score = context.top if context.budget >= context.needs else 0.1
        return score, float(min(context.budget, 5000))

    monkeypatch.setattr(race, "replace", lambda context, budget: SimpleNamespace(**{**vars(context), "budget": budget}))

    def measured(top: float) -> dict[tuple[str, str], float]:
        ours, ace, many = (
            SimpleNamespace(top=t, needs=n, budget=80_000) for t, n in ((top, 200), (0.8, 800), (0.8, 0))
        )
        contenders = {"ACE": SimpleNamespace(context=ace), "many-shot": SimpleNamespace(context=many)}
        found = lengths(SimpleNamespace(tested=tested), SimpleNamespace(context=ours), contenders)
        return {(one.method, one.metric): one.value for one in found}

    metric = "tokens for ACE's best less a point"
    good, bad = measured(0.795), measured(0.78)
    assert (good["MCE", metric], good["ACE", metric]) == (200, 800)
    assert (bad["MCE", metric], bad["MCE", "reaches ACE's best less a point"]) == (5000, 0)
