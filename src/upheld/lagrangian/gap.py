"""Generalised assignment: every task to one agent, agents with capacities; the assignment rows are dualised.

    min sum_ij c_ij x_ij    subject to   sum_i x_ij >= 1 (coupling),   sum_j a_ij x_ij <= capacity_i (blocks),   x binary

    u(pi) = sum_j pi_j - sum_i max { sum_j (pi_j - c_ij) x_ij : sum_j a_ij x_ij <= capacity_i }        m integer knapsacks

With costs that are not negative, a task is never assigned twice, so that >= may stand for =.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.highs import Sparse
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import DualEval, Infeasible, Instance, all_free, numbered, shared


class GAP(Instance):
    """m agents, n tasks.

    Parameters
    ----------
    cost : (m, n) not negative
    weight : (m, n) positive whole numbers
    capacity : (m,) whole numbers

    The oracle's x is the flattened (m, n) assignment, which is also the monolith's columns.

    Raises
    ------
    ValueError
        If shapes disagree or weights are not positive whole numbers (the agent and task are named).

    Examples
    --------
    >>> P = GAP([[1, 5], [4, 2]], [[2, 2], [2, 2]], [2, 2])
    >>> P.oracle(np.array([3.0, 4.0])).u
    3.0
    """

    def __init__(self, cost: ArrayLike, weight: ArrayLike, capacity: ArrayLike) -> None:
        self.cost = np.array(cost, dtype=float)
        self.m, self.n = self.cost.shape
        weights, capacities = np.asarray(weight, dtype=float), np.asarray(capacity, dtype=float)
        if weights.shape != self.cost.shape or capacities.shape != (self.m,):
            raise ValueError(
                f"cost is {self.cost.shape}, so weight must be {self.cost.shape} and capacity ({self.m},); "
                f"got {weights.shape} and {capacities.shape}"
            )
        whole = np.isfinite(weights) & (weights == np.round(weights)) & (weights > 0)
        for wrong, values, rule in (
            (~np.isfinite(self.cost) | (self.cost < 0), self.cost, "costs must be finite and not negative"),
            (~whole, weights, "weights must be positive whole numbers; scale and round them"),
        ):
            if wrong.any():
                i, j = np.argwhere(wrong)[0]
                raise ValueError(f"agent {i}, task {j}: {values[i, j]:g}; {rule}")
        if not np.isfinite(capacities).all() or (capacities < 0).any():
            raise ValueError(f"capacities must be finite and not negative, got {capacities.tolist()}")
        self.weight, self.capacity = weights.astype(np.int64), np.floor(capacities).astype(np.int64)
        self.b = np.ones(self.n)
        self.equality = np.zeros(self.n, dtype=bool)
        self.row_names = list(numbered("assign", self.n))
        self.integer_costs = bool((self.cost == np.round(self.cost)).all())

    @property
    def B(self) -> float:
        """At most all m agents take a task."""
        return float(self.m)

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        from upheld.lagrangian._kernels import knapsacks

        profit = pi - self.cost
        x = np.empty((self.m, self.n))
        free = all_free(x.shape) if fixed is None else fixed.reshape(x.shape)

        def work(lo: int, hi: int) -> None:
            full = knapsacks(profit, self.weight, self.capacity, free, lo, hi, x)
            if full >= 0:
                raise Infeasible(f"the tasks prescribed to agent {full} exceed its capacity")

        shared(work, self.m, n_jobs)
        # The same sums as by the arrays' method, whose overhead is a quarter of a small instance's call.
        add = np.add.reduce
        u = add(pi) - add(profit * x, axis=None)
        return DualEval(float(u), 1.0 - add(x, axis=0), x.ravel())

    def linear_model(self) -> CoupledMILP:
        m, n = self.m, self.n
        assignment = sparse.hstack([sparse.eye_array(n)] * m, format="csr")
        capacity: Sparse = sparse.block_diag([-self.weight[[i]] for i in range(m)], format="csr")
        return CoupledMILP(
            self.cost.ravel(), assignment, self.b, capacity, -self.capacity.astype(float), True, 0, 1,
            row_names=self.row_names,
            column_names=[f"x_{i + 1}_{j + 1}" for i in range(m) for j in range(n)],
        )  # fmt: skip

    @property
    def branchable(self) -> np.ndarray:
        return np.arange(self.m * self.n)
