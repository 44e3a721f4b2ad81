"""Uncertainty read from a graph of the answers: degree, eccentricity, eigenvalues of the Laplacian.

With W the similarities of N answers (symmetric, W_ii = 1: Jaccard's, or those of an inference model)::

    D = diag(sum_j W_ij),            L = I - D^(-1/2) W D^(-1/2)
    Degree       = trace(N I - D) / N² = 1 - sum_ij W_ij / N²
    Eccentricity = || (v_ki - mean_i v_ki)_(k, i) ||_F    over the eigenvectors v_k of L with λ_k < 0.9
    EigV         = sum_k max(0, 1 - λ_k)                  a continuous count of meanings, 1 ... N

All are high when the answers disagree. Source: Z. Lin, S. Trivedi, J. Sun, "Generating with Confidence: Uncertainty
Quantification for Black-box Large Language Models" (arXiv 2305.19187).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

INFORMATIVE = 0.9  # eigenvectors above it tell answers apart that have nothing in common anyway


def degree(W: ArrayLike) -> float:
    """Mean dissimilarity of all ordered pairs, an answer with itself included; 0 ... 1 - 1/N.

    Parameters
    ----------
    W : (N, N) similarities in [0, 1], symmetric, with 1 on the diagonal; so for every function here

    Raises
    ------
    ValueError
        If `W` is not such a matrix.

    Examples
    --------
    >>> degree([[1, 1], [1, 1]]), degree([[1, 0], [0, 1]])
    (0.0, 0.5)
    """
    return 1.0 - float(np.mean(_checked(W)))


def eccentricity(W: ArrayLike) -> float:
    """Distance of the answers from their centre in the eigenvectors of L with eigenvalue below 0.9; 0 ... sqrt(N - 1).

    Where the likenesses are all middling, as Jaccard's of long answers are, every eigenvalue lies below 0.9 and the distance is
    sqrt(N - 1) whatever they are.

    >>> round(eccentricity([[1, 0.5], [0.5, 1]]), 6)         # of λ = 0, 2/3 both count; only the second tells them apart
    1.0
    """
    lam, V = np.linalg.eigh(normalized_laplacian(_checked(W)))
    kept = V[:, lam < INFORMATIVE]
    return float(np.linalg.norm(kept - kept.mean(axis=0)))


def eigenvalue_sum(W: ArrayLike) -> float:
    """EigV: how many meanings the answers have, counted continuously; 1 (all alike) ... N (nothing in common).

    >>> round(eigenvalue_sum([[1, 1, 0], [1, 1, 0], [0, 0, 1]]), 6)
    2.0
    """
    lam = np.linalg.eigvalsh(normalized_laplacian(_checked(W)))
    return float(np.maximum(0.0, 1.0 - lam).sum())


def normalized_laplacian(W: FloatArray) -> FloatArray:
    """L = I - D^(-1/2) W D^(-1/2) of similarities with positive row sums."""
    root = 1.0 / np.sqrt(W.sum(axis=1))
    L: FloatArray = np.eye(len(W)) - root[:, None] * W * root
    return L


def _checked(W: ArrayLike) -> FloatArray:
    matrix = np.asarray(W, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"similarities must be a square matrix over at least 2 answers, got shape {matrix.shape}")
    if not ((matrix >= 0) & (matrix <= 1)).all():
        i, j = np.argwhere(~((matrix >= 0) & (matrix <= 1)))[0]
        raise ValueError(f"similarity of answers {i} and {j} is {matrix[i, j]:g}; it must lie between 0 and 1")
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-9):
        i, j = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
        raise ValueError(
            f"similarity of answers {i} and {j} is {matrix[i, j]:g} one way and {matrix[j, i]:g} the other; average them first"
        )
    if not np.allclose(matrix.diagonal(), 1.0, rtol=0, atol=1e-6):
        i = int(np.argmin(matrix.diagonal()))
        raise ValueError(f"similarity of answer {i} with itself is {matrix[i, i]:g}; it must be 1")
    return matrix
