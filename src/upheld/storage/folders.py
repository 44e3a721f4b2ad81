"""A folder of files that is expensive to make: made once, found again, never taken for whole when it is not."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """``$UPHELD_CACHE``, else the user's cache directory."""
    chosen = os.environ.get("UPHELD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("upheld"))


def built_once(path: Path, build: Callable[[Path], None]) -> Path:
    """The folder `path`, filled by `build` when it is not there yet; other processes wait, they do not build twice.

    It is built under another name and renamed: a build that is killed leaves nothing that looks whole, and the next one
    clears what it left.
    """
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    with _locked(path.with_name(f"{path.name}.lock")):
        if not path.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            try:
                build(unfinished)
                _flush(unfinished)
                unfinished.rename(path)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
    return path


def _flush(folder: Path) -> None:
    """Have the files on the disk before their folder gets its name: what has the name is whole, even after a power cut."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
