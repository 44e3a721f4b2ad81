"""From names on the command line to methods, ledgers and results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from upheld.catalog import Method, find, methods
from upheld.claims import Ledger, Scale
from upheld.cli.output import progress
from upheld.report.results import MethodResults, gather


def parse_scale(name: str) -> Scale:
    """The scale of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        return Scale(name)
    except ValueError:
        raise ValueError(f"no scale {name!r}; there are {', '.join(Scale)}") from None


def chosen(names: Sequence[str] | None) -> list[Method]:
    """The methods named, or all; those that lack what they need are left out, with the line that installs it."""
    ready = []
    for method in [find(name) for name in dict.fromkeys(names)] if names else methods():
        missing = method.missing()
        if missing:
            progress().print(
                f"{method.name} is skipped, it needs {', '.join(missing)}: {method.install}",
                markup=False,
                soft_wrap=True,
            )
        else:
            ready.append(method)
    return ready


def results_of(chosen: Sequence[Method], scale: Scale, ledger: Ledger) -> list[MethodResults]:
    """What the ledger holds of each method, judged."""
    return [
        gather(one.name, one.title, one.field, one.summary, one.paper, one.claims(), one.pictures(), scale, ledger)
        for one in chosen
    ]


def measured(names: Sequence[str] | None, scale: str, ledger: Path) -> list[MethodResults]:
    """The results of the methods named, or all, from a ledger that is there.

    Raises
    ------
    ValueError
        If there is no ledger yet, no such method or no such scale.
    """
    if not ledger.exists():
        raise ValueError(f"there is no ledger {ledger} yet; measure first with upheld check, or name one with --ledger")
    with Ledger(ledger, for_reading=True) as book:
        return results_of(chosen(names), parse_scale(scale), book)
