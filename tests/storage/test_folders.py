"""Folders that are made once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from upheld.storage import built_once, cache_folder

BUILDER = """
import os, signal, sys, time
from pathlib import Path
from upheld.storage import built_once

path, log, die = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "die"

def build(folder):
    with log.open("a") as file:
        file.write("built\\n")
    (folder / "half").write_text("of it")
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    (folder / "other").write_text("half")

print(sorted(file.name for file in built_once(path, build).iterdir()))
"""


def builder(path: Path, log: Path, end: str = "well") -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", BUILDER, path, log, end], stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_build_once(tmp_path):
    path, log = tmp_path / "models" / "m-1.0", tmp_path / "log"
    both = [builder(path, log), builder(path, log)]
    assert [process.communicate(timeout=60)[0] for process in both] == ["['half', 'other']\n"] * 2
    assert [process.returncode for process in both] == [0, 0]
    assert log.read_text() == "built\n"


def test_a_build_that_is_killed_leaves_nothing_that_looks_whole(tmp_path):
    path = tmp_path / "models" / "m-1.0"
    killed = builder(path, tmp_path / "log", "die")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not path.exists()
    built_once(path, lambda folder: (folder / "new").write_text("whole") and None)
    assert [file.name for file in path.iterdir()] == ["new"]


def test_a_build_that_fails_leaves_nothing_and_says_why(tmp_path):
    def build(folder: Path) -> None:
        (folder / "half").write_text("of it")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        built_once(tmp_path / "m", build)
    assert [path.name for path in tmp_path.iterdir()] == ["m.lock"]


def test_what_is_there_is_not_built_again(tmp_path):
    (tmp_path / "m").mkdir()
    assert built_once(tmp_path / "m", lambda _: pytest.fail("built")) == tmp_path / "m"


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("UPHELD_CACHE")
    assert cache_folder().name == "upheld"
