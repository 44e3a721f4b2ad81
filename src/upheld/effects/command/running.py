"""The two forms of the command: observe a stream, and merge sketches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from upheld.compute import choose
from upheld.effects.balancer import StreamingBalancer
from upheld.effects.command.columns import Columns
from upheld.effects.command.document import report_line, run_document
from upheld.effects.command.journey import Journey, load, save
from upheld.effects.command.options import Options, begin, sources
from upheld.effects.command.sources import STDIN
from upheld.effects.command.terminal import Terminal, progress
from upheld.effects.command.watching import Report, Watch, beside, read_in_parts
from upheld.effects.estimate import EffectEstimate
from upheld.effects.stream import EffectStream
from upheld.report.content import drawn, json_text
from upheld.report.writing import write_files


def observe(options: Options) -> None:
    """Read files, report on the way, and say at the end what was found."""
    balancer, columns, journey = begin(options)
    terminal = None if options.json == STDIN else Terminal()
    if terminal is not None and options.resume is not None:
        terminal.say(_resumed(options, journey))
    label = ", ".join(source.label for source in sources(options))
    with _lines(options) as write_line, progress(label[:40]) as moved:

        def told(report: Report) -> None:
            write_line(report)
            if terminal is not None:
                terminal.report(report)

        others = beside(balancer) if options.compare else {}
        watch = Watch(balancer, columns, journey, options.every, told, moved, options.sketch, others)
        if options.in_parallel:
            compute = choose(options.ray, options.workers)
            estimate = read_in_parts(watch, sources(options), compute, options.workers or 2 * PARTS_OF_A_CLUSTER)
        else:
            estimate = watch.read(sources(options))
    _end(options, watch.balancer, columns, journey, estimate, others, terminal)


PARTS_OF_A_CLUSTER = 16


def _resumed(options: Options, journey: Journey) -> str:
    seen = (
        "; ".join(f"rows 1 to {one.rows:,} of {one.name}" for one in journey.files if one.name != STDIN)
        or "rows of no file"
    )
    typed = sum(one.rows for one in journey.files if one.name == STDIN)
    more = f"; and {typed:,} rows of standard input, which is read on from where it stands" if typed else ""
    return f"Going on from {options.resume}, which has seen {seen}{more}."


@contextmanager
def _lines(options: Options) -> Iterator[Any]:
    """Writes a line of JSON a report as it comes; a resumed run adds to the file."""
    if options.json is None:
        yield lambda report: None
        return
    mode = "a" if options.resume is not None else "w"
    with nullcontext(sys.stdout) if options.json == STDIN else open(options.json, mode, encoding="utf-8") as file:

        def write(report: Report) -> None:
            file.write(report_line(report) + "\n")
            file.flush()

        yield write


def merge(options: Options) -> None:
    """Several sketches as one.

    Raises
    ------
    ValueError
        Naming the sketch that cannot be read, was made of other columns, or balances other features.
    """
    paths = [Path(name) for name in options.files[1:]]
    balancer, columns, journey = load(paths[0])
    for path in paths[1:]:
        other, theirs, rows = load(path)
        _check_columns(columns, theirs, paths[0], path)
        try:
            balancer = balancer.merge(other)
        except ValueError as error:
            raise ValueError(
                f"{paths[0]} and {path} cannot be merged: {error}. From the command line: begin the second with --like {paths[0]}"
            ) from error
        columns = columns or theirs
        _join(journey, rows, columns, theirs)
    estimate = balancer.estimate()
    journey.note(estimate)
    if options.sketch is not None:
        save(options.sketch, balancer, columns, journey)
    terminal = None if options.json == STDIN else Terminal()
    report = Report(journey.rows or balancer.n_seen_, estimate, 0.0)
    with _lines(options) as write_line:
        write_line(report)
    if terminal is not None:
        terminal.say(f"{len(paths)} sketches, {estimate.n:,} rows.")
    _end(options, balancer, columns, journey, estimate, {}, terminal)


def _check_columns(mine: Columns | None, theirs: Columns | None, path: Path, other: Path) -> None:
    if mine is None or theirs is None:
        return
    for name in ("treatment", "outcome", "time", "covariates"):
        if getattr(mine, name) != getattr(theirs, name):
            raise ValueError(
                f"{path} was made with --{name} {getattr(mine, name)} and {other} with {getattr(theirs, name)}; they are of two questions, "
                "and cannot be merged"
            )


def _join(journey: Journey, other: Journey, columns: Columns | None, theirs: Columns | None) -> None:
    import warnings

    known = {(one.name, one.head): one for one in journey.files}
    for record in other.files:
        if (record.name, record.head) in known and record.head:
            warnings.warn(
                f"{record.name} was read for more than one of the sketches; its rows count twice", stacklevel=2
            )
            known[record.name, record.head].rows += record.rows
        else:
            journey.files.append(record)
    journey.add(other.totals)
    journey.way = []  # ways of two streams are no way of one
    if columns is not None and theirs is not None and columns is not theirs:
        for name, count in theirs.skipped.items():
            columns.skipped[name] = columns.skipped.get(name, 0) + count


def _end(
    options: Options,
    balancer: StreamingBalancer,
    columns: Columns | None,
    journey: Journey,
    estimate: EffectEstimate,
    others: dict[str, EffectStream],
    terminal: Terminal | None,
) -> None:
    document = run_document(options, balancer, columns, journey, estimate, others)
    if terminal is not None:
        terminal.end(document, estimate)
    written = [] if options.out is None else _write(options.out, balancer, document)
    if terminal is not None:
        for name in written:
            terminal.say(f"wrote {name}")
        if options.sketch is not None:
            terminal.say(f"wrote {options.sketch}: all that is kept; go on with --resume {options.sketch}")


def _write(out: Path, balancer: StreamingBalancer, document: dict[str, Any]) -> list[Path]:
    import pandas as pd

    from upheld.effects import plots

    contents: dict[str, str | bytes] = {"report.json": json_text(document)}
    balance = pd.DataFrame(document["balance"])
    if len(balance):
        contents["balance.csv"] = balance.to_csv(index=False)
    if any(balancer.n_items_.values()):
        contents["coreset.csv"] = balancer.coreset().to_csv(index=False)
    figures = {}
    if any(point["ate"] is not None for point in document["estimates"]):
        figures["estimate"] = plots.estimate_so_far(
            pd.DataFrame(document["estimates"]),
            difference=document["difference_in_means"],
            level=document["estimate"]["level"],
        )
    if len(balance):
        figures["balance"] = plots.love(balance)
    for name, figure in figures.items():
        contents |= {f"{name}.{ending}": drawn(figure, ending) for ending in ("png", "svg")}
    return write_files(out, contents)
