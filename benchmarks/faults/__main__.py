"""Load and faults: what happens when things go wrong, tried for real; one line a scenario.

    python benchmarks/faults                    all of them, about twenty minutes on one core
    python benchmarks/faults kill_nine ray      those
    python benchmarks/faults damaged --many 30  fewer damaged files a method

docs/faults.md has the figures of one run. A scenario that cannot be tried here (no right to mount, no Ray) says so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from cluster import ray_worker_lost
from disks import disk_full, read_only
from fuzzing import damaged_files
from kills import clock_jump, kill_nine, out_of_memory, two_at_once
from large import large_ledger

SCENARIOS: dict[str, Callable[..., str]] = {
    "kill_nine": kill_nine,
    "two_at_once": two_at_once,
    "out_of_memory": out_of_memory,
    "clock_jump": clock_jump,
    "large_ledger": large_ledger,
    "disk_full": disk_full,
    "read_only": read_only,
    "ray": ray_worker_lost,
    "damaged": damaged_files,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], default=[])
    parser.add_argument("--many", type=int, default=150, help="damaged files a method")
    parser.add_argument("--kills", type=int, default=50)
    asked = parser.parse_args()
    ready = SCENARIOS | {
        "damaged": partial(damaged_files, many=asked.many),
        "kill_nine": partial(kill_nine, times=asked.kills),
    }
    failed = 0
    for name in asked.scenarios or SCENARIOS:
        begin = time.perf_counter()
        try:
            line = ready[name]()
        except Exception as error:  # the others are still to be tried
            line, failed = f"FAILED: {type(error).__name__}: {error}", failed + 1
        print(f"{name:14}{line} [{time.perf_counter() - begin:.0f} s]", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":  # the workers that it starts import it
    main()
