"""pi*(P): a maximiser, and the shortest."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from upheld.lagrangian import Budget, CoupledMILP, data, maximise_dual
from upheld.lagrangian.ascent import box_of
from upheld.lagrangian.minimum_norm import RELATIVE, minimum_norm_maximiser


def test_among_many_maximisers_it_takes_the_shortest():
    """min x subject to x >= 1, 2 x >= 2, 0 <= x <= 3: u = x + pi_1 (1 - x) + pi_2 (2 - 2 x) is largest, 1, where
    pi_1 + 2 pi_2 >= 1 (then x = 3 earns) and <= 1 (x = 0): the line, whose shortest point is (.2, .4)."""
    P = CoupledMILP([1.0], [[1], [2]], [1.0, 2.0], np.empty((0, 1)), [], False, 0, 3)
    found = minimum_norm_maximiser(P, box_of(P, 1.0))
    assert found.u_star == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found.pi, [0.2, 0.4], atol=1e-5)


def test_it_is_optimal_and_no_longer_than_any_maximiser(draw):
    P = draw(0)
    box = box_of(P, 1000.0)
    found = minimum_norm_maximiser(P, box, Budget(3000))
    allowed = 1.02 * RELATIVE * (1 + abs(found.u_star))
    assert P.oracle(found.pi).u >= found.u_star - allowed
    assert found.shortfall <= allowed
    for method in ("level", "kelley"):
        other = maximise_dual(P, method=method, pi_max=1000.0, budget=Budget(3000), tolerance=1e-8)
        assert np.linalg.norm(found.pi) <= np.linalg.norm(other.pi) + 1e-6 * (1 + np.linalg.norm(other.pi))


def test_on_a_gap_it_is_what_a_convex_solver_finds(knapsack_columns):
    """All columns enumerated, u is the minimum of finitely many planes, and the problem a quadratic program."""
    P = data.gap("D", 3, 6, np.random.default_rng(1))
    found = minimum_norm_maximiser(P, box_of(P, 400.0))
    pi, w = cp.Variable(6, nonneg=True), cp.Variable(3)
    planes = [w[i] <= P.cost[i] @ bits - pi @ bits for i, sets in enumerate(knapsack_columns(P)) for bits in sets]
    u_star = cp.Problem(cp.Maximize(cp.sum(pi) + cp.sum(w)), planes).solve(cp.CLARABEL)
    assert found.u_star == pytest.approx(u_star, rel=1e-6)
    floor = [cp.sum(pi) + cp.sum(w) >= found.u_star - RELATIVE * (1 + abs(found.u_star)), pi <= 400]
    shortest = np.sqrt(cp.Problem(cp.Minimize(cp.sum_squares(pi)), planes + floor).solve(cp.CLARABEL))
    assert np.linalg.norm(found.pi) == pytest.approx(shortest, rel=1e-5)


@pytest.mark.parametrize("cost", ["piecewise", "quadratic"])
def test_on_unit_commitment_it_is_optimal_and_the_shortest(cost):
    """Thousands of pieces, or none: the point is in the set, and no cut of u allows a shorter one (cuts taken elsewhere)."""
    P = data.ten_unit_day(cost=cost)
    box = box_of(P, 60.0)
    found = minimum_norm_maximiser(P, box, Budget(2000))
    tau = RELATIVE * (1 + abs(found.u_star))
    assert P.oracle(found.pi).u == pytest.approx(found.u_star - found.shortfall, abs=1e-6)
    assert found.shortfall <= 1.02 * tau
    assert found.longer <= 1e-3 * np.linalg.norm(found.pi)
    rng = np.random.default_rng(0)
    for _ in range(200):  # shorter points near it are not optimal
        pi = box.clip(found.pi + rng.normal(0, 0.05, P.n_rows))
        pi *= (1 - 1e-6) * (np.linalg.norm(found.pi) - found.longer) / np.linalg.norm(pi)
        assert P.oracle(pi).u < found.u_star - tau


def test_a_spent_budget_leaves_an_optimal_point():
    P = data.ten_unit_day(cost="piecewise")
    found = minimum_norm_maximiser(P, box_of(P, 60.0), Budget(250))
    assert found.shortfall <= 1.02 * RELATIVE * (1 + abs(found.u_star))
    assert found.longer >= 0
    assert found.calls <= 500
