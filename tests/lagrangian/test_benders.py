"""Benders' decomposition: a case by hand, HiGHS on random ones, cuts from learned multipliers, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, SGAMultipliers, WarmStartMultipliers, benders, dual_value


def location(fixed, transport, capacity, demand, shortage=50.0) -> CoupledMILP:
    """Sites y open for a fixed cost; flows x_ij <= capacity_i y_i in sum (coupling rows); what is missing of a demand is paid for."""
    fixed, transport, capacity = (np.asarray(part, dtype=float) for part in (fixed, transport, capacity))
    m, n = transport.shape
    A = np.zeros((m, m + m * n + n))
    C = np.zeros((n, m + m * n + n))
    for i in range(m):
        A[i, i] = capacity[i]
        A[i, m + i * n : m + (i + 1) * n] = -1
    for j in range(n):
        C[j, m + j : m + m * n : n] = 1
        C[j, m + m * n + j] = 1
    whole = np.arange(A.shape[1]) < m
    upper = np.where(whole, 1.0, 100.0)
    return CoupledMILP(
        np.r_[fixed, transport.ravel(), np.full(n, shortage)], A, np.zeros(m), C, demand, whole, 0, upper, offset=7.0
    )


def drawn(rng: np.random.Generator) -> CoupledMILP:
    transport, demand = np.random.default_rng(0).uniform(1, 10, (4, 6)), rng.uniform(2, 8, 6)
    return location([20, 30, 25, 40], transport, [20, 25, 15, 30], demand)


def test_two_sites_by_hand():
    """Both open: 3 + 4, 2 units at 1 from the first, one at 2 from the second; a unit more at the first saves 1."""
    M = location([3, 4], [[1], [2]], [2, 2], [3], shortage=10)
    done = benders(M)
    assert done.converged
    assert done.value == pytest.approx(7 + 11)
    assert done.x.tolist() == [1, 1, 2, 1, 0]
    np.testing.assert_allclose(done.pi, [1, 0], atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_and_duals_that_bound_it(seed):
    M = drawn(np.random.default_rng(seed))
    optimum = M.optimum().value
    done = benders(M)
    assert done.value == pytest.approx(optimum)
    assert done.bound == pytest.approx(optimum, rel=1e-5)
    assert (np.diff(done.bound_history) >= -1e-6).all()
    assert (M.A @ done.x >= M.b - 1e-7).all()
    assert (M.C @ done.x >= M.d - 1e-7).all()
    assert M.offset + M.c @ done.x == pytest.approx(done.value)
    assert dual_value(done.pi, M).u <= optimum + 1e-6


def test_the_first_master_is_the_lagrangian_dual():
    rng = np.random.default_rng(1)
    M = drawn(rng)
    for pi in (np.zeros(4), rng.uniform(0, 5, 4)):
        assert benders(M, pi, rounds=1).bound == pytest.approx(dual_value(pi, M).u)


def test_the_same_learners_learn_its_duals():
    """SGA's multipliers start higher than 0 on a new day; the duals of past days' cuts, all as cuts, save rounds; one value for all."""
    rng = np.random.default_rng(0)
    *past, today = (drawn(rng) for _ in range(11))
    warm = WarmStartMultipliers(pi_max=50.0, target="benders").fit(past)
    np.testing.assert_allclose(warm.targets_[:3], [benders(P).pi for P in past[:3]])
    zero, sga, mean, every = (
        benders(today, start)
        for start in (None, SGAMultipliers(pi_max=50.0).fit(past).predict(today), warm.predict(today), warm.targets_)
    )
    assert [done.value for done in (sga, mean, every)] == pytest.approx([zero.value] * 3)
    assert sga.bound_history[0] > zero.bound_history[0] + 10
    assert every.bound_history[0] > zero.bound_history[0] + 10
    assert every.rounds < zero.rounds


def test_models_that_have_no_two_stages_are_refused():
    M = drawn(np.random.default_rng(0))
    with pytest.raises(ValueError, match="needs whole-number variables and continuous ones"):
        benders(CoupledMILP(M.c, M.A, M.b, M.C, M.d, True, 0, 1))
    with pytest.raises(
        ValueError, match=r"block row 0 ties whole-number variables to continuous ones; .* \(4 such rows\)"
    ):
        benders(CoupledMILP(M.c, M.C, M.d, M.A, M.b, M.integrality, M.lb, M.ub))
    short = CoupledMILP(M.c, M.A, M.b, M.C, M.d, M.integrality, M.lb, np.r_[M.ub[:-6], np.zeros(6)])
    with pytest.raises(ValueError, match="a first stage leaves the rest without a solution; let a shortage cost"):
        benders(short)
    dear = CoupledMILP(-M.c, M.A, M.b, M.C, M.d, M.integrality, M.lb, np.where(M.integrality, 1, np.inf))
    with pytest.raises(ValueError, match="have no least cost at the start; bound them"):
        benders(dear)
