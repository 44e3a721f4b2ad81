"""Generalised assignment: knapsacks against enumeration, the dual's maximum against Dantzig and Wolfe's linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from upheld.lagrangian import data, maximise_dual
from upheld.lagrangian.families import GAP


def dantzig_wolfe(P: GAP, columns: list[list[np.ndarray]]) -> float:
    """The linear program over convex combinations of every agent's sets: the exact maximum of the dual."""
    cost = [P.cost[i] @ bits for i in range(P.m) for bits in columns[i]]
    cover = -np.array([bits for i in range(P.m) for bits in columns[i]]).T
    convex = np.array([[float(i == k) for i in range(P.m) for _ in columns[i]] for k in range(P.m)])
    done = linprog(cost, cover, -np.ones(P.n), convex, np.ones(P.m))
    assert done.status == 0
    return float(done.fun)


@pytest.mark.parametrize("kind", ["C", "D", "E"])
@pytest.mark.parametrize("seed", range(4))
def test_the_maximum_is_dantzig_wolfes_and_lies_between_lp_and_optimum(kind, seed, knapsack_columns):
    P = data.gap(kind, 3, 7, np.random.default_rng(seed))
    exact = dantzig_wolfe(P, knapsack_columns(P))
    found = maximise_dual(P)
    assert found.u == pytest.approx(exact, rel=2e-6)
    assert found.upper >= exact - 1e-6
    M = P.milp()
    assert M.lp_relaxation()[0] <= exact + 1e-6
    assert exact <= M.optimum().value + 1e-6


def test_knapsacks_are_those_of_enumeration(knapsack_columns):
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = data.gap("D", 3, 7, rng)
        pi = rng.uniform(0, 150, 7)
        best = sum(min(bits @ (P.cost[i] - pi) for bits in sets) for i, sets in enumerate(knapsack_columns(P)))
        assert P.oracle(pi).u == pytest.approx(pi.sum() + best)


def test_no_subgradient_means_optimal():
    """Where the minimiser satisfies every row with equality, it is the optimum."""
    P = GAP([[1, 5], [4, 2]], [[2, 2], [2, 2]], [2, 2])
    answer = P.oracle(np.array([3.0, 4.0]))
    assert (answer.g == 0).all()
    assert answer.u == P.milp().optimum().value == 3.0


def test_prescribed_tasks_count_against_the_capacity():
    P = GAP([[1, 5], [4, 2]], [[2, 2], [2, 2]], [2, 2])
    with pytest.raises(ValueError, match="the tasks prescribed to agent 0 exceed its capacity"):
        P.oracle(np.zeros(2), fixed=np.array([1, 1, -1, -1], dtype=np.int8))


@pytest.mark.parametrize(
    ("cost", "weight", "capacity", "message"),
    [
        ([[1, -2]], [[1, 1]], [1], "agent 0, task 1: -2; costs must be finite and not negative"),
        ([[1, np.nan]], [[1, 1]], [1], "agent 0, task 1: nan; costs must be finite"),
        ([[1, 2]], [[1, 1.5]], [1], "agent 0, task 1: 1.5; weights must be positive whole numbers"),
        ([[1, 2]], [[0, 1]], [1], "agent 0, task 0: 0; weights"),
        ([[1, 2]], [[1, 1]], [np.inf], "capacities must be finite"),
        ([[1, 2]], [[1, 1], [1, 1]], [1], r"weight must be \(1, 2\)"),
    ],
)
def test_bad_data(cost, weight, capacity, message):
    with pytest.raises(ValueError, match=message):
        GAP(cost, weight, capacity)
