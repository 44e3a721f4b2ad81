"""Files that are whole or not there: a run killed while writing leaves the last state."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def lines_of(path: Path) -> list[str]:
    """Lines of a file of JSON lines. Texts in them may hold separators of lines and paragraphs, which `str.splitlines` takes for ends."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]
