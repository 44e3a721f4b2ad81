from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.hubs.dual import DualFunction, ascend, project_capped_simplex, worst_mean

points = st.lists(st.floats(-5, 5), min_size=2, max_size=8).map(np.array)


@given(points, st.integers(1, 8))
def test_projection_satisfies_the_optimality_conditions(x, r):
    cap = 1 / min(r, len(x))
    l = project_capped_simplex(x, cap)
    assert l.sum() == pytest.approx(1, abs=1e-9)
    assert l.min() >= 0
    assert l.max() <= cap + 1e-12
    # Nearest point of a convex set: (x - l)'(v - l) <= 0 for every vertex v of it.
    rng = np.random.default_rng(0)
    for _ in range(20):
        vertex = np.zeros(len(x))
        vertex[rng.permutation(len(x))[: min(r, len(x))]] = cap
        assert (x - l) @ (vertex - l) <= 1e-8


def test_projection_of_two_weights():
    np.testing.assert_allclose(project_capped_simplex(np.array([0.9, 0.5]), 1.0), [0.7, 0.3])
    np.testing.assert_allclose(project_capped_simplex(np.array([3.0, 0.0]), 1.0), [1.0, 0.0])


def test_worst_mean():
    t = np.array([3.0, 1.0, 2.0])
    assert worst_mean(t, 1) == 3
    assert worst_mean(t, 2) == 2.5
    assert worst_mean(t, 3) == 2


def test_smooth_problem_closes_within_few_evaluations():
    rng = np.random.default_rng(0)
    dual = DualFunction(np.array([np.corrcoef(rng.standard_normal((60, 20)).T) for _ in range(3)]), 4)
    ascend(dual, 1e-4, 30)
    assert dual.relative_gap <= 1e-4
    assert dual.n_evaluations <= 15
