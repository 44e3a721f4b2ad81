from __future__ import annotations

import numpy as np

from upheld.hubs.covariance import standardised
from upheld.hubs.eigenspaces import joint_eigenspace
from upheld.hubs.rowspace import lift, row_space


def test_row_space_solution_equals_the_full_one():
    rng = np.random.default_rng(0)
    factors = [standardised(rng.standard_normal((8, 17))) for _ in range(2)]  # joint rank 14, null space 3
    space = row_space(factors)
    assert space.basis.shape == (17, 14)
    lifted = lift(joint_eigenspace(space.S, 5 - 3, tol=1e-9), space)
    full = joint_eigenspace(np.array([Z.T @ Z for Z in factors]), 5, tol=1e-9)
    np.testing.assert_allclose(lifted.upper, full.upper, atol=1e-8)
    np.testing.assert_allclose(lifted.influence, full.influence, atol=1e-4)
    np.testing.assert_allclose(lifted.components @ lifted.components.T, np.eye(5), atol=1e-10)
    assert len(lifted.eigenvalues) == 17
