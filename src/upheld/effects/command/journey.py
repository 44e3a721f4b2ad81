"""What a sketch remembers of its reading: which rows of which files, what was left out, and the estimates on the way.

It is written into the sketch's own archive, under the same digest, so that sketch and position are one file that is whole or not
there; `StreamingBalancer.from_bytes` reads such a file as any other sketch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from upheld.effects.balancer import StreamingBalancer
from upheld.effects.command.columns import Columns
from upheld.effects.command.sources import STDIN, Source
from upheld.effects.estimate import EffectEstimate
from upheld.effects.rows import Label
from upheld.effects.sketch import pack, unpack
from upheld.storage import whole_file

KEY = "reading"
MOST_POINTS = 512  # of the way of the estimates


@dataclass
class FileRead:
    """Rows read of a file, and the digest of its first `head_bytes` bytes."""

    name: str
    rows: int
    head_bytes: int
    head: str


@dataclass
class Point:
    """An estimate on the way: after n rows, the effect of an arm and its interval; None where there was none."""

    n: int
    arm: Label
    ate: float | None
    low: float | None
    high: float | None


@dataclass
class Journey:
    """Files, totals of outcomes by arm (for the difference in means), and the way of the estimates, thinned to 512 times."""

    files: list[FileRead] = field(default_factory=list)
    totals: dict[Label, tuple[int, float]] = field(default_factory=dict)
    way: list[Point] = field(default_factory=list)
    stride: int = 1
    reports: int = 0

    @property
    def rows(self) -> int:
        """Read so far, those that were skipped among them."""
        return sum(one.rows for one in self.files)

    def begun(self, source: Source) -> FileRead:
        """The record of a file, a new one if it was not read before. One that was renamed, so that its old name is gone, is known by its
        first bytes; one under two names at once, by being the same.

        Raises
        ------
        ValueError
            If a file of that name was read before, and begins differently now.
        """
        for one in self.files:
            if one.name == source.name != STDIN:
                if source.head(one.head_bytes) != (one.head_bytes, one.head):
                    raise ValueError(
                        f"{source.name} is not the file of that name of which {one.rows:,} rows were read before: it begins "
                        "differently; rename it, or leave out --resume"
                    )
                return one
        for one in self.files:
            if one.rows and STDIN not in (one.name, source.name) and _moved(one, source):
                one.name = source.name
                return one
        self.files.append(FileRead(source.name, 0, *source.head()))
        return self.files[-1]

    def add(self, totals: dict[Label, tuple[int, float]]) -> None:
        for label, (count, total) in totals.items():
            n, y = self.totals.get(label, (0, 0.0))
            self.totals[label] = n + count, y + total

    def note(self, estimate: EffectEstimate) -> None:
        """One more estimate on the way; every second one goes when there are too many."""
        if self.reports % self.stride == 0:
            self.way += [
                Point(
                    estimate.n,
                    one.arm,
                    *(None if one.reason else value for value in (one.ate, one.ci_low, one.ci_high)),
                )
                for one in estimate.contrasts
            ]
        self.reports += 1
        times = sorted({one.n for one in self.way})
        if len(times) > MOST_POINTS:
            kept = set(times[::2])
            self.way = [one for one in self.way if one.n in kept]
            self.stride *= 2

    def differences(self) -> dict[Label, float]:
        """Differences in means against the lowest arm."""
        labels = sorted(self.totals, key=lambda label: (isinstance(label, str), label))
        means = {label: self.totals[label][1] / self.totals[label][0] for label in labels}
        return {label: means[label] - means[labels[0]] for label in labels[1:]}

    def state(self) -> dict[str, Any]:
        return asdict(self) | {"totals": [[label, *total] for label, total in self.totals.items()]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Journey:
        return cls(
            [FileRead(**one) for one in state["files"]],
            {label: (count, total) for label, count, total in state["totals"]},
            [Point(**one) for one in state["way"]],
            state["stride"],
            state["reports"],
        )


def _moved(one: FileRead, source: Source) -> bool:
    """Whether a file is one read before, which had another name."""
    old = Path(one.name)
    if old.exists():
        return old.samefile(source.name)
    return source.head(one.head_bytes) == (one.head_bytes, one.head)


def save(path: Path, balancer: StreamingBalancer, columns: Columns | None, journey: Journey) -> None:
    """The sketch with its position, whole or not there."""
    header, arrays = unpack(balancer.to_bytes())
    header[KEY] = {"journey": journey.state(), "columns": None if columns is None else asdict(columns)}
    with whole_file(path, "wb") as file:
        file.write(pack(header, arrays))


def load(path: Path) -> tuple[StreamingBalancer, Columns | None, Journey]:
    """What `save` wrote; a sketch that a program wrote has no columns and no journey.

    Raises
    ------
    ValueError
        Naming the file, if it is no sketch or damaged.
    """
    data = path.read_bytes()
    try:
        balancer = StreamingBalancer.from_bytes(data)
        reading = unpack(data)[0].get(KEY)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if reading is None:
        return balancer, None, Journey()
    columns = reading["columns"]
    if columns is not None:
        for name in ("covariates", "words"):
            columns[name] = None if columns[name] is None else tuple(columns[name])
        columns = Columns(**columns)
    return balancer, columns, Journey.from_state(reading["journey"])
