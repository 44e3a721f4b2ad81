"""What is measured, under which conditions, how often: once, whatever number of claims read it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from upheld.claims.measurements import NOT_CONDITIONS
from upheld.claims.preparation import Recipe
from upheld.claims.trial import Condition, Measurement, Scalar, Scale, Trial, canonical


def grid(**axes: Sequence[Scalar]) -> list[dict[str, Scalar]]:
    """Every combination of the given values.

    >>> grid(n=[30, 60], r=[4])
    [{'n': 30, 'r': 4}, {'n': 60, 'r': 4}]
    """
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _nothing(trial: Trial) -> Iterable[Recipe]:
    return ()


def _check(condition: Condition, experiment: str) -> None:
    """A condition is part of a result's key and of its row: plain values, and no name that the row has already."""
    for key, value in condition.items():
        if key in NOT_CONDITIONS:
            raise ValueError(f"{experiment}: {key!r} cannot name a condition, it names something every result has")
        if not isinstance(value, str | int | float | bool) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(
                f"{experiment}: condition {key} is {value!r}; text, numbers of Python that are finite, True and False can be"
            )


@dataclass(frozen=True, eq=False)  # an experiment is itself, whatever another one looks like
class Experiment:
    """A measurement with its conditions and repetitions.

    Parameters
    ----------
    name : ``"hubs.race"``; the ledger's key, so it is never reused for something else
    measure : one trial's measurements; a module-level function, since workers import it
    conditions : for each scale, the conditions. A scale that is left out is not run there, and the verdict says so.
    repeats : for each scale, the number of seeds of each condition
    timeout_s : for each scale, the seconds one trial may take
    units : what was drawn at random and could be drawn again; intervals resample these.

        ========== =====================================================================================
        "seed"      one repetition each; what a trial measures of one cell is averaged
        "item"      the items (prompts, tasks) are the sample, seeds only repeat them
        "seed/item" every item of every seed is an independent draw (many runs simulated in one trial)
        "seed*item" seeds and items are two crossed samples (training seeds x tasks)
        a condition key, as "file": its values are the sample, everything inside one value is averaged
        ========== =====================================================================================
    prepare : what has to exist before a trial can start (a trained model), see `Preparation`
    alone : measured while nothing else runs, for trials that use all cores themselves
    """

    name: str
    measure: Callable[[Trial], Iterable[Measurement]]
    conditions: Mapping[Scale, Sequence[Condition]]
    repeats: Mapping[Scale, int]
    timeout_s: Mapping[Scale, float]
    units: str = "seed"
    prepare: Callable[[Trial], Iterable[Recipe]] = field(default=_nothing)
    alone: bool = False

    def __post_init__(self) -> None:
        for scale, conditions in self.conditions.items():
            if scale not in self.repeats or scale not in self.timeout_s:
                raise ValueError(f"{self.name}: scale {scale} has conditions, but no repeats or no timeout_s")
            if self.repeats[scale] < 1 or not self.timeout_s[scale] > 0:
                raise ValueError(f"{self.name}: repeats and timeout_s of scale {scale} must be above 0")
            for condition in conditions:
                _check(condition, self.name)
            twice = [text for text, count in Counter(map(canonical, conditions)).items() if count > 1]
            if twice:
                raise ValueError(f"{self.name}: condition {twice[0]} stands twice in scale {scale}")

    @property
    def method(self) -> str:
        """The package the experiment belongs to: the name's first part."""
        return self.name.split(".")[0]

    def trials(self, scale: Scale) -> Iterator[Trial]:
        """Every trial of a scale, one seed of all conditions before the next, so that a stopped run is balanced."""
        conditions = self.conditions.get(scale, ())
        for seed in range(self.repeats.get(scale, 0)):
            for condition in conditions:
                yield Trial(self.name, condition, seed, scale)

    def keys(self, scale: Scale) -> set[tuple[str, int]]:
        """Canonical condition and seed of every trial of a scale, as the ledger has them."""
        return {(canonical(trial.condition), trial.seed) for trial in self.trials(scale)}
