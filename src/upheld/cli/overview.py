"""``upheld``: the methods, what each is for, whether what it needs is installed."""

from __future__ import annotations

from typing import Annotated

import typer

from upheld import __version__
from upheld.catalog import Method, methods
from upheld.cli.options import JsonOption
from upheld.cli.output import print_json, results


def overview(
    context: typer.Context,
    json: JsonOption = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """New machine-learning methods as software you can use, raced and put to the test."""
    if context.invoked_subcommand is not None:
        return
    if version:
        results().print(f"upheld {__version__}")
    elif json:
        print_json(
            {"schema": "upheld.methods/1", "version": __version__, "methods": [_entry(method) for method in methods()]}
        )
    else:
        _table()


def _entry(method: Method) -> dict[str, object]:
    missing = method.missing()
    return {
        "name": method.name,
        "title": method.title,
        "field": method.field,
        "summary": method.summary,
        "paper": method.paper,
        "installed": not missing,
        "missing": missing,
        "install": method.install if missing else None,
    }


def _table() -> None:
    from rich.markup import escape
    from rich.table import Table

    console = results()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("method", "field", "what you get", "ready"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "method")
    for method in methods():
        missing = method.missing()
        ready = "yes" if not missing else f"needs {', '.join(missing)}: {method.install}"
        table.add_row(f"[bold]{method.name}[/]", escape(method.field), escape(method.summary), escape(ready))
    console.print(table)
    console.print("\n[dim]upheld show METHOD · upheld run METHOD your-data · upheld check METHOD · upheld --help[/]")
