"""Closed forms against published numbers, minimisation by brute force, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize

from upheld.memory.geometry import log_alignment_density
from upheld.memory.theory import (
    B,
    alpha_c,
    alpha_th,
    capacity_zero_t,
    cusp,
    energy_density,
    free_energy,
    log_noise_sum,
    noise_floor,
    phi_c,
    phi_eq,
    ramsauer_bound,
    spinodal,
    t_c,
)

T4 = [0.1, 0.5, 1, 2]


def close(values, wanted, digits=6):
    assert np.allclose(values, wanted, atol=0.6 * 10**-digits, rtol=0), (values, wanted)


def test_lse_retrieval_branch_and_boundary():
    close(phi_eq(T4, "lse"), [0.951249, 0.780776, 0.618034, 0.414214])
    close(free_energy(T4, "lse"), [0.166379, 0.454377, 0.622572, 0.774013])
    close(alpha_c(T4, density="gaussian"), [0.347462, 0.148852, 0.0712260, 0.0255351])
    close(
        t_c([0.02, 0.05, 0.1, 0.2, 0.3, 0.4], density="gaussian"), [2.3096, 1.2983, 0.7512, 0.3396, 0.1554, 0.0536], 4
    )


def test_lsr_retrieval_branch_and_boundaries():
    close(phi_eq([0.1, 0.5, 1, 2, 10], "lsr"), [0.958074, 0.870335, 0.822386, 0.780455, 0.726172])
    close(phi_eq(T4, "lsr", b=1.0), 1 / np.sqrt(1 + np.array(T4)))
    single = alpha_c([0.01, 0.05, 0.1, 0.2, 0.5, 1, 1e9], "lsr", density="gaussian", criterion="single")
    close(single, [0.473582, 0.418081, 0.379228, 0.335929, 0.285631, 0.262025, 0.25])
    close(alpha_c([0.1, 0.2], "lsr", density="gaussian", criterion="paper"), [0.344249, 0.259134])
    assert alpha_c(0.213155 - 1e-5, "lsr", density="gaussian", criterion="paper") > 0.25
    assert alpha_c(0.213155 + 1e-5, "lsr", density="gaussian", criterion="paper") == pytest.approx(0.25, abs=1e-12)


def test_zero_temperature_capacity_has_no_universal_half():
    beta = [0.25, 0.5, 1, 2, 4]
    close(capacity_zero_t(beta), [0.219654, 0.387006, 0.622572, 0.908754, 1.224357])
    close(capacity_zero_t(beta, "gaussian"), [0.21875, 0.375, 0.5, 0.5, 0.5])
    for one in beta:
        for density in ("spherical", "gaussian"):
            close(alpha_c(0, "lse", one, density=density), capacity_zero_t(one, density), 9)


def test_spinodal_and_cusp():
    close(spinodal(T=[0.1, 0.2, 0.3]), [0.573821, 0.527559, 0.483759])
    close(spinodal(alpha=0.5), 0.262, 3)  # the authors' figure
    close(spinodal(alpha=spinodal(T=[0.05, 0.4, 2.0])), [0.05, 0.4, 2.0])
    close(cusp(spinodal(T=0.3)), phi_eq(0.3, "lse"))


def test_ramsauer_s_bound():
    close(ramsauer_bound(), 0.3157, 4)


def test_the_noise_sum_reaches_one_where_it_should():
    wanted = {20: 0.61865, 50: 0.62100, 100: 0.62178, 200: 0.62218, 1000: 0.622493, 10_000: 0.622564}
    for N, alpha in wanted.items():
        close(optimize.brentq(lambda a, N=N: float(log_noise_sum(N, a)), 0.1, 2), alpha, 5)


def test_threshold_of_lsr():
    close(alpha_th(), 0.34657, 5)
    close(alpha_th(density="gaussian"), 0.25)
    with pytest.warns(UserWarning, match="b <= 1"):
        assert alpha_th(0.8) == 0
    assert alpha_c(np.linspace(0, 9, 5), "lsr") == pytest.approx(np.full(5, alpha_th()))


@pytest.mark.parametrize(("kernel", "b"), [("lse", B), ("lsr", B), ("lsr", 0.7), ("lsr", 1.0)])
@pytest.mark.parametrize("T", [0.03, 0.7, 5.0])
def test_the_branch_is_the_minimum_of_the_free_energy(kernel, b, T):
    def f(phi):
        return float(energy_density(phi, kernel, b)) - T * 0.5 * np.log1p(-(phi**2))

    low = max(phi_c(b), 0.0) + 1e-12 if kernel == "lsr" else 0.0
    best = optimize.minimize_scalar(f, bounds=(low, 1 - 1e-12), method="bounded", options={"xatol": 1e-12})
    assert float(phi_eq(T, kernel, b)) == pytest.approx(best.x, abs=1e-6)
    assert float(free_energy(T, kernel, b)) == pytest.approx(best.fun, abs=1e-9)


@pytest.mark.parametrize(("kernel", "T", "wanted"), [
    ("lse", 0.1, 0.95215), ("lse", 0.5, 0.78366), ("lsr", 0.1, 0.95898), ("lsr", 0.5, 0.87376), ("lsr", 1.0, 0.82774),
])  # fmt: skip
def test_the_finite_curve_is_its_quadrature(kernel, T, wanted):
    close(phi_eq(T, kernel, N=50), wanted, 5)

    def weight(phi):
        return np.exp(log_alignment_density(phi, 50) - 50 * energy_density(phi, kernel) / T + 50 * 0.1 / T)

    low = phi_c() if kernel == "lsr" else -1
    top = integrate.quad(lambda phi: phi * weight(phi), low, 1, epsabs=0, limit=200)[0]
    close(phi_eq(T, kernel, N=50), top / integrate.quad(weight, low, 1, epsabs=0, limit=200)[0])


def test_the_finite_curve_tends_to_the_closed_form():
    for kernel in ("lse", "lsr"):
        errors = [abs(float(phi_eq(0.5, kernel, N=N) - phi_eq(0.5, kernel))) for N in (50, 500, 5000)]
        assert errors[1] < errors[0] / 8
        assert errors[2] < errors[1] / 8
    assert phi_eq(0.0, "lse", N=50) == 1


CASES = [("lse", "equal-depth"), ("lse", "spinodal"), ("lsr", "single"), ("lsr", "paper")]


@pytest.mark.parametrize(("kernel", "criterion"), CASES)
@pytest.mark.parametrize("density", ["spherical", "gaussian"])
@settings(deadline=None, max_examples=30)
@given(T=st.floats(0.01, 0.2))
def test_load_and_temperature_of_a_boundary_are_inverse(kernel, criterion, density, T):
    alpha = alpha_c(T, kernel, density=density, criterion=criterion)
    assert float(t_c(alpha, kernel, density=density, criterion=criterion)) == pytest.approx(T, rel=1e-6)


@pytest.mark.parametrize("density", ["spherical", "gaussian"])
@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_the_lse_boundary_falls_from_its_maximum_at_zero_temperature(density, beta):
    line = alpha_c(np.linspace(0, 20, 4001), "lse", beta, density=density)
    assert np.all(np.diff(line) < 0)
    assert line[-1] > 0  # a finite critical temperature at every load


def test_temperatures_where_nothing_crosses():
    assert t_c(0.0) == np.inf
    assert t_c(0.7) == 0
    assert list(t_c([0.3, 0.4], "lsr")) == [np.inf, 0]
    assert t_c(0.2, "lsr", density="gaussian", criterion="single") == np.inf
    assert t_c(0.6, "lsr", density="gaussian", criterion="single") == 0


@pytest.mark.parametrize(("kernel", "density", "b"), [("lse", "gaussian", B), ("lse", "spherical", B), ("lsr", "spherical", B),
                                                      ("lsr", "gaussian", 0.8)])  # fmt: skip
def test_the_floor_is_continuous_and_falls_with_the_load(kernel, density, b):
    alpha = np.linspace(0.36, 1.4, 5001) if b > 1 else np.linspace(0.01, 1.4, 5001)
    floor = noise_floor(alpha, kernel, 0.7, b, density)
    assert np.all(np.diff(floor) < 0)
    assert np.abs(np.diff(floor)).max() < 0.01


def test_no_floor_below_the_threshold():
    assert np.isinf(noise_floor([0.1, 0.34], "lsr")).all()
    assert np.isfinite(noise_floor(0.35, "lsr"))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: phi_eq(-0.1, "lse"), "T must be at least 0, got -0.1"),
    (lambda: phi_eq(float("nan"), "lse"), "T must be at least 0, got nan"),
    (lambda: phi_eq(0.1, "ReLU"), "kernel must be 'lse' or 'lsr', got 'ReLU'"),
    (lambda: phi_eq(0.1, "lsr", b=0), "b must be above 0, got 0"),
    (lambda: phi_eq(0.1, "lse", N=2), "N must be at least 3, got 2"),
    (lambda: alpha_c(0.1, criterion="single"), "criterion of lse must be equal-depth or spinodal, got 'single'"),
    (lambda: alpha_c(0.1, beta_net=0), "beta_net must be above 0"),
    (lambda: t_c(-1), "alpha must be at least 0, got -1"),
    (lambda: capacity_zero_t([1, -2]), "beta_net must be above 0, got -2"),
    (lambda: alpha_th(-1), "b must be above 0, got -1"),
    (lambda: spinodal(), "give either alpha"),
    (lambda: ramsauer_bound(-1), "beta_net must be above 0"),
    (lambda: log_noise_sum(50, 0.1, 0), "beta_net must be above 0"),
])  # fmt: skip
def test_bad_input_is_called_by_its_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
