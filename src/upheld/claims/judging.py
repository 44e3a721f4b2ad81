"""A claim's verdict, recomputed from the ledger whenever it is asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from upheld.claims.claim import Claim
from upheld.claims.decisive import decisive
from upheld.claims.evidence import Evidence, evidence
from upheld.claims.ledger import Ledger
from upheld.claims.measurements import Missing
from upheld.claims.trial import Scale
from upheld.claims.verdict import Finding, Judgement, Outcome, TrialCounts, Verdict

MOST_FAILURES = 0.10


def judge(claim: Claim, scale: Scale, ledger: Ledger, found: Evidence | None = None) -> Verdict:
    """The verdict on what the ledger holds for the present sources; the ledger remembers it.

    Whoever judges several claims about one experiment reads its evidence once and hands it over as `found`.
    """
    found = found or evidence(claim.experiment, scale, ledger)
    costs = found.costs
    trials = _count(found.wanted, costs)
    failed = costs[costs["status"] == "failed"]["reason"]
    absent = costs[costs["status"] == "not run"]["reason"]

    judgement = _judgement(claim, scale, found, trials, list(absent))
    rule = repr(claim.rule)
    verdict = Verdict(
        claim=claim.id,
        scale=str(scale),
        outcome=judgement.outcome,
        findings=judgement.findings,
        trials=trials,
        reasons=dict(Counter(failed)),
        note=judgement.note,
        change=_what_would_change(judgement),
        rule=rule,
        fingerprint=found.sources,
        earlier=_earlier(ledger, claim, scale, rule),
    )
    if trials.done:
        ledger.remember_verdict(claim.id, scale, found.sources, rule, str(verdict.outcome))
    return verdict


def _count(wanted: int, costs: pd.DataFrame) -> TrialCounts:
    found = Counter(costs["status"])
    return TrialCounts(wanted, found["done"], found["failed"], found["not run"])


def _judgement(claim: Claim, scale: Scale, found: Evidence, trials: TrialCounts, absent: Sequence[str]) -> Judgement:
    if trials.wanted == 0:
        first = next((str(one) for one in Scale if claim.experiment.conditions.get(one)), "no")
        return Judgement(Outcome.NOT_RUN, note=f"measured from {first} scale on")
    if trials.not_run and trials.done == 0:
        return Judgement(Outcome.NOT_RUN, note=_most_common(absent))
    if found.frame.empty:
        why = "every trial failed" if trials.failed else "not measured yet"
        return Judgement(Outcome.INCONCLUSIVE, note=why)
    try:
        judgement = claim.rule.judge(found.measurements)
    except Missing as error:
        return Judgement(Outcome.INCONCLUSIVE, note=str(error))
    return _tempered(judgement, scale, trials)


def _tempered(judgement: Judgement, scale: Scale, trials: TrialCounts) -> Judgement:
    """A verdict needs more than a smoke run, and nearly all of its trials."""
    if judgement.outcome is Outcome.REPORTED:
        return judgement
    lost = trials.wanted - trials.done
    why = ""
    if scale is Scale.SMOKE:
        why = "a smoke run shows that the experiment works, it decides nothing"
    elif lost > MOST_FAILURES * trials.wanted:
        why = f"{lost} of {trials.wanted} trials failed or are missing, more than {MOST_FAILURES:.0%}"
    if not why:
        return judgement
    return Judgement(Outcome.INCONCLUSIVE, judgement.findings, "; ".join(filter(None, [why, judgement.note])))


def _most_common(reasons: Sequence[str]) -> str:
    return Counter(reasons).most_common(1)[0][0] if reasons else ""


def _earlier(ledger: Ledger, claim: Claim, scale: Scale, rule: str) -> str:
    """What an earlier rule said, when the rule was changed after there were results."""
    others = [row for row in ledger.verdicts(claim.id, scale) if row["rule"] != rule]
    if not others:
        return ""
    last = others[-1]
    return (
        f"the rule was changed: until {last['judged'][:10]} it was {last['rule']}, with the verdict {last['verdict']}"
    )


def _what_would_change(judgement: Judgement) -> str:
    if judgement.outcome is Outcome.INCONCLUSIVE:
        return _to_decide([finding for finding in judgement.findings if finding.outcome is Outcome.INCONCLUSIVE])
    finding = decisive(judgement)
    if finding is None or judgement.outcome not in (Outcome.UPHELD, Outcome.NOT_UPHELD):
        return ""
    state = "upheld" if judgement.outcome is Outcome.UPHELD else "refuted"
    against = sum(one.outcome is Outcome.NOT_UPHELD for one in judgement.findings) if state == "refuted" else 1
    more = f" (and {against - 1} more)" if against > 1 else ""
    what = finding.label if finding.label.startswith("worst") else f"the interval of {finding.label}"
    return f"It would no longer be {state} if {what}{more} reached {_border(finding)}."


def _to_decide(undecided: Sequence[Finding]) -> str:
    needed = [(finding.units_to_decide(), finding) for finding in undecided]
    known = [(units, finding) for units, finding in needed if units is not None]
    if not known:
        return "More trials; what was measured does not say how many."
    units, finding = max(known, key=lambda one: one[0])
    return f"About {units:,} units instead of {finding.units:,} would decide {finding.label}, if it stays at {finding.estimate:.3g}."


def _border(finding: Finding) -> str:
    finite = [bound for bound in finding.region if math.isfinite(bound)]
    nearest = min(finite, key=lambda bound: abs(finding.estimate - bound), default=math.nan)
    return f"{nearest:g}"
