"""Channels out of an LSR memory: counts and rates against sums over drawn patterns."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.memory.data import draw_patterns
from upheld.memory.escape import escape_channels
from upheld.memory.theory import phi_c, phi_eq


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
