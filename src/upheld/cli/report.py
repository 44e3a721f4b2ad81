"""``upheld report``: the verdicts as pages that open from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from upheld.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption, MethodsArgument, ScaleOption
from upheld.cli.output import print_json, results


def report(
    methods: MethodsArgument = None,
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")] = Path("report"),
    scale: ScaleOption = "quick",
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    ledger: LedgerOption = DEFAULT_LEDGER,
    json: JsonOption = False,
) -> None:
    """Write index.html, a page a method, and verdicts.json. Nothing is measured."""
    from upheld.claims import Ledger
    from upheld.cli.results import chosen, parse_scale, results_of
    from upheld.report.export import verdicts_json
    from upheld.report.pages import write_report

    if not ledger.exists():
        raise ValueError(f"there is no ledger {ledger} yet; measure first with upheld check, or name one with --ledger")
    with Ledger(ledger, for_reading=True) as book:
        outcome = results_of(chosen(methods), parse_scale(scale), book)
    index = write_report(outcome, out)
    if json:
        print_json(verdicts_json(outcome))
    else:
        results().print(f"wrote {index}", markup=False, soft_wrap=True)
    if open_it:
        typer.launch(str(index))
