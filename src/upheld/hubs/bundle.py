"""Level bundle method for the concave dual (3), for optima that lie on a kink (lambda_s = lambda_{s+1}).

The cuts g^(j) of all evaluations model g from above: g(l) <= min_j <g^(j), l>. Each round solves

    LP   u = max t  s.t.  t <= <g^(j), l>,  l in D_K            (an upper bound of the optimum of (3))
    QP   next l = projection of the best l onto {l in D_K : <g^(j), l> >= lower + (u - lower)/2 for all j}

The LP's multipliers alpha_j >= 0, sum alpha_j = 1, belong to the relaxed primal point P = sum_j alpha_j V_j V_j', whose
worst group value is exactly u (LP duality). `upheld.hubs.ties` starts from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from upheld.hubs.dual import DualFunction, project_capped_simplex

FloatArray = NDArray[np.float64]


def level_bundle(dual: DualFunction, tol: float, model_tol: float, max_evaluations: int) -> FloatArray:
    """Maximise g until the primal-dual gap is at most `tol` or the relative model gap (u - lower) at most `model_tol`.

    Returns the multipliers alpha of all cuts. The model gap closes first; the primal-dual gap is the one that counts.
    """
    while True:
        cuts = np.array(dual.cuts)
        u, alpha = cutting_plane_bound(cuts, dual.cap)
        model_gap = (u - dual.lower) / max(abs(dual.lower), 1e-12)
        if dual.relative_gap <= tol or model_gap <= model_tol or dual.n_evaluations >= max_evaluations:
            return alpha
        weights = project_on_level_set(dual.weights, cuts, dual.lower + (u - dual.lower) / 2, dual.cap)
        if weights is None:
            return alpha
        dual(weights)


def cutting_plane_bound(cuts: FloatArray, cap: float) -> tuple[float, FloatArray]:
    """The LP: its value u and the multipliers (J,) of the cuts (J, K)."""
    n_cuts, K = cuts.shape
    scale = float(np.abs(cuts).max()) or 1.0
    solution = linprog(
        np.r_[np.zeros(K), -1.0],
        A_ub=np.c_[-cuts / scale, np.ones(n_cuts)],
        b_ub=np.zeros(n_cuts),
        A_eq=np.r_[np.ones(K), 0.0][None, :],
        b_eq=[1.0],
        bounds=[(0.0, cap)] * K + [(None, None)],
        method="highs",
    )
    if solution.status != 0 or solution.fun is None:
        raise RuntimeError(f"the linear program over {n_cuts} cuts failed: {solution.message}")
    alpha = np.clip(-solution.ineqlin.marginals, 0, None)
    return -float(solution.fun) * scale, alpha / alpha.sum()


def project_on_level_set(center: FloatArray, cuts: FloatArray, level: float, cap: float) -> FloatArray | None:
    """The QP, as a least-distance problem solved by one NNLS (Lawson & Hanson 1974, chapter 23).

    With l = center + N z, N an orthonormal basis of {sum = 0}: min |z| s.t. E z >= f. For the NNLS residual
    r = [E'; f'] u - (0, ..., 0, 1) the minimiser is z = -r[:-1] / r[-1]. None if the level set is
    empty to working precision, that is, if the model gap cannot be told from rounding.
    """
    K = len(center)
    N = np.linalg.qr(np.c_[np.ones(K), np.eye(K)[:, : K - 1]])[0][:, 1:]
    scale = float(np.abs(cuts).max()) or 1.0
    E = np.vstack([cuts @ N / scale, N, -N])
    f = np.r_[(level - cuts @ center) / scale, -center, center - cap]
    A = np.vstack([E.T, f])
    target = np.r_[np.zeros(K - 1), 1.0]
    u, _ = nnls(A, target, maxiter=100 * A.shape[1])
    r = A @ u - target
    if abs(r[-1]) < 1e-12:
        return None
    return project_capped_simplex(center + N @ (-r[:-1] / r[-1]), cap)
