"""Vehicle routing: identical vehicles, "each customer once" dualised, one block a vehicle (Le, Nguyen & Nguyen 2026, app. A).

    u(pi) = sum_j pi_j + K min(0, cheapest route at arc costs less the prizes pi_j of the customers visited)

The rows are equations, so the prizes may have any sign. ``route="elementary"`` visits nobody twice (a dynamic program over
subsets, at most 15 customers). ``route="q"`` (Christofides, Mingozzi & Toth 1981) forbids only an immediate repetition; its
block set is larger, so its bound is weaker, and still below the optimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import DualEval, Instance, numbered

MOST_ELEMENTARY = 15


class CVRP(Instance):
    """Capacitated vehicle routing.

    Parameters
    ----------
    distance : (n + 1, n + 1) arc costs, depot first, not negative
    demand : (n,) positive whole numbers
    capacity : of a vehicle, a whole number
    vehicles : K, at most so many routes
    route : ``"q"`` or ``"elementary"``

    The oracle's x is the flattened (n + 1, n + 1) matrix of how often an arc is driven, all vehicles together.

    Examples
    --------
    One customer at distance 1, prize 3: driving there and back gains 1.

    >>> P = CVRP([[0, 1], [1, 0]], [1], 1, vehicles=1, route="elementary")
    >>> P.oracle(np.array([3.0])).u
    2.0
    """

    def __init__(self, distance: ArrayLike, demand: ArrayLike, capacity: int, vehicles: int, route: str = "q") -> None:
        self.distance, demands = np.array(distance, dtype=float), np.asarray(demand, dtype=float)
        n = demands.size
        if self.distance.shape != (n + 1, n + 1):
            raise ValueError(f"distance must be ({n + 1}, {n + 1}) for {n} customers, got {self.distance.shape}")
        if not np.isfinite(self.distance).all() or (self.distance < 0).any():
            raise ValueError("distances must be finite and not negative")
        wrong = ~(np.isfinite(demands) & (demands == np.round(demands)) & (demands > 0) & (demands <= capacity))
        if wrong.any():
            j = int(np.argmax(wrong))
            raise ValueError(
                f"demand of customer {j + 1} is {demands[j]:g}; it must be a whole number of 1 to {capacity}"
            )
        if route not in ("q", "elementary") or vehicles < 1:
            raise ValueError(f'route must be "q" or "elementary" and vehicles at least 1, got {route!r} and {vehicles}')
        if route == "elementary" and n > MOST_ELEMENTARY:
            raise ValueError(f'elementary routes are exact up to {MOST_ELEMENTARY} customers, got {n}; take route="q"')
        self.demand, self.capacity, self.vehicles, self.route = demands.astype(np.int64), int(capacity), vehicles, route
        self.b = np.ones(n)
        self.equality = np.ones(n, dtype=bool)
        self.row_names = list(numbered("visit", n))

    @property
    def B(self) -> float:
        """Every vehicle visits a customer once; on q-routes, as often as its capacity allows."""
        visits = 1 if self.route == "elementary" else self.capacity // int(self.demand.min())
        return float(self.vehicles * visits)

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        from upheld.lagrangian._kernels import elementary_route, q_route

        cheapest = elementary_route if self.route == "elementary" else q_route
        visits = np.empty(self.capacity, dtype=np.int64)
        cost, length = cheapest(self.distance, pi, self.demand, self.capacity, visits)
        stops = np.r_[0, visits[:length] + 1, 0]
        arcs = np.zeros(self.distance.shape)
        if length:
            np.add.at(arcs, (stops[:-1], stops[1:]), self.vehicles)
        return DualEval(float(pi.sum() + self.vehicles * cost), self.b - arcs[:, 1:].sum(axis=0), arcs.ravel())

    def linear_model(self) -> CoupledMILP:
        """Per vehicle: arcs, and the load after each customer, which forbids subtours (Miller, Tucker & Zemlin 1960)."""
        n, Q = self.demand.size, self.capacity
        arcs = [(i, j) for i in range(n + 1) for j in range(n + 1) if i != j]
        out = sparse.csr_array(np.array([[float(i == node) for i, _ in arcs] for node in range(n + 1)]))
        into = sparse.csr_array(np.array([[float(j == node) for _, j in arcs] for node in range(n + 1)]))
        no_load = sparse.csr_array((n + 1, n))
        inner = [k for k, (i, j) in enumerate(arcs) if i and j]
        follow = sparse.lil_array((len(inner), len(arcs) + n))
        for row, k in enumerate(inner):  # load_j >= load_i + d_j - Q (1 - x_ij)
            i, j = arcs[k]
            follow[row, k], follow[row, len(arcs) + i - 1], follow[row, len(arcs) + j - 1] = -Q, -1, 1
        rows = sparse.vstack([
            sparse.hstack([out - into, no_load]),  # who arrives leaves
            sparse.hstack([-out[[0]], no_load[[0]]]),  # one route at most
            sparse.hstack([sparse.csr_array(-self.demand[None]) @ into[1:], no_load[[0]]]),  # within capacity
            follow,
        ], format="csr")  # fmt: skip
        lower = np.r_[np.zeros(n + 1), -1.0, -Q, self.demand[[arcs[k][1] - 1 for k in inner]] - Q]
        upper = np.where(np.arange(lower.size) <= n, 0.0, np.inf)
        K = self.vehicles
        cost = np.r_[[self.distance[arc] for arc in arcs], np.zeros(n)]
        names = [f"arc_{i}_{j}" for i, j in arcs] + [f"load_{j + 1}" for j in range(n)]
        return CoupledMILP(
            np.tile(cost, K), sparse.hstack([into[1:], no_load[1:]] * K, format="csr"), self.b,
            sparse.block_diag([rows] * K, format="csr"), np.tile(lower, K),
            np.tile(np.r_[np.ones(len(arcs), dtype=bool), np.zeros(n, dtype=bool)], K),
            np.tile(np.r_[np.zeros(len(arcs)), self.demand], K), np.tile(np.r_[np.ones(len(arcs)), np.full(n, Q)], K),
            d_upper=np.tile(upper, K), equality=True, row_names=self.row_names,
            column_names=[f"{name}_vehicle{k + 1}" for k in range(K) for name in names],
        )  # fmt: skip

    def columns(self, x: np.ndarray) -> np.ndarray:
        """The monolith's columns for one minimiser of the oracle: all vehicles drive the same elementary route.

        Raises
        ------
        ValueError
            If the route visits a customer twice, as q-routes may: the monolith has no such point.
        """
        n = self.demand.size
        arcs = x.reshape(n + 1, n + 1) / self.vehicles
        visits = arcs.sum(axis=0)
        if (visits > 1).any():
            raise ValueError(
                f"the route visits customer {int(np.argmax(visits > 1))} more than once, which no route of the monolith does; "
                f'take route="elementary" (at most {MOST_ELEMENTARY} customers), or the bound alone, by maximise_dual'
            )
        load, at, carried = self.demand.astype(float), int(np.argmax(arcs[0])), 0
        while at:
            carried += int(self.demand[at - 1])
            load[at - 1] = carried
            at = int(np.argmax(arcs[at]))
        off_diagonal = ~np.eye(n + 1, dtype=bool)
        return np.tile(np.r_[arcs[off_diagonal], load], self.vehicles)
