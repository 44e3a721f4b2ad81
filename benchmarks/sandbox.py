"""What a call of a confined program costs, beside a fresh interpreter and beside no confinement at all.

python benchmarks/sandbox.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from measuring import Line
from upheld.sandbox import Sandbox

PROGRAM = "def f(x):\n    return x + 1\n"
TARGET_S = 0.150


def wall(work: Callable[[], object], repeats: int = 15) -> float:
    """Median seconds on the wall: most of a call is spent in other processes."""
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def main() -> None:
    begin = time.perf_counter()
    with Sandbox() as sandbox:
        sandbox.call(PROGRAM, "f", [[1]])
        first = time.perf_counter() - begin
        warm = wall(lambda: sandbox.call(PROGRAM, "f", [[1]]))
        many = wall(lambda: sandbox.call(PROGRAM, "f", [[n] for n in range(1000)]), 5)
        in_force = sandbox.protections()
    fresh = wall(
        lambda: subprocess.run([sys.executable, "-c", PROGRAM + "print(f(1))"], check=True, capture_output=True)
    )
    print(Line("first call, with the start of the warm interpreter", f"{first * 1000:.0f} ms"))
    print(Line("a warm call", f"{warm * 1000:.1f} ms", f"under {TARGET_S * 1000:.0f} ms", warm < TARGET_S))
    print(Line("... beside a fresh interpreter, not confined", f"{fresh * 1000:.0f} ms, {warm / fresh:.2f} of it"))
    print(Line("a list of arguments, of a thousand in one call", f"{many:.3f} ms"))
    print(in_force)


if __name__ == "__main__":
    main()
