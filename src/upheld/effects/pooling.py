"""Outcomes that survive compression: residual pooling (section 4; ours, not the paper's).

A coreset that throws outcomes away estimates with the noise of the few it keeps. Averaging the outcomes of a pair plainly
attenuates the estimate towards the naive contrast by sum of m (g_p - g_q)(f_p - f_q) / 2, g the balancing weights as a function
of x and f the outcome function. So only residuals under a working model f_hat are averaged, which leaves f - f_hat in the place of f:

    y_p <- f_hat(x_p) + [(y_p - f_hat(x_p)) + (y_q - f_hat(x_q))] / 2,          q_p <- (q_p + q_q) / 2

q of a row that was never merged is its squared residual. f_hat is the arm's ridge regression with multiplicities m,

    (theta_0, theta) = argmin sum_j m_j (y_j - theta_0 - theta . phi_j)^2 + lambda |theta|^2

in phi and, since outcomes may drift, in s and s x / sqrt(d), s the standardised time of a row. Without these, one coreset over a stream
whose outcomes drift is off by the drift that was pooled (bias 0.12 with nearest pairs and 0.35 with projected ones where 0.03 is left,
`DriftStream` outcome, n = 8,000, 12 seeds), since early rows are merged more often than late ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from upheld.effects.rows import FloatArray

GRID = np.logspace(-3, 3, 13)
JITTER = 1e-10


@dataclass(frozen=True)
class OutcomeModel:
    """intercept + coef . phi; `spread` is the standard deviation of its residuals."""

    intercept: float
    coef: FloatArray
    spread: float

    def __call__(self, phi: FloatArray) -> FloatArray:
        return self.intercept + phi @ self.coef


@dataclass(frozen=True)
class PoolingModel:
    """f_hat(x, t): regression on phi, s and s x / sqrt(d), with s = (t - centre) / scale."""

    regression: OutcomeModel
    centre: float
    scale: float

    @property
    def spread(self) -> float:
        return self.regression.spread

    def __call__(self, phi: FloatArray, X: FloatArray, t: FloatArray) -> FloatArray:
        return self.regression(with_time(phi, X, (t - self.centre) / self.scale))


def with_time(phi: FloatArray, X: FloatArray, s: FloatArray) -> FloatArray:
    """(N, D + 1 + d): features, time, and time times coordinates."""
    return np.column_stack([phi, s, s[:, None] * X / np.sqrt(X.shape[1])])


def constant_model(D: int, d: int, y: FloatArray, m: FloatArray) -> PoolingModel:
    """The mean of items, y (N,) with multiplicities m (N,): f_hat before there are rows enough, so that no unit's zero matters."""
    mean = float(m @ y / m.sum()) if len(y) else 0.0
    spread = float(np.sqrt(m @ (y - mean) ** 2 / m.sum())) if len(y) else 0.0
    return PoolingModel(OutcomeModel(mean, np.zeros(D + 1 + d), spread), 0.0, 1.0)


def fit_pooling_model(
    phi: FloatArray, X: FloatArray, t: FloatArray, y: FloatArray, m: FloatArray, lam: float | str
) -> PoolingModel:
    """f_hat from items: phi (N, D), X (N, d), t (N,), y (N,), m (N,) multiplicities."""
    centre = float(m @ t / m.sum())
    scale = float(np.sqrt(m @ (t - centre) ** 2 / m.sum())) or 1.0
    return PoolingModel(ridge(with_time(phi, X, (t - centre) / scale), y, m, lam), centre, scale)


def solve_positive(A: FloatArray, b: FloatArray) -> FloatArray:
    """A^{-1} b for A positive semi-definite, with jitter 1e-10 trace(A)/D; A is overwritten."""
    A[np.diag_indices_from(A)] += JITTER * max(float(A.trace()) / len(A), np.finfo(float).tiny)
    solution: FloatArray = cho_solve(
        cho_factor(A, lower=True, overwrite_a=True, check_finite=False), b, check_finite=False
    )
    return solution


def ridge(phi: FloatArray, y: FloatArray, m: FloatArray, lam: float | str) -> OutcomeModel:
    """Weighted ridge regression with an intercept that is not penalised; `lam` a number or "gcv".

    phi (N, D), y (N,), m (N,) multiplicities.
    """
    total = m.sum()
    centre, mean = m @ phi / total, float(m @ y / total)
    Z, r = phi - centre, y - mean
    if lam == "gcv":
        lam = least_gcv([GcvTerms.of(phi, y, m)])
    root = np.sqrt(m)
    scaled = Z * root[:, None]
    if len(y) < phi.shape[1]:  # the smaller of the two equal systems
        gram = scaled @ scaled.T
        gram[np.diag_indices_from(gram)] += float(lam)
        coef = scaled.T @ solve_positive(gram, root * r)
    else:
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += float(lam)
        coef = solve_positive(gram, scaled.T @ (root * r))
    spread = float(np.sqrt(m @ (r - Z @ coef) ** 2 / total))
    return OutcomeModel(mean - float(centre @ coef), coef, spread)


@dataclass(frozen=True)
class GcvTerms:
    """Residual sum of squares and degrees of freedom of one arm's ridge regression at each lambda of `GRID`, and its n items.

    Items and not rows are counted, since the outcome of an item of multiplicity m has variance sigma^2/m or weight m.
    """

    rss: FloatArray
    df: FloatArray
    n: int

    @classmethod
    def of(cls, phi: FloatArray, y: FloatArray, m: FloatArray) -> GcvTerms:
        total = m.sum()
        root = np.sqrt(m)
        U, s, _ = np.linalg.svd((phi - m @ phi / total) * root[:, None], full_matrices=False)
        target = root * (y - m @ y / total)
        along = U.T @ target
        shrink = s[None, :] ** 2 / (s[None, :] ** 2 + GRID[:, None])
        rss = max(float(target @ target - along @ along), 0.0) + ((1 - shrink) ** 2 * along**2).sum(axis=1)
        return cls(rss, 1 + shrink.sum(axis=1), len(y))


def least_gcv(arms: Sequence[GcvTerms]) -> float:
    """The lambda with the least generalised cross-validation score over all arms together, n RSS / (n - df)^2."""
    n = sum(arm.n for arm in arms)
    rss, df = sum(arm.rss for arm in arms), sum(arm.df for arm in arms)
    score = np.where(df < n, rss / np.maximum(n - df, 1e-9) ** 2, np.inf)
    return float(GRID[score.argmin()])
