"""Columns give what cuts give: the value over all columns, a mixture that is feasible, fewer rounds from learned multipliers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from upheld.lagrangian import CoupledMILP, SGAMultipliers, WarmStartMultipliers, data, maximise_dual
from upheld.lagrangian.column_generation import dantzig_wolfe
from upheld.lagrangian.families import CVRP, HardFamily


def test_the_value_over_all_columns(knapsack_columns):
    """By enumeration: the linear program over every set of tasks that an agent can carry, by scipy."""
    P = data.gap("D", 3, 7, np.random.default_rng(3))
    columns = [(i, bits) for i, sets in enumerate(knapsack_columns(P)) for bits in sets]
    cost = [P.cost[i] @ bits for i, bits in columns]
    once = [[float(i == agent) for i, _ in columns] for agent in range(P.m)]
    exact = linprog(cost, -np.array([bits for _, bits in columns]).T, -np.ones(P.n), once, np.ones(P.m)).fun
    done = dantzig_wolfe(P, pi_max=500.0)
    assert done.converged
    assert done.u == pytest.approx(exact, rel=1e-6)
    assert done.upper == pytest.approx(exact, rel=1e-6)
    M = P.milp()
    assert (M.A @ done.x_average >= 1 - 1e-7).all()
    assert (M.C @ done.x_average >= M.d - 1e-7).all()
    assert M.c @ done.x_average == pytest.approx(exact, rel=1e-6)


def test_the_same_as_the_bundle_on_blocks_by_highs():
    M = data.gap("C", 3, 6, np.random.default_rng(1)).milp()
    M = CoupledMILP(M.c, M.A, M.b, M.C, M.d, True, 0, 1, equality=True)
    assert dantzig_wolfe(M, pi_max=100.0).u == pytest.approx(maximise_dual(M, pi_max=100.0).u, rel=1e-5)


def test_the_hard_family_by_hand():
    done = dantzig_wolfe(HardFamily([0.25, 0.75]), pi_max=1.0)
    assert done.u == pytest.approx(0.5)
    np.testing.assert_allclose(done.pi, [0.25, 0.75], atol=1e-6)
    np.testing.assert_allclose(done.x_average, 0.5, atol=1e-6)


def test_a_box_that_is_too_small_bounds_the_dual_within_it():
    """Prices above .1 are out of reach: u is .05 + .05, at the corner."""
    done = dantzig_wolfe(HardFamily([0.25, 0.75]), pi_max=0.1)
    assert done.u == pytest.approx(0.1)
    np.testing.assert_allclose(done.pi, 0.1)


def test_learned_multipliers_save_columns():
    *past, today = itertools.islice(data.gap_stream("D", 4, 12, np.random.default_rng(0)), 17)
    learned = SGAMultipliers(pi_max=250.0).fit(past).predict(today)
    zero, ours = (dantzig_wolfe(today, start, pi_max=250.0) for start in (None, learned))
    assert ours.u == pytest.approx(zero.u, rel=1e-5)
    assert ours.u_history[0] > zero.u_history[0]
    assert ours.calls <= zero.calls


def test_its_duals_are_targets_of_a_warm_start():
    past = [HardFamily([0.25, 0.5]), HardFamily([0.75, 0.5])]
    learner = WarmStartMultipliers(pi_max=1.0, target="dantzig-wolfe").fit(past)
    np.testing.assert_allclose(learner.multipliers_, [0.5, 0.5], atol=1e-6)


def test_routes_that_visit_twice_are_no_columns():
    P: CVRP = data.cvrp(6, np.random.default_rng(0))
    with pytest.raises(ValueError, match="the block solutions of this CVRP are no points of its linear model"):
        dantzig_wolfe(P, np.full(6, 200.0), pi_max=300.0)
