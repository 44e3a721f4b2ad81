"""The run behind ``upheld run lagrangian``: read, learn, bound, plan, write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from upheld.lagrangian.command.bounding import Bounded, bounded, pieces
from upheld.lagrangian.command.document import bounds_table, plan_table, prices_table, run_document
from upheld.lagrangian.command.formats import Formats
from upheld.lagrangian.command.learning import Learned, learned, loaded, observed, priced_rows, save
from upheld.lagrangian.command.options import Options
from upheld.lagrangian.command.reading import Read, Reader, Source, check_apart, named_files, rows_in_file
from upheld.report.content import drawn, json_text
from upheld.report.progress import Progress
from upheld.report.writing import write_files


def planned(options: Options) -> tuple[dict[str, Any], list[Path]]:
    """The document of the run, and the files written.

    Raises
    ------
    ValueError
        Whatever is wrong with the files, told with the file's name; nothing is written then.
    """
    paths, tests = named_files(options.train, "--train"), named_files(options.test, "--test")
    check_apart(paths, tests)
    reader = _reader(options)
    with Progress() as progress:
        past = _read(reader, paths, progress, "reading the past")
        new = _read(reader, tests, progress, "reading what is new")
        reader.formats.check_needed()
        found = _multipliers(past, new[0], options, progress)
        results = _bounds(new, found, options, progress)
    if options.online:  # what is proven lives on with what was learned
        found.account |= observed(found.learner, found.account["one_percent"])
    document = run_document(options, reader, found, results)
    return document, _write(options, document, found, results)


def _reader(options: Options) -> Reader:
    """By the pattern, else by the rows of the saved multipliers, else the rows are found."""
    formats = Formats(options.capacity, options.vehicles, options.maximise)
    if options.coupling is not None:
        return Reader(options.coupling, "the pattern", options.block_gap, formats)
    if options.multipliers is not None:
        return Reader(rows_in_file(priced_rows(options.multipliers)), "the multipliers", options.block_gap, formats)
    return Reader("auto", "detection", options.block_gap, formats)


def _read(reader: Reader, paths: list[Source], progress: Progress, label: str) -> list[Read]:
    with progress.part(label, len(paths), "files") as part:
        read: list[Read] = []
        for path in paths:
            read += reader.read(path)
            part.advance()
    return read


def _multipliers(past: list[Read], first: Read, options: Options, progress: Progress) -> Learned:
    if options.multipliers is not None:
        return loaded(options.multipliers, first)
    with progress.part("learning", 2 * len(past) + 1) as part:
        return learned(past, options, part.reach)


def _bounds(new: list[Read], found: Learned, options: Options, progress: Progress) -> list[Bounded]:
    results = []
    with progress.part("bounding", len(new) * pieces(options)) as part:
        for read in new:
            results.append(bounded(read, found, options, part.advance))
            if options.online and found.learn is not None:
                found.learn(read.P)
    return results


def _write(options: Options, document: dict[str, Any], found: Learned, results: list[Bounded]) -> list[Path]:
    """Pictures are drawn before the first file is written."""
    written = []
    if options.out is not None:
        written = write_files(options.out, _contents(document, found, results))
    if options.save is not None:
        with _told_as(options.save):
            save(found, options.save, results[-1].read)
        written.append(options.save)
    return written


def _contents(document: dict[str, Any], found: Learned, results: list[Bounded]) -> dict[str, str | bytes]:
    from upheld.lagrangian import plots

    maximise = results[0].read.P.maximise
    table = bounds_table(results, document)
    contents: dict[str, str | bytes] = {
        "report.json": json_text(document),
        "multipliers.json": json_text(document["multipliers"]),
        "bounds.parquet": table.to_parquet(index=False),
        "prices.csv": prices_table(found, results[-1]).to_csv(index=False),
    }
    plan = plan_table(results)
    if len(plan):
        contents["plan.csv"] = plan.to_csv(index=False)
    one = document["instances"][0] if len(results) == 1 else None
    levels = {name: one[name] for name in ("plan", "lp_bound", "highs_root_bound")} if one is not None else None
    picture = plots.convergence(table, levels=levels, maximise=maximise)
    return contents | {f"bounds.{ending}": drawn(picture, ending) for ending in ("png", "svg")}


@contextmanager
def _told_as(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror or error}); name another file with --save"
        ) from error
