"""What ``upheld run effects`` was asked for, and everything that can be found wrong with it before the first row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upheld.effects.balancer import StreamingBalancer
from upheld.effects.command.columns import Columns
from upheld.effects.command.journey import Journey, load
from upheld.effects.command.sources import STDIN, Source
from upheld.report.wording import option, told_as_options
from upheld.report.writing import expect_file, expect_folder

MERGE = "merge"
FIXED_BY_SKETCH = ("block", "estimand", "ci", "coreset_size", "pairing", "as_described", "seed")
PARAMETER_OF = {
    "block": "block_size", "estimand": "estimand", "ci": "ci", "coreset_size": "coreset_size", "pairing": "pairing",
    "seed": "random_state",
}  # fmt: skip
USUAL: dict[str, Any] = {"coreset_size": 256, "pairing": "nearest", "estimand": "ate", "ci": "fixed", "seed": 0}


@dataclass(frozen=True)
class Options:
    """As they were given; see `run`."""

    files: list[str]
    treatment: str | None
    outcome: str | None
    covariates: str
    time: str | None
    block: str | None
    every: int
    estimand: str | None
    ci: str | None
    on_bad_rows: str
    coreset_size: int | None
    pairing: str | None
    as_described: bool
    compare: bool
    seed: int | None
    sketch: Path | None
    resume: Path | None
    like: Path | None
    workers: int | None
    ray: str | None
    out: Path | None
    json: str | None

    @property
    def merges(self) -> bool:
        return self.files[:1] == [MERGE]

    @property
    def in_parallel(self) -> bool:
        return self.workers is not None or self.ray is not None

    def settings(self) -> dict[str, Any]:
        """For the report: what was asked for, defaults included."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return {name: str(value) if isinstance(value, Path) else value for name, value in (USUAL | given).items()}


def check(options: Options) -> None:
    """Say now what cannot be done."""
    for name, value, among in (
        ("on_bad_rows", options.on_bad_rows, ("skip", "fail")),
        ("ci", options.ci, ("fixed", "sequence")),
        ("estimand", options.estimand, ("ate", "att", "atc", "recent")),
        ("pairing", options.pairing, ("nearest", "projection", "random")),
    ):
        if value is not None and value not in among:
            raise ValueError(f"{option(name)} must be {' or '.join(among)}, got {value!r}")
    if options.merges:
        _check_merge(options)
    else:
        _check_reading(options)
    _check_places(options)


def _check_merge(options: Options) -> None:
    if len(options.files) < 3:
        raise ValueError(
            "merge needs at least two sketches: upheld run effects merge a.sketch b.sketch --sketch both.sketch"
        )
    given = ("treatment", "outcome", "time", "resume", "like", "workers", "ray", *FIXED_BY_SKETCH)
    wrong = [name for name in given if getattr(options, name)]
    if wrong:
        raise ValueError(f"{option(wrong[0])} does not go with merge: sketches know how they were made; leave it out")
    if options.compare:
        raise ValueError("--compare needs rows, and merge has sketches alone; leave it out")


def _check_reading(options: Options) -> None:
    if not options.files:
        raise ValueError("there is nothing to read: name a file, or - for standard input")
    places = [name if name == STDIN else str(Path(name).resolve()) for name in options.files]
    for name, place in zip(options.files, places, strict=True):
        if places.count(place) > 1:
            raise ValueError(f"{name} is named twice; its rows would count twice")
    for name in options.files:
        if name != STDIN and not Path(name).exists():
            raise ValueError(f"{name} does not exist; name a CSV, Parquet or JSON lines file, or - for standard input")
        if name != STDIN and Path(name).is_dir():
            raise ValueError(f"{name} is a folder; name the files in it")
    if options.resume is None:
        for column in ("treatment", "outcome"):
            if getattr(options, column) is None and options.like is None:
                raise ValueError(f"say which column is the {column}: {option(column)} NAME")
    elif options.like is not None:
        raise ValueError("--resume goes on with a sketch and --like begins an empty one; give one of them")
    elif options.compare:
        raise ValueError(
            "--compare reads all rows anew, and a sketch has forgotten them; leave out --resume or --compare"
        )
    columns = [name for name in (options.treatment, options.outcome, options.time) if name]
    if len(set(columns)) < len(columns):
        raise ValueError("treatment, outcome and time must be three columns; name each once")
    if options.as_described and options.block is not None:
        raise ValueError("--as-described is one coreset pair over the whole stream; leave out --block")
    if options.estimand == "recent" and (options.as_described or options.block == "none"):
        raise ValueError(
            "--estimand recent is the effect over the last blocks; leave out --block none and --as-described"
        )
    _check_parallel(options)


def _check_parallel(options: Options) -> None:
    if not options.in_parallel:
        return
    if STDIN in options.files:
        raise ValueError("standard input cannot be read in parts; leave out --workers and --ray, or name files")
    if options.compare:
        raise ValueError("--compare reads in one pass; leave out --workers and --ray")
    if options.estimand == "recent" and options.time is None:
        raise ValueError(
            "the recent effect of parts read in parallel needs to know when rows came; name the column with --time"
        )


def _check_places(options: Options) -> None:
    """Outputs can be written, and are not what is read."""
    read = {Path(name).resolve() for name in options.files if name != STDIN}
    if options.sketch is not None and options.sketch.resolve() in read:
        raise ValueError(f"--sketch names {options.sketch}, which is read; name another file")
    targets = [("sketch", options.sketch), ("json", None if options.json in (None, STDIN) else Path(str(options.json)))]
    for name, path in targets:
        if path is None:
            continue
        if path.resolve() in read:
            raise ValueError(f"{option(name)} names {path}, which is read; name another file")
        if name == "json" and (path.is_fifo() or path.is_char_device()):
            continue  # lines of JSON are written as the rows come, and a pipe may take them
        expect_file(path, option(name))
    if options.out is not None:
        expect_folder(options.out)


def sources(options: Options) -> list[Source]:
    return [Source(name, lenient=options.on_bad_rows == "skip") for name in options.files]


def begin(options: Options) -> tuple[StreamingBalancer, Columns, Journey]:
    """An empty balancer, or that of the sketch to go on from (`--resume`) or to take features from (`--like`)."""
    if options.resume is not None:
        balancer, columns, journey = load(options.resume)
        _check_same(options, balancer, str(options.resume))
        return balancer, _columns(options, columns, str(options.resume)), journey
    if options.like is not None:
        base, columns, _ = load(options.like)
        _check_same(options, base, str(options.like))
        base._n_spawned += options.seed or 0  # so that two places that begin alike do not draw alike
        try:
            (balancer,) = base.spawn(1)
        except ValueError as error:
            raise ValueError(f"{options.like}: {error}") from error
        return balancer, _columns(options, columns, str(options.like)), Journey()
    return new_balancer(options), _columns(options, None, ""), Journey()


def new_balancer(options: Options) -> StreamingBalancer:
    """By the options; their errors are told as options."""
    parameters: dict[str, Any] = {
        PARAMETER_OF[name]: getattr(options, name) if getattr(options, name) is not None else USUAL[name]
        for name in USUAL
    }  # fmt: skip
    if options.block is not None:
        parameters["block_size"] = block_size(options.block)
    make = StreamingBalancer.as_described if options.as_described else StreamingBalancer
    balancer = make(**parameters)
    with told_as_options({parameter: option(name) for name, parameter in PARAMETER_OF.items()}):
        balancer._begin()
    if isinstance(balancer.block_size, str) and options.time is None:
        raise ValueError(f"--block {options.block} is a length of time; name the column of time with --time")
    return balancer


def block_size(text: str) -> int | str | None:
    """
    >>> block_size("10000"), block_size("1d"), block_size("none")
    (10000, '1d', None)
    """
    if text == "none":
        return None
    return int(text) if re.fullmatch(r"\d+", text) else text


def _check_same(options: Options, balancer: StreamingBalancer, path: str) -> None:
    """Options that a sketch has settled, if given again, are the same."""
    for name, parameter in PARAMETER_OF.items():
        given = getattr(options, name)
        if given is None or (name == "seed" and options.like is not None):
            continue
        given, held = block_size(given) if name == "block" else given, getattr(balancer, parameter)
        if given != held:
            raise ValueError(f"{path} was made with {option(name)} {held}, not {given}; leave {option(name)} out")
    if options.as_described and balancer.outcomes != "subset":
        raise ValueError(f"{path} was not made with --as-described; leave it out")


def _columns(options: Options, held: Columns | None, path: str) -> Columns:
    covariates = None if options.covariates == "all" else tuple(_names(options.covariates))
    if held is None:
        if options.treatment is None or options.outcome is None:
            raise ValueError(f"{path} does not say which columns it was made of; add --treatment and --outcome")
        columns = Columns(options.treatment, options.outcome, options.time, covariates, options.on_bad_rows == "skip")
        for name in (columns.treatment, columns.outcome, columns.time):
            if name in (covariates or ()):
                raise ValueError(f"column {name!r} cannot be a covariate as well; leave it out of --covariates")
        return columns
    for name, given in (
        ("treatment", options.treatment), ("outcome", options.outcome), ("time", options.time), ("covariates", covariates),
    ):  # fmt: skip
        if given is not None and given != getattr(held, name):
            kept = getattr(held, name)
            kept = ",".join(kept) if isinstance(kept, tuple) else kept
            raise ValueError(f"{path} was made with {option(name)} {kept}; leave {option(name)} out")
    held.skip = options.on_bad_rows == "skip"
    if options.like is not None:
        held.skipped = {}
    return held


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError("--covariates names none; list columns, or leave it out for all others")
    if len(set(names)) < len(names):
        raise ValueError("--covariates names a column twice; name each once")
    return names
