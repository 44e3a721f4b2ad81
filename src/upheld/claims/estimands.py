"""What a claim is about: means, shares, quantiles, and their differences, ratios and slopes.

Each estimand knows how to estimate itself with an interval whose two ends have error rates of their own. They compose::

    Difference(Mean("f", "jic"), Mean("f", "glasso"))           a paired difference
    QuantileRatio(Quantile("regret", "ucb", {"delta": .003}, q=.99), Quantile("regret", "ucb", {"delta": .1}, q=.99))
    Ratio(Slope("regret", "ucb", x="excess", where=SMALL), Slope("regret", "ucb", x="excess", where=LARGE))
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, Self

import numpy as np

from upheld.claims import functionals, intervals
from upheld.claims.functionals import Functional
from upheld.claims.intervals import Interval
from upheld.claims.measurements import Cell, Measurements, Missing, Where, conditions, shown
from upheld.claims.transformed import exponential, quotient


class Estimand(Protocol):
    """A number that the measurements estimate."""

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        """Estimate and interval; the lower end errs with probability `alpha_low`, the upper with `alpha_high`."""

    def cell(self) -> Cell:
        """A cell it reads: where the values of a condition key are looked up."""

    def at(self, where: Where) -> Self:
        """The same under narrower conditions."""

    def quantity(self) -> str:
        """What it is, whoever's and under whichever conditions."""

    def conditions(self) -> tuple[str, ...]:
        """The conditions that stand at the end of its name."""

    def __str__(self) -> str: ...


class Smooth(Estimand, Protocol):
    """A smooth function of cell means."""

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        """The cells, and the function of their means."""


class _Smooth:
    """Interval of a smooth function of cell means."""

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        raise NotImplementedError

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        cells, functional = self.parts(data)
        estimate = intervals.crossed_interval if data.crossed else intervals.smooth_interval
        return estimate(data.matrix(cells), functional, alpha_low, alpha_high)


@dataclass(frozen=True)
class _OneMethod:
    """One method's metric, under the conditions that match `where`."""

    metric: str
    method: str
    where: Where = field(default_factory=dict, hash=False)

    def cell(self) -> Cell:
        return Cell(self.metric, self.method, self.where)

    def at(self, where: Where) -> Self:
        return replace(self, where={**self.where, **where})

    def quantity(self) -> str:
        raise NotImplementedError

    def conditions(self) -> tuple[str, ...]:
        return conditions(self.where)

    def __str__(self) -> str:
        return f"{self.quantity()} of {self.method}{shown(self.where)}"


@dataclass(frozen=True)
class Mean(_OneMethod, _Smooth):
    """Mean of a metric over the units."""

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        return (self.cell(),), functionals.contrast([1.0])

    def quantity(self) -> str:
        return f"mean {self.metric}"


@dataclass(frozen=True)
class Share(_OneMethod):
    """Share of units whose metric is 1, of a metric that is 0 or 1 (Clopper and Pearson's interval)."""

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        return intervals.share_interval(_one_value_a_unit(self, data), alpha_low, alpha_high)

    def quantity(self) -> str:
        return f"share of {self.metric}"


@dataclass(frozen=True)
class Quantile(_OneMethod):
    """Quantile of a metric over the units: ``q=0.5`` is the median, ``q=0.99`` the tail."""

    q: float = field(kw_only=True)

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        return intervals.quantile_interval(_one_value_a_unit(self, data), self.q, alpha_low, alpha_high)

    def quantity(self) -> str:
        return f"{self.q:.0%} quantile of {self.metric}"


def _one_value_a_unit(of: _OneMethod, data: Measurements) -> functionals.Array:
    if data.crossed:
        raise ValueError(
            f"{of}: shares and quantiles need independent units, not crossed ones; take the Mean of the metric"
        )
    return data.matrix([of.cell()])[:, 0]


@dataclass(frozen=True)
class Slope(_OneMethod, _Smooth):
    """Slope of the mean metric in a condition key, by least squares; by default of logarithm on logarithm, a rate's exponent.

    Other conditions are held fixed: the slope is taken under each of their combinations, and averaged.
    """

    x: str = field(kw_only=True)
    log_x: bool = True
    log_y: bool = True

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        levels = data.levels(self.cell(), self.x)
        if len(levels) < 2:
            raise Missing(f"a slope in {self.x} needs two values of it, {self.cell()} has {levels}")
        contexts = data.contexts(self.cell(), besides=self.x)
        x = np.array(levels, dtype=float)
        weights = functionals.slope_weights(np.log(x) if self.log_x else x)
        cells = tuple(
            Cell(self.metric, self.method, {**self.where, **context, self.x: level})
            for context in contexts
            for level in levels
        )
        of = functionals.log_contrast if self.log_y else functionals.contrast
        return cells, of(np.tile(weights, len(contexts)) / len(contexts))

    def quantity(self) -> str:
        y = f"log {self.metric}" if self.log_y else self.metric
        x = f"log {self.x}" if self.log_x else self.x
        return f"slope of {y} in {x}"


class _Beside:
    """The name of two estimands beside each other; short where only the method differs: ``f: jic − glasso, n = 30``."""

    SIGN: ClassVar[str]
    first: Estimand
    second: Estimand

    def cell(self) -> Cell:
        return self.first.cell()

    def quantity(self) -> str:
        if self._only_the_method_differs():
            return self.cell().metric
        return f"{self.first.quantity()} {self.SIGN} {self.second.quantity()}"

    def conditions(self) -> tuple[str, ...]:
        return self.first.conditions() if self._only_the_method_differs() else ()

    def _only_the_method_differs(self) -> bool:
        a, b = self.first.cell(), self.second.cell()
        means = isinstance(self.first, Mean) and isinstance(self.second, Mean)
        return means and a.metric == b.metric and a.where == b.where

    def __str__(self) -> str:
        a, b = self.first.cell(), self.second.cell()
        if self._only_the_method_differs():
            return f"{a.metric}: {a.method} {self.SIGN} {b.method}{shown(a.where)}"
        return f"({self.first}) {self.SIGN} ({self.second})"


@dataclass(frozen=True)
class _Contrast(_Beside, _Smooth):
    """Two smooth estimands, paired by unit.

    Raises
    ------
    TypeError
        If one of them is no function of the units' means, or is one only in logarithms.
    """

    first: Smooth
    second: Smooth

    def __post_init__(self) -> None:
        for one in (self.first, self.second):
            if isinstance(one, GeometricRatio) or not hasattr(one, "parts"):
                raise TypeError(
                    f"a {type(self).__name__} cannot be taken of {one}, a {type(one).__name__}; "
                    "it can of a Mean, a Slope, and of a Difference or a Ratio of these"
                )

    def side_by_side(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional, Functional]:
        """The cells of both, and each one's function of all of them."""
        (left, first), (right, second) = self.first.parts(data), self.second.parts(data)
        size = len(left) + len(right)
        return (
            left + right,
            functionals.of_cells(first, 0, len(left), size),
            functionals.of_cells(second, len(left), size, size),
        )

    def at(self, where: Where) -> Self:
        return replace(self, first=self.first.at(where), second=self.second.at(where))


@dataclass(frozen=True)
class Difference(_Contrast):
    """First minus second."""

    SIGN = "−"

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        cells, first, second = self.side_by_side(data)
        return cells, functionals.difference(first, second)


@dataclass(frozen=True)
class Ratio(_Contrast):
    """First over second."""

    SIGN = "÷"

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        cells, first, second = self.side_by_side(data)
        return cells, functionals.ratio(first, second)


@dataclass(frozen=True)
class QuantileRatio(_Beside):
    """First quantile over second: how much longer a tail has become."""

    SIGN = "÷"
    first: Quantile
    second: Quantile

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        first, second = (one.interval(data, alpha_low, alpha_high) for one in (self.first, self.second))
        return quotient(first, second)

    def at(self, where: Where) -> Self:
        return replace(self, first=self.first.at(where), second=self.second.at(where))


@dataclass(frozen=True)
class GeometricRatio(_Smooth):
    """Geometric mean over units of one method's metric over another's: the mean difference of logarithms, as a ratio."""

    metric: str
    first: str
    second: str
    where: Where = field(default_factory=dict, hash=False)

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        cells = tuple(Cell(self.metric, method, self.where, log=True) for method in (self.first, self.second))
        return cells, functionals.contrast([1.0, -1.0])

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        return exponential(super().interval(data, alpha_low, alpha_high))

    def cell(self) -> Cell:
        return Cell(self.metric, self.first, self.where)

    def at(self, where: Where) -> Self:
        return replace(self, where={**self.where, **where})

    def quantity(self) -> str:
        return self.metric

    def conditions(self) -> tuple[str, ...]:
        return conditions(self.where)

    def __str__(self) -> str:
        return f"{self.metric}: {self.first} ÷ {self.second}{shown(self.where)}"
