"""Processes of this machine.

Why not a pool from the shelf: `concurrent.futures` has no time limits and gives up the whole pool when one worker dies.
`pebble` has them, but its workers share one pipe and one lock, so that a worker killed between two jobs, or a function
that cannot be imported, breaks the pool for all jobs, and a job that calls `os._exit(0)` is noticed only at its time
limit. Here each worker has a channel of its own: whatever happens on it concerns one job.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait

from upheld.compute.crew import at_a_time, drive
from upheld.compute.job import Job, Outcome, failed
from upheld.compute.worker import ENVIRONMENT, peak_memory

LOAD_LIMIT_S = 300.0  # importing a job's function is not on the job's clock, but must end
LEAST_MEMORY = 2**26  # bytes, below which a worker cannot load what it is to call
TICK_S = 0.5  # how soon a dead worker is noticed whose channel is held open by a process that its job left behind
OUTPUT_BYTES = 4000  # how much of what a failed job printed is kept


class LocalPool:
    """Run jobs in processes of this machine, one job a process at a time, one thread a process.

    A job that crashes, is killed, exceeds its time or its memory is one failed outcome; the others go on. Workers are
    kept from job to job, so that imports and compiled functions are paid for once; a job must not rely on a fresh
    process. Jobs may start processes: they are killed with their worker, unless they leave its process group. Time
    limits are watched while the consumer waits for the next outcome. Workers are stopped when the last outcome is out,
    when the iterator is closed, and when this process dies, however it dies.

    Parameters
    ----------
    workers : number of processes; by default, the cores that this process may use
    memory_limit : bytes of private memory that each worker may allocate, enforced on Linux alone; by default, an equal
        share of nine tenths of the memory of the machine or the container

    Examples
    --------
    >>> import math
    >>> jobs = (Job(n, math.factorial, (n,), timeout_s=10) for n in range(5))
    >>> sorted((outcome.key, outcome.value) for outcome in LocalPool(workers=2).run(jobs))
    [(0, 1), (1, 1), (2, 2), (3, 6), (4, 24)]
    """

    def __init__(self, workers: int | None = None, memory_limit: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        if memory_limit is not None and memory_limit < LEAST_MEMORY:
            raise ValueError(
                f"memory_limit is in bytes and must be at least {LEAST_MEMORY} (64 MiB), got {memory_limit}"
            )
        self.workers = workers or cores()
        self.memory_limit = memory_limit or fair_share(self.workers)
        if self.memory_limit < LEAST_MEMORY:
            most = fair_share(1) // LEAST_MEMORY
            raise ValueError(
                f"{workers} workers would have less than 64 MiB of this machine's memory each; take at most {most}"
            )

    def run(self, jobs: Iterable[Job], workers: int | None = None) -> Iterator[Outcome]:
        """Outcomes of `jobs`, as they end; see `Compute.run`."""
        return drive(jobs, at_a_time(workers, self.workers), LocalCrew(self.memory_limit))


class LocalCrew:
    """Worker processes of this machine: as many as there were ever jobs at a time."""

    def __init__(self, memory_limit: int) -> None:
        self._memory_limit = memory_limit
        self._idle: list[Worker] = []
        self._busy: dict[Worker, Hashable] = {}

    def begin(self, key: Hashable, payload: bytes, timeout_s: float) -> None:
        worker = self._idle.pop() if self._idle else Worker(self._memory_limit)
        self._busy[worker] = key
        if not worker.take(payload, timeout_s):  # it was killed between two jobs
            del self._busy[worker]
            worker.stop()
            worker = Worker(self._memory_limit)
            self._busy[worker] = key
            worker.take(payload, timeout_s)  # should this one be dead too, `outcome` tells why

    def collect(self) -> list[Outcome]:
        wait([worker.channel for worker in self._busy], min(worker.patience() for worker in self._busy))
        ended = []
        for worker, key in list(self._busy.items()):
            outcome = worker.outcome()
            if outcome is not None:
                ended.append(replace(outcome, key=key))
                del self._busy[worker]
                if worker.usable:
                    self._idle.append(worker)
        return ended

    def stop(self) -> None:
        for worker in (*self._idle, *self._busy):
            worker.stop()


class Worker:
    """A worker process, seen from its parent: takes one payload at a time.

    `channel` becomes ready when there is something to learn; `usable` turns False when the process is gone.
    """

    def __init__(self, memory_limit: int) -> None:
        self.usable = True
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the worker
        self.channel, far_channel = multiprocessing.Pipe()
        far_lifeline, self._lifeline = multiprocessing.Pipe(duplex=False)
        fds = (far_channel.fileno(), far_lifeline.fileno())
        start = (
            f"import sys; sys.path[:] = {[path for path in sys.path if isinstance(path, str)]!r}; "
            f"from upheld.compute.worker import serve; serve({fds[0]}, {fds[1]}, {memory_limit})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-X", "faulthandler", "-c", start],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            pass_fds=fds,
            env=os.environ | ENVIRONMENT,
            start_new_session=True,  # the parent answers Ctrl-C, and kills the worker's group as one
        )
        far_channel.close()
        far_lifeline.close()

    def take(self, payload: bytes, timeout_s: float) -> bool:
        """Begin a job; False if the process turns out to be dead, of no fault of the job's."""
        self._output.seek(0)  # the worker writes where this end stands: the file is opened once
        self._output.truncate()
        self._timeout_s = timeout_s
        self._began: float | None = None
        self._deadline = time.monotonic() + LOAD_LIMIT_S
        try:
            self.channel.send_bytes(payload)
        except OSError:
            return False
        return True

    def patience(self) -> float:
        """Seconds until `outcome` should be asked at the latest."""
        return min(max(self._deadline - time.monotonic(), 0.0), TICK_S)

    def outcome(self) -> Outcome | None:
        """What became of the job, its value pickled; None while it runs."""
        dead = self._process.poll() is not None  # before reading: it may tell its outcome, then die
        try:
            while self.channel.poll():
                message = self.channel.recv()
                if isinstance(message, Outcome):
                    return self._told(message)
                self._began = message
                self._deadline = message + self._timeout_s
        except (EOFError, OSError):
            return self._died()
        if dead:
            return self._died()
        return self._ran_out() if time.monotonic() >= self._deadline else None

    def _told(self, outcome: Outcome) -> Outcome:
        if outcome.seconds > self._timeout_s:  # it ended before anybody looked, and yet too late
            return replace(outcome, status="failed", value=None, reason=self._too_long(), error=None, traceback="")
        if outcome.status == "failed":
            return replace(outcome, traceback=outcome.traceback + self._printed())
        return outcome

    def _too_long(self) -> str:
        if self._began is None:
            return f"its function could not be loaded within {LOAD_LIMIT_S:g} s"
        return f"ran out of time after {self._timeout_s:g} s"

    def _ran_out(self) -> Outcome:
        peak = peak_memory(self._process.pid)
        self._process.send_signal(signal.SIGABRT)  # faulthandler then writes where Python stands
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)
        return self._gone(self._too_long(), peak)

    def _died(self) -> Outcome:
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return self._gone("the process closed its channel", 0)
        when = "" if self._began else " while its function was loaded"
        if code >= 0:
            return self._gone(f"the process ended with exit code {code}{when}", 0)
        by = ", by the kernel for want of memory or by hand" if code == -signal.SIGKILL else ""
        return self._gone(f"killed by signal {-code} ({signal.Signals(-code).name}){by}{when}", 0)

    def _gone(self, reason: str, peak: int) -> Outcome:
        seconds = time.monotonic() - self._began if self._began else 0.0
        outcome = replace(failed(None, reason), traceback=self._printed(), seconds=seconds, peak_memory=peak)
        self.stop()
        return outcome

    def _printed(self) -> str:
        """The end of what the job printed."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - OUTPUT_BYTES))
        text = self._output.read().decode(errors="replace").strip()
        return f"\nThe last lines of its output:\n{text}\n" if text else ""

    def stop(self) -> None:
        """Kill the process and all that its jobs started."""
        self.usable = False
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for end in (self.channel, self._lifeline, self._output):
            end.close()


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def fair_share(workers: int) -> int:
    """Bytes of memory for each of `workers`, together nine tenths of what the machine or the container has."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError), open(limit) as file:  # "max" is no number: no limit
            memory = min(memory, int(file.read()))
    return memory * 9 // 10 // workers
