from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.effects.features import draw_features, median_distance, orthogonal_gaussian


def kernels(x, y, length):
    gap = x - y
    r = np.linalg.norm(gap) / length
    return {
        "gaussian": np.exp(-(r**2) / 2),
        "laplace": np.exp(-np.abs(gap).sum() / length),
        "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    }


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern32"])
def test_inner_products_are_the_kernel(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 3))
    phi = draw_features(X, 100_000, rng, kernel=kernel, linear=False, bandwidth=1.3)(X, np.zeros(6))
    for i in range(6):
        for j in range(i):
            assert phi[i] @ phi[j] == pytest.approx(kernels(X[i], X[j], 1.3)[kernel], abs=0.02)


@given(st.integers(1, 6), st.integers(1, 40), st.floats(0.01, 50), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_random_features_have_norm_one(d, half, size, seed):
    rng = np.random.default_rng(seed)
    X = size * rng.standard_normal((5, d))
    phi = draw_features(X, 2 * half, rng)(X, np.zeros(5))
    np.testing.assert_allclose((phi[:, : 2 * half] ** 2).sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(phi[:, 2 * half :], X / np.sqrt(d))


def test_features_are_cosines_and_sines():
    rng = np.random.default_rng(1)
    X = 30 * rng.standard_normal((700, 4))
    phi_map = draw_features(X, 20, rng, linear=False, bandwidth=1.0)
    angle = X @ phi_map.frequencies.T
    expected = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(10)
    np.testing.assert_allclose(phi_map(X, np.zeros(700)), expected, atol=1e-14)


def test_directions_are_orthogonal_with_norms_of_normal_vectors():
    omega = orthogonal_gaussian(3000, 5, np.random.default_rng(0))
    inner = omega[:5] @ omega[:5].T
    np.testing.assert_allclose(inner - np.diag(np.diag(inner)), 0, atol=1e-12)
    assert (omega**2).sum(axis=1).mean() == pytest.approx(5, abs=0.2)
    np.testing.assert_allclose(np.cov(omega.T), np.eye(5), atol=0.12)


def test_time_kernel_has_its_own_bandwidth():
    """A product of the kernel in x and one of bandwidth 0.4 of the time scale in time, whatever d."""
    rng = np.random.default_rng(0)
    X = np.zeros((3, 8))
    phi = draw_features(X, 200_000, rng, linear=False, bandwidth=2.7, time_start=5.0, time_scale=100.0)
    made = phi(X, np.array([5.0, 45.0, 105.0]))
    assert made[0] @ made[1] == pytest.approx(np.exp(-0.5), abs=0.01)
    assert made[0] @ made[2] == pytest.approx(np.exp(-(2.5**2) / 2), abs=0.01)


def test_median_distance_of_three_points():
    assert median_distance(np.array([[0.0], [1.0], [10.0]])) == 9
    assert median_distance(np.zeros((4, 2))) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 7}, "must be even"),
        ({"n_features": 0, "linear": False}, "nothing to balance"),
        ({"n_features": 8, "kernel": "cosine"}, "unknown kernel 'cosine'"),
        ({"n_features": 8, "bandwidth": -1.0}, "must be positive"),
    ],
)
def test_what_cannot_be_drawn(options, message):
    with pytest.raises(ValueError, match=message):
        draw_features(np.eye(3), rng=np.random.default_rng(0), **options)
