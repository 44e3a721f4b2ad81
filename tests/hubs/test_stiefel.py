from __future__ import annotations

import numpy as np
import pytest

from upheld.hubs.stiefel import polar, stiefel_minimise, stiefel_path


def test_polar_factor_is_the_nearest_orthonormal_matrix():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 2))
    V = polar(A)
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
    for _ in range(50):
        W = np.linalg.qr(rng.standard_normal((6, 2)))[0]
        assert np.linalg.norm(A - V) <= np.linalg.norm(A - W) + 1e-12


def test_first_step_follows_the_update_of_the_authors():
    """One step by hand for s = 1, where the tangent projection is u - v (v'u) and the polar factor is the unit vector."""
    S = np.array([np.diag([2.0, 0.5]), np.diag([1.0, 0.7])])
    v = np.array([[0.8], [0.6]])
    path = stiefel_path(S, v, n_steps=3)
    assert next(path)[0] == pytest.approx(max(2 * 0.64 + 0.5 * 0.36, 0.64 + 0.7 * 0.36))
    u = 2 * S[0] @ v
    moved = v - 0.1 / np.log(4) * (u - v * (v.T @ u))
    np.testing.assert_allclose(next(path)[1], moved / np.linalg.norm(moved))


def test_500_steps_of_which_the_first_is_numbered_two():
    assert (
        len(list(stiefel_path(np.eye(3)[None], np.eye(3)[:, :1]))) == 500
    )  # the start, and the ends of t = 2, ..., 500


def test_finds_the_bottom_eigenspace_of_one_well_separated_matrix():
    S = np.diag([0.0, 0.1, 3.0, 3.5, 4.0])[None]
    V = stiefel_minimise(S, 2, n_starts=2, rng=np.random.default_rng(0))
    np.testing.assert_allclose(np.sum(V**2, axis=1), [1, 1, 0, 0, 0], atol=1e-3)
