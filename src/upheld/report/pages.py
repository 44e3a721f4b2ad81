"""The report as pages: an index of methods and verdicts, and one page a method, each a single file that opens from disk."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from upheld.claims import Claim, Outcome, Rule
from upheld.claims.decisive import by_weight, decisive
from upheld.report import digits, forest
from upheld.report.export import json_text, verdicts_json
from upheld.report.marks import MARKS
from upheld.report.results import MethodResults
from upheld.report.tables import cost, experiments, judged, provenance, races, tally
from upheld.report.writing import write_files

MOST_ROWS, ROWS_SHOWN = 16, 8  # a longer forest plot is folded to this many rows
UNITS = {
    "seed": ("seed", "seeds"),
    "item": ("item", "items"),
    "seed/item": ("item of all seeds", "items of all seeds"),
    "seed*item": ("seed, crossed with items", "seeds, crossed with items"),
}


def write_report(results: Sequence[MethodResults], folder: Path) -> Path:
    """Write ``index.html``, a page a method and ``verdicts.json``; returns the index.

    Raises
    ------
    ValueError
        If there is no method, the folder cannot be written, or a method's name cannot name a file.
    """
    if not results:
        raise ValueError("there is no method to report on; name at least one")
    texts = pages(results) | {"verdicts.json": json_text(verdicts_json(results))}
    write_files(folder, texts)
    return folder / "index.html"


def pages(results: Sequence[MethodResults]) -> dict[str, str]:
    """Every page's text by file name, ``index.html`` last, so that it never points at a page that is not there."""
    texts = {page_name(one): method_page(one) for one in results}
    if len(texts) < len(results):
        raise ValueError(f"two methods of the same name in one report: {', '.join(one.name for one in results)}")
    return texts | {"index.html": index_page(results)}


def index_page(results: Sequence[MethodResults]) -> str:
    """The matrix of methods and verdicts."""
    return (
        _environment()
        .get_template("index.html")
        .render(
            results=results,
            authors=tally(pair for one in results for pair in judged(one, ours=False)),
            scales=list(dict.fromkeys(str(one.scale) for one in results)),
            changed=sum(bool(verdict.earlier) for one in results for verdict in one.verdicts),
            where=provenance(results),
        )
    )


def method_page(one: MethodResults) -> str:
    """Claims with rule, evidence and pictures; the race; the costs."""
    drawings, undrawn = _drawings(one)
    tables = [(experiment, races(one, experiment)) for experiment in experiments(one)]
    return (
        _environment()
        .get_template("method.html")
        .render(
            one=one,
            drawings=drawings,
            undrawn=undrawn,
            raced=[(experiment, found) for experiment, found in tables if found],
            costs=[cost(one, experiment) for experiment in experiments(one)],
            where=provenance([one]),
        )
    )


def page_name(one: MethodResults) -> str:
    """File name of a method's page.

    Raises
    ------
    ValueError
        If the name holds anything but letters, digits, dots, dashes and underscores, or is ``index``.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", one.name) or one.name == "index":
        raise ValueError(
            f"the method name {one.name!r} cannot name a page; use letters, digits and underscores, and not 'index'"
        )
    return f"{one.name}.html"


def anchor(claim: Claim) -> str:
    """Where a claim is on its page."""
    return "claim-" + re.sub(r"[^A-Za-z0-9_-]+", "-", claim.id)


def _drawings(one: MethodResults) -> tuple[dict[str, Markup], dict[str, str]]:
    """Each claim's own picture where there is one, and why it could not be drawn where it could not.

    A picture may need measurements that an interrupted run has not made yet; the report is then written without it, and says so.
    """
    drawn: dict[str, Markup] = {}
    failed: dict[str, str] = {}
    for claim in one.claims:
        frame = one.frames[claim.experiment.name]
        if claim.id not in one.pictures or frame.empty:
            continue
        try:
            drawn[claim.id] = Markup(forest.svg(one.pictures[claim.id](frame), anchor(claim)))
        except Exception as error:  # whatever a method's drawing raises
            failed[claim.id] = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"{claim.id}: its picture could not be drawn: {failed[claim.id]}", RuntimeWarning, stacklevel=2
            )
    return drawn, failed


def rule_sentence(rule: Rule) -> str:
    words = rule.words()
    return sentence(words if words.startswith("no rule") else f"upheld if {words}")


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def counted(n: int, units: str) -> str:
    """
    >>> counted(1, "seed"), counted(1200, "seed/item"), counted(10, "file")
    ('1 seed', '1,200 items of all seeds', '10 values of file')
    """
    one, many = UNITS.get(units, (f"value of {units}", f"values of {units}"))
    return f"{n:,} {one if n == 1 else many}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("upheld.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        style=Markup(environment.get_template("style.css").render()),
        marks=MARKS,
        Outcome=Outcome,
        most_rows=MOST_ROWS,
        rows_shown=ROWS_SHOWN,
        anchor=anchor,
        by_weight=by_weight,
        counted=counted,
        decisive=decisive,
        duration=digits.duration,
        judged=judged,
        memory=digits.memory,
        outcomes=forest.outcomes,
        page_name=page_name,
        panels=forest.panels,
        rule_sentence=rule_sentence,
        sentence=sentence,
        shortened=digits.shortened,
        tally=tally,
        with_interval=digits.with_interval,
    )
    return environment
