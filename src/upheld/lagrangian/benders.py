"""Benders' decomposition: integers first, the rest by a linear program, and learned multipliers as the first cuts.

With y the whole-number variables and x the others, of M: c_y y + c_x x, A_y y + A_x x >= b (coupling rows), x in X, y in Y (Benders 1962)::

    Q(y) = min_{x in X} c_x x   subject to   A_x x >= b - A_y y,          lam(y) its multipliers of these rows        (1)
    M    = min_{y in Y} c_y y + theta,    theta >= Q(y_k) - lam(y_k) A_y (y - y_k)   for every y_k so far             (2)

By duality any pi in Pi gives a cut that holds whatever was learned, on an instance that was never seen::

    theta >= min_{x in X} (c_x - pi A_x) x + pi (b - A_y y)                                                           (3)

With this cut alone, (2) is the Lagrangian dual u(pi) of the coupling rows, and multipliers learned for one serve the other. But lam at
the best y is a slope there, not a maximiser of u: the mean of past ones makes a poor cut, all of them together save rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.highs import linear_program, solver
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import inside


@dataclass(frozen=True)
class BendersResult:
    """The end of Benders' decomposition, as a minimisation.

    Attributes
    ----------
    value, x : the best solution found
    bound : of the last master problem
    pi : (s,) multipliers of the coupling rows in the subproblem of that solution: those of its cut
    converged : value - bound is within the tolerance
    bound_history : of the master problem, by rounds
    """

    value: float
    x: np.ndarray
    bound: float
    pi: np.ndarray
    converged: bool
    bound_history: np.ndarray

    @property
    def rounds(self) -> int:
        return int(self.bound_history.size)


def benders(
    M: CoupledMILP, start: ArrayLike | None = None, rounds: int = 500, *, tolerance: float = 1e-6
) -> BendersResult:
    """Solve `M` by Benders' decomposition; the first cuts are (3) at `start`.

    Parameters
    ----------
    M : its coupling rows must be all that tie whole-number variables to others; any first stage must leave the rest feasible
    start : (s,) multipliers, for instance a learner's prediction, or (k, s), for instance all the past optima's
        (`WarmStartMultipliers.targets_`): a cut each; None takes 0
    rounds : most master problems
    tolerance : relative, of value - bound

    Raises
    ------
    ValueError
        If no variable is continuous or none a whole number, if a block row ties both kinds (it is named), if X is unbounded at
        `start`, or a first stage leaves no solution.

    Examples
    --------
    A site that opens for 3 serves up to 4 units, at a cost of 1 each; what is missing of 3 units costs 5 each.

    >>> M = CoupledMILP([3, 1, 5], [[4, -1, 0]], [0], [[0, 1, 1]], [3], [True, False, False], 0, [1, 10, 10])
    >>> done = benders(M)
    >>> done.value, done.x.tolist(), done.pi.tolist()               # one unit more of capacity is worth nothing
    (6.0, [1.0, 3.0, 0.0], [0.0])
    """
    first, second = _Master(M), _Rest(M)
    for known in np.zeros((1, M.n_rows)) if start is None else np.atleast_2d(np.asarray(start, dtype=float)):
        first.cut(*second.at_multipliers(inside(known, M)))
    best, x, pi, history = np.inf, np.empty(0), np.empty(0), list[float]()
    while True:
        bound, y = first.solve()
        history.append(bound)
        rest, duals, point = second.at(y)
        value = M.offset + float(M.c[M.integrality] @ y) + rest
        if value < best:
            best, x, pi = value, point, duals
        converged = best - bound <= tolerance * (1 + abs(best))
        if converged or len(history) >= rounds:
            return BendersResult(best, x, bound, pi, converged, np.array(history))
        slope = -(duals @ second.A_y)
        first.cut(rest - float(slope @ y), slope)


class _Master:
    """(2): y, and theta as the last column."""

    def __init__(self, M: CoupledMILP) -> None:
        self._offset, whole = M.offset, M.integrality
        rows = _rows_of(M, whole)
        lp = linear_program(
            np.r_[M.c[whole], 1.0], sparse.hstack([M.C[rows][:, whole], sparse.csr_array((rows.size, 1))], format="csr"),
            M.d[rows], M.d_upper[rows], np.r_[M.lb[whole], -np.inf], np.r_[M.ub[whole], np.inf],
            integrality=np.r_[np.ones(int(whole.sum()), dtype=bool), False],
        )  # fmt: skip
        self._h, self._n = solver(lp, mip_rel_gap=0.0, mip_abs_gap=0.0), int(whole.sum())

    def cut(self, constant: float, slope: np.ndarray) -> None:
        """theta >= constant + slope y."""
        index = np.r_[np.flatnonzero(slope), self._n].astype(np.int32)
        self._h.addRow(constant, np.inf, index.size, index, np.r_[-slope[slope != 0], 1.0])

    def solve(self) -> tuple[float, np.ndarray]:
        _run(self._h, "the master problem of Benders' decomposition has no solution")
        found = np.asarray(self._h.getSolution().col_value)
        return self._offset + float(self._h.getInfo().mip_dual_bound), np.round(found[: self._n])


class _Rest:
    """(1) and (3)."""

    def __init__(self, M: CoupledMILP) -> None:
        self.M, whole = M, M.integrality
        if whole.all() or not whole.any():
            raise ValueError(
                "Benders' decomposition needs whole-number variables and continuous ones; take maximise_dual"
            )
        self.A_y, self.A_x = M.A[:, whole], M.A[:, ~whole]
        rows = _rows_of(M, ~whole)
        self._bounds = M.lb[~whole], M.ub[~whole]
        C, lower, upper = M.C[rows][:, ~whole], M.d[rows], M.d_upper[rows]
        self._alone = solver(linear_program(M.c[~whole], C, lower, upper, *self._bounds))
        none = np.full(M.n_rows, np.inf)
        tied = sparse.vstack([self.A_x, C], format="csr")
        self._tied: Any = solver(
            linear_program(M.c[~whole], tied, np.r_[-none, lower], np.r_[none, upper], *self._bounds)
        )

    def at_multipliers(self, pi: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of (3)."""
        columns = np.arange(self.A_x.shape[1], dtype=np.int32)
        self._alone.changeColsCost(columns.size, columns, self.M.c[~self.M.integrality] - self.A_x.T @ pi)
        _run(
            self._alone,
            "without the coupling rows the continuous variables have no least cost at the start; bound them",
        )
        least = float(self._alone.getInfo().objective_function_value)
        return least + float(pi @ self.M.b), -(pi @ self.A_y)

    def at(self, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Q(y), lam(y), and the whole solution."""
        M, side = self.M, self.M.b - self.A_y @ y
        rows = np.arange(M.n_rows, dtype=np.int32)
        self._tied.changeRowsBounds(rows.size, rows, side, np.where(M.equality, side, np.inf))
        _run(self._tied, "a first stage leaves the rest without a solution; let a shortage cost something instead")
        found = self._tied.getSolution()
        x = np.empty(M.c.size)
        x[M.integrality], x[~M.integrality] = y, found.col_value
        duals = np.asarray(found.row_dual)[: M.n_rows]
        return (
            float(self._tied.getInfo().objective_function_value),
            np.where(M.equality, duals, np.maximum(duals, 0)),
            x,
        )


def _rows_of(M: CoupledMILP, kind: np.ndarray) -> np.ndarray:
    """Block rows of variables of one kind."""
    entries = M.C != 0
    ours, all_of_it = entries @ kind.astype(int), entries @ np.ones(kind.size, dtype=int)
    mixed = np.flatnonzero((ours > 0) & (ours < all_of_it))
    if mixed.size:
        raise ValueError(
            f"block row {mixed[0]} ties whole-number variables to continuous ones; make it a coupling row ({mixed.size} such rows)"
        )
    return np.flatnonzero(ours > 0)


def _run(h: Any, otherwise: str) -> None:
    """Solve to optimality.

    Raises
    ------
    ValueError
        `otherwise`, with HiGHS' word for it.
    """
    import highspy

    h.run()
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ValueError(f"{otherwise} (HiGHS says {h.modelStatusToString(h.getModelStatus())!r})")
