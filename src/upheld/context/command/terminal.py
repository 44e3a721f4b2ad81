"""A run on the terminal: the iterations, what was accepted, and how it does on the test file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from upheld.report.printing import Terminal


def show(found: dict[str, Any], out: Path) -> None:
    """What result.json tells, but for lines and front, and where the context lies."""
    terminal = Terminal()
    terminal.say(found["notice"])
    if "prequential" in found:
        terminal.say(f"prequential {found['metric']} over {found['items']} items: {found['prequential']:.3f}")
    else:
        learned(found, terminal)
    for row in found["problems"]:
        terminal.say(f"{row['n']} questions: {row['problem']}")
    spent = [f"{who} read {row['read']} tokens, wrote {row['written']}" for who, row in found["tokens"].items()]
    if spent:
        terminal.say("; ".join(spent))
    terminal.say(f"The context lies in {out / 'context'}; in Python, ContextFunction.load reads that folder.")


def learned(found: dict[str, Any], terminal: Terminal) -> None:
    """Iterations, skills, rivals and the test figure of a run offline."""
    terminal.table(
        ("iteration", "train", "validation", "tokens", "rollouts", "accepted"),
        [
            (
                row["iteration"], shown(row["train"]), shown(row["val"]), f"{row['tokens']:.0f}", row["rollouts"],
                "yes" if row["accepted"] else "",
            )
            for row in found["iterations"]
        ],
    )  # fmt: skip
    for row in found["iterations"]:  # a paragraph each, which a column would tear to shreds
        terminal.say(f"{row['iteration']}  {row['skill']}")
        for problem in row["failed"]:
            terminal.say(f"iteration {row['iteration']}: {problem}")
    if found["rivals"]:
        terminal.table(
            ("beside it", "knob", "validation", "test", "tokens", "rollouts"),
            [
                (name, row["knob"], shown(row["val"]), shown(row["test"]), f"{row['tokens']:.0f}", row["rollouts"])
                for name, row in found["rivals"].items()
            ],
        )
    for name, why in found["rivals_left_out"].items():
        terminal.say(f"{name} was not run: it {why}")
    if found["test"] is not None:
        terminal.say(
            f"test {found['metric']}: {found['test']:.3f} at {found['test_tokens']:.0f} context tokens a query"
        )


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
