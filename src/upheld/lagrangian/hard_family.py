"""The family behind the lower bound: s rows on which nobody can learn faster than the coin flips reveal.

A = I, b = 1/2, no block rows, x in {0, 1}^s (Le, Nguyen & Nguyen 2026, lower bound)::

    u(pi) = sum_k min(pi_k / 2, c_k - pi_k / 2),      pi*(P) = c,      u* = LP = sum_k c_k / 2,     OPT = sum_k c_k     (1)

    c_k = mu + sigma with probability (1 + eps) / 2 if v_k = 1 and (1 - eps) / 2 if v_k = 0, else mu                   (2)

    max U - U(pi) = sum_k (eps / 2) |pi_k - pi*_k|   for pi in [mu, mu + sigma]^s,     pi* = mu + sigma v              (3)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import FREE, DualEval, Instance

MU, SIGMA, PI_MAX = 0.25, 0.5, 1.0


class HardFamily(Instance):
    """One instance (1).

    Parameters
    ----------
    c : (s,) costs, not negative

    Examples
    --------
    >>> HardFamily([0.75, 0.25]).oracle(np.array([0.75, 0.25])).u
    0.5
    """

    def __init__(self, c: ArrayLike) -> None:
        self.c = np.asarray(c, dtype=float)
        if self.c.ndim != 1 or not np.isfinite(self.c).all() or (self.c < 0).any():
            raise ValueError("c must be a vector of finite costs that are not negative")
        self.b = np.full(self.c.size, 0.5)
        self.equality = np.zeros(self.c.size, dtype=bool)
        self.row_names = [f"row_{k}" for k in range(self.c.size)]

    @property
    def B(self) -> float:
        return 1.0

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        x = (self.c < pi).astype(float)
        if fixed is not None:
            x = np.where(fixed == FREE, x, fixed)
        return DualEval(float(self.c @ x + pi @ (0.5 - x)), 0.5 - x, x)

    def linear_model(self) -> CoupledMILP:
        s = self.c.size
        return CoupledMILP(
            self.c, sparse.eye_array(s), self.b, sparse.csr_array((0, s)), [], True, 0, 1, row_names=self.row_names
        )

    @property
    def branchable(self) -> np.ndarray:
        return np.arange(self.c.size)


def draw(
    v: ArrayLike, n: int, eps: float, rng: np.random.Generator, *, mu: float = MU, sigma: float = SIGMA
) -> list[HardFamily]:
    """`n` instances of (2) with the hidden bits `v`, (s,) of 0 and 1."""
    v = np.asarray(v)
    return [HardFamily(mu + sigma * high(v, eps, rng)) for _ in range(n)]


def high(v: np.ndarray, eps: float, rng: np.random.Generator) -> np.ndarray:
    """Which costs of one instance are mu + sigma, for every bit in `v` (any shape)."""
    return rng.random(v.shape) < (1 + eps * (2 * v - 1)) / 2


def excess(pi: np.ndarray, v: np.ndarray, eps: float, *, mu: float = MU, sigma: float = SIGMA) -> np.ndarray:
    """max U - U(pi), summed over the last axis: (3), and slope 1/2 outside [mu, mu + sigma].

    Examples
    --------
    >>> round(float(excess(np.array([0.25, 0.25]), np.array([0, 1]), 0.2)), 9)
    0.05
    """
    p = (1 + eps * (2 * v - 1)) / 2

    def mean_u(at: np.ndarray) -> np.ndarray:
        return p * np.minimum(at / 2, mu + sigma - at / 2) + (1 - p) * np.minimum(at / 2, mu - at / 2)

    return np.asarray((mean_u(mu + sigma * v) - mean_u(pi)).sum(axis=-1))


@dataclass(frozen=True)
class Learned:
    """Multipliers of every learner of one constant vector, each (repetitions, s), and the mean's target E pi*(P)."""

    erm: np.ndarray
    sga: np.ndarray
    warm_mean: np.ndarray
    random: np.ndarray
    constant: np.ndarray
    target: np.ndarray


def learn(
    v: np.ndarray, n: int, eps: float, rng: np.random.Generator, *, mu: float = MU, sigma: float = SIGMA
) -> Learned:
    """All learners on `n` instances of every repetition at once; the draws are made instance by instance.

    Parameters
    ----------
    v : (repetitions, s) hidden bits
    n : instances a repetition
    """
    step = PI_MAX / (2.0 * np.sqrt(n))  # eta = pi_max / (2 B sqrt N), B = 1
    pi, total, count = np.zeros(v.shape), np.zeros(v.shape), np.zeros(v.shape)
    for _ in range(n):
        is_high = high(v, eps, rng)
        total += pi
        c = mu + sigma * is_high
        pi = np.clip(pi + step * np.where(c < pi, -0.5, 0.5), 0.0, PI_MAX)
        count += is_high
    majority = np.sign(2 * count - n)  # ERM: the mean of u is linear between mu and mu + sigma; a tie leaves the middle
    p = (1 + eps * (2 * v - 1)) / 2
    return Learned(
        erm=mu + sigma * (1 + majority) / 2,
        sga=total / n,
        warm_mean=mu + sigma * count / n,
        random=mu + sigma * rng.random(v.shape),
        constant=np.full(v.shape, mu + sigma / 2),
        target=mu + sigma * p,
    )
