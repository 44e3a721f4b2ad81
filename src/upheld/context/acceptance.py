"""When a new context replaces the incumbent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.context.metrics import Figure, Metric, label_set

CONFIDENT = 0.75
TIE = 0.005
LEANER = 0.80
RESAMPLES, FEWER = 2000, 300
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
    resampled = RESAMPLED.get(metric.name)
    if resampled is not None:
        gains = resampled(new, targets, draws) - resampled(old, targets, draws)
    else:
        gains = _resampled(new, old, targets, metric.figure, draws[:FEWER])
    return float(np.mean(gains > 1e-12) + np.mean(np.abs(gains) <= 1e-12) / 2)


def _resampled(
    new: Sequence[str], old: Sequence[str], targets: Sequence[str], value: Figure, draws: NDArray[np.int64]
) -> NDArray[np.float64]:
    def gain(places: Sequence[int]) -> float:
        wanted = [targets[place] for place in places]
        return value([new[place] for place in places], wanted) - value([old[place] for place in places], wanted)

    return np.array([gain(row) for row in draws.tolist()])


# -- figures of all samples at once, where they are made of sums


def _accuracies(answers: Sequence[str], targets: Sequence[str], draws: NDArray[np.int64]) -> NDArray[np.float64]:
    right = np.array([answer.strip() == target.strip() for answer, target in zip(answers, targets, strict=True)], float)
    return np.asarray(right[draws].mean(axis=1))


def _micro_f1s(answers: Sequence[str], targets: Sequence[str], draws: NDArray[np.int64]) -> NDArray[np.float64]:
    pairs = [(label_set(answer), label_set(target)) for answer, target in zip(answers, targets, strict=True)]
    shared = np.array([len(given & wanted) for given, wanted in pairs])[draws].sum(axis=1)
    total = np.array([len(given) + len(wanted) for given, wanted in pairs])[draws].sum(axis=1)
    return np.where(total > 0, 2 * shared / np.maximum(total, 1), 1.0)


def _macro_f1s(answers: Sequence[str], targets: Sequence[str], draws: NDArray[np.int64]) -> NDArray[np.float64]:
    labels = {label: place for place, label in enumerate(dict.fromkeys([*targets, *answers]))}
    given, wanted = (np.eye(len(labels))[[labels[one] for one in side]] for side in (answers, targets))
    times = np.array([np.bincount(row, minlength=len(targets)) for row in draws], dtype=float)
    right, said, meant = times @ (given * wanted), times @ given, times @ wanted
    f1 = np.where(meant > 0, 2 * right / np.maximum(said + meant, 1), 0.0)
    return np.asarray(f1.sum(axis=1) / (meant > 0).sum(axis=1))


RESAMPLED = {"accuracy": _accuracies, "micro-f1": _micro_f1s, "macro-f1": _macro_f1s}
