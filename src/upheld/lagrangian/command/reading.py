"""The user's files: which they are, what their coupling rows are, and the instances in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import numpy as np

from upheld.lagrangian.instance import CoupledMILP
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


def named_files(names: Sequence[str], option: str) -> list[Path]:
    """The files that names, patterns and folders stand for, in this order; patterns and folders by name.

    Raises
    ------
    ValueError
        If one stands for no file, is no model by its ending, or comes twice.
    """
    found: list[Path] = []
    for name in names:
        if Path(name).is_dir():
            these = sorted(path for path in Path(name).iterdir() if path.name.endswith(ENDINGS))
            if not these:
                raise ValueError(f"the folder {name} holds no {', '.join(ENDINGS)} files; name another with {option}")
        elif Path(name).exists():
            these = [Path(name)]
        else:
            these = sorted(Path(path) for path in glob(name))
            if not these:
                raise ValueError(f"there is no file {name}; {option} names .mps or .lp files, a pattern or a folder")
        found += these
    for path in found:
        if not path.name.endswith(ENDINGS):
            raise ValueError(f"{path} is no model by its name; HiGHS reads files in {', '.join(ENDINGS)}")
    twice = [path for path in found if found.count(path) > 1]
    if twice:
        raise ValueError(f"{twice[0]} is named twice with {option}; name it once")
    return found


def check_apart(train: Sequence[Path], test: Sequence[Path]) -> None:
    """What is tested was not learned from.

    Raises
    ------
    ValueError
        If a file is in both.
    """
    learned = {path.resolve() for path in train}
    for path in test:
        if path.resolve() in learned:
            raise ValueError(
                f"{path} is in --train and in --test; a bound on what was learned from says nothing about tomorrow"
            )


@dataclass(frozen=True)
class Read:
    """An instance and the file it came from."""

    path: Path
    P: CoupledMILP

    @property
    def name(self) -> str:
        return self.path.name.split(".")[0] if self.path.name.endswith(".gz") else self.path.stem


class Reader:
    """Reads instances with the same coupling rows.

    Parameters
    ----------
    coupling : as in `CoupledMILP.from_mps`; ``"auto"`` finds the rows of the first file, and takes those of the same names in all
        others
    found_by : who says which rows they are, for the report
    block_gap : see `CoupledMILP`
    """

    def __init__(self, coupling: str | Sequence[str], found_by: str, block_gap: float) -> None:
        self.coupling, self.found_by, self.block_gap = coupling, found_by, block_gap
        self.first: Read | None = None

    def read(self, path: Path) -> Read:
        """
        Raises
        ------
        ValueError
            If the file is no model, or its coupling rows are not those of the first; the message begins with the file.
        """
        with named(path):
            P = CoupledMILP.from_mps(path, self.coupling)
            if self.coupling == "auto":
                self.coupling = rows_in_file(P.row_names)
            if self.first is not None:
                _check_same(self.first, P)
            P.gap = self.block_gap
        read = Read(path, P)
        self.first = self.first or read
        return read


@contextmanager
def explained(P: CoupledMILP) -> Iterator[None]:
    """Where the LP relaxation has no optimum because of one block, that block is named, and the variable that lacks a bound."""
    try:
        yield
    except ValueError:
        P.oracle(np.zeros(P.n_rows))  # a block that is infeasible or unbounded says so itself
        raise


def _check_same(first: Read, P: CoupledMILP) -> None:
    """The coupling rows are those of the first instance, and so is the sense."""
    if P.row_names != first.P.row_names:
        lacking = [name for name in first.P.row_names if name not in set(P.row_names)]
        extra = [name for name in P.row_names if name not in set(first.P.row_names)]
        what = (
            (lacking and f"lacks {_some(lacking)}")
            or (extra and f"has also {_some(extra)}")
            or "has them in another order"
        )
        raise ValueError(f"its coupling rows are not those of {first.path}: it {what}; {CARRY_OVER}")
    if (P.equality != first.P.equality).any() or (P.negated != first.P.negated).any():
        row = P.row_names[int(np.argmax((P.equality != first.P.equality) | (P.negated != first.P.negated)))]
        raise ValueError(f"the coupling row {row} is of another kind (<=, = or >=) than in {first.path}; {CARRY_OVER}")
    if P.maximise != first.P.maximise:
        raise ValueError(f"one of it and {first.path} is minimised and the other maximised; state both in one sense")


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
