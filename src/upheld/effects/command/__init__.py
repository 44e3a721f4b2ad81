"""``upheld run effects feed.parquet --treatment offer --outcome spend``: the average effect so far, from rows that need not be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "upheld run effects {file} --treatment quit_smoking --outcome weight_gain_kg --every 500 --compare --out out/"


def run(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="CSV, Parquet or JSON lines, read in this order; - is standard input (CSV or JSON lines). Or: merge A.sketch B.sketch ...",
        ),
    ] = None,
    treatment: Annotated[
        str | None,
        typer.Option(
            "--treatment",
            help="Column of the arm: whole numbers or words. The lowest, or first in the alphabet, is the reference.",
        ),
    ] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="Column of the outcome.")] = None,
    covariates: Annotated[
        str, typer.Option("--covariates", help="Columns to balance, separated by commas; all: all others.")
    ] = "all",
    time: Annotated[
        str | None, typer.Option("--time", help="Column of when a row came: numbers, or dates in ISO 8601.")
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block",
            help="Balance within blocks of so many rows (2048 by default) or so much time (1d, 6h), so that what drifts in time does not "
            "confound; none: one coreset over the whole stream.",
        ),
    ] = None,
    every: Annotated[int, typer.Option("--every", min=1, help="Rows between two reports, and two saves.")] = 5000,
    estimand: Annotated[
        str | None,
        typer.Option(
            "--estimand",
            help="The mean effect over all rows (ate, by default), the treated (att), the reference arm (atc), recent.",
        ),
    ] = None,
    ci: Annotated[
        str | None,
        typer.Option(
            "--ci", help="fixed: 95 % intervals for one look (default); sequence: for looking at every report."
        ),
    ] = None,
    on_bad_rows: Annotated[
        str,
        typer.Option(
            "--on-bad-rows", help="Rows with gaps: fail names the first, skip leaves them out and counts them."
        ),
    ] = "fail",
    coreset_size: Annotated[
        int | None, typer.Option("--coreset-size", help="k; an arm keeps at most 4k + 64 rows. 256 by default.")
    ] = None,
    pairing: Annotated[
        str | None,
        typer.Option("--pairing", help="Of rows to merge: nearest (default), projection (faster) or random."),
    ] = None,
    as_described: Annotated[
        bool, typer.Option("--as-described", help="The plain reading of the paper's abstract, without what we added.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Beside it: exact moments, a reservoir, the other preset, and the difference in means."
        ),
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of everything random; 0 by default.")] = None,
    sketch: Annotated[
        Path | None, typer.Option("--sketch", help="Save all that is kept, with the position, at every report.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Go on from a saved sketch; rows it has seen are passed over.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            help="Begin empty with the features of this sketch, so that both can be merged; with a --seed of its own.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help="Read row groups of Parquet, or several files, in so many processes, and merge."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option("--ray", help="The same on a Ray cluster: auto, or HOST:PORT; every machine sees the files."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for report.json, balance.csv, coreset.csv and pictures.")
    ] = None,
    json: Annotated[
        str | None, typer.Option("--json", help="File for a line of JSON a report; - prints these instead of tables.")
    ] = None,
) -> None:
    """The average effect of a treatment over a stream of observed rows, in bounded memory: with an interval, the balance reached, drift
    and overlap warnings; a sketch that goes on later, or is merged with others."""
    asked = {**locals(), "files": files or []}
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from upheld.effects.command.options import Options, check
    from upheld.effects.command.running import merge, observe

    options = Options(**asked)
    check(options)
    with threadpool_limits(
        1, user_api="blas"
    ):  # these matrices are small, and threads wait for each other on a busy machine
        (merge if options.merges else observe)(options)


def write_data(out: Path) -> None:
    """Did those who stopped smoking gain weight? 1,566 people of NHEFS, in random order: the plain difference says 2.5 kg, published
    analyses 3.4 to 3.5. A survey of the United States' government, from the package causaldata (MIT)."""
    from upheld.effects.command.embedded import write_nhefs

    write_nhefs(out)
