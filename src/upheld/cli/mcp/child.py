"""A command in a process of its own: what it printed, how it ended; it does not outlive the call."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL
from typing import IO

import anyio
from anyio.abc import Process

from upheld.cli.mcp.tied import GRACE_S

TOLD_EVERY_S = 2.0
LINE_BYTES = 500  # of what is told

Told = Callable[[float, str], Awaitable[None]]
"""Hears the seconds that have passed, and the last line on standard error."""


@dataclass(frozen=True)
class Ended:
    """How a command ended; code : its exit code, None if its time was over."""

    code: int | None
    stdout: str
    stderr: str


async def run_command(words: Sequence[str], limit_s: float, told: Told) -> Ended:
    """Run ``upheld`` with these words, in this folder, without a shell and without standard input.

    When the caller is cancelled, or the time is over, the command is asked to end, then killed, with all that it started.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process, lifeline = await _started(words, stdout, stderr)
        try:
            with anyio.move_on_after(limit_s) as clock:
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(_tell, stderr, told)
                    await process.wait()
                    waiting.cancel_scope.cancel()
            code = None if clock.cancelled_caught else process.returncode
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            os.close(lifeline)
        return Ended(code, _end_of(stdout), _end_of(stderr))


async def _started(words: Sequence[str], stdout: IO[bytes], stderr: IO[bytes]) -> tuple[Process, int]:
    """The process, and the end of a pipe that it lives by."""
    far_end, lifeline = os.pipe()
    try:
        process = await anyio.open_process(
            [sys.executable, "-m", "upheld.cli.mcp.tied", str(far_end), *words],
            stdin=DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True, pass_fds=[far_end],
        )  # fmt: skip
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(far_end)
    return process, lifeline


async def _tell(stderr: IO[bytes], told: Told) -> None:
    """Now and then, how long it takes and what the command said last."""
    began = time.monotonic()
    while True:
        await anyio.sleep(TOLD_EVERY_S)
        lines = _end_of(stderr, LINE_BYTES).strip().splitlines()
        await told(time.monotonic() - began, lines[-1].strip() if lines else "")


async def _end(process: Process) -> None:
    """No process of its group is left."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with anyio.move_on_after(GRACE_S):
            await process.wait()
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end_of(file: IO[bytes], most: int | None = None) -> str:
    """What was written so far, or the last of it; where the command writes on is left as it is."""
    size = os.fstat(file.fileno()).st_size
    length = size if most is None else min(size, most)
    return os.pread(file.fileno(), length, size - length).decode(errors="replace")
