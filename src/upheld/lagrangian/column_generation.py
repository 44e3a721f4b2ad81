"""Dantzig-Wolfe decomposition: the same bound from the other side, by columns instead of cuts, from learned multipliers.

With the block solutions x^{bj} seen so far, the restricted master problem mixes them (Dantzig & Wolfe 1960)::

    M = min  sum_{b,j} lam_bj c x^{bj} + pi_max sum_k y_k                                                              (1)
        sum_{b,j} lam_bj A x^{bj} + y >= b  (=, with y of both signs, for equations),   sum_j lam_bj = 1 for every block b

Its multipliers of the coupling rows lie in Pi, the cost of y sees to that, and are those at which the blocks are solved next; every
minimiser is a new column of its block. u(pi) <= max_Pi u <= M, and the search ends where the two meet. It is Kelley's method on the
dual with a cut a block, so learned multipliers serve it as they serve any other: they give the first columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.ascent import Budget, DualResult, Search, box_of, evaluator, result
from upheld.lagrangian.highs import linear_program, solver
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import DualEval, Instance, inside
from upheld.lagrangian.routing import CVRP

SAME = 1e-6  # relative: value of an oracle's minimiser in the monolith, beside its u


class Master:
    """(1), for the monolith `M` and the end `pi_max` of the box."""

    def __init__(self, M: CoupledMILP, pi_max: float) -> None:
        self.M, s = M, M.n_rows
        self._block = np.unique(M.blocks, return_inverse=True)[1]
        self.n_blocks = int(self._block.max()) + 1
        eye = sparse.csc_array(sparse.eye_array(s))
        both = sparse.hstack([eye, -eye[:, np.flatnonzero(M.equality)]], format="csr")
        missing = sparse.vstack([both, sparse.csr_array((self.n_blocks, both.shape[1]))])
        lower = np.r_[M.b, np.ones(self.n_blocks)]
        upper = np.r_[np.where(M.equality, M.b, np.inf), np.ones(self.n_blocks)]
        zero = np.zeros(both.shape[1])
        self._h = solver(linear_program(zero + pi_max, missing, lower, upper, zero, zero + np.inf, offset=M.offset))
        self._slacks, self._columns = both.shape[1], list[tuple[int, np.ndarray]]()

    def add(self, x: np.ndarray) -> None:
        """A column a block, of a minimiser in the monolith's layout."""
        owner = sparse.csr_array((np.ones(x.size), (self._block, np.arange(x.size))))
        parts = sparse.csc_array(self.M.A @ sparse.diags_array(x) @ owner.T)
        costs = owner @ (self.M.c * x)
        for b in range(self.n_blocks):
            span = slice(parts.indptr[b], parts.indptr[b + 1])
            index = np.r_[parts.indices[span], self.M.n_rows + b].astype(np.int32)
            self._h.addCol(float(costs[b]), 0.0, np.inf, index.size, index, np.r_[parts.data[span], 1.0])
            self._columns.append((b, np.where(self._block == b, x, 0.0)))

    def solve(self) -> tuple[float, np.ndarray, np.ndarray]:
        """M, the multipliers of the coupling rows, and the mixture of columns.

        Raises
        ------
        ValueError
            If HiGHS finds no optimum.
        """
        import highspy

        self._h.run()
        if self._h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            status = self._h.modelStatusToString(self._h.getModelStatus())
            raise ValueError(f"the master problem has no optimum: HiGHS says {status!r}; scale the coupling rows")
        found = self._h.getSolution()
        weights = np.asarray(found.col_value)[self._slacks :]
        used = np.flatnonzero(weights > 1e-12)
        mixed = sum((weights[j] * self._columns[j][1] for j in used), np.zeros(self.M.c.size))
        duals = np.asarray(found.row_dual)[: self.M.n_rows]
        return float(self._h.getInfo().objective_function_value), duals, mixed


def dantzig_wolfe(
    P: Instance,
    start: ArrayLike | None = None,
    budget: Budget | None = None,
    *,
    pi_max: float,
    tolerance: float = 1e-6,
    n_jobs: int = 1,
) -> DualResult:
    """Maximise u(., P) over Pi by column generation; the first columns are the blocks' solutions at `start`.

    Parameters
    ----------
    start : (s,) multipliers, for instance a learner's prediction; None starts at 0
    budget : at most so many oracle calls and seconds; 500 calls unless given
    pi_max : end of Pi
    tolerance : relative, of M - u
    n_jobs : threads for the blocks

    Returns
    -------
    DualResult whose `x_average` is the master's mixture: it satisfies the coupling rows wherever the master needs no y, and its
    `upper` is M.

    Raises
    ------
    ValueError
        If minimisers of the oracle are no points of the monolith (quadratic unit costs, q-routes), or as in `dual_value`.

    Examples
    --------
    >>> from upheld.lagrangian.families import GAP
    >>> P = GAP([[1, 5], [4, 2]], [[2, 2], [2, 2]], [2, 2])
    >>> done = dantzig_wolfe(P, pi_max=10.0)
    >>> round(done.u, 6), done.x_average.round(6).tolist()
    (3.0, [1.0, 0.0, 0.0, 1.0])
    """
    M = P.linear_model()
    search, master, box = Search(evaluator(P, n_jobs), budget or Budget()), Master(M, pi_max), box_of(P, pi_max)
    pi, upper = box.clip(np.zeros(P.n_rows) if start is None else inside(start, P)), np.inf
    while True:
        found = search(pi)
        master.add(_column(P, M, pi, found))
        value, pi, mixed = master.solve()
        pi, upper = box.clip(pi), min(upper, value)
        converged = upper - search.top <= tolerance * (1 + abs(upper))
        if converged or search.spent:
            return result(search, mixed, upper, converged)


def _column(P: Instance, M: CoupledMILP, pi: np.ndarray, found: DualEval) -> np.ndarray:
    walks = isinstance(P, CVRP) and P.route == "q"  # with cycles, which the linear model excludes
    x = found.x if walks else P.columns(found.x)
    if not walks and x.shape == M.c.shape:
        value = M.offset + float(M.c @ x + pi @ (M.b - M.A @ x))
        if abs(value - found.u) <= SAME * (1 + abs(found.u)):
            return x
    raise ValueError(
        f"the block solutions of this {type(P).__name__} are no points of its linear model; take maximise_dual, or its monolith P.milp()"
    )
