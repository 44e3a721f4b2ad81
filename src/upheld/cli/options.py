"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_LEDGER = Path(".upheld/ledger.sqlite")

LedgerOption = Annotated[
    Path, typer.Option("--ledger", envvar="UPHELD_LEDGER", help="The file that keeps the results.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ScaleOption = Annotated[str, typer.Option("--scale", help="How much is measured: smoke, quick, standard or full.")]
MethodsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[METHOD]...", help="Methods; all when none is named.")
]
