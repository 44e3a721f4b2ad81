"""What an agent may read and write: the files below one folder, and those below another one in it."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_LISTED = 300
LINES_READ = 400


@dataclass(frozen=True)
class Workspace:
    """Files of one agent. Paths are relative to `root`, or absolute and below it; nothing else is there for it.

    Parameters
    ----------
    root : all that may be read, itself without links in its path
    write : below which files may be written; `root` or a folder in it
    seen : names in `root` that exist for the agent (None: all)

    Raises
    ------
    ValueError
        From every method, for a path that leads out of the folder or to something that is no file.
    """

    root: Path
    write_root: Path
    seen: tuple[str, ...] | None = None

    def place(self, path: str, *, writing: bool = False) -> Path:
        """Where a path leads, links followed."""
        if "\0" in path:
            raise ValueError("a path cannot hold a zero byte")
        found = (self.root / path).resolve()
        if not found.is_relative_to(self.root):
            raise ValueError(f"{path} lies outside your folder; name a path below {self.root}")
        inside = found.relative_to(self.root).parts
        if inside and self.seen is not None and inside[0] not in self.seen:
            raise ValueError(f"there is no {path}; there are {', '.join(self.seen)}")
        if writing and (found == self.write_root or not found.is_relative_to(self.write_root)):
            raise ValueError(f"{path} cannot be written; you may write files below {self.write_root} only")
        return found

    def read(self, path: str, first_line: int = 1) -> str:
        """At most 400 lines of a text file, from one on."""
        place = self._file(path)
        lines = place.read_text(encoding="utf-8", errors="replace").splitlines()
        shown = lines[max(first_line, 1) - 1 :][:LINES_READ]
        left = len(lines) - (max(first_line, 1) - 1) - len(shown)
        return "\n".join(shown) + (f"\n[{left} more lines: read from line {len(lines) - left + 1}]" if left > 0 else "")

    def write(self, path: str, text: str) -> str:
        """Create a file or replace it."""
        place = self.place(path, writing=True)
        if place.is_dir():
            raise ValueError(f"{path} is a folder; name a file in it")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return f"{self.shown(place)} has {len(text.splitlines())} lines now"

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace a passage that stands in the file once."""
        self.place(path, writing=True)
        place = self._file(path)
        text = place.read_text(encoding="utf-8", errors="replace")
        times = text.count(old) if old else 0
        if times != 1:
            raise ValueError(f"the old passage stands in {path} {times} times; give one that stands there once")
        return self.write(path, text.replace(old, new))

    def listing(self, path: str = ".") -> str:
        """All files below a folder, with their sizes."""
        place = self.place(path)
        if not place.is_dir():
            raise ValueError(f"{path} is no folder")
        files = [file for file in self._files() if file.is_relative_to(place)]
        listed = [f"{self.shown(file)}  {file.stat().st_size} bytes" for file in files[:MOST_LISTED]]
        more = [f"[{len(files) - MOST_LISTED} more]"] if len(files) > MOST_LISTED else []
        return "\n".join([*listed, *more]) or "no file"

    def readable(self) -> list[Path]:
        """Folders in `root` that a program may read."""
        if self.seen is None:
            return [self.root]
        return [place for name in self.seen if (place := self.root / name).is_dir()]

    def shown(self, place: Path) -> str:
        return str(place.relative_to(self.root))

    def _file(self, path: str) -> Path:
        place = self.place(path)
        if not place.is_file():
            raise ValueError(f"there is no file {path}; list shows what there is")
        return place

    def _files(self) -> Iterator[Path]:
        tops = [self.root / name for name in self.seen] if self.seen is not None else sorted(self.root.iterdir())
        for top in tops:
            below = sorted(top.rglob("*")) if top.is_dir() else [top]
            yield from (file for file in below if stat.S_ISREG(file.lstat().st_mode)) if top.exists() else ()


def only_files(folder: Path) -> list[str]:
    """Take away whatever is neither a file nor a folder, such as links, which a program may have left; says what went."""
    strange = []
    for place in sorted(folder.rglob("*")):
        mode = place.lstat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            place.unlink()
            strange.append(str(place.relative_to(folder)))
    return strange


def emptied(folder: Path) -> Path:
    """The folder, new."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder
