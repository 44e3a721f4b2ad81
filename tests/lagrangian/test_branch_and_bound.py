"""Trees that prove the optimum, plans that are feasible, cuts that cut off nothing."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, SGAMultipliers, data, maximise_dual, root_bound_cut, solve
from upheld.lagrangian.branch_and_bound import lagrangian_tree, lp_tree
from upheld.lagrangian.families import UnitCommitment
from upheld.lagrangian.highs import solver
from upheld.lagrangian.repair import leaf


def feasible(M: CoupledMILP, x: np.ndarray) -> bool:
    rows, block = M.A @ x, M.C @ x
    tied = np.where(M.equality, np.abs(rows - M.b) <= 1e-6, rows >= M.b - 1e-6).all()
    own = (block >= M.d - 1e-6).all() and (block <= M.d_upper + 1e-6).all()
    bounds = (x >= M.lb - 1e-6).all() and (x <= M.ub + 1e-6).all()
    return bool(tied and own and bounds and (np.abs(x - np.round(x))[M.integrality] <= 1e-5).all())


def test_both_trees_prove_the_optimum(family, draw):
    if family in ("routing", "unit commitment"):
        pytest.skip("routes offer no branching; the small day's duality gap needs thousands of nodes")
    P = draw(1)
    optimum = P.milp().optimum().value
    for tree in (lagrangian_tree(P, improve=True), lp_tree(P)):
        assert tree.complete
        assert tree.incumbent.value == pytest.approx(optimum, rel=1e-6, abs=1e-6)
        assert tree.lower <= optimum + 1e-6 * (1 + abs(optimum))
        assert tree.lower >= optimum - 1 if P.integer_costs else tree.lower >= optimum - 3e-6 * (1 + abs(optimum))
        assert feasible(P.milp(), tree.incumbent.x)


def test_a_tree_that_is_cut_short_has_a_valid_bound():
    P = data.gap("D", 4, 12, np.random.default_rng(0))
    optimum = P.milp().optimum().value
    for nodes in (1, 3, 10):
        for tree in (lagrangian_tree(P, max_nodes=nodes), lp_tree(P, max_nodes=nodes)):
            assert tree.nodes <= nodes
            assert tree.lower <= optimum + 1e-6
    assert not lp_tree(P, max_nodes=3, upper=optimum).complete


def test_a_known_upper_bound_prunes():
    P = data.gap("D", 4, 12, np.random.default_rng(0))
    optimum = P.milp().optimum().value
    with_it, without = lagrangian_tree(P, upper=optimum), lagrangian_tree(P, improve=True)
    assert with_it.complete
    assert with_it.lower == pytest.approx(optimum)
    assert with_it.nodes <= without.nodes


def test_a_tighter_bound_needs_fewer_nodes():
    """The Lagrangian root is above the LP's, and so is the tree's size below."""
    P = data.gap("D", 4, 12, np.random.default_rng(2))
    optimum = P.milp().optimum().value
    start = maximise_dual(P).pi
    assert lagrangian_tree(P, start, upper=optimum).nodes * 10 < lp_tree(P, upper=optimum).nodes


def test_an_infeasible_leaf_is_closed():
    P = data.gap("D", 3, 7, np.random.default_rng(0))
    nothing = leaf(P, np.zeros(21, dtype=np.int8))  # no task assigned at all
    assert nothing.bound == np.inf
    assert nothing.x is None


def test_plans_are_feasible_and_their_gap_is_true(draw):
    P = draw(1)
    learned = SGAMultipliers().fit([P]).predict(P)
    done = solve(P, learned, time_limit=10.0, max_nodes=60)
    optimum = P.milp().optimum().value
    assert np.isfinite(done.value)
    low, high = sorted((done.bound, done.value))
    assert low - 1e-6 * (1 + abs(low)) <= P.user_value(optimum) <= high + 1e-6 * (1 + abs(high))
    assert done.gap == pytest.approx(abs(done.value - done.bound) / max(1, abs(done.value)))
    M = P.milp()
    if done.x.size == M.c.size:
        assert feasible(M, done.x)
        assert P.user_value(M.c @ done.x + M.offset) == pytest.approx(done.value)


def test_routes_are_feasible():
    P = data.cvrp(8, np.random.default_rng(0), vehicles=3)
    done = solve(P, np.zeros(8), time_limit=5.0)
    arcs = done.x.reshape(9, 9)
    assert (arcs[:, 1:].sum(axis=0) == 1).all()
    assert (arcs[1:].sum(axis=1) == 1).all()
    assert arcs[0].sum() <= 3
    assert (arcs * P.distance).sum() == pytest.approx(done.value)
    for first in np.flatnonzero(arcs[0]):
        load, at = 0, first
        while at:
            load += P.demand[at - 1]
            at = int(np.argmax(arcs[at]))
        assert load <= P.capacity


@pytest.mark.slow
@pytest.mark.parametrize("cost", ["quadratic", "piecewise"])
def test_the_published_day_is_planned_within_a_percent(cost):
    P = data.ten_unit_day(cost=cost)
    done = solve(P, maximise_dual(P).pi, time_limit=10.0)
    assert 559_400 < done.bound < 563_940
    assert done.gap < 0.0085
    if cost == "quadratic":
        on, p = done.x[:240].reshape(10, 24), done.x[240:].reshape(10, 24)
        assert done.value >= 563_937  # nobody has found a cheaper schedule
    else:
        assert feasible(P.milp(), done.x)
        on = np.round(done.x[P.monolith_positions()]).reshape(10, 24)
        p = P.schedule_cost(on)[1]
    assert (p.sum(axis=0) >= P.demand - 1e-6).all()
    assert (P.units.p_max @ on >= 1.1 * P.demand - 1e-6).all()
    assert np.isfinite(
        UnitCommitment(P.units, P.demand).oracle(np.zeros(48), fixed=np.r_[on.ravel(), -np.ones(240)].astype(np.int8)).u
    )


def test_the_root_cut_keeps_every_optimum(draw):
    P = draw(1)
    M = P.milp()
    optimum = M.optimum()
    cut = root_bound_cut(P, maximise_dual(P).pi)
    row = cut.coefficients @ optimum.x[cut.columns]
    assert cut.lower - 1e-5 * (1 + abs(row)) <= row <= cut.upper + 1e-5 * (1 + abs(row))
    h = solver(M.highs_lp())
    before = h.getNumRow()
    cut.add_to(h)
    assert h.getNumRow() == before + 1
    h.run()
    assert P.user_value(optimum.value) == pytest.approx(h.getInfo().objective_function_value, rel=1e-5, abs=1e-5)


def test_the_root_cut_lifts_the_lp_to_the_lagrangian_bound():
    P = data.gap("D", 4, 12, np.random.default_rng(2))
    found = maximise_dual(P)
    M = P.milp()
    h = solver(M._minimisation(integer=False))
    root_bound_cut(P, found.pi).add_to(h)
    h.run()
    assert h.getInfo().objective_function_value >= np.ceil(found.u - 1e-6) - 1e-6 > M.lp_relaxation()[0]


def test_no_branching_is_offered_on_routes():
    with pytest.raises(ValueError, match=r"CVRP offers no branching; take its monolith, P.milp\(\)"):
        lagrangian_tree(data.cvrp(4, np.random.default_rng(0)))
