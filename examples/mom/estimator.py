"""Median of means: the algorithm.

Split n observations at random into k blocks, average each block, take the median of the averages::

    mu_hat = median(mean(B_1), ..., mean(B_k)),        k = ceil(8 log(1/delta))                          (1)

With variance sigma^2, whatever the tail, with probability at least 1 - delta::

    |mu_hat - mu| <= sigma sqrt(32 log(1/delta) / n)                                                       (2)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def n_blocks(delta: float) -> int:
    """Number of blocks for failure probability `delta`, equation (1)."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    return int(np.ceil(8 * np.log(1 / delta)))


def median_of_means(x: ArrayLike, delta: float = 0.05, *, rng: np.random.Generator) -> float:
    """Mean of `x` that holds to (2) under finite variance alone.

    Parameters
    ----------
    x : (n,) finite values, in any unit; the result has the same unit
    delta : failure probability
    rng : splits the blocks; the result depends on it only through the split

    Raises
    ------
    ValueError
        If `x` holds a NaN or an infinity, or fewer values than blocks.
    """
    x = np.asarray(x, dtype=float)
    k = n_blocks(delta)
    if not np.isfinite(x).all():
        raise ValueError(f"x holds {np.sum(~np.isfinite(x))} values that are not finite; drop or impute them first")
    if x.size < k:
        raise ValueError(f"{x.size} values cannot fill {k} blocks; take delta >= {np.exp(-x.size / 8):.3g}")
    blocks = np.array_split(rng.permutation(x), k)
    return float(np.median([block.mean() for block in blocks]))


def error_bound(sigma: float, n: int, delta: float = 0.05) -> float:
    """Right side of (2)."""
    return float(sigma * np.sqrt(32 * np.log(1 / delta) / n))
