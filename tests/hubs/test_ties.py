from __future__ import annotations

import numpy as np
import pytest

from upheld.hubs.bundle import level_bundle
from upheld.hubs.dual import DualFunction, worst_mean
from upheld.hubs.ties import extreme_point, refine


@pytest.mark.parametrize("seed", range(6))
def test_two_groups_lose_nothing_on_the_way_to_a_projector(seed):
    """K = 2: from any relaxed point an extreme point exists that is a projector and no worse."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2, 9, 9))
    dual = DualFunction(A + A.transpose(0, 2, 1), 3)
    for weights in rng.dirichlet(np.ones(2), 4):
        dual(weights)
    alpha = rng.dirichlet(np.ones(4))
    relaxed = worst_mean(sum(a * t for a, t in zip(alpha, dual.cuts, strict=True)), 1)
    V = extreme_point(dual, alpha)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
    assert worst_mean(dual.group_values(V), 1) <= relaxed + 1e-7


@pytest.mark.parametrize("n_worst", [1, 2])
def test_refinement_reaches_the_best_of_many_random_starts(n_worst):
    """s = 1 in four dimensions: a fine random search knows the optimum of (1) to three digits."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 4, 4))
    S = A @ A.transpose(0, 2, 1)
    dual = DualFunction(S, 1, n_worst)
    dual(dual.weights)
    dual.offer(extreme_point(dual, level_bundle(dual, 1e-4, 1e-5, 100)))
    refine(dual, 1e-4, np.random.default_rng(0))
    v = rng.standard_normal((400_000, 4))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    values = np.sort(np.einsum("ni,kij,nj->nk", v, S, v, optimize=True), axis=1)[:, -n_worst:].mean(axis=1)
    assert dual.upper <= values.min() + 1e-6
    assert dual.upper >= values.min() * 0.98
    assert dual.upper >= dual.lower - 1e-12
