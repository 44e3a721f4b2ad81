"""Where multipliers for a new instance come from: nothing, its own LP, the past, or hindsight.

All have the learners' ``fit(past)`` and ``predict(instance)``. `OwnOptimum` is no rival but the end of the scale: it solves the
instance first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from upheld.lagrangian.ascent import Budget, box_of
from upheld.lagrangian.contextual import ContextualMultipliers
from upheld.lagrangian.learners import TIMES_LP, ERMMultipliers, SGAMultipliers, WarmStartMultipliers
from upheld.lagrangian.minimum_norm import minimum_norm_maximiser
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.rivals.ascents import best_factor


class Start(Protocol):
    """Multipliers for an instance, after a look at past ones."""

    def fit(self, instances: Sequence[Instance], /) -> Any: ...
    def predict(self, instance: Instance, /) -> np.ndarray: ...


def largest_multiplier(past: Sequence[Instance]) -> float:
    """pi_max: twice the largest LP multiplier of the given instances, 1 where all are 0."""
    duals = [np.abs(P.linear_model().lp_relaxation()[1]).max(initial=0.0) for P in past]
    return TIMES_LP * float(max(duals)) or 1.0


def solve_lps_once(past: Sequence[Instance]) -> None:
    """From here on the LP of each past instance is built and solved once, however many starts ask for it.

    Not for new instances: what a start takes at one is timed, and its LP is part of that.
    """
    for P in past:
        model = P.linear_model()
        answer = model.lp_relaxation()
        vars(model)["lp_relaxation"] = lambda answer=answer: answer
        vars(P)["linear_model"] = lambda model=model: model


class ZeroStart:
    """No prices at all."""

    def fit(self, instances: Sequence[Instance], /) -> Self:
        return self

    def predict(self, instance: Instance, /) -> np.ndarray:
        return np.zeros(instance.n_rows)


class OwnLPDual:
    """The LP multipliers of the instance itself: costs one LP, learns nothing."""

    def fit(self, instances: Sequence[Instance], /) -> Self:
        return self

    def predict(self, instance: Instance, /) -> np.ndarray:
        return instance.linear_model().lp_relaxation()[1]


class OwnOptimum:
    """pi*(P) of the instance itself, which nobody has before solving it; an instance is solved once."""

    def __init__(self, pi_max: float, calls: int = 500) -> None:
        self.pi_max, self.calls = pi_max, calls
        self._solved: list[tuple[Instance, np.ndarray]] = []

    def fit(self, instances: Sequence[Instance], /) -> Self:
        return self

    def remember(self, instances: Sequence[Instance], optima: np.ndarray) -> Self:
        """Optima that were found elsewhere, one row an instance; those are not solved again."""
        self._solved += list(zip(instances, optima, strict=True))
        return self

    def predict(self, instance: Instance, /) -> np.ndarray:
        known = next((pi for P, pi in self._solved if P is instance), None)
        if known is None:
            known = minimum_norm_maximiser(instance, box_of(instance, self.pi_max), Budget(calls=self.calls)).pi
            self._solved.append((instance, known))
        return np.array(known)


class LastOptimum:
    """pi*(P) of the last past instance, solved by `own`."""

    def __init__(self, own: OwnOptimum) -> None:
        self.own = own

    def fit(self, instances: Sequence[Instance], /) -> Self:
        self._pi = self.own.predict(instances[-1])
        return self

    def predict(self, instance: Instance, /) -> np.ndarray:
        return np.array(self._pi)


class RandomStart:
    """Uniform on the box, anew for each instance."""

    def __init__(self, pi_max: float, rng: np.random.Generator) -> None:
        self.pi_max, self.rng = pi_max, rng

    def fit(self, instances: Sequence[Instance], /) -> Self:
        return self

    def predict(self, instance: Instance, /) -> np.ndarray:
        box = box_of(instance, self.pi_max)
        return self.rng.uniform(box.low, box.high)


class TunedSGA:
    """The published averaged SGA, its step times the factor of the grid with the largest mean bound on the past.

    Attributes
    ----------
    factor_ : of the published step
    """

    def __init__(self, pi_max: float) -> None:
        self.pi_max = pi_max

    def fit(self, instances: Sequence[Instance], /) -> Self:
        tried: dict[float, SGAMultipliers] = {}

        def score(factor: float) -> float:
            tried[factor] = paper_sga(self.pi_max, scale=factor).fit(instances)
            return tried[factor].score(instances)

        self.factor_ = best_factor(score)
        self._sga = tried[self.factor_]
        return self

    def predict(self, instance: Instance, /) -> np.ndarray:
        return self._sga.predict(instance)


def paper_sga(pi_max: float, *, scale: float = 1.0) -> SGAMultipliers:
    """Algorithm 1 as published; with another `scale` than 1, with another step."""
    return SGAMultipliers(pi_max=pi_max, init="zero", step="theory", average="uniform", scale=scale)


STARTS: dict[str, Callable[[float, np.random.Generator], Start]] = {
    "zero": lambda pi_max, rng: ZeroStart(),
    "random": lambda pi_max, rng: RandomStart(pi_max, rng),
    "own LP dual": lambda pi_max, rng: OwnLPDual(),
    "mean LP dual": lambda pi_max, rng: WarmStartMultipliers(pi_max=pi_max, target="lp-dual"),
    "last optimum": lambda pi_max, rng: LastOptimum(OwnOptimum(pi_max)),
    "warm start": lambda pi_max, rng: WarmStartMultipliers(pi_max=pi_max),
    "SGA": lambda pi_max, rng: paper_sga(pi_max),
    "SGA, tuned": lambda pi_max, rng: TunedSGA(pi_max),
    "SGA, default": lambda pi_max, rng: SGAMultipliers(pi_max=pi_max),
    "ERM": lambda pi_max, rng: ERMMultipliers(pi_max=pi_max),
    "contextual": lambda pi_max, rng: ContextualMultipliers(pi_max=pi_max, random_state=int(rng.integers(2**31))),
    "own optimum": lambda pi_max, rng: OwnOptimum(pi_max),
}
"""Every start by name: a function of the end of the box and a generator."""
