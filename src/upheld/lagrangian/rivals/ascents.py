"""The dual methods from a given start, under one budget and one target, their step parameter tuned on past instances.

Every subgradient run is tuned by the same grid of 20 factors: the published step of averaged SGA, and theta of Polyak's and of
the volume steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from upheld.lagrangian.ascent import Box, Budget, DualResult, Search, box_of, evaluator
from upheld.lagrangian.bundle import LEVEL, CutModel, level_bundle
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.subgradient import Target, polyak, volume

GRID = np.geomspace(0.01, 100.0, 20)
MARGIN = 0.02  # of the LP bound: how far above the best value the steps aim


@dataclass(frozen=True)
class Ascent:
    """One instance on which starts and methods are compared.

    Attributes
    ----------
    P : the instance
    target : what Polyak's and the volume steps aim at, the same for all
    pi_max : end of the box, for the bundle
    """

    P: Instance
    target: Target
    pi_max: float


def aim(P: Instance, pi_max: float, lp: float | None = None) -> Ascent:
    """The default target of `maximise_dual`: the LP bound, and always 2 % of it above the best value; `lp` if it is known."""
    value = P.linear_model().lp_relaxation()[0] if lp is None else lp
    return Ascent(P, Target(value, MARGIN * (1 + abs(value))), pi_max)


def ascend(on: Ascent, start: np.ndarray, method: str, calls: int, *, theta: float = 1.0) -> DualResult:
    """At most `calls` oracle calls of ``"subgradient"``, ``"volume"``, ``"level"`` or ``"kelley"`` from `start`.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    search = Search(evaluator(on.P), Budget(calls=calls))
    if method in ("level", "kelley"):
        box = box_of(on.P, on.pi_max)
        return level_bundle(search, box.clip(start), CutModel(box), level=1.0 if method == "kelley" else LEVEL)
    if method not in ("subgradient", "volume"):
        raise ValueError(f"there is no method {method!r}; choose subgradient, volume, level or kelley")
    box = Box(np.where(on.P.equality, -np.inf, 0.0), np.full(on.P.n_rows, np.inf))
    return (polyak if method == "subgradient" else volume)(search, box.clip(start), box, on.target, theta)


def best_factor(score: Callable[[float], float]) -> float:
    """The factor of the grid with the largest score; the first of equals."""
    return float(max(GRID, key=score))


def tuned_theta(past: Sequence[Ascent], starts: Sequence[np.ndarray], method: str, calls: int) -> float:
    """The theta after which the mean bound on past instances is best, each from its own start, with the race's budget."""
    return best_factor(
        lambda theta: float(
            np.mean([ascend(on, pi, method, calls, theta=theta).u for on, pi in zip(past, starts, strict=True)])
        )
    )
