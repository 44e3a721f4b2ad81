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
        (["mom", "--out", "no/x.csv"], "the folder no does not exist; make it first, or name another with --out"),
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


@pytest.fixture
def many_files(inside, monkeypatch):
    """The worked example, as if its data were several files."""
    import mom.command

    def write_data(folder: Path) -> None:
        assert list(folder.iterdir()) == []
        for name in ("past.csv", "today.csv"):
            (folder / name).write_text("value\n1\n")

    monkeypatch.setattr(mom.command, "WRITES_A_FOLDER", True, raising=False)
    monkeypatch.setattr(mom.command, "write_data", write_data)
    return inside


@pytest.mark.parametrize("there", [False, True])
def test_writes_a_new_or_empty_folder(many_files, tmp_path, there):
    if there:
        (tmp_path / "days").mkdir()
    done = many_files("data", "mom", "--out", "days")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("wrote days; try\n  upheld run mom days ")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["days", "past.csv", "today.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "full"], "full is there already and not empty; --out names a new folder"),
        (
            ["--out", "new", "--force"],
            "--force replaces a file, and this method's data are a folder; name a new one with --out",
        ),
        (["--out", "full/x"], "full/x is a file; this method's data are several files, so --out names a new folder"),
        (["--out", "no/days"], "the folder no does not exist; make it first, or name another with --out"),
    ],
)
def test_never_replaces_a_folder(many_files, tmp_path, arguments, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    assert refused(many_files("data", "mom", *arguments)) == message
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "x"]


def test_a_folder_that_fails_half_way_leaves_nothing(many_files, tmp_path, monkeypatch):
    def write_data(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ValueError("the other half is missing")

    monkeypatch.setattr("mom.command.write_data", write_data)
    assert refused(many_files("data", "mom", "--out", "days")) == "the other half is missing"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc, where nobody may write")
def test_a_folder_that_cannot_be_written(inside):
    sentence = refused(inside("data", "mom", "--out", "/proc/x.csv"))
    assert sentence.startswith("/proc cannot be written to (")
    assert sentence.endswith("name a place of yours with --out")


def test_a_folder_of_empty_files_is_a_full_disk(many_files, tmp_path, monkeypatch):
    """Compiled writers do not say that there was no room."""
    monkeypatch.setattr("mom.command.write_data", lambda folder: (folder / "table.mps").touch())
    assert refused(many_files("data", "mom", "--out", "days")).startswith(
        "days cannot be written (No space left on device)"
    )
    assert list(tmp_path.iterdir()) == []
