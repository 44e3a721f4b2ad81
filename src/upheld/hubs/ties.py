"""From a relaxed optimum of (3) to a projector: the case lambda_s = lambda_{s+1} at the optimal weights.

Let P = sum_j alpha_j V_j V_j' be the relaxed optimum that the bundle method leaves behind, with eigenvalues in [0, 1]
and q of them strictly between. In the span U of those q eigenvectors look for a symmetric D with

    tr D = 0,      tr(U' S_k U D) equal for all groups k that attain the worst value.

There is one whenever q(q+1)/2 exceeds the number of such groups. Moving P by a U D U' then changes all worst groups
alike, and the sign of a is chosen so that they do not rise; at the largest a an eigenvalue of P reaches 0 or 1 or a
further group joins the worst. Repeating this ends at an extreme point: a projector when K <= 2, and for K = 3, 4, 5 at
most two fractional eigenvalues. Those are rounded to the nearest projector, and `refine` then solves (1) locally around
it; the gap that stays is reported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from upheld.hubs.dual import DualFunction, worst_mean
from upheld.hubs.stiefel import polar

FloatArray = NDArray[np.float64]

FRACTIONAL = 1e-9  # eigenvalues of P closer than this to 0 or 1 count as 0 or 1
N_PERTURBATIONS = 10
PERTURBATION = 0.3
N_PASSES = 5
PATIENCE = 3
MAX_UNKNOWNS = 120


def extreme_point(dual: DualFunction, alpha: FloatArray) -> FloatArray:
    """Orthonormal (p, s) basis of the extreme point reached from P = sum_j alpha_j V_j V_j'.

    If that is no projector, the nearest projector of rank s is returned.
    """
    factor = np.hstack([np.sqrt(alpha[j]) * dual.bases[j] for j in np.flatnonzero(alpha > 1e-12)])
    Y, singular, _ = np.linalg.svd(factor, full_matrices=False)
    mu = np.clip(singular**2, 0, 1)
    whole = Y[:, mu > 1 - FRACTIONAL]
    U = Y[:, (mu > FRACTIONAL) & (mu <= 1 - FRACTIONAL)]
    n_left = dual.s - whole.shape[1]
    if n_left == 0:
        return whole
    C = U.T @ (dual.S @ U)
    base = dual.group_values(whole) if whole.shape[1] else np.zeros(len(dual.S))
    M = _purify(C, base, np.diag(mu[(mu > FRACTIONAL) & (mu <= 1 - FRACTIONAL)]), dual.n_worst)
    W = np.linalg.eigh(M)[1][:, ::-1][:, :n_left]
    return polar(np.hstack([whole, U @ W]))


def _purify(C: FloatArray, base: FloatArray, M: FloatArray, n_worst: int) -> FloatArray:
    """Move M (q, q), 0 <= M <= I, to an extreme point without raising the worst of base_k + tr(C_k M)."""
    for _ in range(4 * len(M) + len(C)):
        mu, W = np.linalg.eigh(M)
        mu = np.where(mu < FRACTIONAL, 0.0, np.where(mu > 1 - FRACTIONAL, 1.0, mu))
        M = (W * mu) @ W.T
        free = (mu > 0) & (mu < 1)
        if not free.any():
            break
        t = base + np.einsum("kij,ij->k", C, M)
        threshold = np.sort(t)[-n_worst]
        worst = np.abs(t - threshold) <= 1e-9 * max(np.abs(t).max(), 1e-300)
        B = np.einsum("ia,kij,jb->kab", W[:, free], C, W[:, free])
        D = _direction(mu[free], B[worst])
        if D is None:
            break
        rate = np.einsum("kij,ij->k", B, D)
        shared = rate[worst].mean()
        above = (t > threshold) & ~worst
        if rate[above].sum() + (n_worst - above.sum()) * shared > 0:
            D, rate, shared = -D, -rate, -shared
        a = min(_step_to_boundary(mu[free], D), _step_to_next_group(t[~worst] - threshold, rate[~worst] - shared))
        M = M + a * (W[:, free] @ D @ W[:, free].T)
        M = (M + M.T) / 2
    return M


def _direction(mu: FloatArray, B: FloatArray) -> FloatArray | None:
    """Symmetric D with tr D = 0 and tr(B_k D) equal for all k: pushes each mu to its nearer end where it may."""
    q = len(mu)
    i, j = np.triu_indices(q)
    double = np.where(i == j, 1.0, np.sqrt(2.0))  # makes the half-vector an isometry
    rows = np.array([np.eye(q)[i, j], *((Bk - B[0])[i, j] * double for Bk in B[1:])])
    basis = np.linalg.svd(rows.T, full_matrices=False)
    kept = basis[0][:, basis[1] > 1e-10 * basis[1][0]]
    if len(i) <= kept.shape[1]:
        return None
    push = np.where(i == j, np.where(mu[i] >= 0.5, 1.0, -1.0), 0.0)
    for entry in range(-1, len(i)):
        seed = push if entry < 0 else (np.arange(len(i)) == entry).astype(float)
        d = seed - kept @ (kept.T @ seed)
        d -= kept @ (kept.T @ d)
        if np.linalg.norm(d) > 1e-6:
            D = np.zeros((q, q))
            D[i, j] = d / double / np.linalg.norm(d)
            return D + np.triu(D, 1).T
    return None


def _step_to_boundary(mu: FloatArray, D: FloatArray) -> float:
    """Largest a with 0 <= diag(mu) + a D <= I."""
    low, high = np.sqrt(mu), np.sqrt(1 - mu)
    down = np.linalg.eigvalsh(-D / np.outer(low, low))[-1]
    up = np.linalg.eigvalsh(D / np.outer(high, high))[-1]
    return float(1 / max(down, up))


def _step_to_next_group(distance: FloatArray, relative_rate: FloatArray) -> float:
    """First a > 0 at which another group value meets those of the worst groups."""
    meets = distance * relative_rate < 0
    return float(np.min(-distance[meets] / relative_rate[meets])) if meets.any() else np.inf


def refine(dual: DualFunction, tol: float, rng: np.random.Generator) -> None:
    """Offer `dual` the local solutions of (1) near its best V: from V itself and from tangent perturbations of it.

    Ends when the gap is closed, or when `PATIENCE` perturbations in a row found nothing better.
    """
    assert dual.basis is not None
    best = dual.basis
    stale = 0
    for trial in range(N_PERTURBATIONS + 1):
        reached, V = dual.upper, best
        if trial:
            T = rng.standard_normal(best.shape)
            T -= best @ (best.T @ T)
            V = polar(best + PERTURBATION * T / np.linalg.norm(T))
        for _ in range(N_PASSES):
            before = worst_mean(dual.group_values(V), dual.n_worst)
            V = _local_solution(dual, V)
            dual.offer(V)
            if worst_mean(dual.group_values(V), dual.n_worst) > before - 1e-7 * abs(before):
                break
        stale = 0 if dual.upper < reached - 1e-6 * abs(reached) else stale + 1
        if dual.relative_gap <= tol or stale >= PATIENCE:
            return


def _local_solution(dual: DualFunction, V: FloatArray) -> FloatArray:
    """Minimise the worst group value over V(Y) = polar(V + Q Y), Q the main directions of all (I - VV') S_k V.

    Sequential quadratic programming on: min x  s.t.  x >= t_k(Y) for every group (for the mean of the r largest:
    x + sum_k z_k / r  s.t.  z_k >= t_k - x, z_k >= 0), with

        d t_k / dY = 2 Q' (I - V(Y) V(Y)') S_k V(Y) (I + Y'Y)^{-1/2}.
    """
    K, (p, s), r = len(dual.S), V.shape, dual.n_worst
    SV = dual.S @ V
    residual = np.hstack([A - V @ (V.T @ A) for A in SV])
    m = min(p - s, residual.shape[1], max(MAX_UNKNOWNS // s, 1))
    Q = np.linalg.svd(residual, full_matrices=False)[0][:, :m]
    Q, _ = np.linalg.qr(Q - V @ (V.T @ Q))
    basis = np.hstack([V, Q])
    C = basis.T @ (dual.S @ basis)
    scale = max(float(np.abs(dual.group_values(V)).max()), 1e-300)
    n_slack = K if r > 1 else 0

    def turned(unknowns: FloatArray) -> tuple[FloatArray, FloatArray]:
        Y = unknowns[1 + n_slack :].reshape(m, s)
        mu, W = np.linalg.eigh(Y.T @ Y)
        root = (W / np.sqrt(1 + mu)) @ W.T
        return np.vstack([root, Y @ root]), root

    def slack(unknowns: FloatArray) -> FloatArray:
        A, _ = turned(unknowns)
        t = np.sum(A * (C @ A), axis=(1, 2)) / scale
        room: FloatArray = unknowns[0] - t
        return room + unknowns[1 : 1 + n_slack] if n_slack else room

    def slack_gradient(unknowns: FloatArray) -> FloatArray:
        A, root = turned(unknowns)
        CA = C @ A
        G = 2 * ((CA - A @ (A.T @ CA)) @ root)[:, s:, :] / scale
        return np.hstack([np.ones((K, 1)), np.eye(K)[:, :n_slack], -G.reshape(K, -1)])

    cost = np.r_[1.0, np.full(n_slack, 1 / r), np.zeros(m * s)]
    start = np.zeros(len(cost))
    start[0] = dual.group_values(V).max() / scale
    solution = minimize(  # type: ignore[call-overload]
        lambda unknowns: (float(cost @ unknowns), cost),
        start,
        jac=True,
        method="SLSQP",
        bounds=[(None, None)] + [(0, None)] * n_slack + [(None, None)] * (m * s),
        constraints={"type": "ineq", "fun": slack, "jac": slack_gradient},
        options={"ftol": 1e-10, "maxiter": 100},
    )
    return polar(basis @ turned(solution.x)[0])
