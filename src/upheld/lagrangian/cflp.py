"""Capacitated facility location: demand rows dualised, one block a site.

    min sum_ij c_ij x_ij + sum_i f_i y_i   subject to   sum_i x_ij >= 1 (coupling),
        sum_j d_j x_ij <= s_i y_i,   x_ij <= y_i (blocks),   0 <= x <= 1,   y binary

Site i, if open, fills its capacity with the customers of the best (pi_j - c_ij) / d_j, and opens if what that earns
exceeds f_i. With x_ij <= y_i in the block the bound equals the LP's (with those rows): the integrality property.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import FREE, DualEval, Instance, numbered


class CFLP(Instance):
    """m sites, n customers; x_ij is the share of customer j's demand that site i serves.

    Parameters
    ----------
    transport : (m, n) cost of serving all of a customer's demand from a site, not negative
    fixed_cost : (m,) cost of opening, not negative
    demand : (n,) positive
    capacity : (m,) positive

    The oracle's x is the flattened (m, n) shares, then the m openings: the monolith's columns. Branching is on openings.

    Examples
    --------
    >>> P = CFLP([[2, 3]], [1], [1, 1], [2])
    >>> P.oracle(np.array([4.0, 4.0])).u
    6.0
    """

    def __init__(self, transport: ArrayLike, fixed_cost: ArrayLike, demand: ArrayLike, capacity: ArrayLike) -> None:
        self.transport, self.fixed_cost = np.array(transport, dtype=float), np.array(fixed_cost, dtype=float)
        self.demand, self.capacity = np.array(demand, dtype=float), np.array(capacity, dtype=float)
        self.m, self.n = self.transport.shape
        if self.fixed_cost.shape != (self.m,) or self.capacity.shape != (self.m,) or self.demand.shape != (self.n,):
            raise ValueError(
                f"transport is {self.transport.shape}: fixed_cost and capacity must have {self.m}, demand {self.n} entries"
            )
        for name, values, least in (
            ("transport cost", self.transport, 0.0),
            ("fixed cost", self.fixed_cost, 0.0),
            ("demand", self.demand, np.finfo(float).tiny),
            ("capacity", self.capacity, np.finfo(float).tiny),
        ):
            wrong = np.argwhere(~(np.isfinite(values) & (values >= least)))
            if wrong.size:
                at = ", ".join(str(k) for k in wrong[0])
                raise ValueError(
                    f"{name} {at} is {values[tuple(wrong[0])]:g}; it must be finite and not below {least:.0f}"
                )
        self.b = np.ones(self.n)
        self.equality = np.zeros(self.n, dtype=bool)
        self.row_names = list(numbered("demand", self.n))

    @property
    def B(self) -> float:
        """Every one of the m sites serves all of a customer's demand."""
        return float(self.m)

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        earn = np.maximum(pi - self.transport, 0.0)  # for serving a customer whole
        order = np.argsort(-earn / self.demand, axis=1, kind="stable")
        need = np.where(np.take_along_axis(earn, order, axis=1) > 0, self.demand[order], 0.0)
        before = np.cumsum(need, axis=1) - need
        served = np.clip(self.capacity[:, None] - before, 0.0, need) / self.demand[order]
        x = np.empty_like(served)
        np.put_along_axis(x, order, served, axis=1)
        surplus = (earn * x).sum(axis=1) - self.fixed_cost
        y = (surplus > 0).astype(float)
        if fixed is not None:
            prescribed = fixed[-self.m :]
            y = np.where(prescribed == FREE, y, prescribed)
        x *= y[:, None]
        return DualEval(float(pi.sum() - surplus @ y), 1.0 - x.sum(axis=0), np.r_[x.ravel(), y])

    def linear_model(self) -> CoupledMILP:
        m, n = self.m, self.n
        eye = sparse.eye_array(m * n, format="csr")
        of_site = sparse.kron(sparse.eye_array(m), np.ones((1, n)), format="csr")
        demand = sparse.hstack([sparse.hstack([sparse.eye_array(n)] * m), sparse.csr_array((n, m))], format="csr")
        capacity = sparse.hstack(
            [-of_site @ sparse.diags_array(np.tile(self.demand, m)), sparse.diags_array(self.capacity)]
        )
        opened = sparse.hstack([-eye, of_site.T])
        names = [f"x_{i + 1}_{j + 1}" for i in range(m) for j in range(n)] + [f"open_{i + 1}" for i in range(m)]
        return CoupledMILP(
            np.r_[self.transport.ravel(), self.fixed_cost], demand, self.b,
            sparse.vstack([capacity, opened], format="csr"), np.zeros(m + m * n),
            np.r_[np.zeros(m * n, dtype=bool), np.ones(m, dtype=bool)], 0, 1,
            row_names=self.row_names, column_names=names,
        )  # fmt: skip

    @property
    def branchable(self) -> np.ndarray:
        return np.arange(self.m * self.n, self.m * (self.n + 1))
