"""What is proved: an upper bound on the refined regret of uncertain-UCB, and a lower bound on anyone's.

Both are explicit finite-sample numbers for sigma-sub-Gaussian (lower bound: Gaussian) rewards. Delta_i is the gap to the
best mean, Delta_* the excess of the best mean over S, B the arms below S.

**Upper bound**, index L = 3 ln w ("safe"; for the other indices nothing is proved).

(a) False certificates. A certified pull of a bad arm raises its count, so their expected number is at most
    sum_n 1/(K n^2) = pi^2/(6K).
(b) Uncertain rounds. P(the best arm's index < its mean) <= u u^-3 + sum_{n>u} n^-3 <= 1.5 u^-2, so the expected number
    of uncertain pulls of arm i, when there are u uncertain rounds, is at most

        b_i(u) = 1 + 24 sigma^2 ln u / Delta_i^2 + 3 pi^2/6
                 + q_i (48 sigma^2/Delta_i^2) ln(e + 24 sigma^2/Delta_i^2),

    q_i the probability that n_i ever exceeds u, for which arm i must have been certified: at most pi^2/(6K) for a bad
    arm, by (a), and 1 for a satisficing one.
(c) Satisficing arms. One with excess e <= 2 sigma is uncertain for at most c(e) = n_0 + 8 sigma^2/e^2 pulls in
    expectation, n_0 the largest fixed point of n = (8 sigma^2/e^2)(ln K + 2 ln n); a larger e counts as 2 sigma. Where
    (b) is smaller it counts.
(d) Hence E u <= ubar, the largest root of u = K + sum_{B} b_i(u) + sum_{not B} min(b_j(u), c_j), by Jensen's inequality
    for ln, and the refined regret is at most sum_{B} Delta_i [b_i(ubar) + pi^2/(6K)] for every horizon.

**Lower bound** (Bretagnolle-Huber), Delta > Delta_*. nu: arm 1 at S + Delta_*, the K - 1 others Delta below it. nu'_i:
arm 1 at S - Delta_*, arm i at S - Delta_* + Delta. Whatever the policy, from horizon sigma^2/(2 Delta_*^2) on its worst
refined regret over {nu, nu'_2, ..., nu'_K} is at least the root of R = (K-1)(sigma^2/(2 Delta)) max(0, ln(Delta sigma^2
/(16 e Delta_*^2 R))).

The proofs are written out in ``docs/bandits-theory.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

MAX_ITERATIONS = 100_000


def _uncertain_pulls(u: float, gaps: np.ndarray, bad: np.ndarray, sigma: float) -> np.ndarray:
    """(K,) b_i(u) of (b); infinite where the gap is 0."""
    with np.errstate(divide="ignore"):
        scale = sigma**2 / gaps**2
    outgrown = np.where(bad, np.pi**2 / (6 * gaps.size), 1.0)  # q_i
    return np.asarray(1 + 24 * scale * np.log(u) + 3 * np.pi**2 / 6 + outgrown * 48 * scale * np.log(np.e + 24 * scale))


def _satisficing_pulls(excess: float, n_arms: int, sigma: float) -> float:
    """c(e) of (c); infinite where the excess is 0."""
    if excess <= 0:
        return np.inf
    scale = 8 * sigma**2 / min(excess, 2 * sigma) ** 2
    n = 1e3
    for _ in range(MAX_ITERATIONS):
        previous, n = n, scale * (np.log(n_arms) + 2 * np.log(n))
        if abs(n - previous) <= 1e-12 * n:
            break
    return n + scale


def regret_bound(means: ArrayLike, threshold: float, sigma: float = 0.5) -> float:
    """Bound (d) on the refined regret of uncertain-UCB with ``index="safe"``, for every horizon.

    Parameters
    ----------
    means : (K,) mean rewards
    threshold : S
    sigma : sub-Gaussian constant

    Returns
    -------
    The bound; infinite if no arm exceeds S (the regret then grows like ln T), 0 if no arm lies below it.

    Raises
    ------
    ValueError
        If a mean is not finite, S is not a number, or sigma is not positive.

    Examples
    --------
    >>> round(regret_bound([0.6] + 9 * [0.3], 0.5), 1)
    1932.5
    """
    means = np.asarray(means, dtype=float)
    if means.ndim != 1 or means.size == 0 or not np.isfinite(means).all():
        raise ValueError("means must be a non-empty list of finite numbers, one an arm")
    if np.isnan(threshold):
        raise ValueError("threshold is not a number (NaN); pass the mean reward that is good enough")
    _positive(sigma=sigma)
    gaps = means.max() - means
    bad = means < threshold
    if not bad.any():
        return 0.0
    if means.max() <= threshold:
        return np.inf
    n_arms = means.size
    satisficing = np.array([_satisficing_pulls(m - threshold, n_arms, sigma) for m in means[~bad]])
    u = 1e3
    for _ in range(MAX_ITERATIONS):
        pulls = _uncertain_pulls(u, gaps, bad, sigma)
        previous, u = u, n_arms + pulls[bad].sum() + np.minimum(pulls[~bad], satisficing).sum()
        if abs(u - previous) <= 1e-12 * u:
            break
    pulls = _uncertain_pulls(u, gaps, bad, sigma)
    return float(gaps[bad] @ (pulls[bad] + np.pi**2 / (6 * n_arms)))


def lower_bound(n_arms: int, gap: float, excess: float, sigma: float = 0.5) -> float:
    """Least worst-case refined regret over {nu, nu'_2, ..., nu'_K}, of any policy (module's docstring).

    With A = (K-1) sigma^2/(2 Delta) and C = Delta sigma^2/(16 e Delta_*^2) the root of R = A ln(C/R) is A W(C/A), W being
    Lambert's function.

    Parameters
    ----------
    n_arms : K
    gap, excess : Delta and Delta_*, in the rewards' unit; gap > excess, or the other arms would be good enough too
    sigma : standard deviation of the Gaussian rewards

    Raises
    ------
    ValueError
        On fewer than 2 arms, numbers that are not positive, or a gap that does not exceed the excess.

    Examples
    --------
    >>> round(lower_bound(10, 0.3, 0.0125), 3)
    3.9
    """
    if n_arms < 2:
        raise ValueError(f"the lower bound needs at least 2 arms, got {n_arms}")
    _positive(gap=gap, excess=excess, sigma=sigma)
    if gap <= excess:
        raise ValueError(f"the lower bound needs a gap above the excess, got gap {gap:g} and excess {excess:g}")
    a = (n_arms - 1) * sigma**2 / (2 * gap)
    c = gap * sigma**2 / (16 * np.e * excess**2)
    return float(a * lambertw(c / a).real)


def paper_lower_bound(gaps: ArrayLike, excess: float) -> float:
    """The abstract's form, sum_{i in B} ln(1 / sum_{j in B} Delta_*/Delta_j) / Delta_i, without its constant.

    B = {i : Delta_i > Delta_*}. With all gaps equal to Delta it reads (K-1) ln(Delta/((K-1) Delta_*)) / Delta. It is 0
    where the logarithm is not positive.

    Parameters
    ----------
    gaps : (K,) gaps to the best mean; that of the best arm, 0, may be left out
    excess : Delta_* > 0
    """
    gaps = np.asarray(gaps, dtype=float)
    if gaps.ndim != 1 or not np.isfinite(gaps).all() or (gaps < 0).any():
        raise ValueError("gaps must be a list of finite numbers that are not negative")
    _positive(excess=excess)
    large = gaps[gaps > excess]
    if large.size == 0:
        return 0.0
    logarithm = -np.log(np.sum(excess / large))
    return float(max(0.0, logarithm) * np.sum(1 / large))


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {value}")
