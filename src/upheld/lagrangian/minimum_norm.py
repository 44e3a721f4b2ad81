"""pi*(P): the maximiser of the dual of least norm, which makes "the" optimal multipliers of an instance well defined.

    u* = max_Pi u,        pi*(P) = argmin { ||pi||^2 : u(pi) >= u* - tau, pi in Pi },        tau = 1e-6 (1 + |u*|)

Cutting planes from outside: the shortest point under all cuts >= u* - tau is no longer than pi*. Where u is too low there, cuts
are added on the way from that point to a maximiser, each where the last one meets u* - tau, until u itself does: a point of the
set, near the outer one. (Cuts at the outer points alone take thousands of rounds where u has many pieces, as in unit commitment.)
The search ends when the outer point lies in the set, or is as long as the shortest point found in it. For a polyhedral u that is
finite; else it stops after 200 rounds and says how much shorter pi* could be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upheld.lagrangian.ascent import Box, Budget, Search, evaluator
from upheld.lagrangian.bundle import CutModel, level_bundle
from upheld.lagrangian.oracles import Instance

ROUNDS = 200
RELATIVE = 1e-6
CUTS_A_ROUND = 20
ROUNDING = 0.01  # of tau


@dataclass(frozen=True)
class MinimumNorm:
    """`pi` with u(pi) = `u_star` - `shortfall`, at most 1.01 tau below; `longer`, how much its norm may exceed the least one;
    oracle `calls` in all."""

    pi: np.ndarray
    u_star: float
    shortfall: float
    longer: float
    calls: int


def minimum_norm_maximiser(P: Instance, box: Box, budget: Budget | None = None, n_jobs: int = 1) -> MinimumNorm:
    """pi*(P) on the box; `budget` is that of the search for u*, and as much again for the least norm.

    Examples
    --------
    >>> from upheld.lagrangian.ascent import box_of
    >>> from upheld.lagrangian.families import HardFamily
    >>> P = HardFamily([0.25, 0.75])
    >>> minimum_norm_maximiser(P, box_of(P, 1.0)).pi.round(4).tolist()
    [0.25, 0.75]
    """
    limit = budget or Budget()
    evaluate, origin = evaluator(P, n_jobs), np.zeros(P.n_rows)
    search, model = Search(evaluate, limit), CutModel(box)
    found = level_bundle(search, box.clip(origin), model, tolerance=RELATIVE / 10)
    walk = Search(evaluate, limit)
    best, best_u, least = found.pi, found.u, 0.0
    top = found.u  # the walk may find better, where the budget ended the search
    for _ in range(ROUNDS):
        tau = RELATIVE * (1 + abs(top))
        outer = model.nearest(origin, top - tau)
        if outer is None:
            break
        outer = box.clip(outer)
        least = float(np.linalg.norm(outer))
        if walk.spent or np.linalg.norm(best) - least <= RELATIVE * (1 + least):
            break
        pi, u, steps = _into_the_set(outer, found.pi, top - tau, ROUNDING * tau, walk, model)
        top = max(top, walk.top)
        if u >= top - (1 + ROUNDING) * tau and (steps == 1 or np.linalg.norm(pi) < np.linalg.norm(best)):
            best, best_u = pi, u
        if steps == 1:
            break
    calls = len(search.u) + len(walk.u)
    return MinimumNorm(best, top, top - best_u, max(float(np.linalg.norm(best)) - least, 0.0), calls)


def _into_the_set(
    outer: np.ndarray, inner: np.ndarray, floor: float, rounding: float, walk: Search, model: CutModel
) -> tuple[np.ndarray, float, int]:
    """From `outer` towards `inner` until u >= `floor`: Newton's steps, which a concave u never lets pass the border.

    The point, u there, and the oracle calls it took; every one leaves a cut in the model.
    """
    pi, along = outer, inner - outer
    for step in range(1, CUTS_A_ROUND + 1):
        here = walk(pi)
        model.add(pi, here)
        u, slope = here.u, float(here.g @ along)
        if u >= floor - rounding or slope <= 0 or walk.spent:
            return pi, u, step
        pi = pi + along * (floor - u) / slope
    return pi, float(walk.u[-1]), CUTS_A_ROUND
