"""What is proved about learned multipliers: upper bounds on the excess, lower bounds for anyone, instances needed.

With |b_k|, |(A x)_k| <= B on s coupling rows and Pi = [0, pi_max]^s (Le, Nguyen & Nguyen 2026)::

    ||g||_2 <= L = 2 B sqrt(s),                     diam Pi = D = pi_max sqrt(s)                                       (1)

    ERM            excess <= 4 R_N,  R_N <= 12 kappa L D sqrt(s / N)                                                  (2)
    averaged SGA   E excess <= L D / sqrt(N) = 2 B pi_max s / sqrt(N),  step eta = pi_max / (2 B sqrt(N))             (3)
    warm start     E ||mean pi* - E pi*||^2 <= s pi_max^2 / (4 N)                                                     (4)

(3) holds as it stands with G sqrt(N) for L sqrt(N) where the supergradients' second moments (1/N) sum_t E ||g_t||^2 are at most
G^2; `upheld.lagrangian.bernstein` bounds them by those seen. At any constant step::

    E excess <= D^2 / (2 eta N) + eta G^2 / 2                                                                         (3')

kappa = int_0^1 sqrt(ln(1 + 1/x)) dx comes from Dudley's integral with its usual constant 12; (2) is then 109.42 B pi_max
s^1.5 / sqrt(N). On equations Pi = [-pi_max, pi_max]^s: D doubles in (2), (4) is multiplied by 4, and (3) stays as it is, since
from 0 no point of Pi is farther than pi_max sqrt(s).

On the hard family (see `upheld.lagrangian.hard_family`) the best any learner can do under uniform v is known exactly::

    direct       (s sigma eps / 2) P_err,   P_err = P(Bin(N, (1+eps)/2) < N/2) + P(= N/2) / 2                         (5)
    warm start   s (sigma eps)^2 E[p (1 - p)],  p the posterior probability of v_k = 1                                (6)
    the mean     s sigma^2 (1 - eps^2) / (4 N)                                                                        (7)
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from upheld.lagrangian.hard_family import SIGMA

SMALLER = 8  # steps of `upheld.lagrangian.tracking` below the best for comparators that never move


def lipschitz(s: int, B: float) -> float:
    """L of (1), in units of the coupling rows."""
    return float(2 * B * np.sqrt(s))


def diameter(s: int, pi_max: float, *, equations: bool = False) -> float:
    """D of (1), in units of the multipliers."""
    return float((2 if equations else 1) * pi_max * np.sqrt(s))


@cache
def dudley_constant() -> float:
    """kappa of (2).

    >>> round(dudley_constant(), 5)
    1.13977
    """
    return float(quad(lambda x: np.sqrt(np.log1p(1 / x)), 0, 1, epsabs=1e-12)[0])


def erm_bound(s: int, N: int, B: float, pi_max: float, *, equations: bool = False) -> float:
    """(2): what ERM's multipliers lose at most on a new instance in expectation over it, in objective units."""
    return 48 * dudley_constant() * lipschitz(s, B) * diameter(s, pi_max, equations=equations) * float(np.sqrt(s / N))


def sga_step(N: int, B: float, pi_max: float) -> float:
    """The step eta of (3)."""
    return float(pi_max / (2 * B * np.sqrt(N)))


def sga_bound(s: int, N: int, B: float, pi_max: float, *, length: float | None = None) -> float:
    """(3), in objective units; with G = `length` in place of L, at the step diam Pi / (G sqrt(N))."""
    longest = lipschitz(s, B) if length is None else min(length, lipschitz(s, B))
    return longest * diameter(s, pi_max) / float(np.sqrt(N))


def observed_sga_bound(s: int, N: int, pi_max: float, step: float, length: float) -> float:
    """(3'), in objective units, for a run at the constant `step` whose supergradients' second moments are at most `length`^2.

    At the theory's step it is between half of (3) and all of it.
    """
    return float(diameter(s, pi_max) ** 2 / (2 * step * N) + step * length**2 / 2)


def warm_start_bound(s: int, N: int, pi_max: float, *, equations: bool = False) -> float:
    """(4), in squared units of the multipliers."""
    return float(s * diameter(1, pi_max, equations=equations) ** 2 / (4 * N))


def experts(T: int) -> int:
    """K + 1: steps that double, enough that one is at least half of the best for any path in `T` instances, and smaller ones."""
    return SMALLER + int(np.ceil(np.log2(1 + 2 * T) / 2)) + 1


def dynamic_regret_bound(
    s: int, T: int, B: float, pi_max: float, path: float = 0.0, *, equations: bool = False
) -> float:
    """What `upheld.lagrangian.tracking` loses at most to comparators that move by `path` in all, summed over `T` instances.

    3/2 L sqrt(T (D^2 + 2 D P)) + L D sqrt(T / 2) (1 + ln((K + 1)(K + 2))), in objective units, for every sequence of instances.

    >>> one = dynamic_regret_bound(1, 100, 1.0, 1.0)
    >>> still, moving = (dynamic_regret_bound(1, 400, 1.0, 1.0, path) / 400 for path in (0.0, 20.0))
    >>> still < one / 100 < moving
    True
    """
    L, D, K = lipschitz(s, B), diameter(s, pi_max, equations=equations), experts(T) - 1
    weights = L * D * np.sqrt(T / 2) * (1 + np.log((K + 1) * (K + 2)))
    return float(1.5 * L * np.sqrt(T * (D**2 + 2 * D * path)) + weights)


def sample_size(s: int, eps: float, B: float, pi_max: float, method: str, *, length: float | None = None) -> int:
    """Fewest past instances for which a bound is at most `eps`.

    Parameters
    ----------
    s, B, pi_max : as in (1)
    eps : objective units for ``"erm"`` and ``"sga"``, squared units of the multipliers for ``"warm-start"``
    method : which bound to invert
    length : for ``"sga"``: G of (3'), as `SGAMultipliers.observed_length` estimates it; None counts every supergradient as long as
        `B` allows

    Raises
    ------
    ValueError
        If an argument is not positive, the method is unknown, or `length` is given for another than ``"sga"``.

    Examples
    --------
    >>> sample_size(4, 0.5, 1.0, 1.0, "sga")
    256
    >>> sample_size(4, 0.5, 1.0, 1.0, "sga", length=1.0)               # supergradients a quarter as long as they may be
    16
    """
    given = (
        ("s", s),
        ("eps", eps),
        ("B", B),
        ("pi_max", pi_max),
        *((("length", length),) if length is not None else ()),
    )
    for name, value in given:
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    if length is not None and method != "sga":
        raise ValueError(f"length shortens the bound of sga alone, not that of {method}; leave it out")
    at_one = {"erm": lambda: erm_bound(s, 1, B, pi_max), "sga": lambda: sga_bound(s, 1, B, pi_max, length=length)}
    if method == "warm-start":
        return int(np.ceil(warm_start_bound(s, 1, pi_max) / eps * (1 - 1e-12)))
    if method not in at_one:
        raise ValueError(f"there is no bound for {method!r}; choose erm, sga or warm-start")
    return int(np.ceil((at_one[method]() / eps) ** 2 * (1 - 1e-12)))


# lower bounds


def majority_error(N: int, eps: float) -> float:
    """P_err of (5): the probability that a majority of `N` flips of bias (1 + eps)/2 is wrong; a tie counts half."""
    p = (1 + eps) / 2
    below = binom.cdf(np.ceil(N / 2) - 1, N, p)
    return float(below + (binom.pmf(N // 2, N, p) / 2 if N % 2 == 0 else 0.0))


def bayes_risk(s: int, N: int, eps: float, sigma: float = SIGMA) -> float:
    """(5): least expected excess of any learner of one multiplier vector, on the hard family under uniform v."""
    return s * sigma * eps / 2 * majority_error(N, eps)


def warm_start_bayes_risk(s: int, N: int, eps: float, sigma: float = SIGMA) -> float:
    """(6): least expected squared distance to E pi*(P) of any estimator."""
    k = np.arange(N + 1)
    odds = (2 * k - N) * np.log1p(2 * eps / (1 - eps))
    posterior = 1 / (1 + np.exp(-odds))
    weight = (binom.pmf(k, N, (1 + eps) / 2) + binom.pmf(k, N, (1 - eps) / 2)) / 2
    return float(s * (sigma * eps) ** 2 * (weight @ (posterior * (1 - posterior))))


def warm_start_mean_risk(s: int, N: int, eps: float, sigma: float = SIGMA) -> float:
    """(7): expected squared distance of the mean of pi*(P_i) to its own expectation."""
    return s * sigma**2 * (1 - eps**2) / (4 * N)


def minimax_lower_bound(s: int, N: int, sigma: float = SIGMA, *, target: str = "direct") -> float:
    """The largest Bayes risk over eps: on some distribution, every learner does at least as badly.

    Parameters
    ----------
    target : ``"direct"`` for (5), objective units; ``"warm-start"`` for (6), squared multipliers

    Examples
    --------
    >>> round(minimax_lower_bound(1, 1024), 8)
    0.00132804
    """
    risk = {"direct": bayes_risk, "warm-start": warm_start_bayes_risk}[target]
    found = minimize_scalar(
        lambda c: -risk(s, N, c / np.sqrt(N), sigma), bounds=(0.05, min(4.0, 0.999 * np.sqrt(N))), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    return float(-found.fun)


def fano_lower_bound(s: int, N: int, sigma: float = SIGMA) -> float:
    """The same by the paper's route: a packing of 2^(s/8) bit vectors s/8 apart, and Fano's inequality.

    At the largest eps with 4 N s eps^2 <= (s/16 - 1) ln 2 half the guesses are wrong, and a wrong one costs at least
    (eps sigma / 2) s / 16. It is 0 for s <= 16, where (5) is not.
    """
    room = (s / 16 - 1) * np.log(2)
    eps = min(np.sqrt(max(room, 0.0) / (4 * N * s)), 0.95)  # KL <= 4 eps^2 holds up to .95
    return float(eps * sigma * s / 64)
