"""Files that are whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from upheld.storage import whole_file


def write_files(folder: Path, contents: Mapping[str, str | bytes]) -> list[Path]:
    """Write texts, or bytes, under their file names; returns the paths.

    Every content is on the disk before the first file is put in place, so a full disk leaves what was there.
    A name that is no text (a file's, quoted) is written with escapes.

    Raises
    ------
    ValueError
        If the folder or a file in it cannot be written; the message says which.
    """
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as waiting:
            for name, content in contents.items():
                path = folder / name
                file = waiting.enter_context(whole_file(path, "wb"))
                file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise ValueError(
            f"cannot write {error.filename2 or path}: {error.strerror or error}; name a folder of yours with --out"
        ) from error
    return [folder / name for name in contents]


def expect_folder(out: Path, option: str = "--out") -> None:
    """Say now, and not after the run, that files cannot be written to a folder, which need not be there yet.

    Raises
    ------
    ValueError
        If a file is in the way, or the place cannot be written to.
    """
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not place.is_dir():
        raise ValueError(f"{place} is a file, so nothing can be written to {out}; name a folder with {option}")
    _expect_writable(place, option)


def expect_file(path: Path, option: str) -> None:
    """Say now, and not after the run, that a file cannot be written.

    Raises
    ------
    ValueError
        If it is a folder or a device, or its folder is not there or cannot be written to.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; {option} names the file to write")
    if path.exists() and not path.is_file():  # a file renamed to its place would be there instead of the device
        raise ValueError(f"{path} is a device or a pipe; {option} names a file to write")
    if not path.parent.is_dir():
        raise ValueError(f"the folder {path.parent} does not exist; make it first, or name another with {option}")
    _expect_writable(path.parent, option)


def _expect_writable(folder: Path, option: str) -> None:
    """By trying: the rights of a folder do not tell of a file system that is mounted to be read."""
    try:
        with tempfile.TemporaryFile(prefix=".upheld.", dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be written to ({error.strerror or error}); name a place of yours with {option}"
        ) from error
