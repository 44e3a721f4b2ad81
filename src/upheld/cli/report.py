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
    from upheld.cli.results import measured
    from upheld.report.export import verdicts_json
    from upheld.report.pages import write_report

    outcome = measured(methods, scale, ledger)
    index = write_report(outcome, out)
    if json:
        print_json(verdicts_json(outcome))
    else:
        results().print(f"wrote {index}", markup=False, soft_wrap=True)
    if open_it:
        typer.launch(str(index))
