"""The one loop that hands out jobs, whoever does them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Protocol

from upheld.compute.job import Job, Outcome, seal, unseal


class Crew(Protocol):
    """Those who do the jobs of one run."""

    def begin(self, key: Hashable, payload: bytes, timeout_s: float) -> None:
        """Have a free worker make the pickled call; hire one if there is none."""
        ...

    def collect(self) -> list[Outcome]:
        """Wait a while for jobs that were begun; those that ended, their values still pickled."""
        ...

    def stop(self) -> None:
        """Stop all work at once."""
        ...


def at_a_time(wanted: int | None, most: int) -> int:
    """Jobs at a time in a call that wants so many (None: all it can have), in a place that has at most `most`."""
    if wanted is not None and wanted < 1:
        raise ValueError(f"workers must be at least 1, got {wanted}")
    return most if wanted is None else min(wanted, most)


def drive(jobs: Iterable[Job], workers: int, crew: Crew) -> Iterator[Outcome]:
    """Outcomes of `jobs`, at most `workers` at a time. A worker has its next job before an outcome is handed out."""
    queue = iter(jobs)
    running = 0
    ended: list[Outcome] = []
    try:
        while True:
            fresh = list(islice(queue, workers - running))
            refused = []
            for job in fresh:
                payload = seal(job)
                if isinstance(payload, Outcome):
                    refused.append(payload)
                else:
                    crew.begin(job.key, payload, job.timeout_s)
                    running += 1
            yield from (*ended, *refused)
            if not running and not fresh:
                return
            sealed = [] if refused else crew.collect()
            running -= len(sealed)
            ended = [unseal(outcome) for outcome in sealed]
    finally:
        crew.stop()
