"""Indices: what an arm is worth trying, given a clock w that counts the rounds in which nothing was certified.

    L(w) = 3 ln w                      "safe": the guarantee of uncertain-UCB is proved for it                (2-safe)
    L(w) = ln(1 + w ln^2 w)            "asymptotic": the leading constant is optimal for UCB                  (2-asy)

    sub-Gaussian     m + sigma sqrt(2 L / n)                                                                (3)
    Bernoulli        max{q >= m : n kl(m, q) <= L}                                                          (3-kl)
    empirical        m + sqrt(2 V x / n) + 7 x / (3 (n - 1)),   x = ln(2 w ln^2 w)                          (3-V)
    Thompson         a draw from N(m, sigma^2 / n), or from Beta(1 + successes, 1 + failures)               (3-TS)

The clock of an arm is w_i = max(u, n_i). L increases in w, so L(w_i) is the larger of L(u), taken once a round, and
the arm's own level, taken once a pull and only while n_i > u: the index costs one logarithm a round, not one an arm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from upheld.bandits.certificate import empirical_radius, kl_upper, sub_gaussian_radius
from upheld.bandits.elementwise import branch, elementwise, larger, ln
from upheld.bandits.streams import TIE, beta, normal


@elementwise
def level_asymptotic(w: Any) -> Any:
    """Equation (2-asy)."""
    log_w = ln(w)
    return ln(1.0 + w * log_w * log_w)


@elementwise
def level_safe(w: Any) -> Any:
    """Equation (2-safe)."""
    return 3.0 * ln(w)


@elementwise
def level_empirical(w: Any) -> Any:
    """x of equation (3-V), at least 0."""
    log_w = ln(larger(w, 2.0))
    return larger(ln(2.0 * w * log_w * log_w), 0.0)


@elementwise
def level_none(w: Any) -> Any:
    return 0.0 * w


@elementwise
def own_asymptotic(n: Any, u: Any, n_arms: Any) -> Any:
    return branch(n > u, level_asymptotic, level_none, n)


@elementwise
def own_safe(n: Any, u: Any, n_arms: Any) -> Any:
    return branch(n > u, level_safe, level_none, n)


@elementwise
def own_empirical(n: Any, u: Any, n_arms: Any) -> Any:
    return branch(n > u, level_empirical, level_none, n)


@elementwise
def own_none(n: Any, u: Any, n_arms: Any) -> Any:
    return 0.0 * n


@elementwise
def index_sub_gaussian(mean: Any, n: Any, level: Any, sigma: Any) -> Any:
    """Equation (3)."""
    return mean + sub_gaussian_radius(n, level, sigma)


@elementwise
def index_kl(mean: Any, n: Any, level: Any, sigma: Any) -> Any:
    """Equation (3-kl); `sigma` other than 1/2 widens the budget by (2 sigma)^2, as it would in (3)."""
    return kl_upper(mean, 4.0 * sigma * sigma * level / n)


@elementwise
def index_empirical(mean: Any, n: Any, variance: Any, level: Any, sigma: Any) -> Any:
    """Equation (3-V); `sigma` multiplies the radius (1 as published)."""
    return mean + sigma * empirical_radius(n, variance, level)


@elementwise
def draw_normal(key: Any, mean: Any, n: Any, sigma: Any) -> Any:
    """Posterior draw under a flat prior, equation (3-TS)."""
    return mean + sigma / np.sqrt(n) * normal(key, TIE)


@elementwise
def draw_beta(key: Any, mean: Any, n: Any, sigma: Any) -> Any:
    """Posterior draw for 0/1 rewards under a uniform prior, equation (3-TS)."""
    successes = larger(mean * n, 0.0)
    return beta(key, 1.0 + successes, 1.0 + larger(n - successes, 0.0))


@elementwise
def draw_none(key: Any, mean: Any, n: Any, sigma: Any) -> Any:
    return 0.0 * mean
