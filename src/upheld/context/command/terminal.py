"""A run on the terminal: the iterations, what was accepted, and how it does on the test file."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show(found: dict[str, Any]) -> None:
    """The iterations, what was accepted, and how it does on the test file."""
    console = Console(file=sys.stdout)
    console.print(found["notice"], markup=False)
    if "prequential" in found:
        console.print(f"prequential {found['metric']} over {found['items']} items: {found['prequential']:.3f}")
    else:
        learned(found, console)
    for row in found["problems"]:
        console.print(f"{row['n']} questions: {row['problem']}", markup=False)
    spent = [f"{who} read {row['read']} tokens, wrote {row['written']}" for who, row in found["tokens"].items()]
    if spent:
        console.print("; ".join(spent), markup=False)


def learned(found: dict[str, Any], console: Console) -> None:
    table = Table(
        "iteration",
        "train",
        "validation",
        "tokens",
        "rollouts",
        "accepted",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="bold",
    )
    for row in found["iterations"]:
        table.add_row(
            str(row["iteration"]), shown(row["train"]), shown(row["val"]), f"{row['tokens']:.0f}", str(row["rollouts"]),
            "yes" if row["accepted"] else "",
        )  # fmt: skip
    console.print(table)
    for row in found["iterations"]:  # a paragraph each, which a column would tear to shreds
        console.print(Text(f"{row['iteration']}  {row['skill']}"))
        for problem in row["failed"]:
            console.print(f"iteration {row['iteration']}: {problem}", markup=False)
    if found["rivals"]:
        others = Table(
            "beside it",
            "knob",
            "validation",
            "test",
            "tokens",
            "rollouts",
            box=None,
            padding=(0, 2, 0, 0),
            header_style="bold",
        )
        for name, row in found["rivals"].items():
            others.add_row(
                name, row["knob"], shown(row["val"]), shown(row["test"]), f"{row['tokens']:.0f}", str(row["rollouts"])
            )
        console.print(others)
    if found["test"] is not None:
        console.print(
            f"test {found['metric']}: {found['test']:.3f} at {found['test_tokens']:.0f} context tokens a query"
        )


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
