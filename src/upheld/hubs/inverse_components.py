"""Hubs of one network: the bottom eigenvectors of a single matrix (IPC-HD, arXiv 2505.23707, JASA 2025).

    influence  w_i = sum_{j<=s} V[i, j]^2,     V the bottom-s eigenvectors of S

Number of components: add the ridge max(0, -2 lambda_min) to the eigenvalues, take the reciprocals in descending order,
rho_1 >= rho_2 >= ..., and the ratios rho_j / rho_{j+1} for j = 1 .. floor(p/2) - 1. If the largest ratio exceeds 1.5 times
the second largest, s is its index; otherwise s = floor(sqrt(p)) ("sqrt") or floor(p/5) ("frac").
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

FloatArray = NDArray[np.float64]
Fallback = Literal["sqrt", "frac"]

FLAT = 1e-10
SMALL = 300  # up to this p one full decomposition is cheaper than a partial one that may have to be repeated


def identified_influence(S: FloatArray, n_components: int) -> FloatArray:
    """(p,) influence from the smallest bottom eigenspace of dimension >= `n_components` that the symmetric S determines.

    If d > `n_components` eigenvalues tie at the bottom (too few samples in the group), all d directions enter and the
    influences are scaled to sum to `n_components`. The published code takes `n_components` of them, which are the
    eigensolver's choice.
    """
    width = np.abs(S).sum(axis=1).max()
    last = n_components if len(S) > SMALL else len(S) - 1
    values, V = eigh(S, subset_by_index=[0, last])
    if values[n_components] - values[0] <= FLAT * width and last == n_components:
        values, V = eigh(S)
    d = max(n_components, int(np.sum(values - values[0] <= FLAT * width)))
    return np.asarray(np.sum(V[:, :d] ** 2, axis=1) * (n_components / d), dtype=float)


def n_components_by_ratio(eigenvalues: ArrayLike, fallback: Fallback = "sqrt") -> int:
    """Number of components from the eigenvalues (p,) of S, in any order.

    Examples
    --------
    >>> n_components_by_ratio(1 / np.array([100, 90, 10, 9, 8.5, 8, 7.7, 7.4, 7.1, 6.9, 6.7, 6.5]))
    2
    """
    if fallback not in ("sqrt", "frac"):
        raise ValueError(f"fallback must be 'sqrt' or 'frac', got {fallback!r}")
    values = np.sort(np.asarray(eigenvalues, dtype=float))
    p = len(values)
    values = values + max(0.0, -2 * values[0])
    default = max(int(np.sqrt(p)) if fallback == "sqrt" else p // 5, 1)
    # rho_j / rho_{j+1} = lambda_{j+1} / lambda_j with ascending lambda.
    n_ratios = p // 2 - 1
    if n_ratios < 2:
        return default
    ratios = values[1 : n_ratios + 1] / np.maximum(values[:n_ratios], np.finfo(float).tiny)
    second, largest = np.sort(ratios)[-2:]
    return int(np.argmax(ratios)) + 1 if largest > 1.5 * second else default
