"""The stream as it is read: rows into the balancer, an estimate every so many rows, and the sketch saved with its position."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from upheld.compute import Compute
from upheld.effects.balancer import StreamingBalancer
from upheld.effects.command.columns import Batch, Columns
from upheld.effects.command.journey import Journey, save
from upheld.effects.command.sources import Chunk, Source, parquet_file
from upheld.effects.estimate import EffectEstimate
from upheld.effects.exact import ExactMomentBalancer
from upheld.effects.parallel import reduced
from upheld.effects.reservoir import ReservoirBalancer
from upheld.effects.rows import Label
from upheld.effects.stream import EffectStream

WARM_ROWS = 1000


@dataclass(frozen=True)
class Report:
    """An estimate on the way; rows : read so far; rate : rows a second since the start."""

    rows: int
    estimate: EffectEstimate
    rate: float


@dataclass
class Watch:
    """One pass.

    Parameters
    ----------
    every : rows between two reports, and two saves
    beside : other balancers that read the same rows, by name
    told : what hears of every report
    moved : what hears of rows read and the share of all files that is done
    sketch : where to save; None for nowhere
    """

    balancer: StreamingBalancer
    columns: Columns
    journey: Journey
    every: int
    told: Callable[[Report], None]
    moved: Callable[[int, float], None]
    sketch: Path | None = None
    beside: dict[str, EffectStream] = field(default_factory=dict)
    last: EffectEstimate | None = None

    def __post_init__(self) -> None:
        self._begun, self._rows_at_first = time.monotonic(), self.journey.rows

    def read(self, sources: Sequence[Source]) -> EffectEstimate:
        """All rows that were not read before; the last estimate."""
        sizes = [max(source.nbytes, 1) for source in sources]
        for number, source in enumerate(sources):
            record = self.journey.begun(source)
            for chunk in source.chunks(record.rows, self.columns.wanted):
                for part in self._parts(chunk):
                    self.learn(part)
                    record.rows += len(part)
                    done = sum(sizes[:number]) + source.share * sizes[number]
                    self.moved(self._rows_here, done / sum(sizes))
                    if self.journey.rows % self.every == 0:
                        self.report()
        if self.last is None or self.journey.rows % self.every:
            self.report()
        assert self.last is not None
        return self.last

    @property
    def _rows_here(self) -> int:
        return self.journey.rows - self._rows_at_first

    def _parts(self, chunk: Chunk) -> Iterator[Chunk]:
        """Cut where a report is due."""
        at = 0
        while at < len(chunk):
            room = self.every - self.journey.rows % self.every
            yield chunk[at : at + room]
            at += room

    def learn(self, part: Chunk) -> None:
        batch = self.columns.usable(part)
        learn(self.balancer, batch, part)
        for other in self.beside.values():
            learn(other, batch, part)
        self.journey.add(totals(self.balancer, batch))

    def report(self) -> None:
        estimate = self.balancer.estimate()
        self.last = estimate
        self.journey.note(estimate)
        if self.sketch is not None:
            save(self.sketch, self.balancer, self.columns, self.journey)
        self.told(Report(self.journey.rows, estimate, self._rows_here / max(time.monotonic() - self._begun, 1e-9)))


def learn(balancer: EffectStream, batch: Batch, part: Chunk) -> None:
    """A batch into a balancer; errors say which rows of which file it was."""
    if not len(batch):
        return
    try:
        balancer.partial_fit(batch.X, batch.y, treatment=batch.treatment, timestamps=batch.timestamps)
    except ValueError as error:
        last = part.first + len(part) - 1
        raise ValueError(f"rows {part.first:,} to {last:,} of {part.source}: {error}") from error


def totals(balancer: StreamingBalancer, batch: Batch) -> dict[Label, tuple[int, float]]:
    """Rows and sum of outcomes by arm, under the labels that the balancer has."""
    words = any(isinstance(label, str) for label in balancer.n_arm_)
    treatment = batch.treatment.astype(str if words else float).to_numpy()
    return {
        str(label) if words else int(label): (int(rows.sum()), float(batch.y[rows].sum()))
        for label in np.unique(treatment)
        if (rows := treatment == label).any()
    }


def beside(balancer: StreamingBalancer) -> dict[str, EffectStream]:
    """What a user might take instead, over the same blocks, at the same seed; and the other preset."""
    shared: dict[str, Any] = {
        name: getattr(balancer, name)
        for name in ("block_size", "estimand", "ci", "alpha", "warmup", "random_state", "lam")
    }
    described = balancer.outcomes == "subset"
    both = {name: value for name, value in shared.items() if name != "block_size"} | {
        "coreset_size": balancer.coreset_size
    }
    return {
        "exact moments": ExactMomentBalancer(**shared),
        "reservoir, as many rows": ReservoirBalancer(4 * balancer.coreset_size + 64, **shared),
        "as shipped" if described else "as described": (
            StreamingBalancer(**both, pairing=balancer.pairing)
            if described
            else StreamingBalancer.as_described(**both, pairing=balancer.pairing)
        ),
    }


# -- in parts


@dataclass(frozen=True)
class Part:
    """Consecutive stretches of files: name, rows to skip, and rows to read (None: to the end)."""

    stretches: tuple[tuple[str, int, int | None], ...]


def parts(sources: Sequence[Source], journey: Journey, n: int) -> list[Part]:
    """What was not read yet: row groups of Parquet files, and whole other files, dealt out in order to n parts of about equal size.

    Raises
    ------
    ValueError
        If there are fewer than two pieces to deal out.
    """
    units: list[tuple[str, int, int | None, float]] = []
    for source in sources:
        read = journey.begun(source).rows
        for name, start, rows, size in _units(source):
            if rows is None:
                units.append((name, read, None, size))
            elif start + rows > read:
                begun = max(read - start, 0)
                units.append((name, start + begun, rows - begun, size))
    if len(units) < 2:
        raise ValueError(
            f"{sources[0].name} cannot be read in parts: files are split by the row groups of Parquet, and there are fewer than two to "
            "share; write smaller row groups, name several files, or leave out --workers and --ray"
        )
    return _dealt(units, min(n, len(units)))


def _units(source: Source) -> list[tuple[str, int, int | None, float]]:
    if source.kind != "parquet":
        return [(source.name, 0, None, float(source.nbytes))]
    found, start = [], 0
    with parquet_file(source.name) as file:
        for group in range(file.num_row_groups):
            shape = file.metadata.row_group(group)
            found.append((source.name, start, shape.num_rows, float(shape.total_byte_size)))
            start += shape.num_rows
    return found


def _dealt(units: list[tuple[str, int, int | None, float]], n: int) -> list[Part]:
    ends = np.cumsum([size for *_, size in units])
    number = np.minimum((n * (ends - ends[0] / 2) / ends[-1]).astype(int), n - 1)
    dealt = [[unit[:3] for unit, mine in zip(units, number, strict=True) if mine == part] for part in range(n)]
    return [Part(tuple(stretches)) for stretches in dealt if stretches]


def read_in_parts(watch: Watch, sources: Sequence[Source], compute: Compute, n: int) -> EffectEstimate:
    """The warm-up here, all else in n parts by workers; sketches, positions and counts merged."""
    _warm_up(watch, sources)
    shares = parts(sources, watch.journey, n)
    watch.balancer, read = reduced(watch.balancer, read_part, [(share, watch.columns) for share in shares], compute)
    for journey, skipped in read:
        for record in journey.files:
            mine = next(one for one in watch.journey.files if one.name == record.name)
            mine.rows += record.rows
        watch.journey.add(journey.totals)
        for name, count in skipped.items():
            watch.columns.skipped[name] = watch.columns.skipped.get(name, 0) + count
    watch.report()
    assert watch.last is not None
    return watch.last


def _warm_up(watch: Watch, sources: Sequence[Source]) -> None:
    for source in sources:
        record = watch.journey.begun(source)
        if watch.balancer.feature_map_ is not None:
            continue
        for chunk in source.chunks(record.rows, watch.columns.wanted):
            for at in range(0, len(chunk), WARM_ROWS):
                part = chunk[at : at + WARM_ROWS]
                watch.learn(part)
                record.rows += len(part)
                if watch.balancer.feature_map_ is not None:
                    break
            if watch.balancer.feature_map_ is not None:
                break
    if watch.balancer.feature_map_ is None:
        raise ValueError(
            f"all files together have fewer than the {watch.balancer.warmup} rows that fix the features, and nothing is left to share; "
            "leave out --workers and --ray"
        )


def read_part(worker: StreamingBalancer, part: Part, columns: Columns) -> tuple[Journey, dict[str, int]]:
    """Read a part into an empty balancer; what was read, and what was left out."""
    journey = Journey()
    columns.skipped = {}
    for name, skip, rows in part.stretches:
        source = Source(name, lenient=columns.skip)
        record = journey.begun(source)
        for chunk in source.chunks(skip, columns.wanted):
            kept = chunk if rows is None else chunk[0 : skip + rows + 1 - chunk.first]
            batch = columns.usable(kept)
            learn(worker, batch, kept)
            journey.add(totals(worker, batch))
            record.rows += len(kept)
            if rows is not None and chunk.first + len(chunk) - 1 >= skip + rows:
                break
    return journey, columns.skipped
