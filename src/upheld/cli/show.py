"""``upheld show hubs``: what a method does, its paper, its claims and their last verdicts."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upheld.catalog import Method, find
from upheld.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption, ScaleOption
from upheld.cli.output import print_json, results

if TYPE_CHECKING:
    from upheld.claims import Claim, Verdict


def show(
    method: Annotated[str, typer.Argument(help="A method, as listed by upheld.")],
    scale: ScaleOption = "quick",
    ledger: LedgerOption = DEFAULT_LEDGER,
    json: JsonOption = False,
) -> None:
    """What a method does, the paper, the claims and their last verdicts."""
    from upheld.cli.results import parse_scale

    found = find(method)
    claims = found.claims()
    verdicts = _verdicts(claims, parse_scale(scale), ledger)
    if json:
        print_json(_document(found, claims, verdicts, scale))
    else:
        _print(found, claims, verdicts, scale)


def _verdicts(claims: Any, scale: Any, ledger: Path) -> dict[str, Verdict]:
    """Verdicts by claim id; none when nothing was measured here yet."""
    from upheld.claims import Ledger, evidence, judge

    if not ledger.exists():
        return {}
    with Ledger(ledger, for_reading=True) as book:
        # Several claims ask about one experiment, which may have a million measurements: it is read once.
        experiments = {claim.experiment.name: claim.experiment for claim in claims}
        found = {name: evidence(experiment, scale, book) for name, experiment in experiments.items()}
        return {claim.id: judge(claim, scale, book, found[claim.experiment.name]) for claim in claims}


def _document(method: Method, claims: Any, verdicts: dict[str, Verdict], scale: str) -> dict[str, object]:
    return {
        "schema": "upheld.method/1",
        "name": method.name,
        "title": method.title,
        "summary": method.summary,
        "paper": method.paper,
        "scale": scale,
        "claims": [
            {
                "id": claim.id,
                "statement": claim.statement,
                "reported": claim.reported,
                "ours": claim.ours,
                "rule": claim.rule.words(),
                "note": claim.note,
                "verdict": str(verdicts[claim.id].outcome) if claim.id in verdicts else None,
            }
            for claim in claims
        ],
    }


def _print(method: Method, claims: Any, verdicts: dict[str, Verdict], scale: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    console = results()
    console.print(f"[bold]{escape(method.title)}[/]  ({method.package or f'upheld.{method.name}'})")
    console.print(f"[dim]{escape(method.paper)}[/]\n")
    console.print(escape(inspect.getdoc(method.module()) or method.summary), "\n")
    table = Table(
        box=None, padding=(0, 2, 0, 0), header_style="bold", title=f"claims, {scale} scale", title_justify="left"
    )
    table.add_column("claim", no_wrap=True)
    table.add_column("what it says, and when it is upheld", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        verdict = verdicts.get(claim.id)
        table.add_row(claim.id, _sentence(claim), str(verdict.outcome) if verdict else "not measured here")
    console.print(table)
    if not verdicts:
        console.print(f"\n[dim]upheld check {method.name} measures them[/]")


def _sentence(claim: Claim) -> str:
    from rich.markup import escape

    from upheld.claims import Reported

    ours, words = " (our own check)" if claim.ours else "", claim.rule.words()
    when = words if isinstance(claim.rule, Reported) else f"upheld if {words}"
    return f"{escape(claim.statement)}{ours}\n[dim]{escape(when)}[/]"
