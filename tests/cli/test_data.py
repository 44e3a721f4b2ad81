"""``upheld data``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from installed import LISTED, refused


def test_writes_what_the_method_then_reads(upheld):
    done = upheld("data", "mom", "--out", "x.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "wrote x.csv; try\n  upheld run mom x.csv --column value\n"
    assert len(pd.read_csv(upheld.folder / "x.csv")) == 1000
    assert upheld("run", "mom", "x.csv", "--column", "value").returncode == 0
    assert [path.name for path in upheld.folder.iterdir()] == ["x.csv"]


def test_replaces_a_file_only_when_told(upheld):
    file = upheld.folder / "x.csv"
    file.write_text("mine")
    assert refused(upheld("data", "mom", "--out", "x.csv")) == (
        "x.csv is there already; name another file, or add --force to replace it"
    )
    assert file.read_text() == "mine"
    assert upheld("data", "mom", "--out", "x.csv", "--force").returncode == 0
    assert file.read_text().startswith("value\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch", "--out", "x.csv"], f"no method 'nosuch'; there are {LISTED}"),
        (["mom", "--out", "."], ". is a folder; --out names the file to write"),
        (["mom", "--out", "no/x.csv"], "the folder no does not exist; make it first, or name another"),
        (["mom"], "Missing option '--out'. (upheld data --help tells how)"),
    ],
)
def test_bad_input(inside, arguments, message):
    assert refused(inside("data", *arguments)) == message


def test_what_fails_half_way_leaves_nothing(inside, tmp_path):
    (tmp_path / "x.csv").write_text("mine")
    assert refused(inside("data", "brittle", "--out", "x.csv", "--force")) == "the other half is missing"
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
    assert (tmp_path / "x.csv").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc, where nobody may write")
def test_a_folder_that_cannot_be_written(inside):
    sentence = refused(inside("data", "mom", "--out", "/proc/x.csv"))
    assert sentence.startswith("/proc/x.csv cannot be written (")
    assert sentence.endswith("name a file in a folder of yours")
