"""What the benchmarks share: a figure with the target it is held to, and the processor time of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One figure of a table, and the target it is held to."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return f"{self.what:66}{self.measured:>30}   {self.target:34}{verdict}".rstrip()


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Processor seconds of this process, the least of `repeats`: whatever else the machine does can only add to them."""
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)
