"""``upheld data hubs --out khan.csv``: the embedded data, in the format of the user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from upheld.catalog import find
from upheld.cli.options import JsonOption
from upheld.cli.output import filled, print_json, results, written
from upheld.report.writing import expect_file, expect_folder


def data(
    method: Annotated[str, typer.Argument(help="A method, as listed by upheld.")],
    out: Annotated[
        Path, typer.Option("--out", help="The file to write; a new folder, if the method reads several files.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a method's embedded data, in the format of your own files."""
    command = find(method).module("command")
    a_folder = getattr(command, "WRITES_A_FOLDER", False)
    if a_folder:
        _free_folder(out, force)
    else:
        _free_file(out, force)
    with (filled if a_folder else written)(out) as unfinished:
        command.write_data(unfinished)
    example = command.EXAMPLE.format(file=out)
    if json:
        print_json({"schema": "upheld.data/1", "method": method, "path": str(out), "example": example})
    else:
        results().print(f"wrote {out}; try\n  {example}", markup=False, soft_wrap=True)


def _free_file(out: Path, force: bool) -> None:
    expect_file(out, "--out")
    if out.exists() and not force:
        raise ValueError(f"{out} is there already; name another file, or add --force to replace it")


def _free_folder(out: Path, force: bool) -> None:
    """A folder is never replaced: what else lies in it may be somebody's work."""
    if force:
        raise ValueError("--force replaces a file, and this method's data are a folder; name a new one with --out")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; this method's data are several files, so --out names a new folder")
    if out.is_dir() and any(out.iterdir()):
        raise ValueError(f"{out} is there already and not empty; --out names a new folder")
    if not out.parent.is_dir():
        raise ValueError(f"the folder {out.parent} does not exist; make it first, or name another with --out")
    expect_folder(out)
