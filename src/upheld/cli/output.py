"""What the verbs say, and where: results on standard output, everything about the way there on standard error."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def results() -> Console:
    """Standard output; a pipe gets plain text as wide as it needs."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=False)


def progress() -> Console:
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """Strict JSON on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


MOST_SIGNS = 1000  # of a sentence


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A file to write in place of `path`, which is replaced when all went well and untouched otherwise.

    It has the same ending, since that tells the format.
    """
    unfinished = path.with_name(f".unfinished.{path.name}")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror or error}); name a file in a folder of yours"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def filled(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path`, new or empty so far, when all went well; otherwise nothing stays."""
    unfinished = path.with_name(f".unfinished.{path.name}")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)  # what a killed process left
        unfinished.mkdir()
        yield unfinished
        _refuse_full(unfinished)
        unfinished.replace(path)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror or error}); name a new folder in a folder of yours"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _refuse_full(folder: Path) -> None:
    """Compiled writers of others do not say that the disk was full: they leave files that are empty, or end early."""
    empty = any(not path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if empty or not os.statvfs(folder).f_bavail:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def complain(sentence: str) -> None:
    """One sentence on standard error, as it is: a file name is no markup, and commands no terminal.

    A cell of a broken file that it quotes may be the whole file: of a sentence beyond all measure the middle is left out.
    """
    words = " ".join(sentence.split())
    if len(words) > MOST_SIGNS:
        words = f"{words[: MOST_SIGNS // 2]} ... {words[-MOST_SIGNS // 2 :]}"
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in words)
    sys.stderr.write(f"upheld: {shown}\n")
