from __future__ import annotations

import math

import pytest

from upheld.claims import Finding, Outcome, Verdict
from upheld.claims.decisive import by_weight, clearance, decisive
from upheld.claims.verdict import TrialCounts

ABOVE_0 = (0.0, math.inf)
U, N, I, R = Outcome.UPHELD, Outcome.NOT_UPHELD, Outcome.INCONCLUSIVE, Outcome.REPORTED


def finding(label: str, low: float, high: float, outcome: Outcome) -> Finding:
    return Finding(label, (low + high) / 2, low, high, ABOVE_0, outcome, 10)


def verdict(outcome: Outcome, *findings: Finding) -> Verdict:
    return Verdict("m.c", "quick", outcome, findings, TrialCounts(1, 1, 0, 0), {}, "", "", "", "")


CLOSE, FAR = finding("close", 1, 3, U), finding("far", 8, 10, U)
AGAINST, CLEARLY = finding("against", -3, -1, N), finding("clearly", -9, -8, N)
OPEN, WIDE = finding("open", -1, 3, I), finding("wide", -9, 10, I)


@pytest.mark.parametrize(
    ("outcome", "findings", "label"),
    [
        (U, (FAR, CLOSE), "close"),  # all must hold: the weakest
        (U, (AGAINST, CLOSE, FAR), "far"),  # one sufficed: the strongest
        (N, (FAR, AGAINST, CLEARLY), "clearly"),
        (I, (FAR, OPEN, WIDE), "wide"),  # needs the most units
        (I, (FAR, CLOSE), "close"),  # inconclusive for want of trials
        (R, (finding("figure", 1, 2, R),), "figure"),
    ],
)
def test_what_a_verdict_hangs_on(outcome: Outcome, findings: tuple[Finding, ...], label: str) -> None:
    first = decisive(verdict(outcome, *findings))
    assert first is not None
    assert first.label == label


def test_figures_without_a_verdict_have_no_decisive_one() -> None:
    two = verdict(R, finding("b", 1, 2, R), finding("a", -1, 0, R))
    assert decisive(two) is None
    assert [one.label for one in by_weight(two)] == ["b", "a"]
    assert decisive(verdict(I)) is None


def test_what_speaks_against_comes_first() -> None:
    assert [one.label for one in by_weight(verdict(N, FAR, CLOSE, AGAINST, CLEARLY))] == [
        "clearly",
        "against",
        "close",
        "far",
    ]


def test_clearance() -> None:
    assert clearance(CLOSE) == 1
    assert clearance(AGAINST) == -3
    assert clearance(finding("unknown", -math.inf, math.inf, I)) == 0
    assert clearance(finding("point", 2, 2, U)) == math.inf
