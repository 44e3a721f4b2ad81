"""Alignments on the sphere against multiprecision integrals, simulation and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from upheld.memory.geometry import (
    GAUSSIAN,
    SPHERICAL,
    alignment_of_log_tail,
    density_named,
    geometric_entropy,
    joint_entropy,
    log_alignment_density,
    log_iv,
    log_mean_exponential,
    log_tail,
)


@pytest.mark.parametrize("N", [3, 10, 50])
def test_the_density_integrates_to_one_and_is_a_beta_law(N):
    assert integrate.quad(lambda t: np.exp(log_alignment_density(t, N)), -1, 1)[0] == pytest.approx(1, abs=1e-9)
    beta = stats.beta((N - 1) / 2, (N - 1) / 2)  # (1 + phi) / 2 follows it
    phi = np.linspace(-0.9, 0.9, 7)
    assert np.allclose(log_alignment_density(phi, N), beta.logpdf((1 + phi) / 2) - np.log(2))
    assert np.allclose(log_tail(phi, N), beta.logsf((1 + phi) / 2), rtol=1e-9)


def test_the_tail_goes_on_where_probabilities_underflow():
    # 50-digit quadrature (mpmath): ln int_0.9^1 C_N (1-t^2)^((N-3)/2) dt
    assert log_tail(0.9, 5000) == pytest.approx(_mp_log_tail(0.9, 5000), abs=1e-8)
    assert log_tail(0.2, 100_000) == pytest.approx(_mp_log_tail(0.2, 100_000), abs=1e-7)


def _mp_log_tail(phi: float, N: int) -> float:
    from mpmath import mp, mpf

    with mp.workdps(50):
        a = mpf(N - 1) / 2
        norm = mp.gamma(mpf(N) / 2) / (mp.sqrt(mp.pi) * mp.gamma(mpf(N - 1) / 2))
        # (1/2) B_Y(a, 1/2), the incomplete beta function at Y = 1 - phi^2
        return float(mp.log(norm * mp.betainc(a, mpf(1) / 2, 0, 1 - mpf(phi) ** 2) / 2))


@settings(deadline=None, max_examples=60)
@given(st.floats(-0.95, 0.999), st.integers(4, 3000))
def test_the_inverse_of_the_tail_returns_the_alignment(phi, N):
    log_p = log_tail(phi, N)
    if log_p > -1e-9:  # the tail is 1 to the last digits: nothing to invert
        return
    back = alignment_of_log_tail(log_p, N)
    assert log_tail(back, N) == pytest.approx(float(log_p), rel=1e-9, abs=1e-12)


def test_the_entropy_s_stationary_overlap_is_phi_squared():
    for phi in (0.0, 0.4, 0.9):
        q = np.linspace(0, 0.99, 2001)
        values = geometric_entropy(phi, q)
        assert q[values.argmin()] == pytest.approx(phi**2, abs=1e-3)
        assert values.min() == pytest.approx(float(geometric_entropy(phi)), abs=1e-6)


def test_the_entropy_of_one_overlap_is_that_of_the_sphere():
    assert joint_entropy([0.6], [[1.0]], N=51) == pytest.approx(50 * 0.5 * np.log(0.64))
    orthogonal = joint_entropy([0.5, 0.5], np.eye(2), N=12)
    assert orthogonal == pytest.approx(5 * np.log(0.5))
    with pytest.raises(ValueError, match="no state has these overlaps"):
        joint_entropy([0.9, 0.9], np.eye(2), N=12)


@pytest.mark.parametrize("density", [GAUSSIAN, SPHERICAL], ids=lambda one: one.name)
def test_edge_and_load_are_inverse_and_the_saddle_is_a_maximum(density):
    alpha = np.array([0.01, 0.1, 0.4])
    assert np.allclose(density.load(density.edge(alpha)), alpha)
    phi = np.linspace(-0.999, 0.999, 200_001)
    for beta in (0.3, 0.9):
        assert density.saddle(beta) == pytest.approx(phi[(density.entropy(phi) + beta * phi).argmax()], abs=1e-4)
    for b in (0.7, 0.95) if density is GAUSSIAN else (0.7, 1.0, 3.4):
        ramp = np.log(np.maximum(1 - b * (1 - phi), 1e-300))
        assert density.saddle_lsr(b) == pytest.approx(phi[(density.entropy(phi) + ramp).argmax()], abs=1e-4)


def test_g_max_has_the_saddle_as_its_derivative():
    beta, step = 1.3, 1e-6
    slope = (SPHERICAL.g_max(beta + step) - SPHERICAL.g_max(beta - step)) / (2 * step)
    assert slope == pytest.approx(float(SPHERICAL.saddle(beta)), abs=1e-8)


@pytest.mark.parametrize("N", [200, 4000])
def test_the_uniform_expansion_meets_scipy_s_bessel_function(N):
    from scipy.special import ive

    nu = N / 2 - 1
    for ratio in (1.0, 4.0):  # below, ive underflows at N = 4000
        z = ratio * N
        assert log_iv(nu, z) == pytest.approx(np.log(ive(nu, z)) + z, rel=2e-7, abs=1e-6)


def test_the_mean_exponential_is_its_quadrature():
    assert log_mean_exponential(1.0, 50) == pytest.approx(-31.049876, abs=1e-6)  # quadrature of h e^(50 (phi - 1))
    assert np.isfinite(log_mean_exponential(1.0, 100_000))


def test_bad_input_is_called_by_its_name():
    with pytest.raises(ValueError, match=r"phi must lie in \[-1, 1\], got 1.2"):
        geometric_entropy([0.1, 1.2])
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\), got 1"):
        geometric_entropy(0.1, q=1.0)
    with pytest.raises(ValueError, match="must not exceed 0"):
        alignment_of_log_tail(0.1, 10)
    with pytest.raises(ValueError, match="'spherical' \\(exact\\) or 'gaussian'"):
        density_named("exact")
