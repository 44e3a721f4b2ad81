"""What a rule found, and what it means for the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    UPHELD = "upheld"
    NOT_UPHELD = "not upheld"
    INCONCLUSIVE = "inconclusive"
    REPORTED = "reported"  # figures without a verdict
    NOT_RUN = "not run"  # something that only another machine or the user has is missing


@dataclass(frozen=True)
class Finding:
    """One estimate against the values that the claim allows.

    Parameters
    ----------
    label : what was estimated
    estimate, low, high : with the interval the verdict was read from
    region : (lowest, highest) value on the claim's side
    outcome : where the interval lies
    units : number of independent units
    note : what a reader has to know to believe the interval
    quantity : what was estimated, whoever's it is and under whichever conditions; estimates of one quantity share an axis
    conditions : those at the end of the label, "n = 30"
    """

    label: str
    estimate: float
    low: float
    high: float
    region: tuple[float, float]
    outcome: Outcome
    units: int
    note: str = ""
    quantity: str = ""
    conditions: tuple[str, ...] = ()

    def units_to_decide(self) -> int | None:
        """Units that would bring the interval to one side, if the estimate and the spread stay as they are."""
        bounds = [bound for bound in self.region if math.isfinite(bound)]
        if self.outcome is not Outcome.INCONCLUSIVE or not bounds or not math.isfinite(self.high - self.low):
            return None
        distance = min(abs(self.estimate - bound) for bound in bounds)
        inside = self.region[0] <= self.estimate <= self.region[1]
        reach = (
            self.estimate - self.low
            if inside == (self.estimate - self.region[0] == distance)
            else self.high - self.estimate
        )
        if distance <= 0 or reach <= distance:
            return None
        return math.ceil(self.units * (reach / distance) ** 2)


@dataclass(frozen=True)
class Judgement:
    """A rule's outcome with its findings."""

    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class TrialCounts:
    """How many trials the claim's experiment wanted, and what became of them."""

    wanted: int
    done: int
    failed: int
    not_run: int

    @property
    def missing(self) -> int:
        return self.wanted - self.done - self.failed - self.not_run


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict at one scale, with everything needed to check it.

    `reasons` counts what failed trials died of; `change` says in words what would change the verdict; `earlier` names the
    verdict of an earlier rule on the same claim, when the rule was changed after results existed.
    """

    claim: str
    scale: str
    outcome: Outcome
    findings: tuple[Finding, ...]
    trials: TrialCounts
    reasons: dict[str, int]
    note: str
    change: str
    rule: str
    fingerprint: str
    earlier: str = ""
