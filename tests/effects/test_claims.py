"""The experiments of effects: each runs small, and measures everything that the rules of its claims read."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

from upheld.claims import Measurements, NotRun, Scale, Trial
from upheld.effects import claims, rivals
from upheld.effects.claims import CLAIMS, CORE, DESCRIBED, REWEIGHTED, SHIPPED, measure_core

EXPERIMENTS = {claim.experiment.name: claim.experiment for claim in CLAIMS}
SMALL = {name: one for name, one in EXPERIMENTS.items() if Scale.SMOKE in one.conditions}
OPTIONAL = {
    "effects.references": ("ebal", "econml", "doubleml"), "effects.real-references": ("ebal", "econml", "doubleml"),
    "effects.thinning": ("goodpoints",),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.filterwarnings("ignore")
def test_a_smoke_run_measures_what_the_rules_read(name):
    experiment = EXPERIMENTS[name]
    rows = [
        {**trial.condition, "seed": trial.seed, "item": one.item, "method": one.method, "metric": one.metric,
         "value": one.value}
        for trial in experiment.trials(Scale.SMOKE)
        for one in experiment.measure(trial)
    ]  # fmt: skip
    data = Measurements(pd.DataFrame(rows), experiment.units)
    read = [claim.rule.judge(data) for claim in CLAIMS if claim.experiment is experiment]
    assert read
    assert all(judgement.findings for judgement in read)


def optional_trial(name):
    condition = {**EXPERIMENTS[name].conditions[Scale.STANDARD][0]}
    return Trial(name, condition | ({"n": 1600} if "n" in condition else {}), 0, Scale.STANDARD)


def test_what_is_measured_from_standard_on_is_what_optional_packages_are_for():
    assert set(EXPERIMENTS) - set(SMALL) == set(OPTIONAL)


@pytest.mark.parametrize("name", OPTIONAL)
def test_without_an_optional_package_nothing_is_measured_and_the_reason_says_what_to_install(name, absent):
    absent(OPTIONAL[name][0])
    with pytest.raises(NotRun, match=rf"{OPTIONAL[name][0]} cannot be imported .* pip install"):
        next(iter(EXPERIMENTS[name].measure(optional_trial(name))))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONAL)
@pytest.mark.filterwarnings("ignore")
def test_with_them_everybody_is_measured(name):
    for package in OPTIONAL[name]:
        pytest.importorskip(package)
    found = list(EXPERIMENTS[name].measure(optional_trial(name)))
    claim = next(one for one in CLAIMS if one.experiment.name == name)
    assert {one.method for one in found} == {mean.method for mean in claim.rule.of}


def test_a_long_stream_in_pieces_is_as_long_and_its_first_piece_the_stream(monkeypatch):
    trial = Trial("effects.cost", {"n": 2500}, 0, Scale.SMOKE)
    whole = list(claims.batches(trial, 2500))
    monkeypatch.setattr(claims, "PIECE", 1000)
    parts = list(claims.batches(trial, 2500))
    assert [len(y) for _, y, _ in parts] == [len(y) for _, y, _ in whole] == [500] * 5
    assert len({tuple(y[:3]) for _, y, _ in parts}) == 5


def test_every_claim_stands_twice():
    ids = {claim.id: claim for claim in CLAIMS}
    assert len(ids) == len(CLAIMS)
    twins = [one for one in ids if f"{one}-as-shipped" in ids]
    assert len(twins) == 16
    for one in twins:
        theirs, ours = ids[one], ids[f"{one}-as-shipped"]
        assert ours.ours
        assert ours.experiment is theirs.experiment
        assert DESCRIBED in repr(theirs.rule)
        assert SHIPPED not in repr(theirs.rule)
        assert repr(theirs.rule).replace(DESCRIBED, SHIPPED) in repr(ours.rule) or one == "effects.outcome-shift"


def smoke_trial():
    condition = CORE.conditions[Scale.SMOKE][0] | {"scenario": "assignment", "n": 1200}
    return list(measure_core(Trial(CORE.name, condition, 0, Scale.SMOKE)))


@pytest.fixture(scope="module")
def measured():
    return smoke_trial()


def test_everybody_is_raced_on_the_same_stream_and_nobody_matched_holds_more(measured):
    errors = Counter(one.method for one in measured if one.metric == "squared error")
    assert set(errors) == {DESCRIBED, SHIPPED, *REWEIGHTED, *rivals.RIVALS}
    assert set(errors.values()) == {1}
    held = {one.method: one.value for one in measured if one.metric == "bytes"}
    limit = min(held[DESCRIBED], held[SHIPPED])
    assert all(held[name] <= limit for name in rivals.MEMORY_MATCHED)


@pytest.mark.filterwarnings("ignore")
def test_slow_rivals_are_raced_at_full_scale_and_at_no_other():
    def raced(scale):
        condition = CORE.conditions[Scale.SMOKE][0] | {"n": 700}
        return {one.method for one in measure_core(Trial(CORE.name, condition, 0, scale))}

    assert raced(Scale.FULL) - raced(Scale.STANDARD) == set(rivals.SLOW)


def test_a_trial_repeats_itself(measured):
    """All but the bytes of River's tree, which its own count of Python objects gives a little differently each time."""

    def repeatable(found):
        return [one for one in found if (one.method, one.metric) != ("online aipw, tree", "bytes")]

    assert repeatable(smoke_trial()) == repeatable(measured)
