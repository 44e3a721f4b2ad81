"""pi*(P): the maximiser of the dual of least norm, which makes "the" optimal multipliers of an instance well defined.

    u* = max_Pi u,        pi*(P) = argmin { ||pi||^2 : u(pi) >= u* - tau, pi in Pi },        tau = 1e-6 (1 + |u*|)

Cutting planes: minimise the norm under all cuts >= u* - tau, evaluate u there, add its cut, until u >= u* - tau. That ends
for a polyhedral u; else it stops after 50 rounds and says how far it came.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upheld.lagrangian.ascent import Box, Budget, Search, evaluator
from upheld.lagrangian.bundle import CutModel, level_bundle
from upheld.lagrangian.oracles import Instance

ROUNDS = 50
RELATIVE = 1e-6


@dataclass(frozen=True)
class MinimumNorm:
    """`pi`, the optimal value `u_star`, how far u(pi) lies below it (`shortfall`), and oracle `calls` in all."""

    pi: np.ndarray
    u_star: float
    shortfall: float
    calls: int


def minimum_norm_maximiser(P: Instance, box: Box, budget: Budget | None = None, n_jobs: int = 1) -> MinimumNorm:
    """pi*(P) on the box.

    Examples
    --------
    >>> from upheld.lagrangian.ascent import box_of
    >>> from upheld.lagrangian.families import HardFamily
    >>> P = HardFamily([0.25, 0.75])
    >>> minimum_norm_maximiser(P, box_of(P, 1.0)).pi.round(4).tolist()
    [0.25, 0.75]
    """
    search = Search(evaluator(P, n_jobs), budget or Budget())
    model = CutModel(box)
    found = level_bundle(search, box.clip(np.zeros(P.n_rows)), model, tolerance=RELATIVE / 10)
    origin, best = np.zeros(P.n_rows), (found.pi, found.u)
    for _ in range(ROUNDS):
        floor = search.top - RELATIVE * (1 + abs(search.top))
        nearest = model.nearest(origin, floor)
        if nearest is None:
            break
        pi = box.clip(nearest)
        answer = search(pi)
        model.add(pi, answer)
        best = (pi, answer.answer.u)
        if answer.answer.u >= search.top - 1.01 * RELATIVE * (1 + abs(search.top)):  # rounding
            break
    return MinimumNorm(best[0], search.top, search.top - best[1], len(search.u))
