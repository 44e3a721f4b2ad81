"""The user's files: which they are, what their coupling rows are, and the instances in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import numpy as np

from upheld.lagrangian.command.formats import LIBRARIES, Formats, columns_of
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.saving import CARRY_OVER

ENDINGS = (".mps", ".lp", ".mps.gz", ".lp.gz")


def attributed(
    train: Sequence[str], test: Sequence[str], files: Sequence[str], words: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Files that a shell made of a pattern belong to the option before them: those of ``--test`` are tested, not learned from.

    Parameters
    ----------
    files : what stood on the command line outside options
    words : the command line; where `files` are not in it, they belong to ``--train``

    >>> attributed(["a"], ["x"], ["b", "y"], ["--train", "a", "b", "--test", "x", "y"])
    (['a', 'b'], ['x', 'y'])
    """
    left, option = list(files), "--train"
    of: dict[str, list[str]] = {"--train": list(train), "--test": list(test)}
    begun = False  # the first word after an option is its value
    for word in words:
        if word.startswith("-"):
            name = word.partition("=")[0]
            option, begun = (name if name in of else "--train"), "=" not in word and name in of
        elif begun:
            begun = False
        elif word in left:
            left.remove(word)
            of[option].append(word)
    return of["--train"] + left, of["--test"]


@dataclass(frozen=True)
class Source:
    """A file, and which of the instances in it: from the `first` to the `last`, or all (None)."""

    path: Path
    first: int | None = None
    last: int | None = None

    def meets(self, other: Source) -> bool:
        """Whether an instance is in both."""
        if self.path.resolve() != other.path.resolve():
            return False
        if self.first is None or other.first is None or self.last is None or other.last is None:
            return True
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        if self.first is None:
            return str(self.path)
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last != self.first else "")


def named_files(names: Sequence[str], option: str) -> list[Source]:
    """The files that names, patterns and folders stand for, in this order; patterns and folders by name.

    ``gap1.txt:1-4`` is the first four instances of a file that holds several.

    Raises
    ------
    ValueError
        If one stands for no file, is no model by its ending, or comes twice.
    """
    found: list[Source] = []
    for name in names:
        found += _meant(name, option)
    for source in found:
        if not source.path.name.endswith(ENDINGS + LIBRARIES):
            raise ValueError(
                f"{source.path} is no model by its name; files in {', '.join(ENDINGS)} are read, and OR-Library's .txt and CVRPLIB's .vrp"
            )
    for k, source in enumerate(found):
        if any(source.meets(other) for other in found[:k]):
            raise ValueError(f"{source} is named twice with {option}; name it once")
    return found


def _meant(name: str, option: str) -> list[Source]:
    if Path(name).is_dir():
        inside = sorted(Path(name).iterdir())
        for endings in (ENDINGS, LIBRARIES):  # notes.txt beside models is no instance
            these = [Source(path) for path in inside if path.name.endswith(endings)]
            if these:
                return these
        raise ValueError(
            f"the folder {name} holds no {', '.join(ENDINGS + LIBRARIES)} files; name another with {option}"
        )
    if Path(name).exists():
        return [Source(Path(name))]
    picked = re.fullmatch(r"(.+):(\d+)(?:-(\d+))?", name)
    if picked and Path(picked[1]).is_file():
        first, last = int(picked[2]), int(picked[3] or picked[2])
        if not 1 <= first <= last:
            raise ValueError(f"{name} names no instance; count from 1, as in {picked[1]}:1-4")
        return [Source(Path(picked[1]), first, last)]
    these = [Source(Path(path)) for path in sorted(glob(name))]
    if not these:
        raise ValueError(f"there is no file {name}; {option} names .mps or .lp files, a pattern or a folder")
    return these


def check_apart(train: Sequence[Source], test: Sequence[Source]) -> None:
    """What is tested was not learned from.

    Raises
    ------
    ValueError
        If an instance is in both.
    """
    for source in test:
        if any(source.meets(other) for other in train):
            raise ValueError(
                f"{source} is in --train and in --test; a bound on what was learned from says nothing about tomorrow"
            )


@dataclass(frozen=True)
class Read:
    """An instance, its monolith, and the file it came from.

    Attributes
    ----------
    P : answers with its own oracle where the format says what it is, else is the monolith
    M : the monolith
    columns : names of a plan's entries
    number : its position, from 1, in a file that holds several
    """

    path: Path
    P: Instance
    M: CoupledMILP
    columns: Sequence[str]
    number: int | None = None

    @property
    def name(self) -> str:
        stem = self.path.name.split(".")[0] if self.path.name.endswith(".gz") else self.path.stem
        return stem if self.number is None else f"{stem}_{self.number}"

    @property
    def title(self) -> str:
        """The file as it was named, with the position."""
        return str(self.path) if self.number is None else f"{self.path}:{self.number}"


class Reader:
    """Reads instances with the same coupling rows.

    Parameters
    ----------
    coupling : as in `CoupledMILP.from_mps`; ``"auto"`` finds the rows of the first file, and takes those of the same names in all
        others
    found_by : who says which rows they are, for the report
    block_gap : see `CoupledMILP`
    formats : what files of OR-Library and CVRPLIB leave open
    """

    def __init__(
        self, coupling: str | Sequence[str], found_by: str, block_gap: float, formats: Formats | None = None
    ) -> None:
        self.coupling, self.found_by, self.block_gap = coupling, found_by, block_gap
        self.formats = formats or Formats()
        self.first: Read | None = None

    def read(self, source: Source) -> list[Read]:
        """
        Raises
        ------
        ValueError
            If the file is no model, or its coupling rows are not those of the first; the message begins with the file.
        """
        path = source.path
        with named(path):
            found = self._of_library(source) if path.name.endswith(LIBRARIES) else [self._model(source)]
            for read in found:
                if self.first is not None:
                    _check_same(self.first, read.M)
                self.first = self.first or read
        return found

    def _model(self, source: Source) -> Read:
        if source.first is not None:
            raise ValueError(f"it holds one instance, so that :{source.first} is none of it; leave that out")
        P = CoupledMILP.from_mps(source.path, self.coupling)
        if self.coupling == "auto":
            self.coupling = rows_in_file(P.row_names)
        P.gap = self.block_gap
        return Read(source.path, P, P, P.column_names)

    def _of_library(self, source: Source) -> list[Read]:
        """The format says which rows couple, and the blocks are solved exactly by their own algorithms."""
        if self.found_by == "the pattern":
            raise ValueError("files of OR-Library and CVRPLIB say themselves which rows couple; leave --coupling out")
        if self.block_gap > 0:
            raise ValueError(
                "the blocks of OR-Library's and CVRPLIB's problems are solved exactly; leave --block-gap out"
            )
        if self.found_by == "detection":
            self.found_by = "the format"
        found = self.formats.instances(source.path)
        last = source.last or len(found)
        if last > len(found):
            raise ValueError(f"it holds {len(found)} instances, so that there is no number {last}; name fewer")
        several = len(found) > 1
        return [
            Read(source.path, P, P.linear_model(), columns_of(P), k if several else None)
            for k, P in enumerate(found, 1)
            if (source.first or 1) <= k <= last
        ]


@contextmanager
def explained(P: Instance) -> Iterator[None]:
    """Where the LP relaxation has no optimum because of one block, that block is named, and the variable that lacks a bound."""
    try:
        yield
    except ValueError:
        P.oracle(np.zeros(P.n_rows))  # a block that is infeasible or unbounded says so itself
        raise


def _check_same(first: Read, M: CoupledMILP) -> None:
    """The coupling rows are those of the first instance, and so is the sense."""
    if M.row_names != first.M.row_names:
        lacking = [name for name in first.M.row_names if name not in set(M.row_names)]
        extra = [name for name in M.row_names if name not in set(first.M.row_names)]
        what = (
            (lacking and f"lacks {_some(lacking)}")
            or (extra and f"has also {_some(extra)}")
            or "has them in another order"
        )
        raise ValueError(f"its coupling rows are not those of {first.title}: it {what}; {CARRY_OVER}")
    changed = (M.equality != first.M.equality) | (M.negated != first.M.negated)
    if changed.any():
        row = M.row_names[int(np.argmax(changed))]
        raise ValueError(f"the coupling row {row} is of another kind (<=, = or >=) than in {first.title}; {CARRY_OVER}")
    if M.maximise != first.M.maximise:
        raise ValueError(f"one of it and {first.title} is minimised and the other maximised; state both in one sense")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def rows_in_file(row_names: Sequence[str]) -> list[str]:
    """Names of coupling rows as a file has them: a row with two sides became two.

    >>> rows_in_file(["tie", "tie_upper", "upper"])
    ['tie', 'upper']
    """
    names = set(row_names)
    return [name for name in row_names if not (name.endswith("_upper") and name.removesuffix("_upper") in names)]


@contextmanager
def named(path: Path) -> Iterator[None]:
    """What is wrong with an instance is told with its file."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        sentence = str(error)
        raise ValueError(sentence if str(path) in sentence else f"{path}: {sentence}") from error
