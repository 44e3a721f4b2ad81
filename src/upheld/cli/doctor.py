"""``upheld doctor``: what is installed, what this machine has, where things are kept, and what is broken."""

from __future__ import annotations

from typing import Any

import typer

from upheld.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption
from upheld.cli.output import print_json, results


def doctor(ledger: LedgerOption = DEFAULT_LEDGER, json: JsonOption = False) -> None:
    """Look over the installation and the machine. Exit code 1 if something is broken; what is optional may be missing."""
    from upheld.cli.checkup import checkup

    document = checkup(ledger)
    if json:
        print_json(document)
    else:
        _print(document)
    if document["problems"]:
        raise typer.Exit(1)


def _print(document: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, words in _lines(document):
        table.add_row(name, words)
    console = results()
    console.print(table, markup=False)
    for problem in document["problems"]:
        console.print(f"broken: {problem}", markup=False, soft_wrap=True)
    if not document["problems"]:
        console.print("nothing is broken", markup=False)


def _lines(document: dict[str, Any]) -> list[tuple[str, str]]:
    versions, cores, memory = document["versions"], document["cores"], document["memory"]
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in versions["packages"].items())
    lines = [("upheld", f"{versions['upheld']}, Python {versions['python']}"), ("packages", packages)]
    lines += [(f"method {one['name']}", _ready(one)) for one in document["methods"]]
    lines += [(f"extra {one['name']}", _ready(one)) for one in document["extras"]]
    lines += [(f"model {one['package']}", _model(one)) for one in document["models"]]
    lines += [
        ("cores", f"{cores['usable']} of {cores['machine']}; upheld check runs {cores['trials_at_a_time']} trials at a time"),
        ("memory", f"{_size(memory['bytes'])}; {_size(memory['bytes_a_trial'])} a trial"),
        ("GPU", _gpu(document["gpu"])),
        ("sandbox", _sandbox(document["sandbox"])),
    ]  # fmt: skip
    for name in ("ledger", "cache"):
        kept = document[name]
        lines.append((name, f"{kept['path']}, {_size(kept['bytes']) if kept['exists'] else 'none yet'}"))
    return lines


def _ready(one: dict[str, Any]) -> str:
    return "ready" if one["ready"] else f"lacks {', '.join(one['missing'])}: {one['install']}"


def _model(one: dict[str, Any]) -> str:
    users = f"for {', '.join(one['used_by'])}"
    return f"{_size(one['bytes'])}, {users}" if one["present"] else f"not installed, {users}: {one['install']}"


def _gpu(gpu: dict[str, Any]) -> str:
    devices = ", ".join(gpu["devices"]) or "none"
    if gpu["usable"] or not gpu["devices"]:
        return devices
    torch = f"torch {gpu['torch']} is built without CUDA" if gpu["torch"] else "torch is not installed"
    return f"{devices}, not used: {torch}"


def _sandbox(sandbox: dict[str, Any]) -> str:
    inforce = "; ".join(f"{what}: {', '.join(how) or 'NOTHING'}" for what, how in sandbox["protections"].items())
    return inforce if sandbox["strong"] else f"{inforce}. Programs written by a model are refused here"


def _size(n: int) -> str:
    value, unit = float(n), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
