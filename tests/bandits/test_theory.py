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
def test_lower_bound_solves_its_equation(n_arms, gap, excess, sigma):
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
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
