"""Outcomes that come late: rows wait for theirs in a table of bounded size, and what is lost is counted."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from upheld.effects.rows import Label


@dataclass(frozen=True)
class WaitingRow:
    """A row without its outcome: covariates in column order, arm, and when it came."""

    values: tuple[float | str, ...]
    treatment: Label
    time: float


@dataclass
class Pending:
    """Rows by id, oldest first.

    limit: most rows; timeout: longest wait, in units of time, None for ever; expired and crowded_out: rows lost to either.
    """

    limit: int
    timeout: float | None = None
    rows: OrderedDict[int | str, WaitingRow] = field(default_factory=OrderedDict)
    expired: int = 0
    crowded_out: int = 0

    def wait(self, identifier: int | str, row: WaitingRow) -> None:
        """Put a row aside; the oldest one is lost if there is no room.

        Raises
        ------
        ValueError
            If a row of that id is waiting already.
        """
        self.expire(row.time)
        if identifier in self.rows:
            raise ValueError(f"a row with id {identifier!r} is waiting for its outcome already; ids must be unique")
        if len(self.rows) >= self.limit:
            self.rows.popitem(last=False)
            self.crowded_out += 1
        self.rows[identifier] = row

    def take(self, identifier: int | str) -> WaitingRow:
        """The row whose outcome has come.

        Raises
        ------
        KeyError
            If no row of that id is waiting.
        """
        if identifier not in self.rows:
            raise KeyError(
                f"no row with id {identifier!r} is waiting for its outcome ({self.expired} rows timed out and "
                f"{self.crowded_out} gave way to newer ones); call learn_one with y=None first"
            )
        return self.rows.pop(identifier)

    def expire(self, now: float) -> None:
        """Lose the rows that have waited too long."""
        while self.timeout is not None and self.rows:
            first = next(iter(self.rows))
            if now - self.rows[first].time <= self.timeout:
                return
            del self.rows[first]
            self.expired += 1

    def merge(self, other: Pending) -> None:
        """The rows that wait in either, and what both lost."""
        self.expired += other.expired
        self.crowded_out += other.crowded_out
        for identifier, row in other.rows.items():
            self.wait(identifier, row)
