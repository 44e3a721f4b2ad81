"""A file that is whole or not there: written beside its place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def whole_file(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A file to write that takes its place when it is whole and on the disk; what goes wrong before leaves what was there.

    Parameters
    ----------
    path : its folder is made if need be
    mode : text is written as UTF-8

    Raises
    ------
    OSError
        If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _usual_mode())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _usual_mode() -> int:
    """What `open` would have given the file; `mkstemp` keeps it to its owner."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
