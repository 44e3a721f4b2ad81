"""A claim: a falsifiable sentence, the experiment that measures it, and the rule that decides, fixed before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass

from upheld.claims.experiment import Experiment
from upheld.claims.rules import Rule


@dataclass(frozen=True)
class Claim:
    """One claim.

    Parameters
    ----------
    id : ``"hubs.beats-rivals"``: the method's package, then a name that is never reused
    statement : falsifiable, in our words
    reported : the authors' figure, or None
    experiment : what is measured
    rule : from measurements to verdict
    ours : a check that the authors do not claim: a control, a stricter protocol, a property we added
    note : what a reader has to know to read the verdict rightly
    timed : the rule reads a clock, whose noise belongs to the machine: a repetition that ends in *inconclusive* where it was
        decided, or the other way round, is no contradiction
    """

    id: str
    statement: str
    reported: str | None
    experiment: Experiment
    rule: Rule
    ours: bool = False
    note: str = ""
    timed: bool = False

    @property
    def method(self) -> str:
        return self.id.split(".")[0]
