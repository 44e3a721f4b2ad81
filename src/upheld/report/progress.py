"""How far a method's command is, on standard error: a bar on a terminal, elsewhere a line now and then.

with Progress() as progress, progress.part("scoring", len(prompts)) as part:
    for done, prompt in enumerate(prompts, start=1):
        ...
        part.reach(done)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from upheld.report.digits import duration

EVERY_S = 30.0  # between two lines where there is no terminal


class Progress:
    """The parts of one run, one after the other.

    Parameters
    ----------
    announce : where there is no terminal, say of each part that it begins; else one that ends within half a minute says nothing
    """

    def __init__(self, *, announce: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.announce = announce
        columns = [
            TextColumn(f"{{task.{what}}}", markup=False) for what in ("description", "fields[said]", "fields[left]")
        ]
        self.bar = Bar(
            columns[0], BarColumn(), columns[1], TimeElapsedColumn(), columns[2],
            console=self.console, transient=True, disable=not self.console.is_terminal,
            redirect_stdout=sys.stdout.isatty(),  # Rich would send what goes into a file or a pipe to the terminal
        )  # fmt: skip

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    @contextmanager
    def part(self, label: str, total: float | None = None, unit: str = "") -> Iterator[Part]:
        """One part of the run.

        Parameters
        ----------
        label : what is done
        total : how much there is to do; None where nobody knows
        unit : of what, in the plural: "prompts"
        """
        if self.announce and not self.console.is_terminal:
            self.say(label)
        task = self.bar.add_task(label, total=total, said="", left="")
        yield Part(self, task, label, total, unit)
        self.bar.remove_task(task)

    def say(self, line: str) -> None:
        """A line as it is: nobody knows how wide it may be, and a file's name is no markup."""
        self.console.print(line, markup=False, soft_wrap=True)


class Part:
    """What hears how far a part of the run is."""

    def __init__(self, progress: Progress, task: TaskID, label: str, total: float | None, unit: str) -> None:
        self.done = 0.0
        self._progress, self._task = progress, task
        self._label, self._total, self._unit = label, total, unit
        self._began = self._told = time.monotonic()

    def advance(self) -> None:
        """One more is done."""
        self.reach(self.done + 1)

    def reach(self, done: float, said: str | None = None) -> None:
        """So much is done; `said` instead of the count."""
        self.done = done
        now = time.monotonic()
        count = self._count() if said is None else said
        left = self._left(now - self._began)
        self._progress.bar.update(self._task, completed=done, said=count, left=left)
        if not self._progress.console.is_terminal and now - self._told >= EVERY_S and done != self._total:
            self._told = now
            self._progress.say(f"{self._label}: {', '.join(filter(None, [count, left]))}")

    def _count(self) -> str:
        of = "" if self._total is None else f" of {self._total:,}"
        return f"{self.done:,.0f}{of} {self._unit}".rstrip()

    def _left(self, elapsed: float) -> str:
        """Nothing before the first piece is done, or where nobody knows how many there are."""
        if self._total is None or not 0 < self.done < self._total:
            return ""
        return f"about {duration(elapsed / self.done * (self._total - self.done))} left"
