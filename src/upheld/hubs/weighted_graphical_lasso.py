"""Hub-weighted graphical lasso: edges of nodes that already look like hubs are penalised less.

McGillivray, Khalili & Stephens, "Estimating Sparse Networks with Hubs", Journal of Multivariate Analysis 179 (2020).
From an initial inverse T of the covariance S, with a_i = sum_{j != i} |T_ij|::

    w_ij = 1 / (|T_ij| a_i a_j),  i != j,    divided by its largest value                                    (1)
    minimise  -log det Theta + tr(S Theta) + l sum_{i != j} w_ij |Theta_ij|   over positive definite Theta   (2)

(1) cheapens an edge that is strong itself, and every edge of a row that is heavy. T is S^{-1} when there are more
samples than variables. Otherwise S has no inverse, and T = (S + r I)^{-1} with r = sqrt(log(p) / n), the size of the
noise in an entry of S.

(2) is solved by the ADMM of `gglasso`, for any symmetric penalty matrix.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# A zero in T means an infinite penalty; this share of the largest entry of T means one that no edge can overcome.
SMALLEST_ENTRY = 1e-4


@dataclass(frozen=True)
class GraphicalLasso:
    """Solution of (2).

    Attributes
    ----------
    network : (p, p) with the exact zeros of the estimate
    Theta : (p, p) positive definite, equal to `network` up to the tolerance
    converged : the solver met its tolerance
    """

    network: FloatArray
    Theta: FloatArray
    converged: bool


def hub_weights(S: ArrayLike, n_samples: int) -> FloatArray:
    """Weights (1), (p, p) symmetric with a zero diagonal and largest value 1.

    Parameters
    ----------
    S : (p, p) covariance or correlation of `n_samples` observations

    Examples
    --------
    >>> T = np.array([[2.0, 1.0, 0.5], [1.0, 2.0, 0.5], [0.5, 0.5, 2.0]])     # a = 1.5, 1.5, 1
    >>> hub_weights(np.linalg.inv(T), n_samples=1000).round(4).tolist()
    [[0.0, 0.3333, 1.0], [0.3333, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    S = np.asarray(S, dtype=float)
    p = S.shape[0]
    ridge = 0.0 if n_samples > p else np.sqrt(np.log(p) / n_samples)
    T = np.abs(np.linalg.inv(S + ridge * np.eye(p)))
    np.fill_diagonal(T, 0.0)
    a = T.sum(axis=1)
    T = np.maximum(T, SMALLEST_ENTRY * T.max())
    weights = 1 / (T * np.outer(a, a))
    np.fill_diagonal(weights, 0.0)
    weights = (weights + weights.T) / 2
    return np.asarray(weights / weights.max())


def graphical_lasso(
    S: ArrayLike,
    penalty: float,
    *,
    weights: FloatArray | None = None,
    start: FloatArray | None = None,
    tol: float = 1e-7,
    rtol: float = 1e-4,
    max_iter: int = 1000,
) -> GraphicalLasso:
    """Solve (2), with w_ij = 1 when `weights` is left out: the plain graphical lasso.

    Parameters
    ----------
    S : (p, p) covariance or correlation
    penalty : l, in the unit of S
    weights : (p, p) symmetric, nonnegative
    start : (p, p) positive definite solution of a neighbouring problem
    tol, rtol, max_iter : of the solver, at its own defaults
    """
    from gglasso.solver.single_admm_solver import ADMM_SGL

    S = np.asarray(S, dtype=float)
    Theta_0 = np.diag(1 / np.diag(S)) if start is None else start
    # At the solution the dual variable equals Theta^{-1} - S: starting there too is what makes a warm start pay.
    dual = np.linalg.inv(Theta_0) - S
    np.fill_diagonal(dual, 0.0)
    with redirect_stdout(StringIO()):
        solution, info = ADMM_SGL(
            S, penalty, Theta_0, X_0=dual, tol=tol, rtol=rtol, max_iter=max_iter, lambda1_mask=weights
        )
    return GraphicalLasso(solution["Theta"], solution["Omega"], info["status"] == "optimal")
