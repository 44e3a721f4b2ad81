"""Nearest points of polyhedra, against a general convex solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from upheld.lagrangian.projection import nearest_point


@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 8), rng.integers(1, 12)
    rows = rng.integers(-3, 3, (m, n)).astype(float)
    inside = rng.uniform(0, 10, n)
    at_least = rows @ inside - rng.uniform(0, 1, m)
    centre, low, high = rng.uniform(-5, 15, n), np.zeros(n), np.full(n, 10.0)
    z = cp.Variable(n)
    cp.Problem(cp.Minimize(cp.sum_squares(z - centre)), [rows @ z >= at_least, z >= low, z <= high]).solve(cp.CLARABEL)
    found = nearest_point(centre, rows, at_least, low, high)
    np.testing.assert_allclose(found, z.value, atol=2e-5)
    assert (rows @ found >= at_least - 1e-6).all()


def test_a_point_that_is_inside_stays():
    centre = np.array([1.0, 2.0])
    assert (
        nearest_point(centre, np.array([[1.0, 1.0]]), np.array([2.0]), np.zeros(2), np.full(2, 9.0)) == centre
    ).all()


def test_no_feasible_point_is_none():
    rows, one = np.array([[1.0], [-1.0]]), np.ones(1)
    assert nearest_point(np.zeros(1), rows, np.array([2.0, -1.0]), -9 * one, 9 * one) is None
