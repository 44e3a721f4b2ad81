"""Which of a claim's findings a reader has to see first: the one that the verdict hangs on."""

from __future__ import annotations

import math

from upheld.claims.verdict import Finding, Judgement, Outcome, Verdict


def clearance(finding: Finding) -> float:
    """How far the interval lies inside its region, in half widths: negative when it crosses or lies outside, 0 when it says nothing."""
    low, high = finding.region
    half = (finding.high - finding.low) / 2
    if not math.isfinite(half):
        return 0.0
    room = min(finding.low - low, high - finding.high)
    return room / half if half > 0 else math.copysign(math.inf, room)


def decisive(verdict: Verdict | Judgement) -> Finding | None:
    """The finding that the verdict hangs on; None when there is no finding, or several and no verdict.

    Upheld: the weakest of those that hold, or where one sufficed (some findings do not hold) the strongest. Not upheld: the
    clearest refutation. Inconclusive: the one that is furthest from being decided.
    """
    if not verdict.findings:
        return None
    same = [finding for finding in verdict.findings if finding.outcome is verdict.outcome]
    if verdict.outcome is Outcome.REPORTED:
        return verdict.findings[0] if len(verdict.findings) == 1 else None
    if verdict.outcome is Outcome.NOT_UPHELD:
        return min(same or verdict.findings, key=clearance)
    if verdict.outcome is Outcome.UPHELD and same and len(same) < len(verdict.findings):
        return max(same, key=clearance)
    if verdict.outcome is Outcome.INCONCLUSIVE and same:
        return max(same, key=lambda finding: finding.units_to_decide() or math.inf)
    return min(verdict.findings, key=clearance)


def by_weight(verdict: Verdict) -> list[Finding]:
    """The decisive finding, then those that speak most against the claim first; without a verdict, the order of the rule."""
    if verdict.outcome is Outcome.REPORTED:
        return list(verdict.findings)
    first = decisive(verdict)
    others = [finding for finding in verdict.findings if finding is not first]
    return ([first] if first else []) + sorted(others, key=clearance)
