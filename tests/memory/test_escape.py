"""Channels out of an LSR memory: counts and rates against sums over drawn patterns."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.memory.data import draw_patterns
from upheld.memory.escape import basin_lifetime, escape_channels
from upheld.memory.montecarlo import SphereSampler
from upheld.memory.theory import phi_c, phi_eq, spinodal


def test_the_expected_channels_are_the_patterns_beyond_psi_min():
    alpha, N, T = 0.2, 30, 2.0
    wall, phi = phi_c(), float(phi_eq(T, "lsr"))
    lowest = np.cos(np.arccos(wall) + np.arccos(phi))  # supports touch where the angles add up
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(200):
        xi = draw_patterns(round(np.exp(alpha * N)), N, rng=rng).astype(float)
        counts.append(((xi[1:] @ xi[0] / N) > lowest).sum())
    found = escape_channels(alpha, T, N).K
    assert np.mean(counts) == pytest.approx(float(found), abs=4 * np.std(counts) / np.sqrt(200) + 0.02)


def test_more_patterns_and_more_heat_shorten_the_life():
    tau = escape_channels([[0.15], [0.2], [0.24]], [0.5, 1.0, 4.0], 30).tau
    assert tau.shape == (3, 3)
    assert np.all(np.diff(tau, axis=0) < 0)
    assert np.all(np.diff(tau, axis=1) < 0)


def test_lives_grow_with_the_dimension_below_the_threshold():
    tau = [float(escape_channels(0.2, 1.0, N).tau) for N in (25, 50, 100, 200)]
    assert np.all(np.diff(np.log(tau)) > 0)


def test_no_channel_no_escape():
    found = escape_channels(0.001, 0.01, 50)
    assert found.barrier == np.inf
    assert found.tau == np.inf


def test_bad_input_is_called_by_its_name():
    with pytest.raises(ValueError, match="N must be at least 5, got 4"):
        escape_channels(0.1, 1.0, 4)
    with pytest.raises(ValueError, match=r"b must be above 1, got 0\.9"):
        escape_channels(0.1, 1.0, 40, b=0.9)


def test_the_wall_of_lse_is_the_free_energy_between_the_state_and_the_cusp():
    """By quadrature: the slope of energy and entropy along the way, without their closed forms."""
    from scipy.integrate import quad

    alpha, T, N = 0.1, 0.6, 40
    phi, edge = (
        float(phi_eq(T, "lse")),
        1 - (1 - np.sqrt(1 - np.exp(-2 * alpha))),
    )  # frozen: the largest alignment that occurs
    barrier = quad(lambda x: N / T - (N - 3) * x / (1 - x**2), edge, phi)[0]
    assert float(np.log(basin_lifetime(alpha, T, N))) == pytest.approx(barrier, rel=1e-9)


def test_no_wall_beyond_the_spinodal():
    T = float(spinodal(alpha=0.3))
    assert basin_lifetime(0.3, [1.01 * T, 2 * T], 100).tolist() == [1.0, 1.0]
    assert float(basin_lifetime(0.3, 0.5 * T, 100)) > 1


@pytest.mark.slow
def test_the_sampler_keeps_and_loses_lse_where_the_wall_says():
    alpha, N, sweeps = 0.2, 25, 2000
    for T, kept in ((0.1, True), (1.0, False)):
        predicted = float(basin_lifetime(alpha, T, N)) * 10 > sweeps
        run = SphereSampler("lse", alpha, N, [T], trials=6, burn_in=200, sweeps=sweeps, random_state=0).run()
        assert predicted == kept
        assert run.retrieved.mean() == float(kept)


@pytest.mark.parametrize(("T", "N", "match"), [(0.0, 50, "above 0"), (1.0, 4, "at least 5")])
def test_lifetimes_of_nothing(T, N, match):
    with pytest.raises(ValueError, match=match):
        basin_lifetime(0.1, T, N)
