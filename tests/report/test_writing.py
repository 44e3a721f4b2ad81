from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from upheld.report import writing
from upheld.report.writing import expect_file, expect_folder, write_files


def test_files_are_written_with_their_folders(tmp_path: Path) -> None:
    paths = write_files(tmp_path / "a" / "b", {"x.html": "grüße\n", "y.json": "{}", "z.png": b"\r\n\xff"})
    assert [path.read_bytes() for path in paths] == ["grüße\n".encode(), b"{}", b"\r\n\xff"]


def test_others_may_read_what_the_user_s_mask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        (path,) = write_files(tmp_path, {"x": ""})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ValueError, match=r"cannot write .*out.*--out"):
        write_files(tmp_path / "out", {"index.html": "x"})
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match=r"cannot write .*Permission denied"):
        write_files(tmp_path, {"index.html": "x"})


def test_a_disk_that_fills_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a.html": "old a", "b.html": "old b"})
    written: list[int] = []

    def fsync(handle: int) -> None:
        written.append(handle)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "fsync", fsync)
    with pytest.raises(ValueError, match=r"b\.html: No space left on device"):
        write_files(tmp_path, {"a.html": "new a", "b.html": "new b"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.html": "old a", "b.html": "old b"}


def test_a_name_that_is_no_text_is_written_with_escapes(tmp_path: Path) -> None:
    (path,) = write_files(tmp_path, {"x.json": '"bad\udcff.csv"'})
    assert path.read_text(encoding="utf-8") == r'"bad\udcff.csv"'


def test_places_that_can_be_written_to(tmp_path):
    expect_folder(tmp_path)
    expect_folder(tmp_path / "not" / "there" / "yet")
    expect_file(tmp_path / "new.csv", "--save")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for check, path, sentence in (
        (expect_folder, tmp_path / "file", "file is a file, so nothing can be written to .*file; name a folder with --pictures"),
        (expect_folder, tmp_path / "file" / "deep", "file is a file, so nothing can be written to .*deep"),
        (expect_folder, Path("/proc/out"), r"/proc cannot be written to \(.*\); name a place of yours with --pictures"),
        (expect_file, tmp_path, "is a folder; --pictures names the file to write"),
        (expect_file, tmp_path / "pipe", "pipe is a device or a pipe; --pictures names a file to write"),
        (expect_file, tmp_path / "no" / "a.csv", "the folder .*no does not exist; make it first"),
        (expect_file, Path("/proc/a.csv"), r"/proc cannot be written to \("),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            check(path, "--pictures")
