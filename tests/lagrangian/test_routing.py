"""Vehicle routing: routes against enumeration, and q-routes below elementary ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from upheld.lagrangian import data
from upheld.lagrangian.families import CVRP


def cheapest_route(P: CVRP, pi: np.ndarray) -> float:
    """Over all orders of all subsets that fit."""
    best = 0.0
    for size in range(1, P.demand.size + 1):
        for order in itertools.permutations(range(P.demand.size), size):
            if P.demand[list(order)].sum() <= P.capacity:
                stops = [0, *(j + 1 for j in order), 0]
                cost = sum(P.distance[a, b] for a, b in itertools.pairwise(stops)) - pi[list(order)].sum()
                best = min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(5))
def test_elementary_routes_are_enumeration_and_q_routes_lie_below(seed):
    rng = np.random.default_rng(seed)
    P = data.cvrp(5, rng, route="elementary")
    Q = CVRP(P.distance, P.demand, P.capacity, P.vehicles, "q")
    for _ in range(5):
        pi = rng.uniform(-20, 150, 5)
        u = P.oracle(pi).u
        assert u == pytest.approx(pi.sum() + P.vehicles * cheapest_route(P, pi))
        assert Q.oracle(pi).u <= u + 1e-9


def test_q_routes_are_bounds_and_concave():
    rng = np.random.default_rng(0)
    P = data.cvrp(6, rng, route="q")
    optimum = P.milp().optimum(30).value
    for _ in range(50):
        here, there = rng.uniform(-20, 120, 6), rng.uniform(-20, 120, 6)
        a, b = P.oracle(here), P.oracle(there)
        assert a.u <= optimum + 1e-6
        assert b.u <= a.u + a.g @ (there - here) + 1e-8
        assert np.abs(P.b - a.g).max() <= P.B
        arcs = a.x.reshape(7, 7)
        assert (np.diag(arcs) == 0).all()
        np.testing.assert_allclose(arcs.sum(axis=0), arcs.sum(axis=1))  # who arrives leaves
        assert (arcs * P.distance).sum() + here @ a.g == pytest.approx(a.u)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"distance": np.ones((2, 2))}, r"distance must be \(3, 3\) for 2 customers"),
        ({"distance": np.full((3, 3), -1.0)}, "distances must be finite and not negative"),
        ({"demand": [1, 9]}, "demand of customer 2 is 9; it must be a whole number of 1 to 5"),
        ({"demand": [1, 1.5]}, "demand of customer 2 is 1.5"),
        ({"route": "z"}, 'route must be "q" or "elementary"'),
        ({"vehicles": 0}, "vehicles at least 1"),
        (
            {"distance": np.ones((17, 17)), "demand": np.ones(16), "route": "elementary"},
            "exact up to 15 customers, got 16",
        ),
    ],
)
def test_bad_data(changed, message):
    good = {"distance": np.ones((3, 3)), "demand": [1, 1], "capacity": 5, "vehicles": 1, "route": "q"}
    with pytest.raises(ValueError, match=message):
        CVRP(**{**good, **changed})


def test_a_q_route_without_a_cycle_is_a_point_of_the_monolith():
    P = CVRP([[0, 1, 2], [1, 0, 1], [2, 1, 0]], [1, 2], 3, vehicles=2, route="q")
    x = P.oracle(np.array([5.0, 5.0])).x
    M, columns = P.milp(), P.columns(x)
    assert (M.A @ columns).tolist() == [2, 2]  # both vehicles visit both customers
    assert (M.C @ columns >= M.d - 1e-9).all()
    assert (M.C @ columns <= M.d_upper + 1e-9).all()
    assert M.c @ columns == (x.reshape(3, 3) * P.distance).sum() == 8


def test_a_q_route_with_a_cycle_has_no_columns():
    """Dear prizes, cheap ways, room for six stops: the walk along its arcs never came back to the depot."""
    P = CVRP(np.ones((4, 4)), [1, 1, 1], 6, vehicles=2, route="q")
    x = P.oracle(np.full(3, 10.0)).x
    with pytest.raises(ValueError, match=r'visits customer 1 more than once, .*; take route="elementary"'):
        P.columns(x)
