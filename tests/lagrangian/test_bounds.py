"""Constants of the theory, to the digits published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from upheld.lagrangian import bounds, sample_size


@pytest.mark.parametrize(
    ("N", "direct", "warm"),
    [
        (256, 0.00265693, 0.02987),
        (1024, 0.00132804, 0.02994),
        (4096, 0.00066397, 0.02996),
        (16384, 0.00033198, 0.02997),
    ],
)
def test_exact_bayes_risks(N, direct, warm):
    assert round(bounds.minimax_lower_bound(1, N), 8) == direct
    assert round(N * bounds.minimax_lower_bound(1, N, target="warm-start"), 5) == warm


def test_the_limit_is_the_normal_one():
    """max_c c Phi(-c) = 0.169971 at c = 0.75179, so that the risk tends to s sigma / sqrt(N) times half of it."""
    c = np.linspace(0.5, 1, 50_001)
    values = c * norm.cdf(-c)
    assert values.max() == pytest.approx(0.169971, abs=1e-6)
    assert c[values.argmax()] == pytest.approx(0.75179, abs=1e-4)
    assert bounds.minimax_lower_bound(16, 16384) * np.sqrt(16384) / (16 * 0.5) == pytest.approx(0.169971 / 2, abs=1e-4)


def test_constants_of_the_upper_bounds():
    assert bounds.dudley_constant() == pytest.approx(1.13977, abs=5e-6)
    assert bounds.erm_bound(1, 1, 1.0, 1.0) == pytest.approx(109.42, abs=0.005)
    assert bounds.sga_bound(16, 400, 3.0, 2.0) == pytest.approx(2 * 3 * 2 * 16 / 20)
    assert bounds.sga_step(16, 2.0, 8.0) == pytest.approx(0.5)
    assert bounds.warm_start_bound(16, 1024, 1.0) == pytest.approx(3.9e-3, abs=1e-5)


def test_equations_double_the_diameter():
    assert bounds.diameter(4, 3.0, equations=True) == 2 * bounds.diameter(4, 3.0) == 12.0
    assert bounds.erm_bound(4, 9, 1.0, 1.0, equations=True) == 2 * bounds.erm_bound(4, 9, 1.0, 1.0)
    assert bounds.warm_start_bound(4, 9, 1.0, equations=True) == 4 * bounds.warm_start_bound(4, 9, 1.0)


def test_majority_error_by_enumeration():
    """N = 2: wrong with two wrong flips, half wrong with one of each."""
    eps = 0.2
    p = 0.6
    assert bounds.majority_error(2, eps) == pytest.approx((1 - p) ** 2 + p * (1 - p))
    assert bounds.majority_error(3, eps) == pytest.approx((1 - p) ** 3 + 3 * p * (1 - p) ** 2)


def test_fanos_route_is_weaker_and_void_up_to_16_rows():
    assert bounds.fano_lower_bound(16, 100) == 0.0
    for s in (17, 32, 512):
        assert 0 < bounds.fano_lower_bound(s, 1000) < bounds.minimax_lower_bound(s, 1000)


@given(st.integers(1, 200), st.floats(0.01, 100), st.floats(0.1, 50), st.floats(0.1, 50))
def test_sample_size_is_the_fewest(s, eps, B, pi_max):
    for method, bound in (
        ("sga", lambda N: bounds.sga_bound(s, N, B, pi_max)),
        ("erm", lambda N: bounds.erm_bound(s, N, B, pi_max)),
        ("warm-start", lambda N: bounds.warm_start_bound(s, N, pi_max)),
    ):
        N = sample_size(s, eps, B, pi_max, method)
        assert bound(N) <= eps * (1 + 1e-9)
        assert N == 1 or bound(N - 1) > eps * (1 - 1e-9)


def test_the_observed_bound_is_below_the_theorems():
    """With supergradients as long as they may be it is the theorem's; with ever shorter ones half of it."""
    s, N, B, pi_max = 9, 100, 2.0, 5.0
    step, longest = bounds.sga_step(N, B, pi_max), bounds.lipschitz(s, B)
    theorem = bounds.sga_bound(s, N, B, pi_max)
    assert bounds.observed_sga_bound(s, N, pi_max, step, longest) == pytest.approx(theorem)
    assert bounds.observed_sga_bound(s, N, pi_max, step, 0.0) == pytest.approx(theorem / 2)
    assert bounds.sga_bound(s, N, B, pi_max, length=longest / 4) == pytest.approx(theorem / 4)
    assert bounds.sga_bound(s, N, B, pi_max, length=2 * longest) == pytest.approx(theorem)


def test_shorter_supergradients_need_fewer_instances():
    assert sample_size(4, 0.5, 1.0, 1.0, "sga", length=2.0) == 64 == sample_size(4, 0.5, 1.0, 1.0, "sga") // 4
    with pytest.raises(ValueError, match="length shortens the bound of sga alone, not that of erm; leave it out"):
        sample_size(4, 0.5, 1.0, 1.0, "erm", length=2.0)
    with pytest.raises(ValueError, match="length must be positive, got 0"):
        sample_size(4, 0.5, 1.0, 1.0, "sga", length=0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 1.0, 1.0, "sga"), "s must be positive, got 0"),
        ((1, -1.0, 1.0, 1.0, "sga"), "eps must be positive, got -1"),
        ((1, 1.0, 1.0, float("nan"), "sga"), "pi_max must be positive, got nan"),
        ((1, 1.0, 1.0, 1.0, "sgd"), "there is no bound for 'sgd'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_size(*arguments)
