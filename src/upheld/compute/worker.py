"""The inside of a worker process: one call after the other, each measured, each told back whole.

Only the standard library is imported here, so that a worker is up in a few hundredths of a second.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from upheld.compute.job import Outcome, one_line

ENVIRONMENT = {
    # Numerical libraries read these when they are first imported; one thread each, since the pool fills the cores.
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "BLIS")},
    "VECLIB_MAXIMUM_THREADS": "1",
    # The order of a set of strings must not differ from worker to worker.
    "PYTHONHASHSEED": "0",
}


def serve(channel_fd: int, lifeline_fd: int, memory_limit: int) -> None:
    """Answer calls until the parent hangs up. What a job prints goes where the parent pointed this process's output."""
    die_with_parent(lifeline_fd)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_memory(memory_limit)
    for fd in (channel_fd, lifeline_fd):
        os.set_inheritable(fd, False)
    channel: Connection[Any, Any] = Connection(channel_fd)
    me = os.getpid()
    while True:
        try:
            payload = channel.recv_bytes()
        except EOFError:
            return
        outcome = execute(payload, started=lambda: channel.send(time.monotonic()))
        if os.getpid() != me:  # a job forked and let its child return: that child has no business on this channel
            os._exit(0)
        channel.send(outcome)


def die_with_parent(lifeline_fd: int) -> None:
    """Kill this process and all that its jobs start as soon as the other end of the pipe `lifeline_fd` is closed.

    The parent keeps it open for as long as it lives, and its death by whatever cause closes it. On Linux the kernel
    sends the signal: that needs neither the interpreter, which compiled code may hold for minutes, nor the thread that
    started the worker, whose end PR_SET_PDEATHSIG would take for the parent's.
    """
    if sys.platform != "linux":
        threading.Thread(target=_await_end, args=(lifeline_fd,), daemon=True).start()
        return
    fcntl.fcntl(lifeline_fd, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline_fd, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline_fd, fcntl.F_SETFL, fcntl.fcntl(lifeline_fd, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline_fd], [], [], 0)[0]:  # it was closed before we listened
        os.killpg(0, signal.SIGKILL)


def _await_end(lifeline_fd: int) -> None:
    os.read(lifeline_fd, 1)
    os.killpg(0, signal.SIGKILL)


def limit_memory(limit: int) -> None:
    """Let allocations beyond `limit` bytes of private memory fail, which Python reports as MemoryError.

    The address space is not limited (RLIMIT_AS): torch and JIT compilers reserve far more of it than they use.
    """
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def execute(payload: bytes, started: Callable[[], None]) -> Outcome:
    """Load a pickled (function, arguments), call `started`, make the call, and tell what came of it.

    The outcome bears no key, and its value is pickled: what cannot be pickled or loaded is a failure of this one job.
    """
    _reset_peak()
    begin = time.perf_counter()
    try:
        call, args = pickle.loads(payload)
        started()
        begin = time.perf_counter()
        value = call(*args)
        seconds = time.perf_counter() - begin
    except BaseException as error:
        return _failure(error, "", time.perf_counter() - begin)
    try:
        sealed = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return _failure(error, "the result cannot be pickled: ", seconds)
    return Outcome(None, "done", sealed, seconds=seconds, peak_memory=peak_memory(), host=socket.gethostname())


def _failure(error: BaseException, context: str, seconds: float) -> Outcome:
    peak = peak_memory()
    limit, hard = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        # The traceback still holds what filled the memory: writing the report needs a little more of it.
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        name, reason = type(error).__name__, one_line(error)
        if isinstance(error, MemoryError):
            name, reason = "MemoryError", f"out of memory (limit {limit / 2**20:.0f} MiB): {reason}"
        return Outcome(
            key=None,
            status="failed",
            value=None,
            reason=f"{context}{reason}{_place(frames)}",
            error=name,
            traceback="".join(traceback.format_exception(type(error), error, frames)),
            seconds=seconds,
            peak_memory=peak,
            host=socket.gethostname(),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _place(frames: TracebackType | None) -> str:
    """Where an exception was raised, " (package/file.py:12)"; empty if in no file."""
    steps = [step for step in traceback.extract_tb(frames) if not step.filename.startswith("<frozen")]
    if not steps:
        return ""
    path = steps[-1].filename
    roots = (os.path.join(root, "") for root in sys.path if root)
    root = max((root for root in roots if path.startswith(root)), key=len, default="")
    return f" ({path.removeprefix(root)}:{steps[-1].lineno})"


def _reset_peak() -> None:
    if sys.platform == "linux":
        with open("/proc/self/clear_refs", "wb") as refs:
            refs.write(b"5")


def peak_memory(pid: int | None = None) -> int:
    """Most bytes resident at once in process `pid` (this one), on Linux since `_reset_peak`; 0 if it cannot be told."""
    if sys.platform != "linux":
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if pid is None else 0
    try:
        with open(f"/proc/{pid or 'self'}/status", "rb") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(b"VmHWM:")), 0)
    except OSError:
        return 0
