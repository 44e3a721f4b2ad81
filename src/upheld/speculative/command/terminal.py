"""What is printed: plain in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE = 140


def _clean(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)


class Terminal:
    """Standard output."""

    def __init__(self) -> None:
        self._console = Console(width=None if sys.stdout.isatty() else PIPE, highlight=False)

    def say(self, text: str) -> None:
        self._console.print(_clean(text), markup=False, highlight=False, soft_wrap=not sys.stdout.isatty())

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_header=any(headings))
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="left" if number == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_clean(cell)) for cell in row))
        self._console.print(table)
