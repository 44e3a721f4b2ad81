"""Screening for p > n: keep the variables that are strongly tied to another one in every group.

    statistic_i = min_k  norm_{j != i} |S_k[i, j]|,     norm = max, l1 or l2

(the idea of IPC-HD, arXiv 2505.23707, with the minimum over groups added). The rows are formed in blocks, so memory stays
O(p * sum n_k).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from upheld.hubs.covariance import (
    CovarianceFunction,
    centred,
    covariance_function,
    latent_correlation,
    ranks,
    standardised,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Norm = Literal["max", "l1", "l2"]

BLOCK = 512

_NORMS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "max": lambda rows: np.abs(rows).max(axis=1),
    "l1": lambda rows: np.abs(rows).sum(axis=1),
    "l2": lambda rows: np.sqrt(np.sum(rows**2, axis=1)),
}


def default_size(joint_rank: int) -> int:
    """floor(0.8 sum (n_k - 1)) variables: a margin of a fifth below the point where a joint null space appears."""
    return max(int(0.8 * joint_rank), 2)


def screen_variables(statistic: FloatArray, size: int) -> IntArray:
    """Sorted indices of the `size` variables with the largest statistic."""
    return np.sort(np.argsort(-statistic, kind="stable")[:size])


def row_statistic(Xs: Sequence[FloatArray], kind: str | CovarianceFunction, norm: Norm = "max") -> FloatArray:
    """(p,) statistic from the samples (n_k, p) of each group.

    "threshold" and "ledoit-wolf" rank variables by their plain correlations.
    """
    if callable(kind):
        return matrix_statistic(np.array([covariance_function(kind)(X) for X in Xs]), norm)
    groups = []
    for X in Xs:
        Z = centred(X) if kind == "covariance" else standardised(ranks(X) if kind == "spearman" else X)
        groups.append(np.concatenate([_block_norm(Z, start, kind, norm) for start in range(0, Z.shape[1], BLOCK)]))
    return np.asarray(np.min(groups, axis=0), dtype=float)


def matrix_statistic(S: FloatArray, norm: Norm = "max") -> FloatArray:
    """(p,) statistic from the matrices (K, p, p)."""
    off = S * (1 - np.eye(S.shape[1]))
    return np.asarray(np.min([_norm(norm)(S_k) for S_k in off], axis=0), dtype=float)


def _block_norm(Z: FloatArray, start: int, kind: str, norm: Norm) -> FloatArray:
    rows = Z[:, start : start + BLOCK].T @ Z
    if kind == "spearman":
        rows = latent_correlation(rows)
    rows[np.arange(len(rows)), start + np.arange(len(rows))] = 0.0
    return _norm(norm)(rows)


def _norm(norm: str) -> Callable[[FloatArray], FloatArray]:
    if norm not in _NORMS:
        raise ValueError(f"screen_statistic must be 'max', 'l1' or 'l2', got {norm!r}")
    return _NORMS[norm]
