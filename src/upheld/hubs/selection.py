"""From estimated networks to common hubs: node degrees, the 2-sd rule, and one score over all groups.

With Theta_k the estimated precision matrix of group k, the partial correlation of i and j is
-Theta_k[i,j] / sqrt(Theta_k[i,i] Theta_k[j,j]). A node has a *degree* in each group, the number of its edges, and a
*strength*, the sum of its absolute partial correlations: degrees saturate where a dense network fits best, strengths
do not. Two ways from there to the common hubs:

- intersection (the authors' protocol): more than mean + 2 sd of the degrees in every single group;
- score: the smallest of the node's standardised strengths over the groups, itself held against mean + 2 sd.

sd divides by p - 1 throughout, as R does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Differences below this are rounding: without it, equal scores would select whatever the last bit favours.
TOLERANCE = 1e-12


def partial_correlations(Thetas: ArrayLike) -> FloatArray:
    """Partial correlations of K precision matrices (K, p, p), with a zero diagonal."""
    Theta = np.asarray(Thetas, dtype=float)
    scale = np.sqrt(np.diagonal(Theta, axis1=-2, axis2=-1))
    R = -Theta / (scale[..., :, None] * scale[..., None, :])
    R[..., np.arange(R.shape[-1]), np.arange(R.shape[-1])] = 0.0
    return np.asarray(R, dtype=float)


def degrees(Thetas: ArrayLike) -> FloatArray:
    """Number of edges of each node in each group, (K, p)."""
    return np.asarray(np.count_nonzero(partial_correlations(Thetas), axis=-1), dtype=float)


def strengths(Thetas: ArrayLike) -> FloatArray:
    """Sum of absolute partial correlations of each node in each group, (K, p)."""
    return np.asarray(np.abs(partial_correlations(Thetas)).sum(axis=-1), dtype=float)


def z_scores(values: ArrayLike) -> FloatArray:
    """Each row of (K, p) less its mean, over its sd; a constant row, which ranks nobody, becomes zero."""
    x = np.atleast_2d(np.asarray(values, dtype=float))
    centred = x - x.mean(axis=1, keepdims=True)
    sd = x.std(axis=1, ddof=1, keepdims=True)
    flat = sd <= TOLERANCE * np.maximum(1.0, np.abs(x).max(axis=1, keepdims=True))
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, sd))


def common_score(values: ArrayLike) -> FloatArray:
    """Smallest standardised value over the groups, (p,): high only for a node that stands out in every group."""
    return np.asarray(z_scores(values).min(axis=0), dtype=float)


def above_two_sd(values: ArrayLike) -> BoolArray:
    """Entries of each row above mean + 2 sd of the row, same shape; never more than a fifth of a row (Chebyshev).

    Examples
    --------
    >>> above_two_sd([1.0, 1.2, 0.9, 1.1, 1.0, 0.8, 7.0])
    array([False, False, False, False, False, False,  True])
    """
    return np.asarray(z_scores(values) > 2 + TOLERANCE).reshape(np.shape(values))


def intersection(values: ArrayLike) -> BoolArray:
    """Nodes above the 2-sd line of every group, (p,), from values (K, p)."""
    return np.asarray(above_two_sd(np.atleast_2d(values)).all(axis=0))
