"""Certificates: when may an arm be called good enough, at any time, without looking too often?

An arm with n rewards, mean m and threshold S is certified when its lower confidence bound reaches S. The level of the
bound depends on n alone, 1/(K n^2) for K arms, so an arm below S is ever certified on expected at most

    sum_n 1/(K n^2) = pi^2 / (6 K)                                                                          (a)

of its pulls: no horizon and no gap need be known, and a certificate may be taken back. Three forms:

    sub-Gaussian     LCB = m - sigma sqrt(2 ln(K n^2) / n)                                                  (1)
    Bernoulli        LCB = min{q <= m : n kl(m, q) <= ln(K n^2)}      rewards in [0, 1]                     (1-kl)
    empirical        LCB = m - sqrt(2 V x / n) - 7 x / (3 (n - 1)),   x = ln(2 K n^2), V the sample variance,
                     never at n = 1, rewards in [0, 1] (Maurer & Pontil 2009, theorem 4)                    (1-V)

The same bounds at level alpha / (zeta n^2), zeta = pi^2/6, hold for all n at once with probability 1 - alpha. They give
a confidence sequence and a p-value for "the mean lies below S" that may be read after every reward.

With a single arm K n^2 = 1 at the first pull would make the radius 0; the level is then taken for K = 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from upheld.bandits.elementwise import choose, elementwise, finished, larger, ln, smaller

ZETA = np.pi**2 / 6
TINY = 1e-300
NEWTON_STEPS = 60


@elementwise
def log_level(n: Any, n_arms: Any) -> Any:
    """ln(K n^2), the logarithm of one over the level of the certificate at `n` pulls; K = 1 counts as 2."""
    return ln(larger(n_arms, 2.0) * n * n)


@elementwise
def sub_gaussian_radius(n: Any, x: Any, sigma: Any) -> Any:
    """Half-width sigma sqrt(2 x / n) that a mean of `n` sigma-sub-Gaussian rewards leaves with probability e^-x."""
    return sigma * np.sqrt(2.0 * x / n)


@elementwise
def empirical_radius(n: Any, variance: Any, x: Any) -> Any:
    """Half-width of Maurer & Pontil for rewards in [0, 1] at level 2 e^-x; infinite at n = 1."""
    pairs = larger(n - 1.0, 1.0)
    width = np.sqrt(2.0 * variance * x / n) + 7.0 * x / (3.0 * pairs)
    return choose(n > 1.0, width, np.inf)


@elementwise
def negative_entropy(p: Any) -> Any:
    """p ln p + (1-p) ln(1-p), p in [0, 1]."""
    return p * ln(larger(p, TINY)) + (1.0 - p) * ln(larger(1.0 - p, TINY))


@elementwise
def kl(p: Any, q: Any) -> Any:
    """Bernoulli divergence p ln(p/q) + (1-p) ln((1-p)/(1-q)), p in [0, 1], q in (0, 1)."""
    return negative_entropy(p) - p * ln(q) - (1.0 - p) * ln(1.0 - q)


@elementwise
def kl_upper(p: Any, budget: Any) -> Any:
    """Largest q with kl(p, q) <= `budget`.

    Newton's method from the right, where kl(p, .) is convex and increasing: no iterate falls below the root, so the
    bound errs only to the safe side. It starts at Pinsker's p + sqrt(budget / 2), or just below 1.
    """
    p = smaller(larger(p, 0.0), 1.0)
    budget = larger(budget, 0.0)
    constant = negative_entropy(p) - budget
    q = smaller(p + np.sqrt(0.5 * budget), 1.0 - 2.0**-52)
    done = (q <= p) | (p >= 1.0)
    for _ in range(NEWTON_STEPS):
        safe = choose(done, 0.5, q)
        excess = constant - p * ln(safe) - (1.0 - p) * ln(1.0 - safe)
        step = excess * safe * (1.0 - safe) / choose(done, 1.0, safe - p)
        moved = smaller(larger(q - step, p), q)
        q = choose(done, q, moved)
        # convergence is quadratic on the scale of the distance to the ends of (p, 1): the next step would not be seen
        done = done | (step <= 1e-8 * smaller(1.0 - q, q - p))
        if finished(done):
            break
    return choose(p >= 1.0, 1.0, larger(q, p))


@elementwise
def kl_lower(p: Any, budget: Any) -> Any:
    """Smallest q with kl(p, q) <= `budget`, by symmetry."""
    return 1.0 - kl_upper(1.0 - p, budget)


@elementwise
def lower_sub_gaussian(mean: Any, variance: Any, n: Any, n_arms: Any, sigma: Any) -> Any:
    """Equation (1)."""
    return mean - sub_gaussian_radius(n, log_level(n, n_arms), sigma)


@elementwise
def lower_kl(mean: Any, variance: Any, n: Any, n_arms: Any, sigma: Any) -> Any:
    """Equation (1-kl); `sigma` other than 1/2 widens the budget by (2 sigma)^2, as it would in (1)."""
    return kl_lower(mean, 4.0 * sigma * sigma * log_level(n, n_arms) / n)


@elementwise
def lower_empirical(mean: Any, variance: Any, n: Any, n_arms: Any, sigma: Any) -> Any:
    """Equation (1-V); `sigma` multiplies the radius (1 as published)."""
    return mean - sigma * empirical_radius(n, variance, ln(2.0) + log_level(n, n_arms))


@elementwise
def lower_none(mean: Any, variance: Any, n: Any, n_arms: Any, sigma: Any) -> Any:
    """For policies that certify nothing."""
    return 0.0 * mean - np.inf


def anytime_p_value(
    mean: np.ndarray, variance: np.ndarray, n: np.ndarray, threshold: float, *, kind: str, sigma: float = 0.5
) -> np.ndarray:
    """P-values for "the arm's mean lies below `threshold`", valid whenever one chooses to look.

    For an arm whose mean is at most the threshold, the probability that its p-value is *ever* at most alpha is at most
    alpha; the values of several arms still need a correction for their number.

    Parameters
    ----------
    mean, variance, n : (K,) sample mean, sample variance (only for `kind` "empirical") and number of rewards
    threshold : S, in the rewards' unit
    kind : "sub-gaussian" (with `sigma`), "kl" or "empirical" (both for rewards in [0, 1])

    Returns
    -------
    (K,) p-values; 1 for arms at or below the threshold and for arms without rewards.

    Examples
    --------
    >>> p = anytime_p_value(np.array([0.9]), np.array([0.0]), np.array([100]), 0.5, kind="sub-gaussian")
    >>> print(f"{p[0]:.3g}")  # zeta 100^2 exp(-100 * 0.4^2 / (2 * 0.5^2))
    2.08e-10
    """
    mean, variance, n = (np.asarray(x, dtype=float) for x in (mean, variance, n))
    count = np.maximum(n, 1.0)
    gap = mean - threshold
    match kind:
        case "sub-gaussian":
            exponent = count * gap**2 / (2 * sigma**2)
            union = 1.0
        case "kl":
            p = np.clip(mean, 0.0, 1.0)
            inside = 0.0 < threshold < 1.0
            far = np.inf if threshold <= 0.0 else 0.0
            exponent = count * np.asarray(kl(p, threshold)) if inside else np.full(p.shape, far)
            union = 1.0
        case "empirical":
            exponent = _largest_empirical_level(gap, variance, count)
            union = 2.0
        case _:
            raise ValueError(f"kind must be 'sub-gaussian', 'kl' or 'empirical', got {kind!r}")
    p_value = np.minimum(1.0, union * ZETA * count**2 * np.exp(-exponent))
    return np.where((n > 0) & (gap > 0), p_value, 1.0)


def _largest_empirical_level(gap: np.ndarray, variance: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Root x of sqrt(2 V x / n) + 7 x / (3 (n - 1)) = gap, a quadratic in sqrt(x); 0 at n = 1."""
    linear = np.sqrt(2 * variance / n)
    square = 7 / (3 * np.maximum(n - 1, 1))
    root = (-linear + np.sqrt(linear**2 + 4 * square * np.maximum(gap, 0))) / (2 * square)
    return np.where(n > 1, root**2, 0.0)


def confidence_sequence(
    mean: np.ndarray, variance: np.ndarray, n: np.ndarray, alpha: float, *, kind: str, sigma: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that contain each arm's mean at all times at once, each with probability 1 - `alpha`.

    Parameters as in `anytime_p_value`. Returns (K,) lower and (K,) upper ends; infinite where there is no reward.

    Raises
    ------
    ValueError
        If `alpha` does not lie strictly between 0 and 1, or `kind` is unknown.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    mean, variance, n = (np.asarray(x, dtype=float) for x in (mean, variance, n))
    count = np.maximum(n, 1.0)
    x = np.log(2 * ZETA * count**2 / alpha)  # either side at alpha / (2 zeta n^2)
    match kind:
        case "sub-gaussian":
            radius = np.asarray(sub_gaussian_radius(count, x, sigma))
            low, high = mean - radius, mean + radius
        case "kl":
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = np.asarray(kl_lower(mean, x / count)), np.asarray(kl_upper(mean, x / count))
        case "empirical":
            radius = np.asarray(empirical_radius(count, variance, x + np.log(2)))
            low, high = np.maximum(mean - radius, 0.0), np.minimum(mean + radius, 1.0)
        case _:
            raise ValueError(f"kind must be 'sub-gaussian', 'kl' or 'empirical', got {kind!r}")
    return np.where(n > 0, low, -np.inf), np.where(n > 0, high, np.inf)
