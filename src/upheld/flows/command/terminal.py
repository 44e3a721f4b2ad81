"""The table, and what is said beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from upheld.report.printing import Terminal, plain_table


def show(document: Mapping[str, Any], out: Path | None) -> None:
    """A row a method, the evidence, and every warning."""
    terminal = Terminal()
    settings = document["settings"]
    terminal.say(f"{settings['n']} samples of class {settings['target']}, {document['particles']} particles each.\n")
    terminal.show(_table(document))
    terminal.say(_meaning(document))
    for warning in document["diagnosis"]["warnings"]:
        terminal.say(f"Warning: {warning}.")
    if out is not None:
        terminal.say(f"wrote {out}: samples.npz, summary.json, pictures (png and svg)")


def _table(document: Mapping[str, Any]) -> Table:
    table = plain_table()
    table.add_column("\nmethod", no_wrap=True)
    for heading in (
        "guide says\nit is",
        "judge says\nit is",
        "effective\nparticles",
        "\nseconds",
        "evaluations\na sample",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in document["methods"]:
        judge = "no judge" if row["judge"] is None else f"{row['judge']:.1%}"
        ess = "" if row["ess"] is None else f"{row['ess']:.0%}"
        table.add_row(
            row["method"], f"{row['guide']:.1%}", judge, ess, f"{row['seconds']:.1f}", f"{row['evaluations']:,}"
        )
    return table


def _pilots(document: Mapping[str, Any]) -> list[str]:
    """What a pilot found, where one was asked."""
    said, window, betas = [], document["window"], document["ladder"]
    if document["settings"]["window"] == "adaptive":
        said.append(f"the pilot begins the noisy window at t = {window[0]:.3g} (it ends at {window[1]:.3g})")
    if betas is not None:
        said.append(f"the ladder lets the condition in from exponent {betas[0]:.2g} to {betas[-1]:.2g}")
    return said


def _meaning(document: Mapping[str, Any]) -> str:
    found = document["diagnosis"]
    error = "" if document["log_evidence_se"] is None else f" ± {document['log_evidence_se']:.2g}"
    lines = [
        f"\nlog evidence {document['log_evidence']:.4g}{error}: how probable the class is under the flow, by the guide",
        f"effective particles at the end {found['final_ess']:.0%}, at the worst stage {found['smallest_ess']:.0%}; "
        f"{found['resamplings']:.1f} resamplings a sample; {found['unique_end_points']:.0%} of end points differ",
        *_pilots(document),
    ]
    if all(row["judge"] is None for row in document["methods"]):
        lines.append(
            "The guide judged its own work, which a fooled guide does well: give another classifier with --judge."
        )
    return "\n".join(lines)
