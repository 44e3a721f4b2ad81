"""Overhead of the local pool: 10,000 calls that do nothing, beside pebble and concurrent.futures, in one run.

python benchmarks/compute_overhead.py [--jobs 10000] [--workers 2]

The rivals do less: concurrent.futures has no time limits and gives up when a worker dies; pebble has both, but neither
measures memory nor limits threads. `operator.pos` is called, so that no rival has to import anything for it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import operator
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

from pebble import ProcessPool

from upheld.compute import Job, LocalPool


def upheld_pool(jobs: int, workers: int) -> int:
    outcomes = LocalPool(workers).run(Job(n, operator.pos, (n,), timeout_s=60.0) for n in range(jobs))
    return sum(outcome.value for outcome in outcomes)


def pebble_pool(jobs: int, workers: int) -> int:
    with ProcessPool(workers, context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.schedule(operator.pos, (n,), timeout=60.0) for n in range(jobs)]
        return sum(future.result() for future in futures)


def standard_pool(jobs: int, workers: int) -> int:
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(operator.pos, n) for n in range(jobs)]
        return sum(future.result() for future in futures)


def timings(jobs: int, workers: int) -> Iterator[tuple[str, float]]:
    rivals: dict[str, Callable[[int, int], int]] = {
        "upheld.compute": upheld_pool,
        "pebble": pebble_pool,
        "concurrent.futures": standard_pool,
    }
    for name, run in rivals.items():
        begin = time.perf_counter()
        total = run(jobs, workers)
        seconds = time.perf_counter() - begin
        if total != jobs * (jobs - 1) // 2:
            raise RuntimeError(f"{name} lost jobs: their values add up to {total}")
        yield name, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Overhead of a job that does nothing.")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(f"{options.jobs} jobs, {options.workers} workers, start and stop of the pool included")
    reference = None
    for name, seconds in timings(options.jobs, options.workers):
        reference = reference or seconds
        print(f"{name:20}{seconds:8.2f} s{1000 * seconds / options.jobs:9.3f} ms a job{seconds / reference:8.2f} x")


if __name__ == "__main__":
    main()
