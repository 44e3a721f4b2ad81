"""Files that are whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import os
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
