"""The best bound of one instance: max over pi of u(pi, P), by one of four methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from upheld.lagrangian.ascent import Box, Budget, DualResult, Search, box_of, evaluator
from upheld.lagrangian.bundle import CutModel, level_bundle
from upheld.lagrangian.oracles import Instance, inside
from upheld.lagrangian.subgradient import Target, polyak, volume

METHODS = ("level", "kelley", "subgradient", "volume")
AT_LIMIT = 0.02  # relative: a multiplier this near to the end of the box may want to go beyond
DOUBLINGS = 20
MARGIN = 0.02


def maximise_dual(
    P: Instance,
    start: ArrayLike | None = None,
    method: str = "level",
    budget: Budget | None = None,
    *,
    pi_max: float | None = None,
    upper_bound: float | None = None,
    theta: float = 1.0,
    tolerance: float = 1e-6,
    n_jobs: int = 1,
) -> DualResult:
    """Maximise u(., P), starting at `start`.

    Parameters
    ----------
    start : (s,) multipliers, for instance a learner's prediction; None starts at 0
    method : ``"level"`` (bundle), ``"kelley"``, ``"subgradient"`` (Polyak) or ``"volume"``
    budget : at most so many oracle calls and seconds; 500 calls unless given
    pi_max : end of the box Pi; None takes twice the largest LP multiplier, and twice as much again while the maximum rests on
        the end (the subgradient methods need no end)
    upper_bound : objective of a known solution, in the user's sense, for Polyak's and the volume steps; without one they aim
        at 2 % of the LP bound above the best value so far
    theta : first factor of these steps
    tolerance : relative, of the bundle methods
    n_jobs : threads for the blocks

    Raises
    ------
    ValueError
        If the method is unknown, or as in `dual_value`.

    Examples
    --------
    >>> from upheld.lagrangian.families import HardFamily
    >>> done = maximise_dual(HardFamily([0.25, 0.75]))
    >>> round(done.u, 5), done.converged
    (0.5, True)
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    search = Search(evaluator(P, n_jobs), budget or Budget())
    first = np.zeros(P.n_rows) if start is None else inside(start, P)
    if method in ("subgradient", "volume"):
        box = (
            Box(np.where(P.equality, -np.inf, 0.0), np.full(P.n_rows, np.inf)) if pi_max is None else box_of(P, pi_max)
        )
        ascend = polyak if method == "subgradient" else volume
        return ascend(search, box.clip(first), box, _target(P, upper_bound), theta)
    level = 1.0 if method == "kelley" else 0.3
    if pi_max is not None:
        box = box_of(P, pi_max)
        return level_bundle(search, box.clip(first), CutModel(box), tolerance, level)
    box = box_of(P, _default_end(P, first))
    model = CutModel(box)
    for _ in range(DOUBLINGS):
        done = level_bundle(search, first, model, tolerance, level)
        resting = np.abs(done.pi) >= (1 - AT_LIMIT) * model.box.high
        if search.spent or not resting.any():
            break
        model.widen(model.box.doubled())
        first = done.pi
    return done


def _target(P: Instance, upper_bound: float | None) -> Target:
    """The given bound, or the LP value, and always 2 % of it above the best value so far."""
    if upper_bound is not None:
        return Target(-upper_bound if P.maximise else upper_bound)
    lp = P.linear_model().lp_relaxation()[0]
    return Target(lp, MARGIN * (1 + abs(lp)))


def _default_end(P: Instance, start: np.ndarray) -> float:
    """Twice the largest LP multiplier, and no less than twice the start's."""
    duals = P.linear_model().lp_relaxation()[1]
    return 2 * max(float(np.abs(duals).max(initial=0.0)), float(np.abs(start).max(initial=0.0)), 0.5e-3)
