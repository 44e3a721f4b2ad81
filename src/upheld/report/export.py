"""The verdicts as data, and as the table that a README shows.

The document holds what depends on the measurements and the rules alone, not on where and when they were made, so that the
same measurements give the same file. Numbers are rounded to four significant digits, and what is below 1e-12 is 0: neither moves
with the last bits of a sum. JSON has no infinity: it is written as the string ``"inf"`` or ``"-inf"``, and a
number that is not one as null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from upheld.claims import Claim, Finding, Outcome, Verdict
from upheld.claims.decisive import decisive
from upheld.report.digits import bracketed
from upheld.report.marks import MARKS
from upheld.report.results import MethodResults
from upheld.report.tables import judged, tally

SCHEMA = "upheld.verdicts/1"
DIGITS, NOISE = 4, 1e-12


def verdicts_json(results: Sequence[MethodResults]) -> dict[str, Any]:
    """All verdicts with their evidence, ready for strict JSON, keys always in the same order.

    ::

        {"schema": "upheld.verdicts/1",
         "methods": [{"name", "title", "field", "summary", "paper", "scale", "fingerprint",
                      "tally": {"authors": {outcome: n}, "ours": {outcome: n}},
                      "claims": [{"id", "statement", "reported", "ours", "timed", "rule": {"words", "code"}, "outcome", "note",
                                  "claim_note", "change", "earlier", "trials": {"wanted", "done", "failed", "not_run", "missing"},
                                  "reasons", "decisive": index of the finding that the verdict hangs on, or null,
                                  "findings": [{"label", "estimate", "low", "high", "region", "units", "outcome", "note"}]}]}]}
    """
    return {"schema": SCHEMA, "methods": [_method(one) for one in results]}


def json_text(doc: Mapping[str, Any]) -> str:
    """The document's text: strict JSON, one value a line, so that a change is a small difference."""
    return json.dumps(doc, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _method(one: MethodResults) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "field": one.field,
        "summary": one.summary,
        "paper": one.paper,
        "scale": str(one.scale),
        "fingerprint": one.fingerprint,
        "tally": {
            whose: {str(outcome): n for outcome, n in tally(judged(one, ours=ours)).counts.items()}
            for whose, ours in (("authors", False), ("ours", True))
        },
        "claims": [_claim(claim, verdict) for claim, verdict in zip(one.claims, one.verdicts, strict=True)],
    }


def _claim(claim: Claim, verdict: Verdict) -> dict[str, Any]:
    first = decisive(verdict)
    counts = verdict.trials
    return {
        "id": claim.id,
        "statement": claim.statement,
        "reported": claim.reported,
        "ours": claim.ours,
        "timed": claim.timed,
        "rule": {"words": claim.rule.words(), "code": verdict.rule},
        "outcome": str(verdict.outcome),
        "note": verdict.note,
        "claim_note": claim.note,
        "change": verdict.change,
        "earlier": verdict.earlier,
        "trials": {
            "wanted": counts.wanted,
            "done": counts.done,
            "failed": counts.failed,
            "not_run": counts.not_run,
            "missing": counts.missing,
        },
        "reasons": dict(sorted(verdict.reasons.items())),
        "decisive": None
        if first is None
        else next(i for i, finding in enumerate(verdict.findings) if finding is first),
        "findings": [_finding(finding) for finding in verdict.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "label": finding.label,
        "estimate": _rounded(finding.estimate),
        "low": _rounded(finding.low),
        "high": _rounded(finding.high),
        "region": [_rounded(bound, digits=12) for bound in finding.region],
        "units": finding.units,
        "outcome": str(finding.outcome),
        "note": finding.note,
    }


def _rounded(value: float, digits: int = DIGITS) -> float | str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return 0.0 if abs(value) < NOISE else float(f"{value:.{digits - 1}e}")


# -- what the repository shows of the committed verdicts, from the document alone


def markdown_table(doc: Mapping[str, Any]) -> str:
    """How many claims of each method hold.

    Raises
    ------
    ValueError
        If the document is of another schema.
    """
    _of_this_schema(doc)
    outcomes = [str(outcome) for outcome in Outcome]
    lines = [_row(["method", "", *outcomes]), _row(["---", "---", *["---:"] * len(outcomes)])]
    for method in doc["methods"]:
        for whose, words in (("authors", "authors’ claims"), ("ours", "our own checks")):
            counts = method["tally"][whose]
            if sum(counts.values()):
                name = f"**{_plain(method['name'])}**: {_plain(method['title'])}" if whose == "authors" else ""
                lines.append(_row([name, words, *[str(counts[outcome] or "") for outcome in outcomes]]))
    return "\n".join(lines) + "\n"


def markdown_claims(doc: Mapping[str, Any]) -> str:
    """A heading a method, and a line a claim: its verdict and the figures that decided it.

    Raises
    ------
    ValueError
        If the document is of another schema.
    """
    _of_this_schema(doc)
    lines: list[str] = []
    for method in doc["methods"]:
        lines += [
            f"## {_plain(method['name'])}",
            "",
            f"{_plain(method['title'])}, at {_plain(method['scale'])} scale",
            "",
        ]
        lines += [*(_line(claim) for claim in method["claims"]), ""]
    return "\n".join(lines)


def _of_this_schema(doc: Mapping[str, Any]) -> None:
    if doc.get("schema") != SCHEMA:
        raise ValueError(
            f"these verdicts have the schema {doc.get('schema')!r}, not {SCHEMA!r}; write them again with: upheld report"
        )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(claim: Mapping[str, Any]) -> str:
    outcome = Outcome(claim["outcome"])
    whose = " (our own check)" if claim["ours"] else ""
    line = f"- {MARKS[outcome].glyph} **{outcome}**{whose}: {_plain(claim['statement'])}"
    if claim["decisive"] is not None:
        finding = claim["findings"][claim["decisive"]]
        estimate, low, high = (_number(finding[key]) for key in ("estimate", "low", "high"))
        figures = bracketed(estimate, low, high, [_number(bound) for bound in finding["region"]])
        line += (
            f" — {_plain(finding['label'])}: {figures} from {finding['units']:,} unit{'s' * (finding['units'] != 1)}"
        )
    elif claim["findings"]:
        line += f" — {len(claim['findings'])} figures"
    if claim["note"] and outcome in (Outcome.INCONCLUSIVE, Outcome.NOT_RUN):
        line += f" — {_plain(claim['note'])}"
    return line


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _plain(text: str) -> str:
    """Text that Markdown and HTML leave alone, on one line."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{character}" if character in "\\`*_[]|~#" else character for character in text)
