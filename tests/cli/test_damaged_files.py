"""Damaged files of every kind that a command reads, through the command: an answer, or a refusal in a sentence, and never a traceback.

`benchmarks/faults` does the same with many more. `UPHELD_DAMAGED` sets how many a method.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from random import Random

import pytest

from readings import WRITERS, answered, attempt, prepare, readings_of

MANY = int(os.environ.get("UPHELD_DAMAGED", "8"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", list(WRITERS))
def test_damaged_files_are_refused_in_a_sentence(method, tmp_path, monkeypatch):
    torch_threads = pytest.importorskip("torch").get_num_threads()
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path / "cache"))
    sound = tmp_path / "sound"
    prepare(method, sound)
    readings = readings_of(method)
    assert not answered(readings[0], sound).code, "the sound file is read"
    refused = 0
    for number in range(MANY):
        place = tmp_path / str(number)
        place.mkdir()
        found, what = attempt(readings[number % len(readings)], sound, place, Random(number))
        assert not found.fault, (number, what, found.fault, found.said)
        refused += found.code == 2
    assert refused >= MANY // 4
    pytest.importorskip("torch").set_num_threads(torch_threads)


def test_a_refusal_that_quotes_a_huge_cell_is_shortened(inside, tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b,g\n" + "x" * 100_000 + ",2,one\n3,4,two\n")
    done = inside("run", "hubs", "t.csv", "--groups", "g")
    assert done.returncode == 2
    assert len(done.stderr) < 1500
    assert " ... " in done.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "there is not enough memory for this"),
        (RecursionError("maximum recursion depth exceeded"), "nested without end"),
        (csv.Error("field larger than field limit (131072)"), "cannot be read (field larger than"),
        (Exception("expected value at line 1"), "cannot be read (expected value at line 1)"),
    ],
)
def test_what_no_library_calls_an_error_of_input(inside, monkeypatch, error, said):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("upheld.cli.data.find", fail)
    done = inside("data", "hubs", "--out", "x.csv")
    assert done.returncode == 2
    assert said in done.stderr


def test_a_fault_of_the_command_is_no_fault_of_the_file(inside, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr("upheld.cli.data.find", fail)
    with pytest.raises(AssertionError, match="a bug"):
        inside("data", "hubs", "--out", "x.csv")
