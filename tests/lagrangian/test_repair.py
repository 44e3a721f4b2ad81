"""Plans from Lagrangian solutions."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, data, maximise_dual
from upheld.lagrangian.families import CVRP, GAP
from upheld.lagrangian.oracles import FREE
from upheld.lagrangian.repair import assignment, repair, routes


@pytest.mark.parametrize("seed", range(5))
def test_assignments_are_feasible_and_not_far_from_the_optimum(seed):
    P = data.gap("C", 5, 20, np.random.default_rng(seed))
    found = repair(P, maximise_dual(P).x_average, time_limit=3.0)
    x = np.round(found.x).reshape(5, 20)
    assert (x.sum(axis=0) == 1).all()
    assert ((P.weight * x).sum(axis=1) <= P.capacity).all()
    assert (P.cost * x).sum() == pytest.approx(found.value)
    assert found.value <= 1.06 * P.milp().optimum(20).value


def test_swaps_mend_what_greed_spoils():
    """Each task prefers agent 0, which has room for one; the average says the wrong one."""
    P = GAP([[1, 1], [2, 9]], [[1, 1], [1, 1]], [1, 1])
    found = assignment(P, np.array([1.0, 0.0, 0.0, 1.0]))
    assert found.value == 3.0
    assert found.x.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_what_is_fixed_stays():
    P = data.gap("C", 3, 7, np.random.default_rng(0))
    fixed = np.full(21, FREE, dtype=np.int8)
    fixed[[3, 7 + 5]] = 1  # task 4 to agent 1, task 6 to agent 2
    fixed[14 + 0] = 0  # task 1 not to agent 3
    x = repair(P, np.full(21, 0.5), time_limit=1.0, fixed=fixed).x
    assert x[3] == x[12] == 1
    assert x[14] == 0


def test_an_average_that_agrees_on_what_cannot_be_is_given_up():
    """One of two must be taken, and every block solution said neither."""
    M = CoupledMILP([5, 4], [[1, 1]], [1], np.empty((0, 2)), [], True, 0, 1, equality=True)
    found = repair(M, np.zeros(2), time_limit=1.0)
    assert (found.value, found.x.tolist()) == (4.0, [0.0, 1.0])


def test_where_nothing_fits_there_is_no_plan():
    assert assignment(GAP([[1, 1]], [[2, 2]], [3]), np.zeros(2)).x is None


def test_more_routes_than_vehicles_are_packed_or_given_up():
    far = np.ones((4, 4)) - np.eye(4)
    packed = routes(CVRP(far, [2, 2, 2], 6, 1))
    assert packed.value == 4.0  # one tour through all
    assert routes(CVRP(far, [2, 2, 2], 3, 2)).x is None  # three tours are needed
