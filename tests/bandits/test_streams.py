"""The logarithm, the hash and the deviates that all engines share."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from upheld.bandits import streams
from upheld.bandits.certificate import kl_upper
from upheld.bandits.elementwise import ln

KEYS = np.arange(100_000, dtype=np.uint64) * np.uint64(0x1234567)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_ln_is_the_logarithm_to_one_unit_in_the_last_place(x):
    exact = math.log(x)
    assert abs(float(ln(np.float64(x))) - exact) <= np.spacing(abs(exact)) + 1e-300


@given(st.floats(min_value=0, max_value=1e300), st.floats(0, 1), st.floats(1e-9, 30), st.integers(0, 2**64 - 1))
def test_formulas_give_the_same_bits_on_a_number_as_on_an_array(x, p, budget, key):
    with np.errstate(all="ignore"):
        for formula, arguments in (
            (ln, (x,)),
            (kl_upper, (p, budget)),
            (streams.normal_quantile, (0.5 * (p + 2.0**-53),)),
            (streams.uniform, (np.uint64(key), np.uint64(3))),
            (streams.beta, (np.uint64(key), 1.0 + x % 50, 2.5)),
        ):
            on_array = formula(*(np.array([argument, argument]) for argument in arguments))
            assert on_array.tobytes() == 2 * np.float64(formula(*arguments)).tobytes(), formula.__name__


def test_splitmix_matches_its_published_sequence():
    # First outputs of SplitMix64 seeded with 1234567 (reference implementation of Vigna, prng.di.unimi.it).
    with np.errstate(over="ignore"):
        got = [int(streams.child(np.uint64(1234567), np.uint64(j))) for j in range(5)]
    assert got == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_normal_quantile_matches_scipy_into_the_tails():
    u = np.concatenate([np.random.default_rng(0).random(10_000), [2.0**-53, 1e-12, 0.075, 0.925, 1 - 2.0**-53]])
    assert streams.normal_quantile(u) == pytest.approx(special.ndtri(u), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda k: streams.uniform(k, streams.ONE), stats.uniform()),
        (lambda k: streams.normal(k, streams.ONE), stats.norm()),
        (lambda k: streams.gamma(k, np.full(k.size, 1.0)), stats.gamma(1)),
        (lambda k: streams.beta(k, np.full(k.size, 3.0), np.full(k.size, 1.5)), stats.beta(3, 1.5)),
    ],
    ids=["uniform", "normal", "gamma", "beta"],
)
def test_deviates_follow_their_law(draw, law):
    with np.errstate(all="ignore"):
        assert stats.kstest(draw(KEYS), law.cdf).pvalue > 1e-3


def test_arms_pulls_and_runs_are_uncorrelated():
    with np.errstate(over="ignore"):
        keys = streams.arm_keys(streams.run_keys(7, streams.REWARDS, np.arange(5000)), 4)
        first, second = streams.uniform(keys, np.uint64(1)), streams.uniform(keys, np.uint64(2))
    correlation = np.corrcoef(np.column_stack([first, second]), rowvar=False)
    assert np.abs(correlation - np.eye(8)).max() < 5 / np.sqrt(5000)
    assert abs(np.corrcoef(first[:-1, 0], first[1:, 0])[0, 1]) < 5 / np.sqrt(5000)


def test_seed_beyond_a_word_is_refused():
    with pytest.raises(ValueError, match=r"seed must lie in 0 ... 2\^64 - 1, got -1"):
        streams.run_keys(-1, streams.REWARDS, np.arange(2))
