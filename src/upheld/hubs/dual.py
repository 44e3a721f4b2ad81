"""The dual function g of (3), evaluated on the weights of the groups, with the best bounds seen so far.

    g(l) = sum of the s smallest eigenvalues of S(l) = sum_k l_k S_k,      l in D_K                                 (3)

g is concave and positively homogeneous. With V the bottom-s eigenvectors of S(l), the vector of the group values
``g_k = tr(V' S_k V)`` is a supergradient and ``g(l) = <g_k, l>``: one partial eigendecomposition gives a lower bound
g(l) of (1), a cut for the solver, and a feasible V whose worst group is an upper bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from upheld.hubs.spectra import bottom_eigenpairs

FloatArray = NDArray[np.float64]


def worst_mean(t: FloatArray, n_worst: int) -> float:
    """Mean of the `n_worst` largest group values; their maximum when `n_worst` is 1."""
    return float(t.max() if n_worst == 1 else np.sort(t)[-n_worst:].mean())


def project_capped_simplex(x: FloatArray, cap: float) -> FloatArray:
    """Nearest point of {l : sum l = 1, 0 <= l_k <= cap}: clip(x - tau), tau found on its breakpoints."""
    if len(x) * cap <= 1 + 1e-12:
        return np.full(len(x), 1 / len(x))
    breaks = np.sort(np.concatenate([x, x - cap]))
    mass = np.clip(x[None, :] - breaks[:, None], 0, cap).sum(axis=1)  # decreasing along the breakpoints
    i = int(np.searchsorted(-mass, -1.0, side="right")) - 1
    slope = (mass[i + 1] - mass[i]) / (breaks[i + 1] - breaks[i])
    tau = breaks[i] + (1.0 - mass[i]) / slope
    return np.asarray(np.clip(x - tau, 0, cap), dtype=float)


class DualFunction:
    """g of (3) for K symmetric (p, p) matrices `S`; every call is recorded as a cut.

    With ``n_worst = r > 1`` the largest group value in (1) becomes the mean of the r largest, and the simplex loses
    its corners: ``l_k <= 1/r``. Nothing else changes.
    """

    def __init__(self, S: FloatArray, n_components: int, n_worst: int = 1) -> None:
        self.S = S
        self.s = n_components
        self.n_worst = n_worst
        self.cuts: list[FloatArray] = []
        self.bases: list[FloatArray] = []
        self.lower = -np.inf
        self.upper = np.inf
        self.weights = np.full(len(S), 1 / len(S))
        self.basis: FloatArray | None = None
        self.eigenvalues = np.zeros(n_components + 1)

    @property
    def cap(self) -> float:
        return 1 / self.n_worst

    @property
    def eigengap(self) -> float:
        """lambda_{s+1} - lambda_s at the best weights."""
        return float(self.eigenvalues[self.s] - self.eigenvalues[self.s - 1])

    @property
    def n_evaluations(self) -> int:
        return len(self.cuts)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.lower, self.upper)

    def at(self, weights: FloatArray) -> FloatArray:
        """S(l), (p, p)."""
        return np.tensordot(weights, self.S, axes=1)

    def group_values(self, V: FloatArray) -> FloatArray:
        """tr(V' S_k V) of every group, (K,)."""
        return np.asarray(np.sum(V * (self.S @ V), axis=(1, 2)), dtype=float)

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """g and its supergradient at `weights` (moved onto the capped simplex); updates the bounds."""
        weights = project_capped_simplex(weights, self.cap)
        values, vectors = bottom_eigenpairs(self.at(weights), self.s + 1)
        V = vectors[:, : self.s]
        t = self.group_values(V)
        value = float(weights @ t)
        self.cuts.append(t)
        self.bases.append(V)
        if value > self.lower:
            self.lower, self.weights, self.eigenvalues = value, weights, values
        self.offer(V, t)
        return value, t

    def offer(self, V: FloatArray, t: FloatArray | None = None) -> None:
        """Keep the orthonormal (p, s) matrix `V` if its worst group value is the smallest yet."""
        worst = worst_mean(self.group_values(V) if t is None else t, self.n_worst)
        if worst < self.upper:
            self.upper, self.basis = worst, V


def relative_gap(lower: float, upper: float) -> float:
    """Primal-dual gap (upper - lower) / max(abs(lower), 1e-12); rounding below zero counts as zero."""
    return max(upper - lower, 0.0) / max(abs(lower), 1e-12)


class _GapClosed(Exception):
    """Leaves SLSQP, which has no other way to stop in the middle of a line search."""


def ascend(dual: DualFunction, tol: float, max_evaluations: int) -> None:
    """SLSQP on the weights from 1/K, left as soon as the primal-dual gap is at most `tol`.

    Where lambda_s < lambda_{s+1}, g is smooth and this ends within 6 to 20 evaluations; at a kink it stalls, and
    `level_bundle` goes on from the recorded cuts.
    """
    K = len(dual.S)
    start = np.full(K, 1 / K)
    first = dual(start)
    scale = abs(first[0]) or 1.0

    def negated(weights: FloatArray) -> tuple[float, FloatArray]:
        if dual.n_evaluations == 1 and np.array_equal(weights, start):
            return -first[0] / scale, -first[1] / scale
        if dual.relative_gap <= tol or dual.n_evaluations >= max_evaluations:
            raise _GapClosed
        value, gradient = dual(weights)
        return -value / scale, -gradient / scale

    if K == 1 or dual.relative_gap <= tol:
        return
    try:
        minimize(  # type: ignore[call-overload]
            negated,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, dual.cap)] * K,
            constraints={"type": "eq", "fun": lambda l: l.sum() - 1, "jac": lambda l: np.ones(K)},
            options={"ftol": 1e-15, "maxiter": max_evaluations},
        )
    except _GapClosed:
        return
