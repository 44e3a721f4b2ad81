"""Files that are whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_files(folder: Path, contents: Mapping[str, str | bytes]) -> list[Path]:
    """Write texts, or bytes, under their file names; returns the paths.

    Every content is on the disk before the first file is put in place, so a full disk leaves what was there.
    A name that is no text (a file's, quoted) is written with escapes.

    Raises
    ------
    ValueError
        If the folder or a file in it cannot be written; the message says which.
    """
    waiting: dict[Path, str] = {}
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            path = folder / name
            waiting[path] = _beside(
                path, content.encode(errors="backslashreplace") if isinstance(content, str) else content
            )
        for path, temporary in waiting.items():
            os.replace(temporary, path)
    except OSError as error:
        raise ValueError(
            f"cannot write {path}: {error.strerror or error}; name a folder of yours with --out"
        ) from error
    finally:
        for temporary in waiting.values():
            Path(temporary).unlink(missing_ok=True)
    return list(waiting)


def _beside(path: Path, content: bytes) -> str:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _usual_mode())
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return temporary


def _usual_mode() -> int:
    """What `open` would have given the file; `mkstemp` keeps it to its owner."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
