"""Certificates: their closed forms, their error, and the p-values and confidence sequences made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr

from upheld.bandits import certificate as c


def test_sub_gaussian_bound_at_a_number_worked_by_hand():
    # K = 10, n = 100: ln(10 * 10^4) = 11.512925; 0.5 sqrt(2 * 11.512925 / 100) = 0.239926
    low = c.lower_sub_gaussian(np.array([0.8]), np.array([0.0]), np.array([100.0]), 10.0, 0.5)
    assert low == pytest.approx([0.8 - 0.239926], abs=1e-6)


def test_single_arm_has_a_positive_radius_at_its_first_pull():
    assert c.lower_sub_gaussian(np.array([0.8]), np.zeros(1), np.ones(1), 1.0, 0.5)[0] < 0.8


def test_empirical_bound_is_silent_at_one_pull_and_shrinks_with_the_variance():
    n = np.array([1.0, 500.0, 500.0])
    low = c.lower_empirical(np.full(3, 0.9), np.array([0.0, 0.25, 0.0]), n, 10.0, 1.0)
    assert low[0] == -np.inf
    assert low[1] < low[2] < 0.9
    x = np.log(2 * 10 * 500**2)
    assert low[2] == pytest.approx(0.9 - 7 * x / (3 * 499))


@given(st.floats(0, 1), st.floats(1e-9, 30))
def test_kl_bounds_invert_the_divergence(p, budget):
    with np.errstate(all="ignore"):
        high = float(c.kl_upper(np.array([p]), np.array([budget]))[0])
        low = float(c.kl_lower(np.array([p]), np.array([budget]))[0])

    def excess(q):
        return rel_entr(p, q) + rel_entr(1 - p, 1 - q) - budget

    top = 1 - 2.0**-53
    assert high == pytest.approx(1.0 if excess(top) <= 0 else brentq(excess, max(p, 1e-300), top, xtol=1e-15), abs=1e-8)
    assert low == pytest.approx(
        0.0 if excess(1e-300) <= 0 else brentq(excess, 1e-300, min(p, top), xtol=1e-15), abs=1e-8
    )
    assert low - 2.0**-53 <= p <= high + 2.0**-53  # a mean below the spacing of numbers next to 1 is that spacing off


@pytest.mark.parametrize("kind", ["sub-gaussian", "kl"])
def test_false_certificates_of_an_arm_at_the_threshold_stay_below_their_bound(kind):
    """Sum over n of P(LCB_n >= S) <= pi^2/(6K), for the worst bad arm, one at S itself; with three standard errors.

    The bound holds for every K, so a small K is taken: certificates are then common enough to be counted.
    """
    rng = np.random.default_rng(1)
    runs, pulls, n_arms = 20_000, 200, 2.0
    rewards = (rng.random((runs, pulls)) < 0.5).astype(float)  # P(a mean far above 1/2) is largest for a fair coin
    n = np.arange(1.0, pulls + 1)
    mean = rewards.cumsum(axis=1) / n
    with np.errstate(all="ignore"):
        if kind == "sub-gaussian":
            low = c.lower_sub_gaussian(mean, 0 * mean, n, n_arms, 0.5)
        else:
            low = c.lower_kl(mean, 0 * mean, n, n_arms, 0.5)
    false = (low >= 0.5).sum(axis=1)
    upper = false.mean() + 3 * false.std() / np.sqrt(runs)
    assert false.mean() > 0
    assert upper < np.pi**2 / (6 * n_arms)


def test_false_certificates_of_gaussian_rewards():
    rng = np.random.default_rng(2)
    n = np.arange(1.0, 301)
    mean = rng.normal(0.5, 0.5, (20_000, 300)).cumsum(axis=1) / n
    false = (c.lower_sub_gaussian(mean, 0 * mean, n, 2.0, 0.5) >= 0.5).sum(axis=1)
    assert false.mean() + 3 * false.std() / np.sqrt(20_000) < np.pi**2 / 12


@pytest.mark.parametrize("kind", ["sub-gaussian", "kl", "empirical"])
def test_p_values_and_intervals_hold_at_all_times_at_once(kind):
    """Looking after each of 300 rewards, P(some p-value <= alpha) and P(some interval misses) stay below alpha."""
    rng = np.random.default_rng(3)
    alpha, runs, n = 0.1, 4000, np.arange(1.0, 301)
    rewards = (rng.random((runs, 300)) < 0.4).astype(float)
    mean = rewards.cumsum(axis=1) / n
    variance = np.where(n > 1, n / np.maximum(n - 1, 1) * mean * (1 - mean), 0.0)
    p = c.anytime_p_value(mean, variance, n, 0.4, kind=kind)
    low, high = c.confidence_sequence(mean, variance, n, alpha, kind=kind)
    tolerance = 3 * np.sqrt(alpha * (1 - alpha) / runs)
    assert (p <= alpha).any(axis=1).mean() <= alpha + tolerance
    assert ((low > 0.4) | (high < 0.4)).any(axis=1).mean() <= alpha + tolerance
    assert (high - low)[:, -1].mean() < 0.6  # and they do say something


@given(st.floats(0.01, 0.99), st.integers(2, 10_000), st.floats(0.01, 0.99))
@settings(max_examples=50)
def test_p_value_reaches_alpha_where_the_one_sided_interval_reaches_the_threshold(mean, n, threshold):
    args = np.array([mean]), np.array([mean * (1 - mean)]), np.array([float(n)])
    for kind in ("sub-gaussian", "kl", "empirical"):
        p = float(c.anytime_p_value(*args, threshold, kind=kind)[0])
        if 1e-12 < p < 0.49:
            low, _ = c.confidence_sequence(*args, 2 * p, kind=kind)  # each side at alpha/2
            assert low[0] == pytest.approx(threshold, abs=1e-6)


def test_arms_without_rewards_say_nothing():
    zero = np.zeros(1)
    assert c.anytime_p_value(zero, zero, zero, -5.0, kind="sub-gaussian")[0] == 1
    low, high = c.confidence_sequence(zero, zero, zero, 0.05, kind="empirical")
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1, got 1"):
        c.confidence_sequence(np.zeros(1), np.zeros(1), np.ones(1), 1, kind="kl")
    with pytest.raises(ValueError, match="kind must be 'sub-gaussian', 'kl' or 'empirical', got 'gauss'"):
        c.anytime_p_value(np.zeros(1), np.zeros(1), np.ones(1), 0.5, kind="gauss")
