"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from upheld.storage import whole_file


def test_it_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.jsonl"
    with whole_file(path) as file:
        file.write("grüße\n")
        assert not path.exists()
    assert path.read_bytes() == "grüße\n".encode()
    assert list(path.parent.iterdir()) == [path]


def _write_and_stop(path: Path, end: BaseException) -> None:
    with whole_file(path, "wb") as file:
        file.write(b"new")
        raise end


@pytest.mark.parametrize("end", [RuntimeError("stop"), KeyboardInterrupt()])
def test_what_ends_it_leaves_what_was_there(tmp_path: Path, end: BaseException) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(type(end)):
        _write_and_stop(path, end)
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"x": "old"}


def test_others_may_read_what_the_user_s_mask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "x") as file:
            file.write("")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
