"""Coupled mixed-integer programs: from arrays, from an MPS or LP file, from a HiGHS model; split into blocks.

    min c x   subject to   A x >= b or A x = b  (coupling rows),   d <= C x <= d_upper  (block rows),   lb <= x <= ub

Without the coupling rows the variables fall apart into the connected components of C: the blocks. Rows of the form <= are
negated, so that multipliers of inequality rows are never negative; a maximisation is negated, and reported in its own sense.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from upheld.lagrangian.blocks import Blocks
from upheld.lagrangian.highs import Sparse, linear_program, quiet, solver
from upheld.lagrangian.mps import check_numbers
from upheld.lagrangian.oracles import FREE, DualEval, Instance

if TYPE_CHECKING:
    import highspy


@dataclass(frozen=True)
class Optimum:
    """What a solver found for the monolith, as a minimisation.

    Attributes
    ----------
    value : objective of the best solution; infinite if there is none
    bound : proven lower bound
    x : that solution, or None
    nodes : branch-and-bound nodes
    """

    value: float
    bound: float
    x: np.ndarray | None
    nodes: int


class CoupledMILP(Instance):
    """A mixed-integer program whose blocks are tied by coupling rows; the blocks are solved by HiGHS.

    Parameters
    ----------
    c : (n,) costs
    A, b : (s, n) coupling rows, dense or sparse, and their right-hand sides: A x >= b, or = b where `equality`
    C, d : (r, n) block rows and lower sides: C x >= d
    integrality : (n,) or scalar bool, which variables are whole numbers
    lb, ub : bounds of the variables, scalar or (n,)
    blocks : (n,) block of each variable; None takes the connected components of C
    sense : ``"min"`` or ``"max"``
    d_upper : upper sides of the block rows, scalar or (r,); equal to `d` for equations
    equality : (s,) or scalar bool, which coupling rows are equations
    offset : constant in the objective
    row_names, column_names : of the coupling rows and of the variables
    gap, block_seconds : a block may stop at this relative gap or after this time; its dual bound is used then

    Attributes
    ----------
    blocks : (n,) block of each variable
    n_blocks : how many there are; variables that stand in no block row are blocks of their own
    negated : (s,) bool, coupling rows that were turned from <= to >= (set by the readers)

    Raises
    ------
    ValueError
        If shapes disagree, data is not finite, bounds cross, or a block row ties variables of two blocks; the row or
        variable is named.

    Examples
    --------
    Two items, each may be taken once at its cost; together they must give 3.

    >>> P = CoupledMILP([5, 4], [[2, 1]], [3], np.empty((0, 2)), [], True, 0, 1)
    >>> P.n_blocks, P.oracle(np.array([3.0])).u
    (2, 8.0)
    """

    def __init__(
        self,
        c: ArrayLike,
        A: Sparse,
        b: ArrayLike,
        C: Sparse,
        d: ArrayLike,
        integrality: ArrayLike,
        lb: ArrayLike = 0.0,
        ub: ArrayLike = np.inf,
        blocks: ArrayLike | None = None,
        sense: str = "min",
        *,
        d_upper: ArrayLike = np.inf,
        equality: ArrayLike = False,
        offset: float = 0.0,
        row_names: Sequence[str] | None = None,
        column_names: Sequence[str] | None = None,
        gap: float = 0.0,
        block_seconds: float = np.inf,
    ) -> None:
        if sense not in ("min", "max"):
            raise ValueError(f'sense must be "min" or "max", got {sense!r}')
        sign = -1.0 if sense == "max" else 1.0
        self.maximise = sense == "max"
        self.c = sign * np.asarray(c, dtype=float)
        n = self.c.size
        self.offset = sign * float(offset)
        self.A, self.C = _matrix(A, n, "A"), _matrix(C, n, "C")
        self.b = _vector(b, self.A.shape[0], "b")
        self.d, self.d_upper = _vector(d, self.C.shape[0], "d"), _vector(d_upper, self.C.shape[0], "d_upper")
        self.lb, self.ub = _vector(lb, n, "lb"), _vector(ub, n, "ub")
        self.integrality = np.broadcast_to(np.asarray(integrality, dtype=bool), n).copy()
        self.equality = np.broadcast_to(np.asarray(equality, dtype=bool), self.b.size).copy()
        self.row_names = list(row_names) if row_names is not None else [f"row_{k}" for k in range(self.b.size)]
        self.column_names = list(column_names) if column_names is not None else [f"x_{j}" for j in range(n)]
        self.negated = np.zeros(self.b.size, dtype=bool)
        self.gap, self.block_seconds = gap, block_seconds
        self._check()
        self.blocks = self._components() if blocks is None else np.asarray(blocks, dtype=int)
        self._check_blocks()
        self.n_blocks = int(np.unique(self.blocks).size)
        self._engine: Blocks | None = None

    # reading and writing

    @classmethod
    def from_mps(cls, path: str | Path, coupling: str | Sequence[str | int]) -> CoupledMILP:
        """Read an MPS or LP file (also ``.gz``); `coupling` as in `from_highs`.

        Raises
        ------
        ValueError
            If HiGHS cannot read the file, if an MPS file holds a word where a number must stand, or a NaN (the line is told), or
            as in `from_highs`.
        """
        import highspy

        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {path}")
        if str(path).endswith((".mps", ".mps.gz")):
            check_numbers(path)
        h = quiet()
        if h.readModel(str(path)) == highspy.HighsStatus.kError:
            raise ValueError(
                f"HiGHS cannot read {path} as a model; its name must end in .mps, .lp, .mps.gz or .lp.gz, and its format be that"
            )
        return cls.from_highs(h, coupling)

    @classmethod
    def from_highs(cls, model: highspy.Highs, coupling: str | Sequence[str | int]) -> CoupledMILP:
        """Take the model that a HiGHS instance holds.

        Parameters
        ----------
        coupling : which rows tie the blocks: a regular expression that matches the whole row name, a list of names or
            positions, or ``"auto"`` (see `detect_coupling`)

        Raises
        ------
        ValueError
            If no row is named by `coupling`, or the model has semi-continuous variables.
        """
        import highspy

        lp = model.getLp()
        matrix = _stored(lp)
        rows = list(lp.row_names_) or [f"row_{k}" for k in range(lp.num_row_)]
        columns = list(lp.col_names_) or [f"x_{j}" for j in range(lp.num_col_)]
        kinds = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * lp.num_col_
        for kind, name in zip(kinds, columns, strict=True):
            if kind not in (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger):
                raise ValueError(f"variable {name} is semi-continuous; model it with a binary variable instead")
        chosen = _chosen(coupling, rows, matrix)
        A, b, equality, names, negated = _coupling_rows(matrix, lp, rows, chosen)
        block = ~chosen
        P = cls(
            lp.col_cost_, A, b, matrix[block], np.asarray(lp.row_lower_)[block],
            [kind == highspy.HighsVarType.kInteger for kind in kinds], lp.col_lower_, lp.col_upper_,
            sense="max" if lp.sense_ == highspy.ObjSense.kMaximize else "min",
            d_upper=np.asarray(lp.row_upper_)[block], equality=equality, offset=lp.offset_,
            row_names=names, column_names=columns,
        )  # fmt: skip
        P.negated = negated
        return P

    def highs_lp(self) -> highspy.HighsLp:
        """The monolith as a HiGHS model, in the user's sense; coupling rows first."""
        sign = -1.0 if self.maximise else 1.0
        flip = np.where(self.negated, -1.0, 1.0)
        lower = flip * self.b
        upper = np.where(self.equality, lower, np.inf)
        lower = np.where(self.negated & ~self.equality, -np.inf, lower)
        upper = np.where(self.negated & ~self.equality, flip * self.b, upper)
        return linear_program(
            sign * self.c, sparse.vstack([sparse.diags_array(flip) @ self.A, self.C], format="csr"),
            np.r_[lower, self.d], np.r_[upper, self.d_upper], self.lb, self.ub, integrality=self.integrality,
            maximise=self.maximise, offset=sign * self.offset, column_names=self.column_names,
            row_names=[*self.row_names, *(f"block_row_{k}" for k in range(self.d.size))],
        )  # fmt: skip

    def write(self, path: str | Path) -> None:
        """Write the monolith as an MPS or LP file, by the ending of `path`; block rows are named ``block_row_k``."""
        import highspy

        if solver(self.highs_lp()).writeModel(str(path)) == highspy.HighsStatus.kError:
            raise OSError(f"cannot write {path}; its name must end in .mps or .lp and its folder must exist")

    # what the dual needs

    @property
    def B(self) -> float:
        """Bounds on |b| and |A x|: from the variables' bounds, and by linear programs over the block rows where these are open."""
        low, high = self._row_ranges()
        for k in np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high)):
            low[k], high[k] = self._range_by_lp(int(k))
        return float(np.max(np.abs(np.r_[self.b, low, high]), initial=0.0))

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        if self._engine is None:
            self._engine = Blocks(self)
        lb, ub = self.lb, self.ub
        if fixed is not None:
            lb, ub = np.where(fixed == FREE, lb, fixed), np.where(fixed == FREE, ub, fixed)
        x, value, exact = self._engine.minimise(self.c - self.A.T @ pi, lb, ub, n_jobs)
        return DualEval(self.offset + float(pi @ self.b) + value, self.b - self.A @ x, x, exact)

    def linear_model(self) -> CoupledMILP:
        return self

    @property
    def branchable(self) -> np.ndarray:
        return np.flatnonzero(self.integrality & (self.lb >= 0) & (self.ub <= 1))

    # the monolith's own bounds

    def lp_relaxation(self) -> tuple[float, np.ndarray]:
        """Value of the LP relaxation (as a minimisation) and the duals of the coupling rows, clipped into Pi.

        Raises
        ------
        ValueError
            If the relaxation is infeasible or unbounded.
        """
        import highspy

        h = solver(self._minimisation(integer=False))
        h.run()
        status = h.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise ValueError(f"the LP relaxation has no optimum: HiGHS says {h.modelStatusToString(status)!r}")
        duals = np.asarray(h.getSolution().row_dual)[: self.n_rows]
        return float(h.getInfo().objective_function_value), np.where(self.equality, duals, np.maximum(duals, 0.0))

    def optimum(self, time_limit: float = np.inf, gap: float = 0.0) -> Optimum:
        """Solve the monolith with HiGHS, one thread."""
        h = solver(self._minimisation(integer=True), mip_rel_gap=gap, mip_abs_gap=0.0)
        if np.isfinite(time_limit):
            h.setOptionValue("time_limit", float(time_limit))
        h.run()
        import highspy

        info = h.getInfo()
        if h.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return Optimum(np.inf, np.inf, None, 0)
        found = info.primal_solution_status == 2  # feasible
        value = float(info.objective_function_value) if found else np.inf
        mixed = self.integrality.any()
        return Optimum(
            value,
            float(info.mip_dual_bound) if mixed else value,
            np.asarray(h.getSolution().col_value) if found else None,
            max(int(info.mip_node_count), 0) if mixed else 0,
        )

    def _minimisation(self, *, integer: bool) -> highspy.HighsLp:
        return linear_program(
            self.c, sparse.vstack([self.A, self.C], format="csr"), np.r_[self.b, self.d],
            np.r_[np.where(self.equality, self.b, np.inf), self.d_upper], self.lb, self.ub,
            integrality=self.integrality if integer else None, offset=self.offset,
        )  # fmt: skip

    def _row_ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest value of each coupling row within the variables' bounds."""
        low, high = np.zeros(self.n_rows), np.zeros(self.n_rows)
        for k in range(self.n_rows):
            a, j = _row(self.A, k)
            low[k] = np.sum(np.where(a > 0, a * self.lb[j], a * self.ub[j]))
            high[k] = np.sum(np.where(a > 0, a * self.ub[j], a * self.lb[j]))
        return low, high

    def _range_by_lp(self, k: int) -> tuple[float, float]:
        import highspy

        ends = []
        for sign in (1.0, -1.0):
            a = sign * np.asarray(self.A[[k]].todense()).ravel()
            h = solver(linear_program(a, self.C, self.d, self.d_upper, self.lb, self.ub))
            h.run()
            if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise ValueError(
                    f"coupling row {self.row_names[k]} is not bounded over the blocks, so no B exists; bound its variables"
                )
            ends.append(sign * h.getInfo().objective_function_value)
        return ends[0], ends[1]

    # validation

    def _check(self) -> None:
        for name, values, labels in (
            ("cost", self.c, self.column_names),
            ("right-hand side", self.b, self.row_names),
        ):
            wrong = np.flatnonzero(~np.isfinite(values))
            if wrong.size:
                raise ValueError(f"the {name} of {labels[wrong[0]]} is {values[wrong[0]]}; it must be finite")
        for name, matrix in (("coupling", self.A), ("block", self.C)):
            wrong = np.flatnonzero(~np.isfinite(matrix.data))
            if wrong.size:
                j = matrix.indices[wrong[0]]
                raise ValueError(f"a coefficient of {self.column_names[j]} in a {name} row is {matrix.data[wrong[0]]}")
        for name, values in (("d", self.d), ("d_upper", self.d_upper), ("lb", self.lb), ("ub", self.ub)):
            if np.isnan(values).any():
                raise ValueError(f"{name} holds a NaN at position {int(np.argmax(np.isnan(values)))}")
        empty = np.flatnonzero((np.diff(self.C.indptr) == 0) & ((self.d > 0) | (self.d_upper < 0)))
        if empty.size:
            raise ValueError(f"block row {empty[0]} has no entries, so it cannot reach its side; drop or mend it")
        crossed = np.flatnonzero(self.lb > self.ub)
        if crossed.size:
            j = crossed[0]
            raise ValueError(
                f"the bounds of {self.column_names[j]} cross: {self.lb[j]:g} > {self.ub[j]:g}; no x satisfies them"
            )
        if len(self.row_names) != self.b.size or len(self.column_names) != self.c.size:
            raise ValueError("there must be one row name a coupling row and one column name a variable")

    def _components(self) -> np.ndarray:
        touches = self.C.astype(bool)
        n = self.c.size
        graph = sparse.block_array([[None, touches.T], [touches, None]], format="csr") if touches.shape[0] else None
        labels = connected_components(graph, directed=False)[1][:n] if graph is not None else np.arange(n)
        return np.unique(labels, return_inverse=True)[1]

    def _check_blocks(self) -> None:
        if self.blocks.shape != self.c.shape:
            raise ValueError(f"blocks has shape {self.blocks.shape}, but there are {self.c.size} variables")
        row = np.repeat(np.arange(self.C.shape[0]), np.diff(self.C.indptr))
        of_entry = self.blocks[self.C.indices]
        torn = np.flatnonzero((row[1:] == row[:-1]) & (of_entry[1:] != of_entry[:-1]))
        if torn.size:
            k = row[torn[0]]
            found = np.unique(self.blocks[_row(self.C, k)[1]])
            raise ValueError(
                f"block row {k} ties blocks {found[0]} and {found[1]}; make it a coupling row or merge the blocks"
            )

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_engine": None}  # solvers do not travel between processes


def detect_coupling(matrix: Sparse) -> np.ndarray:
    """Which rows to dualise so that the rest falls apart: (rows,) bool.

    Greedy, on the degree of a row: rows join the blocks from the shortest to the longest, and one that would leave fewer
    than two blocks is a coupling row. A block has at least one row.

    Parameters
    ----------
    matrix : (rows, n) sparse

    Raises
    ------
    ValueError
        If no choice leaves two blocks.

    Examples
    --------
    >>> rows = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]))
    >>> detect_coupling(rows).tolist()
    [False, False, True]
    """
    matrix = sparse.csr_array(matrix)
    parent = np.arange(matrix.shape[1])
    has_row = np.zeros(matrix.shape[1], dtype=bool)

    def root(j: int) -> int:
        while parent[j] != j:
            parent[j] = parent[parent[j]]
            j = int(parent[j])
        return j

    coupling = np.zeros(matrix.shape[0], dtype=bool)
    n_blocks = 0
    for k in np.argsort(np.diff(matrix.indptr), kind="stable"):
        roots = {root(int(j)) for j in _row(matrix, k)[1]}
        if not roots:
            continue
        after = n_blocks - sum(has_row[r] for r in roots) + 1
        if after < 2 <= n_blocks:
            coupling[k] = True
            continue
        head = min(roots)
        for r in roots:
            parent[r] = head
        has_row[head], n_blocks = True, after
    if n_blocks < 2:
        raise ValueError("no choice of coupling rows leaves two blocks; name the coupling rows yourself")
    return coupling


def _matrix(values: Sparse, n: int, name: str) -> Sparse:
    matrix: Sparse = sparse.csr_array(values, dtype=float)
    if matrix.shape[1] != n:
        raise ValueError(f"{name} has {matrix.shape[1]} columns, but there are {n} costs")
    matrix.sort_indices()
    return matrix


def _vector(values: ArrayLike, size: int, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim > 1 or (array.ndim == 1 and array.size != size):
        raise ValueError(f"{name} has shape {array.shape}, expected ({size},)")
    return np.broadcast_to(array, size).copy()


def _row(matrix: Sparse, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and columns of row `k`."""
    span = slice(matrix.indptr[k], matrix.indptr[k + 1])
    return matrix.data[span], matrix.indices[span]


def _stored(lp: highspy.HighsLp) -> Sparse:
    import highspy

    held = lp.a_matrix_
    shape = (lp.num_row_, lp.num_col_)
    parts = (np.asarray(held.value_), np.asarray(held.index_), np.asarray(held.start_))
    if held.format_ == highspy.MatrixFormat.kColwise:
        return sparse.csc_array(parts, shape=shape).tocsr()
    return sparse.csr_array(parts, shape=shape)


def _chosen(coupling: str | Sequence[str | int], rows: list[str], matrix: Sparse) -> np.ndarray:
    if isinstance(coupling, str):
        if coupling == "auto":
            return detect_coupling(matrix)
        try:
            pattern = re.compile(coupling)
        except re.error as error:
            raise ValueError(f"the coupling pattern {coupling!r} is no regular expression: {error}") from None
        chosen = np.array([pattern.fullmatch(name) is not None for name in rows], dtype=bool)
        if not chosen.any():
            shown = ", ".join(rows[:5]) + (", ..." if len(rows) > 5 else "")
            raise ValueError(
                f'the coupling pattern {coupling!r} matches no row; the rows are {shown} (or take "auto", which finds some)'
            )
        return chosen
    chosen = np.zeros(len(rows), dtype=bool)
    position = {name: k for k, name in enumerate(rows)}
    for row in coupling:
        if row not in position and not (isinstance(row, (int, np.integer)) and 0 <= row < len(rows)):
            first = f", the first is {rows[0]}" if rows else ""
            raise ValueError(f"there is no row {row!r} to couple; the model has {len(rows)} rows{first}")
        chosen[position[row] if isinstance(row, str) else int(row)] = True
    if not chosen.any():
        raise ValueError("the list of coupling rows is empty; without any there is nothing to relax")
    return chosen


def _coupling_rows(
    matrix: Sparse, lp: highspy.HighsLp, rows: list[str], chosen: np.ndarray
) -> tuple[Sparse, np.ndarray, np.ndarray, list[str], np.ndarray]:
    """The chosen rows as >= or =: those with an upper side alone negated, those with two different sides split in two."""
    lower, upper = np.asarray(lp.row_lower_), np.asarray(lp.row_upper_)
    picks: list[tuple[int, bool, str]] = []
    for k in map(int, np.flatnonzero(chosen)):
        two_sided = np.isfinite(lower[k]) and np.isfinite(upper[k]) and lower[k] != upper[k]
        if np.isfinite(lower[k]):
            picks.append((k, False, rows[k]))
        if two_sided or (np.isfinite(upper[k]) and not np.isfinite(lower[k])):
            picks.append((k, True, f"{rows[k]}_upper" if two_sided else rows[k]))
    if not picks:
        raise ValueError("none of the coupling rows has a finite side; there is nothing to relax")
    index = np.array([k for k, _, _ in picks])
    negated = np.array([flip for _, flip, _ in picks])
    sign = np.where(negated, -1.0, 1.0)
    A = sparse.csr_array(sparse.diags_array(sign) @ matrix[index])
    b = np.where(negated, -upper[index], lower[index])
    return A, b, ~negated & (lower[index] == upper[index]), [name for _, _, name in picks], negated
