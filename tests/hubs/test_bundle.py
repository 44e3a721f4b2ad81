from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from upheld.hubs.bundle import cutting_plane_bound, level_bundle, project_on_level_set
from upheld.hubs.dual import DualFunction


def test_cutting_plane_bound_of_two_crossing_cuts():
    # min(l_2, l_1) is largest at (1/2, 1/2), both cuts active with equal multipliers.
    u, alpha = cutting_plane_bound(np.array([[0.0, 1.0], [1.0, 0.0]]), 1.0)
    assert u == pytest.approx(0.5)
    np.testing.assert_allclose(alpha, [0.5, 0.5])


@pytest.mark.parametrize("seed", range(10))
def test_projection_on_level_set_matches_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    K = rng.integers(2, 6)
    cuts, center = rng.uniform(0, 1, (5, K)), rng.dirichlet(np.ones(K))
    u, _ = cutting_plane_bound(cuts, 1.0)
    level = 0.3 * (cuts @ center).min() + 0.7 * u
    l = project_on_level_set(center, cuts, level, 1.0)
    reference = minimize(
        lambda x: np.sum((x - center) ** 2),
        np.full(K, 1 / K),
        method="SLSQP",
        bounds=[(0, 1)] * K,
        constraints=[
            {"type": "eq", "fun": lambda x: x.sum() - 1},
            {"type": "ineq", "fun": lambda x: cuts @ x - level},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    np.testing.assert_allclose(l, reference, atol=1e-5)


def test_multipliers_reproduce_the_model_bound():
    """LP duality: the relaxed primal point of the multipliers has the worst group value u."""
    rng = np.random.default_rng(1)
    S = np.array([np.corrcoef(rng.standard_normal((30, 12)).T) for _ in range(5)])
    dual = DualFunction(S, 1)
    dual(dual.weights)
    alpha = level_bundle(dual, 1e-4, 1e-6, 200)
    P = sum(a * V @ V.T for a, V in zip(alpha, dual.bases, strict=False))
    worst = np.einsum("kij,ij->k", S, P).max()
    assert worst == pytest.approx(dual.lower, rel=2e-4)
    assert worst >= dual.lower - 1e-12
