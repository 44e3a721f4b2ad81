"""What a run found, as tables on a terminal or in a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from upheld.report.printing import Terminal, cell, plain_table

WIDE = 110  # columns from which the medoid's text fits


def print_run(document: Mapping[str, Any], *, written: Mapping[Path, str]) -> None:
    """Print the document of `upheld.isotropy.command.document.run_document`, and which files were written.

    Parameters
    ----------
    written : what is in each file
    """
    terminal = Terminal()
    terminal.say(_summary(document))
    terminal.show(_table(document, terminal.width))
    terminal.say(_meaning(document))
    if document["worst"][0].get("rivals"):
        terminal.say("\nThe same prompts, other signals, each high where trust is not deserved\n", style="bold")
        terminal.show(_rival_table(document))
    if document["judged"]:
        _print_judged(terminal, document["judged"])
    for title, why in document["not_run"].items():
        terminal.say(f"Not run: {title}: {why}.")
    if document["sampling"]:
        terminal.say(_sampling(document))
    if written:
        terminal.say("\n" + "\n".join(f"wrote {path}: {what}" for path, what in written.items()))


def _meaning(document: Mapping[str, Any]) -> str:
    notes = "± standard error; the odd one out adds most to the score; nearest to all: the answer to show."
    if any(row["overlaps_above"] for row in document["worst"]):
        notes += " ≈ its 95 % interval overlaps that of the line above: their order may be chance."
    meaning = document["meaning"]
    return f"\n{notes}\n{meaning[:1].upper()}{meaning[1:]} It is no probability of an error."


def _sampling(document: Mapping[str, Any]) -> str:
    verdicts = document["sampling"]["verdicts"]
    decided = ", ".join(f"{verdicts[kind]:,} {kind}" for kind in ("above", "below", "undecided") if verdicts.get(kind))
    return f"\nAsked of the model: {document['sampling']['sentence']}{f' ({decided})' if decided else ''}."


def _summary(document: Mapping[str, Any]) -> str:
    prompts, shown = document["prompts"], len(document["worst"])
    worst = f"the {shown:,} that differ most" if shown < prompts else "those that differ most first"
    return (
        f"{document['source']}: {prompts:,} prompt{'s' * (prompts > 1)}, {document['answers']:,} answers, mean score "
        f"{document['mean_score']:.3f}; {worst}:\n"
    )


def _table(document: Mapping[str, Any], width: int) -> Table:
    wide = width >= WIDE
    labelled = any("factuality" in row for row in document["worst"])
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", width=width if wide else None)
    table.add_column("", justify="right", no_wrap=True, vertical="bottom")
    table.add_column("prompt", no_wrap=True, overflow="ellipsis", max_width=34 if wide else 24, vertical="bottom")
    table.add_column("score", justify="right", no_wrap=True, vertical="bottom")
    if document["mixed"]:
        table.add_column("n", justify="right", no_wrap=True, vertical="bottom")
        table.add_column("unbiased\npurity", justify="right", no_wrap=True, vertical="bottom")
    if document["adaptive"]:
        table.add_column("threshold", no_wrap=True, vertical="bottom")
    if document["calibrated"]:
        table.add_column("expected\nfactuality", justify="right", no_wrap=True, vertical="bottom")
    if labelled:
        table.add_column("fac-\ntuality", justify="right", no_wrap=True, vertical="bottom")
    table.add_column("odd one\nout", no_wrap=True, vertical="bottom")
    if wide:
        table.add_column("nearest to all", no_wrap=True, overflow="ellipsis", ratio=1, vertical="bottom")
    for row in document["worst"]:
        cells: list[str | Text] = [f"{'≈ ' if row['overlaps_above'] else ''}{row['rank']}", cell(_called(row))]
        cells.append(f"{row['score']:.3f} ± {_decimals(row['se'])}")
        if document["mixed"]:
            cells += [str(row["n"]), _decimals(row["purity_unbiased"])]
        if document["adaptive"]:
            cells.append(f"{row['adaptive']['verdict']} ({row['n']})")
        if document["calibrated"]:
            expected = row["expected_factuality"]
            cells.append(f"{expected['estimate']:.2f} [{expected['low']:.2f}, {expected['high']:.2f}]")
        if labelled:
            cells.append(f"{row['factuality']:.2f}" if "factuality" in row else "")
        cells.append(_odd(row))
        if wide:
            cells.append(cell(f"{row['medoid'] + 1}: {row['medoid_text'][:200]}"))
        table.add_row(*cells)
    return table


def _called(row: Mapping[str, Any]) -> str:
    prompt, name = row["prompt"], row["id"]
    return name if not prompt or prompt == name else f"{name}: {prompt[:60]}"


def _odd(row: Mapping[str, Any]) -> str:
    if row["odd"] is None:
        return "none"
    return f"{row['odd'] + 1} ({row['influence'][row['answers'].index(row['odd'])]:+.2f})"


def _decimals(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _rival_table(document: Mapping[str, Any]) -> Table:
    names = list(document["worst"][0]["rivals"])
    table = plain_table()
    table.add_column("", justify="right", no_wrap=True, vertical="bottom")
    table.add_column("prompt", no_wrap=True, overflow="ellipsis", max_width=24, vertical="bottom")
    for name in ("score", *names):
        table.add_column(name.replace("-", "\n"), justify="right", vertical="bottom", no_wrap=True)
    for row in document["worst"]:
        values = [_decimals(row["rivals"][name]) for name in names]
        table.add_row(str(row["rank"]), cell(_called(row)), f"{row['score']:.3f}", *values)
    return table


def _print_judged(terminal: Terminal, judged: Mapping[str, Any]) -> None:
    some = f", drawn at random from {judged['labelled']:,}" if judged["used"] < judged["labelled"] else ""
    terminal.say(
        f"\nHow well each foretells factuality: {judged['used']:,} labelled prompts{some}, 95 % bootstrap intervals\n",
        style="bold",
    )
    if judged["signals"]:
        table = plain_table()
        table.add_column("signal", overflow="fold", vertical="bottom")
        for heading in ("rank correlation", "R²", "R² of the score\nless this one's"):
            table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
        for signal in judged["signals"]:
            table.add_row(
                cell(signal["title"]), *(_with_interval(signal[what]) for what in ("spearman", "r_squared", "ahead"))
            )
        terminal.show(table)
        terminal.say("\nA signal that works has a negative rank correlation; R² hides the sign.")
    for sentence in judged["sentences"]:
        terminal.say(sentence)


def _with_interval(figure: Sequence[float] | None) -> str:
    if figure is None:
        return ""
    estimate, low, high = (f"{round(value, 2) + 0.0:.2f}" for value in figure)  # no -0.00
    return f"{estimate} [{low}, {high}]"
