"""From measurements to an outcome: few rules, each a frozen dataclass that is fixed before anything is measured.

Every rule sets estimates against a *region*, the values on the claim's side, and reads off where their intervals lie: inside the
region it is *upheld*, outside *not upheld*, across its border *inconclusive*.

**Families.** Most claims speak of several comparisons: every rival, every sample size. To uphold *all* of them each must hold, and
a test that demands all needs no correction (Berger 1982: the maximum of p-values is itself one). To refute them a single one
suffices, and there chance has many tries, so the end of each interval that could refute is widened by Holm's step-down procedure.
For *any* it is the other way round. Each end of an interval has therefore an error rate of its own: 2.5 % that a claim which does
not hold is called upheld, 2.5 % that one which holds is called not upheld, whatever the number of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from upheld.claims.estimands import Difference, Estimand, GeometricRatio, Mean, Slope
from upheld.claims.intervals import Interval, holm_levels
from upheld.claims.measurements import Cell, Measurements, Where, conditions, shown
from upheld.claims.verdict import Finding, Judgement, Outcome

FEWEST_UNITS = 5
Region = tuple[float, float]


@dataclass(frozen=True)
class Levels:
    """One-sided error rates: of upholding what does not hold, and of refuting what does."""

    uphold: float = 0.025
    refute: float = 0.025


NOMINAL = Levels()


class Rule(Protocol):
    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        """The outcome and its findings."""

    def words(self) -> str:
        """The rule as a sentence that completes 'upheld if'."""


# -- one comparison, and families of them


@dataclass(frozen=True)
class Comparison:
    """An estimand and the region where the claim has it."""

    estimand: Estimand
    region: Region

    def finding(self, data: Measurements, levels: Levels) -> Finding:
        shown, refuting = self._intervals(data, levels)
        low, high = self.region
        few = shown.n_units < FEWEST_UNITS
        if not few and low < shown.low and shown.high < high:
            outcome = Outcome.UPHELD
        elif not few and (refuting.low > high or refuting.high < low):
            outcome = Outcome.NOT_UPHELD
        else:
            outcome = Outcome.INCONCLUSIVE
        note = "; ".join(
            filter(None, [shown.note, f"fewer than {FEWEST_UNITS} independent units decide nothing" * few])
        )
        return Finding(
            str(self.estimand), shown.estimate, shown.low, shown.high, self.region, outcome, shown.n_units, note,
            self.estimand.quantity(), self.estimand.conditions(),
        )  # fmt: skip

    def _intervals(self, data: Measurements, levels: Levels) -> tuple[Interval, Interval]:
        """The interval that is shown, and the one that may refute; against a one-sided region they are the same."""
        low, high = self.region
        if math.isinf(high):
            shown = self.estimand.interval(data, levels.uphold, levels.refute)
        elif math.isinf(low):
            shown = self.estimand.interval(data, levels.refute, levels.uphold)
        else:  # two one-sided tests uphold; either tail may refute
            shown = self.estimand.interval(data, levels.uphold, levels.uphold)
            return shown, self.estimand.interval(data, levels.refute / 2, levels.refute / 2)
        return shown, shown

    def p_refute(self, data: Measurements) -> float:
        """p-value of "this comparison alone refutes the claim"; two tries, where the region has two borders."""
        interval = self.estimand.interval(data, NOMINAL.uphold, NOMINAL.refute)
        low, high = self.region
        sides = [
            p(border) for p, border in ((interval.p_below, low), (interval.p_above, high)) if math.isfinite(border)
        ]
        return min(1.0, len(sides) * min(sides))


def every(comparisons: Sequence[Comparison], data: Measurements, levels: Levels) -> Judgement:
    """All comparisons must hold; Holm over those that could refute."""
    if len(comparisons) == 1:
        return _all_of([comparisons[0].finding(data, levels)])
    refute = holm_levels([comparison.p_refute(data) for comparison in comparisons], levels.refute)
    return _all_of(
        [
            comparison.finding(data, replace(levels, refute=level))
            for comparison, level in zip(comparisons, refute, strict=True)
        ]
    )


def _all_of(parts: Sequence[Finding | Judgement]) -> Judgement:
    outcomes = {part.outcome for part in parts}
    if outcomes == {Outcome.UPHELD}:
        outcome = Outcome.UPHELD
    elif Outcome.NOT_UPHELD in outcomes:
        outcome = Outcome.NOT_UPHELD
    else:
        outcome = Outcome.INCONCLUSIVE
    return Judgement(outcome, _findings(parts), _notes(parts))


def _any_of(parts: Sequence[Judgement]) -> Judgement:
    outcomes = {part.outcome for part in parts}
    if Outcome.UPHELD in outcomes:
        outcome = Outcome.UPHELD
    elif outcomes == {Outcome.NOT_UPHELD}:
        outcome = Outcome.NOT_UPHELD
    else:
        outcome = Outcome.INCONCLUSIVE
    return Judgement(outcome, _findings(parts), _notes(parts))


def _findings(parts: Iterable[Finding | Judgement]) -> tuple[Finding, ...]:
    return tuple(finding for part in parts for finding in ([part] if isinstance(part, Finding) else part.findings))


def _notes(parts: Iterable[Finding | Judgement]) -> str:
    return "; ".join(dict.fromkeys(part.note for part in parts if isinstance(part, Judgement) and part.note))


def _spread(estimands: Sequence[Estimand], per: Sequence[str], data: Measurements) -> list[Estimand]:
    """Every estimand at every value of the condition keys in `per`."""
    for key in per:
        estimands = [one.at({key: level}) for one in estimands for level in data.levels(one.cell(), key)]
    return list(estimands)


def _per(keys: Sequence[str]) -> str:
    return f", for every {' and '.join(keys)}" if keys else ""


# -- the rules


@dataclass(frozen=True)
class Superior:
    """`ours` beats every rival: the paired difference of means lies beyond `margin`.

    With ``relative=True`` the geometric mean of the paired ratios lies beyond 1 ± margin (for times, errors, costs).
    """

    metric: str
    ours: str
    rivals: tuple[str, ...]
    margin: float = 0.0
    relative: bool = False
    lower_is_better: bool = False
    where: Where = field(default_factory=dict, hash=False)
    per: tuple[str, ...] = ()

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        estimands = _spread([_against(self, rival) for rival in self.rivals], self.per, data)
        return every([Comparison(estimand, self._region()) for estimand in estimands], data, levels)

    def _region(self) -> Region:
        border = (1.0 if self.relative else 0.0) + (-self.margin if self.lower_is_better else self.margin)
        return (-math.inf, border) if self.lower_is_better else (border, math.inf)

    def words(self) -> str:
        low, high = self._region()
        side = f"below {high:g}" if self.lower_is_better else f"above {low:g}"
        what = "ratio (geometric mean)" if self.relative else "difference"
        comma = "; " if any("," in rival for rival in self.rivals) else ", "  # a rival may be "graphical-lasso, cv"
        whom = " and ".join(self.rivals) if len(self.rivals) < 3 else f"each of {comma.join(self.rivals)}"
        return (
            f"the paired {what} in {self.metric} of {self.ours} to {whom} is {side}{shown(self.where)}{_per(self.per)}"
        )


def _against(rule: Superior, rival: str) -> Estimand:
    if rule.relative:
        return GeometricRatio(rule.metric, rule.ours, rival, rule.where)
    return Difference(Mean(rule.metric, rule.ours, rule.where), Mean(rule.metric, rival, rule.where))


@dataclass(frozen=True)
class Within:
    """An estimand lies strictly between `low` and `high`: two one-sided tests."""

    of: Estimand
    low: float = -math.inf
    high: float = math.inf
    per: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(
                f"nothing lies between {self.low} and {self.high}; give the {self.of} room, low below high"
            )

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        return every(
            [Comparison(one, (self.low, self.high)) for one in _spread([self.of], self.per, data)], data, levels
        )

    def words(self) -> str:
        if math.isinf(self.high):
            return f"the {self.of} is above {self.low:g}{_per(self.per)}"
        if math.isinf(self.low):
            return f"the {self.of} is below {self.high:g}{_per(self.per)}"
        return f"the {self.of} lies between {self.low:g} and {self.high:g}{_per(self.per)}"


def AtLeast(of: Estimand, level: float, *, per: tuple[str, ...] = ()) -> Within:
    """The estimand is above `level`."""
    return Within(of, low=level, per=per)


def AtMost(of: Estimand, level: float, *, per: tuple[str, ...] = ()) -> Within:
    """The estimand is below `level`."""
    return Within(of, high=level, per=per)


def Equivalent(
    metric: str, ours: str, rival: str, margin: float, *, where: Where | None = None, per: tuple[str, ...] = ()
) -> Within:
    """The paired difference of means lies within ± margin."""
    where = where or {}
    return Within(Difference(Mean(metric, ours, where), Mean(metric, rival, where)), -margin, margin, per)


def Rate(
    metric: str, method: str, *, x: str, low: float = -math.inf, high: float = math.inf, where: Where | None = None,
    per: tuple[str, ...] = (),
) -> Within:  # fmt: skip
    """The exponent of the mean metric in the condition key `x` lies between `low` and `high`."""
    return Within(Slope(metric, method, where or {}, x=x), low, high, per)


@dataclass(frozen=True)
class NeverViolated:
    """No single measurement lies beyond the bound: exact, without an interval, from the first trial on."""

    metric: str
    method: str
    at_most: float = math.inf
    at_least: float = -math.inf
    where: Where = field(default_factory=dict, hash=False)

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        values = data.rows(Cell(self.metric, self.method, self.where))["value"]
        violations = int(((values > self.at_most) | (values < self.at_least)).sum())
        outcome = Outcome.NOT_UPHELD if violations else Outcome.UPHELD
        worst = values.max() if math.isfinite(self.at_most) else values.min()
        finding = Finding(
            f"worst {self.metric} of {self.method}{shown(self.where)}", float(worst), float(values.min()), float(values.max()),
            (self.at_least, self.at_most), outcome, len(values), f"{violations} violations in {len(values)} measurements",
            f"worst {self.metric}", conditions(self.where),
        )  # fmt: skip
        return Judgement(outcome, (finding,))

    def words(self) -> str:
        bounds = [f"above {self.at_most:g}"] * math.isfinite(self.at_most) + [
            f"below {self.at_least:g}"
        ] * math.isfinite(self.at_least)
        return f"no measured {self.metric} of {self.method} is {' or '.join(bounds)}{shown(self.where)}"


@dataclass(frozen=True)
class All:
    """Every part must hold. One part refutes, so each may do so at its share of the error rate only (Bonferroni)."""

    rules: tuple[Rule, ...]

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        shared = replace(levels, refute=levels.refute / len(self.rules))
        return _all_of([rule.judge(data, shared) for rule in self.rules])

    def words(self) -> str:
        return " and ".join(rule.words() for rule in self.rules)


@dataclass(frozen=True)
class Any:
    """One part suffices. Chance has many tries to uphold, so each part may do so at its share of the error rate only."""

    rules: tuple[Rule, ...]

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        shared = replace(levels, uphold=levels.uphold / len(self.rules))
        return _any_of([rule.judge(data, shared) for rule in self.rules])

    def words(self) -> str:
        return " or ".join(f"({rule.words()})" for rule in self.rules)


@dataclass(frozen=True)
class Reported:
    """Figures worth showing, without a verdict."""

    of: tuple[Estimand, ...]
    per: tuple[str, ...] = ()

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        comparisons = [Comparison(one, (-math.inf, math.inf)) for one in _spread(self.of, self.per, data)]
        findings = [replace(one.finding(data, NOMINAL), outcome=Outcome.REPORTED) for one in comparisons]
        return Judgement(Outcome.REPORTED, tuple(findings))

    def words(self) -> str:
        return f"no rule: {'; '.join(map(str, self.of))} are reported{_per(self.per)}"
