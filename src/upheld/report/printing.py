"""What a method's command prints: sentences and tables on standard output, plain where that is a pipe.

Names of columns, files and groups are the user's: none of them is taken for markup, nor for a command to the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

PIPE = 140
"""Columns where there is no terminal."""


def clean(text: object) -> str:
    """The text without signs that a terminal would obey.

    >>> clean("a\\x1b[31mb")
    'a [31mb'
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in str(text))


def cell(text: object) -> Text:
    """A table's cell: the user's text on one line, as it is."""
    return Text(clean(text).replace("\n", " "))


def plain_table() -> Table:
    """A table without lines, its headings bold."""
    return Table(box=None, padding=(0, 2, 0, 0), header_style="bold")


class Terminal:
    """Standard output."""

    def __init__(self) -> None:
        self.console = Console(width=None if sys.stdout.isatty() else PIPE, highlight=False)

    @property
    def width(self) -> int:
        return self.console.width

    def say(self, text: str, style: str | None = None) -> None:
        self.console.print(clean(text), style=style, markup=False, highlight=False, soft_wrap=not sys.stdout.isatty())

    def show(self, table: RenderableType) -> None:
        self.console.print(table)

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """The first column to the left, the others to the right; no headings where all are empty."""
        table = plain_table()
        table.show_header = any(headings)
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="left" if number == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*map(cell, row))
        self.show(table)
