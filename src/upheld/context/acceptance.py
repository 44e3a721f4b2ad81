"""When a new context replaces the incumbent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.context.metrics import Figure, Metric

CONFIDENT = 0.75
TIE = 0.005
LEANER = 0.80
RESAMPLES = 2000
RULES = ("best", "paired")

Judged = tuple[Sequence[str], float, float]
"""Answers on the validation set, the figure, and mean tokens a query."""


def accepts(rule: str, new: Judged, old: Judged, targets: Sequence[str], metric: Metric) -> bool:
    """Whether the new context is taken.

    ``best``: a higher figure, or the same with fewer tokens. ``paired``: P(difference > 0) >= 0.75 over paired bootstrap samples of
    the validation items, or a figure within half a point at 80 % of the tokens or fewer; without it the noise of 100 items, four
    points, would lead the search.
    """
    (answers, value, tokens), (before, best, used) = new, old
    if rule == "best":
        return value > best or (value == best and tokens < used)
    leaner = abs(value - best) <= TIE and tokens <= LEANER * used
    return leaner or probability_better(answers, before, targets, metric) >= CONFIDENT


def probability_better(
    new: Sequence[str], old: Sequence[str], targets: Sequence[str], metric: Metric, seed: int = 0
) -> float:
    """Share of paired bootstrap samples in which the figure of `new` exceeds that of `old`; half of the ties."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(targets), size=(RESAMPLES, len(targets)))
    if metric.name == "accuracy":  # a mean: resampled as one matrix
        gains = np.subtract(metric.scores(new, targets), metric.scores(old, targets))[draws].mean(axis=1)
    else:
        gains = _resampled(new, old, targets, metric.figure, draws[:300])
    return float(np.mean(gains > 1e-12) + np.mean(np.abs(gains) <= 1e-12) / 2)


def _resampled(
    new: Sequence[str], old: Sequence[str], targets: Sequence[str], value: Figure, draws: NDArray[np.int64]
) -> NDArray[np.float64]:
    def gain(places: Sequence[int]) -> float:
        wanted = [targets[place] for place in places]
        return value([new[place] for place in places], wanted) - value([old[place] for place in places], wanted)

    return np.array([gain(row) for row in draws.tolist()])
