"""Balancing weights: what each item of an arm must count for the arm's features to have the target's mean (section 5).

Items j with features phi_j, multiplicities m_j, M = sum m_j; target mean mu.

    entropy     min_beta  log sum_j m_j exp(beta . (phi_j - mu)) + (delta/2) |beta|^2
                alpha_j ~ m_j exp(beta . phi_j),     at the optimum  sum alpha_j phi_j - mu = -delta beta
    quadratic   min_alpha |sum alpha_j phi_j - mu|^2 + lambda sum alpha_j^2 / m_j

The quadratic loss without constraints has alpha = M_diag Phi (Phi' M_diag Phi + lambda I)^{-1} mu, so that sum alpha_j y_j is ridge
regression at mu. On the simplex its optimality conditions are alpha_j = (m_j / lambda) (nu + beta . phi_j)_+ with
beta = mu - sum alpha_j phi_j and sum alpha_j = 1: the stationary point of a convex, piecewise quadratic function of (beta, nu),

    |beta|^2 / 2 - beta . mu - nu + (1 / 2 lambda) sum m_j (nu + beta . phi_j)_+^2

Both duals are solved by a damped Newton method in as many unknowns as there are features. delta = lambda / M puts the two losses on
one scale. lambda is the ratio of noise variance to |theta|^2 of the outcome function at which imbalance and variance are traded
minimax (Wong & Chan 2018; Kallus 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from upheld.effects.pooling import solve_positive
from upheld.effects.rows import FloatArray

TOLERANCE = 1e-8
MAX_ITERATIONS = 200
LOSSES = ("entropy", "quadratic")
CONSTRAINTS = ("simplex", "none")


@dataclass(frozen=True)
class Weights:
    """alpha (N,), and how far the optimality identity is from holding.

    beta (D,): the dual variable; residual: largest component of sum alpha phi - mu + (delta) beta; n_iter Newton steps.
    """

    alpha: FloatArray
    beta: FloatArray
    residual: float
    n_iter: int

    @property
    def converged(self) -> bool:
        return self.residual <= 10 * TOLERANCE


def entropy_weights(phi: FloatArray, m: FloatArray, mu: FloatArray, delta: float) -> Weights:
    """Positive weights summing to one that bring the mean of phi (N, D) to mu (D,), up to -delta beta."""
    Z = phi - mu
    log_m = np.log(m)

    def dual(beta: FloatArray) -> tuple[float, FloatArray]:
        exponent = log_m + Z @ beta
        top = exponent.max()
        weight = np.exp(exponent - top)
        total = weight.sum()
        return float(top + np.log(total) + delta / 2 * beta @ beta), weight / total

    def gradient(beta: FloatArray, alpha: FloatArray) -> FloatArray:
        g: FloatArray = alpha @ Z + delta * beta
        return g

    def hessian(beta: FloatArray, alpha: FloatArray) -> FloatArray:
        mean = alpha @ Z
        scaled = Z * np.sqrt(alpha)[:, None]
        H: FloatArray = scaled.T @ scaled - np.outer(mean, mean)
        H[np.diag_indices_from(H)] += delta
        return H

    beta, alpha, n_iter = _newton(dual, gradient, hessian, np.zeros(phi.shape[1]))
    residual = float(np.abs(alpha @ phi - mu + delta * beta).max(initial=0.0))
    return Weights(alpha, beta, residual, n_iter)


def quadratic_weights(phi: FloatArray, m: FloatArray, mu: FloatArray, lam: float, constraints: str) -> Weights:
    """Weights that trade |sum alpha phi - mu|^2 against lam sum alpha^2/m, on the simplex or free ("none")."""
    if constraints == "none":
        scaled = phi * np.sqrt(m)[:, None]
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += lam
        alpha = m * (phi @ np.linalg.solve(gram, mu))
        beta = mu - alpha @ phi
        return Weights(alpha, beta, float(np.abs(lam * alpha / m - phi @ beta).max()), 1)
    D = phi.shape[1]

    def slack(point: FloatArray) -> FloatArray:
        positive: FloatArray = np.maximum(point[D] + phi @ point[:D], 0.0)
        return positive

    def dual(point: FloatArray) -> tuple[float, FloatArray]:
        positive = slack(point)
        beta = point[:D]
        return float(beta @ beta / 2 - beta @ mu - point[D] + m @ positive**2 / (2 * lam)), m * positive / lam

    def gradient(point: FloatArray, alpha: FloatArray) -> FloatArray:
        return np.append(point[:D] - mu + alpha @ phi, alpha.sum() - 1)

    def hessian(point: FloatArray, alpha: FloatArray) -> FloatArray:
        active = alpha > 0
        scaled = np.column_stack([phi[active], np.ones(active.sum())]) * np.sqrt(m[active] / lam)[:, None]
        H: FloatArray = scaled.T @ scaled
        H[np.arange(D), np.arange(D)] += 1
        return H

    start = np.append(np.zeros(D), lam / m.sum())
    point, alpha, n_iter = _newton(dual, gradient, hessian, start)
    residual = float(np.abs(gradient(point, alpha)).max())
    return Weights(alpha / alpha.sum(), point[:D], residual, n_iter)


def _newton(
    dual: Callable[[FloatArray], tuple[float, FloatArray]],
    gradient: Callable[[FloatArray, FloatArray], FloatArray],
    hessian: Callable[[FloatArray, FloatArray], FloatArray],
    point: FloatArray,
) -> tuple[FloatArray, FloatArray, int]:
    """Minimise a convex function with step halving; the function also returns the weights its derivatives need."""
    value, alpha = dual(point)
    for n_iter in range(MAX_ITERATIONS):
        g = gradient(point, alpha)
        if np.abs(g).max(initial=0.0) <= TOLERANCE:
            return point, alpha, n_iter
        step = -solve_positive(hessian(point, alpha), g)
        slope, size = float(g @ step), 1.0
        while True:
            new, new_alpha = dual(point + size * step)
            # Near the optimum the decrease drowns in rounding: a full step is then judged by its gradient.
            if new <= value + 1e-4 * size * slope or (
                abs(slope) < 1e-10 and np.abs(gradient(point + size * step, new_alpha)).max() < np.abs(g).max()
            ):
                break
            size /= 2
            if size < 1e-12:
                return point, alpha, n_iter
        point, value, alpha = point + size * step, new, new_alpha
    return point, alpha, MAX_ITERATIONS
