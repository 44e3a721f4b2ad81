"""The point of a polyhedron nearest to a given one: Lawson and Hanson's least distance programming (1974, chapter 23).

With y = z - centre, min ||y|| subject to G y >= h has the solution y = -r / r_{n+1}, where r = E u - e_{n+1} is the residual of
the non-negative least squares problem min_{u >= 0} ||E u - e_{n+1}||, E = [G^T; h^T]. If r = 0 there is no feasible point.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

EMPTY = 1e-11  # of r_{n+1} = ||r||^2, which is between 0 and 1


def nearest_point(
    centre: np.ndarray, rows: np.ndarray, at_least: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray | None:
    """The point of {rows z >= at_least, low <= z <= high} nearest to `centre`; None if there is none.

    Examples
    --------
    >>> one = np.ones(2)
    >>> nearest_point(np.zeros(2), np.array([[1.0, 1.0]]), np.array([2.0]), 0 * one, 5 * one).round(6).tolist()
    [1.0, 1.0]
    """
    eye = np.eye(centre.size)
    open_low, open_high = np.isfinite(low), np.isfinite(high)
    G = np.vstack([rows, eye[open_low], -eye[open_high]])
    h = np.r_[at_least - rows @ centre, (low - centre)[open_low], (centre - high)[open_high]]
    length = np.linalg.norm(G, axis=1)
    length[length == 0] = 1.0
    G, h = G / length[:, None], h / length
    farthest = float(h.max(initial=0.0))  # the unit of distance
    if farthest <= 0:
        return np.asarray(centre, dtype=float)
    target = np.zeros(centre.size + 1)
    target[-1] = 1.0
    E = np.vstack([G.T, h / farthest])
    try:
        u, _ = nnls(E, target, maxiter=30 * E.shape[1])
    except RuntimeError:  # it cycled: the caller has another way on
        return None
    r = E @ u - target
    if -r[-1] <= EMPTY:
        return None
    return np.asarray(np.clip(centre - farthest * r[:-1] / r[-1], low, high))
