"""What all dual methods share: the box of multipliers, the budget, the record of a search, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from upheld.lagrangian.oracles import DualEval, Instance, shared


@dataclass(frozen=True)
class Box:
    """Pi: multipliers between `low` and `high`, both (s,)."""

    low: np.ndarray
    high: np.ndarray

    def clip(self, pi: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum(np.maximum(pi, self.low), self.high))  # half the time of np.clip on few rows

    def doubled(self) -> Box:
        return Box(2 * self.low, 2 * self.high)


def box_of(P: Instance, pi_max: ArrayLike) -> Box:
    """[0, pi_max] on inequality rows, [-pi_max, pi_max] on equations.

    Raises
    ------
    ValueError
        If `pi_max` is not positive.
    """
    high = np.broadcast_to(np.asarray(pi_max, dtype=float), P.b.shape).copy()
    if not (high > 0).all():
        raise ValueError(f"pi_max must be positive, got {np.min(high)}")
    return Box(np.where(P.equality, -high, 0.0), high)


@dataclass(frozen=True)
class Budget:
    """When a dual method has to stop: after so many oracle calls, or seconds."""

    calls: int = 500
    seconds: float = np.inf


def evaluator(P: Instance, n_jobs: int = 1) -> Callable[[np.ndarray], DualEval]:
    """The oracle of one instance."""
    return lambda pi: P.oracle(pi, n_jobs=n_jobs)


def mean_evaluator(instances: Sequence[Instance], n_jobs: int = 1) -> Callable[[np.ndarray], DualEval]:
    """U_N(pi) = mean_i u(pi, P_i), instances in parallel; without a minimiser."""

    def evaluate(pi: np.ndarray) -> DualEval:
        values, gradients = np.empty(len(instances)), np.empty((len(instances), pi.size))
        exact = np.empty(len(instances), dtype=bool)

        def work(lo: int, hi: int) -> None:
            for i in range(lo, hi):
                answer = instances[i].oracle(pi)
                values[i], gradients[i], exact[i] = answer.u, answer.g, answer.exact

        shared(work, len(instances), n_jobs)
        return DualEval(float(values.mean()), gradients.mean(axis=0), np.empty(0), bool(exact.all()))

    return evaluate


class Search:
    """Calls the oracle, keeps the best point and the history, and says when the budget is spent."""

    def __init__(self, evaluate: Callable[[np.ndarray], DualEval], budget: Budget) -> None:
        self._evaluate, self.budget, self._begin = evaluate, budget, time.perf_counter()
        self.u: list[float] = []
        self.g_norm: list[float] = []
        self.seconds: list[float] = []
        self.best: DualEval | None = None
        self.best_pi = np.empty(0)

    def __call__(self, pi: np.ndarray) -> DualEval:
        found = self._evaluate(pi)
        self.u.append(found.u)
        self.g_norm.append(math.sqrt(found.g @ found.g))
        self.seconds.append(time.perf_counter() - self._begin)
        if self.best is None or found.u > self.best.u:
            self.best, self.best_pi = found, pi.copy()
        return found

    @property
    def top(self) -> float:
        """Best value so far."""
        return -np.inf if self.best is None else self.best.u

    @property
    def spent(self) -> bool:
        return len(self.u) >= self.budget.calls or time.perf_counter() - self._begin >= self.budget.seconds


@dataclass(frozen=True)
class DualResult:
    """The end of a dual search.

    Attributes
    ----------
    u, pi : best value found, a lower bound on the optimum, and its multipliers
    x, g : the oracle's minimiser and supergradient there
    x_average : convex combination of minimisers that nearly satisfies the coupling rows: a start for repair
    upper : upper bound on max u over the box (bundle methods), else infinite
    converged : `upper` - u is within the tolerance, or a supergradient vanished
    exact : the block problems at `pi` were solved to optimality
    u_history, g_norm_history, seconds_history : one entry an oracle call
    """

    u: float
    pi: np.ndarray
    x: np.ndarray
    g: np.ndarray
    x_average: np.ndarray
    upper: float
    converged: bool
    exact: bool
    u_history: np.ndarray
    g_norm_history: np.ndarray
    seconds_history: np.ndarray

    @property
    def calls(self) -> int:
        """Oracle calls."""
        return int(self.u_history.size)

    @property
    def best_history(self) -> np.ndarray:
        """Best value after each call."""
        return np.maximum.accumulate(self.u_history)


def result(search: Search, x_average: np.ndarray, upper: float, converged: bool) -> DualResult:
    assert search.best is not None  # every method evaluates its start
    best = search.best
    return DualResult(
        best.u, search.best_pi, best.x, best.g, x_average, upper, converged, best.exact,
        np.array(search.u), np.array(search.g_norm), np.array(search.seconds),
    )  # fmt: skip
