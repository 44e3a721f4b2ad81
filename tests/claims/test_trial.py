"""A trial's randomness derives from (experiment, condition, seed) and from nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.claims import Measurement, Scale, Trial
from upheld.claims.trial import canonical

CONDITIONS = st.dictionaries(
    st.text(max_size=5), st.one_of(st.integers(), st.booleans(), st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)),
    max_size=4,
)  # fmt: skip


def draw(trial: Trial, stream: str = "", ignoring: tuple[str, ...] = ()) -> list[int]:
    return trial.rng(stream, ignoring=ignoring).integers(0, 2**62, 4).tolist()


@given(CONDITIONS, st.integers(0, 10**6))
def test_scale_and_order_of_keys_do_not_move_the_draw(condition, seed):
    trial = Trial("toy.race", condition, seed, Scale.SMOKE)
    backwards = dict(reversed(condition.items()))
    assert draw(trial) == draw(Trial("toy.race", backwards, seed, Scale.FULL))


@given(CONDITIONS, st.integers(0, 10**6))
def test_experiment_seed_condition_and_stream_each_move_it(condition, seed):
    first = draw(Trial("toy.race", condition, seed, Scale.SMOKE))
    others = [
        Trial("toy.other", condition, seed, Scale.SMOKE),
        Trial("toy.race", condition, seed + 1, Scale.SMOKE),
        Trial("toy.race", {**condition, "one more": 1}, seed, Scale.SMOKE),
    ]
    assert all(draw(other) != first for other in others)
    assert draw(Trial("toy.race", condition, seed, Scale.SMOKE), "noise") != first


def test_order_of_trials_and_process_do_not_move_it():
    trials = [Trial("toy.race", {"n": n, "law": "pareto"}, seed, Scale.QUICK) for n in (30, 60) for seed in range(3)]
    here = [draw(trial) for trial in trials]
    assert [draw(trial) for trial in reversed(trials)] == here[::-1]
    code = (
        "from upheld.claims import Scale, Trial\n"
        "print([Trial('toy.race', {'n': n, 'law': 'pareto'}, seed, Scale.QUICK).rng().integers(0, 2**62, 4).tolist()"
        " for n in (30, 60) for seed in range(3)])"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(here)


def test_draws_stay_as_they_were_published():
    """A change here makes every stored measurement of every method irreproducible."""
    trial = Trial("mom.errors", {"law": "pareto", "n": 200}, 7, Scale.QUICK)
    assert trial.rng().integers(0, 10**6, 4).tolist() == [125498, 195335, 106624, 593351]


def test_ignored_key_does_not_move_the_draw_others_do():
    def network(n: int, r: int) -> list[int]:
        return draw(Trial("toy.race", {"n": n, "r": r}, 0, Scale.QUICK), "network", ("n",))

    assert network(30, 4) == network(60, 4)
    assert network(30, 4) != network(30, 5)


def test_ignoring_what_is_no_condition_is_refused():
    with pytest.raises(ValueError, match=r"toy.race: no condition \['m'\] to ignore; there are \['n'\]"):
        Trial("toy.race", {"n": 30}, 0, Scale.QUICK).rng(ignoring=("m",))


def test_streams_of_many_trials_are_uncorrelated():
    draws = np.array([Trial("toy.race", {"n": 30}, seed, Scale.QUICK).rng().standard_normal(50) for seed in range(400)])
    correlations = np.corrcoef(draws)[np.triu_indices(400, 1)]
    assert np.abs(correlations).max() < 0.75  # 79,800 pairs of 50: 5.3 standard errors of 0.14
    assert abs(correlations.mean()) < 0.01


def test_canonical_text_tells_types_apart():
    assert len({canonical({"a": value}) for value in (1, 1.0, True, "1")}) == 4


def test_measurement_refuses_nan_and_keeps_infinity():
    with pytest.raises(ValueError, match="ours: error is NaN; a trial that cannot measure should say why"):
        Measurement("ours", "error", float("nan"))
    assert Measurement("ours", "error", float("inf")).value == float("inf")


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), np.True_, 3, True])
def test_measurement_holds_a_plain_float(value):
    measured = Measurement("ours", "error", value).value
    assert type(measured) is float
    assert measured == float(value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ours", "error", "0.5"), "real number"),
        (("ours", "error", None), "real number"),
        ((3, "error", 0.5), "method of a measurement must be text, got 3"),
        (("ours", "error", 0.5, 7), "item of a measurement must be text, got 7"),
    ],
)
def test_measurement_refuses_what_the_ledger_cannot_hold(arguments, message):
    with pytest.raises(TypeError, match=message):
        Measurement(*arguments)
