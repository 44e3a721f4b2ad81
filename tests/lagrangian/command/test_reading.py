"""Which files are meant, and which coupling rows."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP
from upheld.lagrangian.command.reading import Reader, Source, attributed, named_files, rows_in_file


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--train a b c --test x", (["a", "b", "c"], ["x"])),
        ("--train a --test x y z", (["a"], ["x", "y", "z"])),
        ("--test x y --train a b", (["a", "b"], ["x", "y"])),
        ("--train=a b --test=x y --json", (["a", "b"], ["x", "y"])),
        ("--train a b --json c --test x", (["a", "b", "c"], ["x"])),
        ("a --train b --test x", (["b", "a"], ["x"])),
    ],
)
def test_files_belong_to_the_option_before_them(words, expected):
    train, test, files = [], [], []
    of = {"--train": train, "--test": test}
    waiting = None
    for word in words.split():  # as a parser of options gives them
        name, equals, value = word.partition("=")
        if name in of and equals:
            of[name].append(value)
        elif name in of:
            waiting = of[name]
        elif waiting is not None:
            waiting.append(word)
            waiting = None
        elif not word.startswith("--"):
            files.append(word)
    assert attributed(train, test, files, ["run", "lagrangian", *words.split()]) == expected


def test_files_that_are_not_on_the_command_line_are_learned_from():
    assert attributed(["a"], ["x"], ["b"], ["pytest", "-q"]) == (["a", "b"], ["x"])


def test_patterns_and_folders_are_sorted_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "past").mkdir()
    for name in ("day_2.mps", "day_1.mps", "day_3.lp.gz", "notes.txt"):
        (tmp_path / "past" / name).touch()
    assert [source.path.name for source in named_files(["past"], "--train")] == [
        "day_1.mps",
        "day_2.mps",
        "day_3.lp.gz",
    ]
    assert [source.path.name for source in named_files(["past/*.mps"], "--train")] == ["day_1.mps", "day_2.mps"]
    assert [source.path.name for source in named_files(["past/day_2.mps", "past/day_1.mps"], "--train")] == [
        "day_2.mps",
        "day_1.mps",
    ]


RANGED = """\
NAME          RANGED
ROWS
 N  COST
 G  tie
 G  one
 G  two
COLUMNS
    x         COST                 1   tie                  1
    x         one                  1
    y         COST                 1   tie                  1
    y         two                  1
    z         one                  1   tie                  1
    w         two                  1   tie                  1
RHS
    RHS       tie                  1
RANGES
    RNG       tie                  2
BOUNDS
 UP BND       x                    2
 UP BND       y                    2
 UP BND       z                    1
 UP BND       w                    1
ENDATA
"""  # 1 <= x + y + z + w <= 3


def test_a_row_with_two_sides_is_one_row_of_the_file(tmp_path):
    """Detection names the rows of the first file; those of the next are found by these names."""
    for name in ("a.mps", "b.mps"):
        (tmp_path / name).write_text(RANGED)
    P = CoupledMILP.from_mps(tmp_path / "a.mps", "tie")
    assert P.row_names == ["tie", "tie_upper"]
    assert P.b.tolist() == [1, -3]
    assert rows_in_file(P.row_names) == ["tie"]
    reader = Reader("auto", "detection", 0.0)
    (first,), (again,) = (reader.read(Source(tmp_path / name)) for name in ("a.mps", "b.mps"))
    assert again.P.row_names == first.P.row_names == ["tie", "tie_upper"]
    np.testing.assert_array_equal(again.P.b, first.P.b)
    assert first.name == "a"
