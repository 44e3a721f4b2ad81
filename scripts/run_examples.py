"""Run the examples of a page and hold what they print against what the page shows: ``python scripts/run_examples.py [--write] PAGE...``

A block of Python, or of a console whose lines begin with ``$``, is run; a block of text behind the Python is what it prints.
Numbers agree to the digits that the page shows, and ``…`` stands for anything. ``--write`` puts what was printed into the page instead.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

EXAMPLE = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"[-−]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
SECONDS = 300


@dataclass(frozen=True)
class Example:
    """A block of a page; `shown` is what the page says it prints, of a console with its commands."""

    language: str
    code: str
    shown: str

    @property
    def checked(self) -> bool:
        """A shape of code without what it prints is shown, not run."""
        return self.language == "console" or bool(self.shown)


def examples(page: str) -> list[Example]:
    found = EXAMPLE.finditer(page)
    return [Example(one["language"], one["code"], one["shown"] or "") for one in found]


def printed(example: Example, folder: Path) -> str:
    """What an example prints, run in `folder`.

    Raises
    ------
    RuntimeError
        If it fails; the message is what it wrote to standard error.
    """
    if example.language == "python":
        return _run([sys.executable, "-W", "ignore", "-c", example.code], folder)
    lines = [line[2:] for line in example.code.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {line}\n{_run(['bash', '-c', line], folder)}" for line in lines)


def _run(command: list[str], folder: Path) -> str:
    there = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "TERM": "dumb"}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | there, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[-1]}\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def differs(shown: str, found: str) -> str:
    """The first line in which what is printed is not what is shown; nothing where they agree."""
    wanted = [line for line in shown.splitlines() if line.strip()]
    got = [line for line in found.splitlines() if line.strip()]
    for number, line in enumerate(wanted):
        if line.strip() == "…":  # the rest is not shown
            return ""
        if number >= len(got) or not _alike(line, got[number]):
            return f"shown   {line}\nprinted {got[number] if number < len(got) else '(nothing)'}"
    return f"printed, not shown: {got[len(wanted)]}" if len(got) > len(wanted) else ""


def _alike(shown: str, found: str) -> bool:
    parts = [part for piece in re.split(r"(…)", shown) for part in _words(piece)]
    pattern = r"\s*".join(
        ".*" if part == "…" else r"(\S+?)" if NUMBER.fullmatch(part) else re.escape(part) for part in parts
    )
    match = re.fullmatch(pattern, found.strip())
    numbers = [part for part in parts if NUMBER.fullmatch(part)]
    return match is not None and all(map(_close, numbers, match.groups()))


def _words(piece: str) -> list[str]:
    """Numbers and what is between them, without spaces."""
    return [part for word in piece.split() for part in re.split(f"({NUMBER.pattern})", word) if part]


def _close(shown: str, found: str) -> bool:
    """Equal to the last digit shown, give or take one of it where there is a point; a count is exact."""
    if not NUMBER.fullmatch(found):
        return False
    decimals = len(re.split(r"e", shown.partition(".")[2])[0])
    exponent = int(shown.partition("e")[2] or 0)
    gap = abs(_value(shown) - _value(found))
    return gap <= 1.01 * 10.0 ** (exponent - decimals) if decimals else gap == 0


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def written(page: str, folder: Path) -> str:
    """The page with what its examples print."""

    def renewed(match: re.Match[str]) -> str:
        example = Example(match["language"], match["code"], match["shown"] or "")
        found = printed(example, folder)
        if example.language == "console":
            return f"```console\n{found}```"
        return f"```python\n{example.code}```\n\n```text\n{found}```" if "print(" in example.code else match[0]

    return EXAMPLE.sub(renewed, page)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put what is printed into the pages")
    parser.add_argument("pages", nargs="+", type=Path)
    asked = parser.parse_args()
    failures = 0
    for path in asked.pages:
        page = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            if asked.write:
                path.write_text(written(page, Path(folder)), encoding="utf-8")
                continue
            for example in filter(lambda one: one.checked, examples(page)):
                shown = example.code if example.language == "console" else example.shown
                if found := differs(shown, printed(example, Path(folder))):
                    print(f"{path}\n{found}")
                    failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
