"""Subgradient ascent with Polyak's step, and the volume algorithm (Barahona & Anbil 2000).

Polyak, with an upper bound UB on the optimum::

    pi <- clip(pi + theta (UB - u(pi)) / ||g||^2 g),     theta = 1, halved after 15 calls without progress; restart at the best

Volume: x_bar <- 0.9 x_bar + 0.1 x, and from the best point a step along v = b - A x_bar::

    pi <- clip(pi_best + theta (UB - u_best) / ||v||^2 v),   theta x 1.1 on progress, x 0.66 after 20 calls without
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upheld.lagrangian.ascent import Box, DualResult, Search, result
from upheld.lagrangian.oracles import DualEval

VANISHED = 1e-18  # squared length below which a projected supergradient is none
STALLS, VOLUME_STALLS = 15, 20
PROGRESS = 1e-6  # relative
SHORTEST = 1e-7  # theta below which further steps change nothing


@dataclass(frozen=True)
class Target:
    """What the steps aim at: an upper bound on the optimum, or, where none is known, `margin` above the best value so far."""

    bound: float
    margin: float = 0.0

    def beyond(self, value: float, top: float) -> float:
        """How far the target lies above `value`, with `top` the best value so far."""
        return max(self.bound, top + self.margin) - value


def polyak(search: Search, start: np.ndarray, box: Box, target: Target, theta: float = 1.0) -> DualResult:
    """Subgradient ascent from `start`."""
    pi, stalls, weight = start, 0, 0.0
    x_average = np.empty(0)
    best: DualEval | None = None
    while True:
        before = search.top
        answer = search(pi)
        best = answer if best is None or answer.u > best.u else best
        stalls = 0 if answer.u > before + PROGRESS * (1 + abs(answer.u)) else stalls + 1
        direction = _inward(answer.g, pi, box)
        length = float(direction @ direction)
        if length <= VANISHED:
            return result(search, answer.x, answer.u, True)
        step = theta * max(target.beyond(answer.u, search.top), 0.0) / length
        x_average = answer.x if weight == 0.0 else x_average + (answer.x - x_average) * step / (weight + step)
        weight += step
        if search.spent or step == 0.0 or theta < SHORTEST:
            return result(search, x_average, np.inf, False)
        if stalls >= STALLS:
            theta, stalls = theta / 2, 0
            pi, direction = search.best_pi, _inward(best.g, search.best_pi, box)
            step = theta * max(target.beyond(best.u, search.top), 0.0) / float(direction @ direction)
        pi = box.clip(pi + step * direction)


def volume(search: Search, start: np.ndarray, box: Box, target: Target, theta: float = 1.0) -> DualResult:
    """The volume algorithm from `start`; its x_average is the method's own primal estimate."""
    best = answer = search(start)
    x_average, g_average, stalls = answer.x, answer.g, 0
    while True:
        direction = _inward(g_average, search.best_pi, box)
        length = float(direction @ direction)
        if length <= VANISHED:  # the average leads nowhere from the best point: forget it, and go more carefully
            x_average, g_average, theta = best.x, best.g, theta * 0.66
            direction = _inward(g_average, search.best_pi, box)
            length = float(direction @ direction)
            if length <= VANISHED:
                return result(search, best.x, best.u, True)
        step = theta * max(target.beyond(search.top, search.top), 0.0) / length
        if search.spent or step == 0.0 or theta < SHORTEST:
            return result(search, x_average, np.inf, False)
        before = search.top
        answer = search(box.clip(search.best_pi + step * direction))
        x_average, g_average = 0.9 * x_average + 0.1 * answer.x, 0.9 * g_average + 0.1 * answer.g
        best = answer if answer.u > before else best
        if answer.u > before + PROGRESS * (1 + abs(before)):
            theta, stalls = theta * 1.1, 0
        else:
            stalls += 1
        if stalls >= VOLUME_STALLS:
            theta, stalls = theta * 0.66, 0


def _inward(g: np.ndarray, pi: np.ndarray, box: Box) -> np.ndarray:
    """`g` without the parts that point out of the box."""
    return np.where(((pi <= box.low) & (g < 0)) | ((pi >= box.high) & (g > 0)), 0.0, g)
