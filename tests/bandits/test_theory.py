"""Bounds: the figures were found twice independently of this code (root finding, fixed point)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from upheld.bandits import theory

positive = st.floats(0.01, 1)


@pytest.mark.parametrize(
    ("excess", "bound"), [(0.1, 0.165), (0.05, 0.589), (0.025, 1.736), (0.0125, 3.900), (0.00625, 6.939)]
)
def test_lower_bound_anchors(excess, bound):
    assert round(theory.lower_bound(10, 0.3, excess, 0.5), 3) == bound


@pytest.mark.parametrize(
    ("excess", "bound"),
    [(0.2, 1862.4), (0.1, 1932.5), (0.05, 2092.1), (0.025, 2322.0), (0.0125, 2579.3), (0.00625, 2843.4)],
)
def test_regret_bound_anchors(excess, bound):
    means = [0.5 + excess] + 9 * [0.2 + excess]
    assert round(theory.regret_bound(means, 0.5, 0.5), 1) == bound


@given(st.integers(2, 50), positive, positive, positive)
def test_lower_bound_solves_its_equation(n_arms, beyond, excess, sigma):
    gap = excess + beyond
    a = (n_arms - 1) * sigma**2 / (2 * gap)
    c = gap * sigma**2 / (16 * np.e * excess**2)
    root = brentq(lambda r: r - a * max(0.0, np.log(c / r)), 1e-200, c * (1 + 1e-12))
    assert theory.lower_bound(n_arms, gap, excess, sigma) == pytest.approx(root, rel=1e-6)


@given(st.integers(2, 30), st.floats(0.05, 1), st.floats(0.001, 1))
def test_lower_bound_stays_below_the_regret_bound(n_arms, gap, excess):
    upper = theory.regret_bound([excess] + (n_arms - 1) * [excess - gap - excess], 0.0)
    assert theory.lower_bound(n_arms, gap + excess, excess) < upper


def test_paper_lower_bound_special_case_of_equal_gaps():
    # (K-1) ln(Delta / ((K-1) Delta_*)) / Delta with K = 5, Delta = 0.3, Delta_* = 0.01: 4 ln(7.5) / 0.3
    assert theory.paper_lower_bound([0, 0.3, 0.3, 0.3, 0.3], 0.01) == pytest.approx(4 * np.log(7.5) / 0.3)
    assert theory.paper_lower_bound([0.3] * 9, 0.1) == 0  # positive only when (K-1) Delta_* < Delta
    assert theory.paper_lower_bound([0.05], 0.1) == 0


def test_bound_of_easy_and_hopeless_instances():
    assert theory.regret_bound([0.6, 0.7], 0.5) == 0
    assert theory.regret_bound([0.4, 0.3], 0.5) == np.inf
    assert theory.regret_bound([0.5, 0.3], 0.5) == np.inf  # no excess, no finite bound


def test_a_certified_arm_just_above_the_threshold_may_outgrow_the_clock():
    """Means .6, .5001, .3, S = .5, sigma = 1/2, K = 3. Arm 2 is good enough, so that n_2 may exceed u without any error: all of its
    48 sigma^2/.0999^2 ln(e + 24 sigma^2/.0999^2) pulls count, not the share pi^2/18. Root by bisection, written out anew.
    """

    def pulls(u, gap, share):
        scale = 0.25 / gap**2
        return 1 + 24 * scale * np.log(u) + np.pi**2 / 2 + share * 48 * scale * np.log(np.e + 24 * scale)

    n_0 = brentq(lambda n: n - 200 * (np.log(3) + 2 * np.log(n)), 100, 1e6)
    u = brentq(lambda u: u - 3 - pulls(u, 0.3, np.pi**2 / 18) - pulls(u, 0.0999, 1) - n_0 - 200, 100, 1e7)
    expected = 0.3 * (pulls(u, 0.3, np.pi**2 / 18) + np.pi**2 / 18)
    assert theory.regret_bound([0.6, 0.5001, 0.3], 0.5) == pytest.approx(expected, rel=1e-9)


@given(st.integers(2, 20), st.floats(0.01, 2), st.floats(0, 1))
def test_uncertain_pulls_of_a_good_arm_stay_below_c(n_arms, excess, extra):
    """(c) before it is rounded up: every pull until the radius is excess/2, and after that exp(-n excess^2/(8 sigma^2)) of each."""
    sigma = 0.5
    n = np.arange(1, 400_000 if excess < 0.05 else 20_000, dtype=float)
    wide = 2 * sigma**2 * np.log(n_arms * n**2) / n > excess**2 / 4
    first = 1 + np.flatnonzero(wide).max(initial=-1) + 1  # counts 0, 1, ... up to here are all granted
    tail = np.exp(-n[first - 1 :] * excess**2 / (8 * sigma**2)).sum()
    assert first + tail <= theory._satisficing_pulls(excess, n_arms, sigma) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.regret_bound([0.1, 1], np.nan), "threshold is not a number"),
        (lambda: theory.lower_bound(3, 0.1, 0.1), "needs a gap above the excess, got gap 0.1 and excess 0.1"),
        (lambda: theory.regret_bound([], 0.5), "means must be a non-empty list of finite numbers"),
        (lambda: theory.regret_bound([np.nan, 1], 0.5), "means must be a non-empty list of finite numbers"),
        (lambda: theory.regret_bound([0.1, 1], 0.5, 0), "sigma must be a positive number, got 0"),
        (lambda: theory.lower_bound(1, 0.3, 0.1), "needs at least 2 arms, got 1"),
        (lambda: theory.lower_bound(3, 0.3, 0), "excess must be a positive number, got 0"),
        (lambda: theory.paper_lower_bound([-1], 0.1), "gaps must be a list of finite numbers that are not negative"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
