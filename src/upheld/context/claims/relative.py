"""What the paper reports: the gain over the best rival of each domain, as a share of that rival's figure; and a rule for what runs only
where a package is installed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from upheld.claims import Finding, Judgement, Measurements, Outcome, Rule, intervals
from upheld.claims.functionals import Functional
from upheld.claims.intervals import Interval
from upheld.claims.measurements import Cell, Missing, Where, conditions, shown
from upheld.claims.rules import FEWEST_UNITS, NOMINAL, Levels

Array = NDArray[np.float64]
FLOOR = 0.05
"""A rival below it has no relative gain: it would say more of the rival's zero than of the gain."""


def mean_gain(n: int, *, relative: bool) -> Functional:
    """Mean over n pairs of neighbouring cells of (a - b)/b, or of a - b."""

    def value(m: Array) -> Array:
        a, b = m[..., 0::2], m[..., 1::2]
        return np.asarray(((a / b - 1) if relative else a - b).mean(axis=-1))

    def gradient(m: Array) -> Array:
        a, b = m[..., 0::2], m[..., 1::2]
        grown = np.empty_like(m, dtype=float)
        grown[..., 0::2], grown[..., 1::2] = (1 / b, -a / b**2) if relative else (1.0, -1.0)
        return grown / n

    def hessian(m: Array) -> Array:
        a, b = m[..., 0::2], m[..., 1::2]
        whole = np.zeros((*m.shape, m.shape[-1]))
        if relative:
            places = 2 * np.arange(n)
            whole[..., places, places + 1] = whole[..., places + 1, places] = -1 / b**2 / n
            whole[..., places + 1, places + 1] = 2 * a / b**3 / n
        return whole

    return Functional("mean gain", value, gradient, hessian)


@dataclass(frozen=True)
class GainOverBest:
    """Ours over the best of the rivals that ran, averaged over the values of a condition key.

    The best is the one with the highest mean over seeds at each value, found in the same measurements, which favours the rival.

    Parameters
    ----------
    metric : higher is better
    over : the condition key, at each of whose values the best rival is another
    relative : a share of the rival's figure, values where that is below 0.05 left out; else the difference
    """

    metric: str
    ours: str
    rivals: tuple[str, ...]
    over: str = "domain"
    where: Where = field(default_factory=dict, hash=False)
    relative: bool = True

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], Functional]:
        """Cells of ours and of the best rival, value by value, and the mean gain of these pairs."""
        cells: list[Cell] = []
        for level in data.levels(self.cell(), self.over):
            where = {**self.where, self.over: level}
            ours, best = Cell(self.metric, self.ours, where), self._best(data, where)
            if not self.relative or float(data.matrix([best]).mean()) >= FLOOR:
                cells += [ours, best]
        if not cells:
            raise Missing(f"{self}: every rival lies below {FLOOR}, where a relative gain says nothing")
        return tuple(cells), mean_gain(len(cells) // 2, relative=self.relative)

    def _best(self, data: Measurements, where: Where) -> Cell:
        means: dict[Cell, float] = {}
        for rival in self.rivals:
            cell = Cell(self.metric, rival, where)
            try:
                means[cell] = float(data.matrix([cell]).mean())
            except Missing:  # it did not run here
                continue
        if not means:
            raise Missing(f"no rival of {self} was measured{shown(where)}")
        return max(means, key=lambda cell: means[cell])

    def interval(self, data: Measurements, alpha_low: float, alpha_high: float) -> Interval:
        cells, functional = self.parts(data)
        return intervals.smooth_interval(data.matrix(cells), functional, alpha_low, alpha_high)

    def cell(self) -> Cell:
        return Cell(self.metric, self.ours, self.where)

    def at(self, where: Where) -> Self:
        return replace(self, where={**self.where, **where})

    def quantity(self) -> str:
        return f"{'relative ' * self.relative}gain in {self.metric}"

    def conditions(self) -> tuple[str, ...]:
        return conditions(self.where)

    def __str__(self) -> str:
        whom = self.rivals[0] if len(self.rivals) == 1 else f"the best of {', '.join(self.rivals)}"
        return f"{self.quantity()} of {self.ours} over {whom}{shown(self.where)}"


@dataclass(frozen=True)
class BehindInFew:
    """The gain is 0 or more in all domains but `few`: by its estimate to uphold, by intervals wholly below 0 to refute."""

    of: GainOverBest
    few: int = 1

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        found = [self._finding(data, level, levels) for level in data.levels(self.of.cell(), self.of.over)]
        behind = sum(finding.estimate < 0 for finding in found)
        clearly = sum(finding.outcome is Outcome.NOT_UPHELD for finding in found)
        small = any(finding.units < FEWEST_UNITS for finding in found)
        outcome = (
            Outcome.INCONCLUSIVE if small
            else Outcome.UPHELD if behind <= self.few
            else Outcome.NOT_UPHELD if clearly > self.few
            else Outcome.INCONCLUSIVE
        )  # fmt: skip
        return Judgement(outcome, tuple(found), f"behind in {behind} of {len(found)}, clearly in {clearly}")

    def _finding(self, data: Measurements, level: str | int | float | bool, levels: Levels) -> Finding:
        of = self.of.at({self.of.over: level})
        interval = of.interval(data, levels.uphold, levels.refute)
        outcome = (
            Outcome.UPHELD if interval.estimate >= 0
            else Outcome.NOT_UPHELD if interval.high < 0
            else Outcome.INCONCLUSIVE
        )  # fmt: skip
        return Finding(
            str(of), interval.estimate, interval.low, interval.high, (0.0, math.inf), outcome, interval.n_units, interval.note,
            of.quantity(), of.conditions(),
        )  # fmt: skip

    def words(self) -> str:
        return f"the {self.of} is 0 or more in every {self.of.over} but {self.few} at most"


@dataclass(frozen=True)
class WhereMeasured:
    """A rule on a rival that not every machine can run: judged where it was measured, else not run, and why.

    Parameters
    ----------
    rule : reads the rival
    cell : of the rival, which is there in every trial or in none
    why : what it needs
    """

    rule: Rule
    cell: Cell
    why: str

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        try:
            data.rows(self.cell)
        except Missing:
            return Judgement(Outcome.NOT_RUN, note=f"{self.cell.method} {self.why}")
        return self.rule.judge(data, levels)

    def words(self) -> str:
        return f"{self.rule.words()}; {self.cell.method} {self.why}"
