from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from report_toys import HOSTILE

from upheld.claims import Finding, Outcome
from upheld.report.export import SCHEMA, json_text, markdown_claims, markdown_table, verdicts_json
from upheld.report.results import MethodResults


@pytest.fixture(scope="module")
def doc(results: Sequence[MethodResults]) -> dict[str, Any]:
    return verdicts_json(results)


def claim_of(doc: dict[str, Any], name: str) -> dict[str, Any]:
    return next(claim for method in doc["methods"] for claim in method["claims"] if claim["id"] == name)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_the_document_is_strict_json_and_survives_the_way(doc: dict[str, Any]) -> None:
    text = json_text(doc)
    assert json.loads(text, parse_constant=refuse) == doc
    assert doc["schema"] == SCHEMA == "upheld.verdicts/1"


def test_every_claim_with_its_evidence(doc: dict[str, Any], results: Sequence[MethodResults]) -> None:
    assert [method["name"] for method in doc["methods"]] == ["toymethod", "plainmethod"]
    assert doc["methods"][0]["fingerprint"] == results[0].fingerprint
    assert [claim["id"] for claim in doc["methods"][0]["claims"]] == [claim.id for claim in results[0].claims]
    beats = claim_of(doc, "toymethod.beats-rivals")
    assert len(beats["findings"]) == 60
    assert beats["trials"] == {"wanted": 120, "done": 118, "failed": 2, "not_run": 0, "missing": 0}
    assert beats["reasons"] == {"timed out after 10 s": 2}
    assert beats["rule"]["code"].startswith("Superior(metric='error'")
    assert beats["findings"][beats["decisive"]]["outcome"] == beats["outcome"]
    assert claim_of(doc, "toymethod.private")["decisive"] is None
    assert "upheld" in claim_of(doc, "toymethod.median")["earlier"]


def test_keys_stand_in_the_same_order_for_every_claim(doc: dict[str, Any]) -> None:
    claims = [claim for method in doc["methods"] for claim in method["claims"]]
    assert len({tuple(claim) for claim in claims}) == 1
    assert len({tuple(finding) for claim in claims for finding in claim["findings"]}) == 1


def test_nothing_of_where_and_when(doc: dict[str, Any]) -> None:
    assert "workbench" not in json_text(doc)


def with_finding(results: Sequence[MethodResults], **changes: object) -> list[MethodResults]:
    """The plain method alone, its first claim with a single finding."""
    one = results[1]
    finding = Finding(
        **{
            "label": "f",
            "estimate": 0.1,
            "low": 0.0,
            "high": 0.2,
            "region": (0.0, math.inf),
            "outcome": Outcome.UPHELD,
            "units": 9,
        }
        | changes
    )  # type: ignore[arg-type]
    verdict = dataclasses.replace(one.verdicts[0], findings=(finding,))
    return [dataclasses.replace(one, verdicts=[verdict, *one.verdicts[1:]])]


def first_finding(results: Sequence[MethodResults]) -> dict[str, Any]:
    finding: dict[str, Any] = verdicts_json(results)["methods"][0]["claims"][0]["findings"][0]
    return finding


def test_infinities_are_strings_and_what_is_no_number_is_null(results: Sequence[MethodResults]) -> None:
    found = first_finding(with_finding(results, estimate=math.nan, low=-math.inf, high=math.inf))
    assert (found["estimate"], found["low"], found["high"], found["region"]) == (None, "-inf", "inf", [0.0, "inf"])


@pytest.mark.parametrize("value", [0.123456789, 123456.789, -3.00004, 2 / 3, 1e-7 / 3])
def test_the_last_bits_do_not_show(results: Sequence[MethodResults], value: float) -> None:
    texts = {json_text(verdicts_json(with_finding(results, estimate=value * (1 + k * 1e-14)))) for k in (-3, 0, 3)}
    assert len(texts) == 1
    assert first_finding(with_finding(results, estimate=value))["estimate"] == pytest.approx(value, rel=5e-4)


@pytest.mark.parametrize("noise", [3e-17, -2.2e-16, -0.0])
def test_rounding_error_around_zero_is_zero(results: Sequence[MethodResults], noise: float) -> None:
    estimate = first_finding(with_finding(results, estimate=noise))["estimate"]
    assert str(estimate) == "0.0"


def test_the_border_keeps_its_digits(results: Sequence[MethodResults]) -> None:
    assert first_finding(with_finding(results, region=(0.0123456, math.inf)))["region"][0] == 0.0123456


# -- the README's table and the page of claims


@pytest.mark.parametrize("shown", [markdown_table, markdown_claims])
def test_it_is_made_of_the_document_alone(doc: dict[str, Any], shown: Callable[[Any], str]) -> None:
    assert shown(json.loads(json_text(doc))) == shown(doc)


def test_the_table_counts_the_authors_claims_and_ours_apart(doc: dict[str, Any]) -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown_table(doc).splitlines()
        if line.startswith("|")
    ]
    header, _, authors, ours, plain = rows
    assert header == ["method", "", "upheld", "not upheld", "inconclusive", "reported", "not run"]
    counts = doc["methods"][0]["tally"]
    for row, whose in ((authors, "authors"), (ours, "ours")):
        assert [int(cell or 0) for cell in row[2:]] == list(counts[whose].values())
    assert plain[0].startswith("**plainmethod**")


def test_one_line_a_claim_with_its_estimate(doc: dict[str, Any]) -> None:
    lines = [line for line in markdown_claims(doc).splitlines() if line.startswith("- ")]
    assert len(lines) == 16
    rate = next(line for line in lines if "square root" in line)
    assert rate.startswith("- ✓ **upheld**: ")
    assert rate.endswith("from 11 units")
    absent = next(line for line in lines if "clinic's own data" in line)
    assert "needs the clinic's table" in absent


def test_the_lines_say_what_the_verdicts_say(doc: dict[str, Any]) -> None:
    changed = copy.deepcopy(doc)
    claim_of(changed, "toymethod.rate")["outcome"] = "not upheld"
    assert "✗ **not upheld**: its error falls as the square root" in markdown_claims(changed)


def test_names_cannot_break_the_table(results: Sequence[MethodResults]) -> None:
    hostile = dataclasses.replace(results[1], title=f"a | b\n# c `d` [e](http://f) {HOSTILE}")
    first = markdown_table(verdicts_json([hostile])).splitlines()[2]
    assert "<script>" not in first
    assert "a \\| b \\# c \\`d\\` \\[e\\](http://f)" in first


@pytest.mark.parametrize("shown", [markdown_table, markdown_claims])
def test_another_schema_is_refused(shown: Callable[[Any], str]) -> None:
    with pytest.raises(ValueError, match=r"'upheld.verdicts/9', not 'upheld.verdicts/1'"):
        shown({"schema": "upheld.verdicts/9", "methods": []})
