"""What an answer is worth: a score of every answer, and one figure of a set of answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Figure = Callable[[Sequence[str], Sequence[str]], float]
"""From answers and targets, both of length n, to one figure in [0, 1]."""

SEPARATOR = "; "
"""Between the labels of an answer that has several."""


def label_set(answer: str) -> frozenset[str]:
    """The labels of an answer that may hold several."""
    return frozenset(part.strip() for part in answer.split(";") if part.strip())


def _exact(answer: str, target: str) -> float:
    return float(answer.strip() == target.strip())


def _overlap(answer: str, target: str) -> float:
    """F1 of one answer's label set."""
    given, wanted = label_set(answer), label_set(target)
    return 2 * len(given & wanted) / (len(given) + len(wanted)) if given or wanted else 1.0


def accuracy(answers: Sequence[str], targets: Sequence[str]) -> float:
    return sum(map(_exact, answers, targets)) / len(targets)


def macro_f1(answers: Sequence[str], targets: Sequence[str]) -> float:
    """Mean over the targets' labels of each label's F1."""
    right: Counter[str] = Counter(answer for answer, target in zip(answers, targets, strict=True) if answer == target)
    given, wanted = Counter(answers), Counter(targets)
    return sum(2 * right[label] / (given[label] + wanted[label]) for label in wanted) / len(wanted)


def micro_f1(answers: Sequence[str], targets: Sequence[str]) -> float:
    """F1 over all labels of all answers together."""
    pairs = [(label_set(answer), label_set(target)) for answer, target in zip(answers, targets, strict=True)]
    shared = sum(len(given & wanted) for given, wanted in pairs)
    total = sum(len(given) + len(wanted) for given, wanted in pairs)
    return 2 * shared / total if total else 1.0


@dataclass(frozen=True)
class Metric:
    """A figure of merit.

    Parameters
    ----------
    name : under which a task names it
    figure : of a set of answers
    score : of one answer, in [0, 1]; paired comparisons resample these
    multilabel : whether an answer may hold several labels, separated by a semicolon
    """

    name: str
    figure: Figure
    score: Callable[[str, str], float] = _exact
    multilabel: bool = False

    def __call__(self, answers: Sequence[str], targets: Sequence[str]) -> float:
        """The figure of these answers. Raises ValueError when there are none, or their numbers differ."""
        if len(answers) != len(targets) or not targets:
            raise ValueError(
                f"{len(answers)} answers cannot be judged by {len(targets)} targets; give one target an answer"
            )
        return self.figure(answers, targets)

    def scores(self, answers: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [self.score(answer, target) for answer, target in zip(answers, targets, strict=True)]


METRICS = {
    "accuracy": Metric("accuracy", accuracy),
    "macro-f1": Metric("macro-f1", macro_f1),
    "micro-f1": Metric("micro-f1", micro_f1, _overlap, multilabel=True),
}


def register_metric(metric: Metric) -> None:
    """Make a metric known under its name. Raises ValueError when the name is taken."""
    if metric.name in METRICS:
        raise ValueError(f"there is a metric {metric.name!r} already; give yours another name")
    METRICS[metric.name] = metric


def metric_named(name: str) -> Metric:
    if name not in METRICS:
        raise ValueError(f"there is no metric {name!r}; choose {', '.join(METRICS)}, or register_metric your own")
    return METRICS[name]


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The train metric of an iteration: each batch's, weighted by its size."""
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
