"""``upheld data hubs --out khan.csv``: the embedded data, in the format of the user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from upheld.catalog import find
from upheld.cli.output import results, written


def data(
    method: Annotated[str, typer.Argument(help="A method, as listed by upheld.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a method's embedded data, in the format of your own files."""
    command = find(method).module("command")
    if out.is_dir():
        raise ValueError(f"{out} is a folder; --out names the file to write")
    if out.exists() and not force:
        raise ValueError(f"{out} is there already; name another file, or add --force to replace it")
    if not out.parent.is_dir():
        raise ValueError(f"the folder {out.parent} does not exist; make it first, or name another")
    with written(out) as unfinished:
        command.write_data(unfinished)
    results().print(f"wrote {out}; try\n  {command.EXAMPLE.format(file=out)}", markup=False, soft_wrap=True)
