from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from upheld.hubs import dual
from upheld.hubs.eigenspaces import joint_eigenspace
from upheld.hubs.spectra import bottom_eigenpairs


@pytest.mark.parametrize("warm", [False, True])
def test_iterative_solver_agrees_with_the_dense_one(warm):
    rng = np.random.default_rng(0)
    A = np.cov(rng.standard_normal((900, 300)).T)
    exact = np.linalg.eigh(A)
    start = exact[1][:, :10] + 1e-3 * rng.standard_normal((300, 10)) if warm else None
    pairs = bottom_eigenpairs(A, 8, start, dense_limit=100)
    np.testing.assert_allclose(pairs.values, exact[0][:8], atol=1e-7)
    np.testing.assert_allclose(np.abs(exact[1][:, :8].T @ pairs.vectors).max(axis=1), 1, atol=1e-4)
    assert 0 < pairs.error < 1e-5
    assert pairs.values.sum() - pairs.error <= exact[0][:8].sum() + 1e-12


def test_joint_eigenspace_is_the_same_through_the_iterative_solver(monkeypatch):
    rng = np.random.default_rng(1)
    S = np.array([np.cov(rng.standard_normal((600, 200)).T * np.linspace(1, 2, 200)[:, None]) for _ in range(2)])
    dense = joint_eigenspace(S, 4, tol=1e-6)
    monkeypatch.setattr(dual, "bottom_eigenpairs", partial(bottom_eigenpairs, dense_limit=100))
    iterative = joint_eigenspace(S, 4, tol=1e-6)
    assert iterative.lower <= dense.upper
    assert iterative.upper == pytest.approx(dense.upper, rel=1e-5)
    np.testing.assert_allclose(iterative.influence, dense.influence, atol=1e-2)
