"""Intervals of transformed numbers: the exponential of a logarithm, the quotient of two positive quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from upheld.claims.intervals import Curve, Interval

SMALLEST_LEVEL, BISECTIONS = 1e-9, 50


@dataclass(frozen=True)
class _Exponential:
    of: Curve

    def low(self, alpha: float) -> float:
        return math.exp(self.of.low(alpha))

    def high(self, alpha: float) -> float:
        return math.exp(min(self.of.high(alpha), 700.0)) if math.isfinite(self.of.high(alpha)) else math.inf

    def p_above(self, null: float) -> float:
        return self.of.p_above(math.log(null)) if null > 0 else 0.0

    def p_below(self, null: float) -> float:
        return self.of.p_below(math.log(null)) if null > 0 else 1.0


def exponential(logarithm: Interval) -> Interval:
    """The interval of exp(theta) from that of theta: ends and p-values carry over, since exp is monotone."""
    curve = _Exponential(logarithm.curve)
    return replace(
        logarithm,
        estimate=math.exp(logarithm.estimate),
        low=curve.low(logarithm.alpha_low),
        high=curve.high(logarithm.alpha_high),
        curve=curve,
    )


@dataclass(frozen=True)
class _Quotient:
    """Each bound is put together from one bound of either number, each at half the level (Bonferroni)."""

    numerator: Curve
    denominator: Curve

    def low(self, alpha: float) -> float:
        below = self.denominator.high(alpha / 2)
        return max(self.numerator.low(alpha / 2), 0.0) / below if below > 0 else math.inf

    def high(self, alpha: float) -> float:
        below = self.denominator.low(alpha / 2)
        return self.numerator.high(alpha / 2) / below if below > 0 else math.inf

    def p_above(self, null: float) -> float:
        return _smallest_level(lambda alpha: self.low(alpha) > null)

    def p_below(self, null: float) -> float:
        return _smallest_level(lambda alpha: self.high(alpha) < null)


def quotient(numerator: Interval, denominator: Interval) -> Interval:
    """The interval of a quotient of two numbers that cannot be negative, whatever their dependence.

    Raises
    ------
    ValueError
        If the denominator's estimate is not positive.
    """
    if denominator.estimate <= 0:
        raise ValueError(
            f"a ratio to {denominator.estimate:g}: the denominator must be positive; take a difference instead"
        )
    curve = _Quotient(numerator.curve, denominator.curve)
    return replace(
        numerator,
        estimate=numerator.estimate / denominator.estimate,
        low=curve.low(numerator.alpha_low),
        high=curve.high(numerator.alpha_high),
        n_units=min(numerator.n_units, denominator.n_units),
        method_name=f"quotient of {numerator.method_name}",
        note="; ".join(dict.fromkeys(filter(None, [numerator.note, denominator.note]))),
        curve=curve,
    )


def _smallest_level(excludes: Callable[[float], bool]) -> float:
    """Smallest level in (0, 1] at which an end excludes the null, by bisection of its logarithm; 1 where none does."""
    if not excludes(1.0):
        return 1.0
    not_yet, already = math.log(SMALLEST_LEVEL), 0.0
    for _ in range(BISECTIONS):
        middle = (not_yet + already) / 2
        if excludes(math.exp(middle)):
            already = middle
        else:
            not_yet = middle
    return math.exp(already)
