"""An instance as a graph of rows and columns, with features of both: what the contextual learner sees.

Nodes are the monolith's rows (coupling and block rows alike, told apart by a flag) and columns; an edge joins a column to each
row it stands in. All features come from the data and one solve of the LP relaxation, and none from an order of rows or columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from upheld.lagrangian.highs import solver
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import Instance

ROW_FEATURES = (
    "coupling", "equality", "side", "LP dual", "LP slack", "norm", "degree", "mean cost", "least cost", "blocks",
    "mean size of its blocks", "mean cost of its blocks",
)  # fmt: skip
COLUMN_FEATURES = ("cost", "LP value", "reduced cost", "integer", "degree", "size of its block")


@dataclass(frozen=True)
class Graph:
    """One instance.

    Attributes
    ----------
    rows : (r, 12) row features, the s coupling rows first
    columns : (n, 6) column features
    edge_row, edge_column : (e,) the ends of every edge
    weight : (e,) coefficient over the norm of its row
    lp_dual : (s,) LP multipliers of the coupling rows, clipped into Pi
    """

    rows: np.ndarray
    columns: np.ndarray
    edge_row: np.ndarray
    edge_column: np.ndarray
    weight: np.ndarray
    lp_dual: np.ndarray


def graph_of(P: Instance) -> Graph:
    """The graph of an instance's linear model; one LP solve.

    Raises
    ------
    ValueError
        If the LP relaxation has no optimum.
    """
    M = P.linear_model()
    x, duals = _lp_solution(M)
    matrix = sparse.csr_array(sparse.vstack([M.A, M.C], format="csr"))
    entries = matrix.tocoo()
    edge_row, edge_column = entries.coords[0].astype(np.int64), entries.coords[1].astype(np.int64)
    # A row with two sides is described by the one that binds more often, the upper; others by their only side.
    side = np.r_[M.b, np.where(np.isfinite(M.d_upper), M.d_upper, M.d)]
    norm = np.sqrt(np.asarray((matrix**2).sum(axis=1)).ravel())
    scale = np.where(norm > 0, norm, 1.0)
    degree = np.diff(matrix.indptr).astype(float)
    mean_cost, least_cost = _over_rows(matrix, M.c)
    block = np.unique(M.blocks, return_inverse=True)[1]
    size = np.bincount(block).astype(float)
    block_cost = np.bincount(block, M.c) / size
    touched, mean_size = _blocks_of_rows(matrix, block, size)
    coupling = np.arange(side.size) < M.n_rows
    rows = np.c_[
        coupling, np.r_[M.equality, M.d == M.d_upper], side / scale, duals * scale, (matrix @ x - side) / scale, scale,
        degree, mean_cost, least_cost, touched, mean_size, _over_rows(matrix, block_cost[block])[0],
    ]  # fmt: skip
    columns = np.c_[
        M.c, x, M.c - matrix.T @ duals, M.integrality, np.diff(matrix.tocsc().indptr), size[block],
    ]  # fmt: skip
    pi = np.where(M.equality, duals[: M.n_rows], np.maximum(duals[: M.n_rows], 0.0))
    return Graph(
        _squashed(rows), _squashed(columns), edge_row, edge_column, entries.data / scale[edge_row], pi
    )  # fmt: skip


def _lp_solution(M: CoupledMILP) -> tuple[np.ndarray, np.ndarray]:
    import highspy

    h = solver(M._minimisation(integer=False))
    h.run()
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        status = h.modelStatusToString(h.getModelStatus())
        raise ValueError(f"the LP relaxation has no optimum: HiGHS says {status!r}")
    found = h.getSolution()
    return np.asarray(found.col_value), np.asarray(found.row_dual)


def _over_rows(matrix: sparse.csr_array, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and least of the columns' values over each row; 0 for an empty row."""
    of_entries = values[matrix.indices]
    mean, least = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[0])
    filled = np.flatnonzero(np.diff(matrix.indptr) > 0)
    starts = matrix.indptr[filled]
    if filled.size:
        mean[filled] = np.add.reduceat(of_entries, starts) / np.diff(matrix.indptr)[filled]
        least[filled] = np.minimum.reduceat(of_entries, starts)
    return mean, least


def _blocks_of_rows(matrix: sparse.csr_array, block: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many blocks each row touches, and their mean size."""
    member = sparse.csr_array((np.ones(block.size), (np.arange(block.size), block)))
    touches = sparse.csr_array((matrix.astype(bool).astype(float) @ member) > 0).astype(float)
    number = np.asarray(touches.sum(axis=1)).ravel()
    return number, (touches @ size) / np.maximum(number, 1.0)


def _squashed(features: np.ndarray) -> np.ndarray:
    """Sizes that span decades, made comparable: sign(v) log(1 + |v|)."""
    return np.asarray(np.sign(features) * np.log1p(np.abs(features)))
