"""The lowest eigenpairs of one symmetric matrix: LAPACK up to `DENSE_LIMIT` variables, warm-started LOBPCG above."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import lobpcg

FloatArray = NDArray[np.float64]

# Measured on one core: LAPACK's partial decomposition beats warm-started LOBPCG up to about 4,000 variables, because
# the lower edge of a sample spectrum is crowded and a block method needs 60 to 100 sweeps there.
DENSE_LIMIT = 4000
N_GUARD = 5  # extra vectors that speed up the block method and measure the gap behind the wanted ones
MAX_SWEEPS = 200


class BottomEigenpairs(NamedTuple):
    """Ascending eigenvalues (n,), orthonormal eigenvectors (p, n), and what the solver may have left in their sum."""

    values: FloatArray
    vectors: FloatArray
    error: float


def bottom_eigenpairs(
    A: FloatArray, n: int, start: FloatArray | None = None, *, tol: float = 1e-6, dense_limit: int = DENSE_LIMIT
) -> BottomEigenpairs:
    """The `n` smallest eigenvalues of the symmetric (p, p) matrix `A`, with eigenvectors.

    Parameters
    ----------
    start : (p, m) block whose span is near the wanted one; used by the iterative solver only
    tol : residual norm of the iterative solver, relative to the largest row sum of ``abs(A)``
    dense_limit : largest p that is decomposed directly
    """
    p = len(A)
    if p <= max(dense_limit, 5 * (n + N_GUARD)):
        values, vectors = eigh(A, subset_by_index=[0, n - 1], check_finite=False)
        return BottomEigenpairs(values, vectors, 0.0)
    return _lobpcg(A, n, start, tol)


def _lobpcg(A: FloatArray, n: int, start: FloatArray | None, tol: float) -> BottomEigenpairs:
    p, width = len(A), n + N_GUARD
    block = np.random.default_rng(0).standard_normal((p, width))
    if start is not None:
        known = min(start.shape[1], width)
        block[:, :known] = start[:, :known]
    block, _ = np.linalg.qr(block)
    scale = float(np.abs(A).sum(axis=0).max())
    ritz, basis = lobpcg(A, block, largest=False, tol=tol * scale, maxiter=MAX_SWEEPS)[:2]
    order = np.argsort(ritz)
    values: FloatArray = np.asarray(ritz, dtype=np.float64)[order]
    vectors: FloatArray = np.asarray(basis, dtype=np.float64)[:, order]
    # Kato-Temple: a Ritz value exceeds its eigenvalue by at most |residual|^2 / (distance to the guard values).
    residual = np.sum((A @ vectors[:, :n] - vectors[:, :n] * values[:n]) ** 2, axis=0)
    error = float(np.sum(np.minimum(np.sqrt(residual), residual / np.maximum(values[-1] - values[:n], 1e-300))))
    return BottomEigenpairs(values[:n], vectors[:, :n], error)
