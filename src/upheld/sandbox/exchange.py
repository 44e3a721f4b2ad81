"""The host's side of one call: reads what the program says, answers its callbacks, and ends it when it goes too far."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from upheld.sandbox.frames import Forged, Inbox, packed
from upheld.sandbox.limits import Limits
from upheld.sandbox.result import Json, Outcome, SandboxError

GRACE_S = 10.0  # for the keeper to end a program that was stopped
WATCH_S = 0.1  # how often writable folders are measured
LONGEST_ERROR = 2000


def used_by(folders: Sequence[str]) -> int:
    """Bytes on disk of all that lies in the folders, at least a block each."""
    total = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            total += 4096
            for name in names:
                try:
                    total += max(os.lstat(os.path.join(parent, name)).st_blocks * 512, 4096)
                except OSError:  # removed meanwhile
                    continue
    return total


class Exchange:
    """One program's life: from its request to its end.

    After `run`: `outcomes` in order, as many as were answered; `stopped`, why there are no more (None if none was
    due); `load_error`, why the
    program could not even be loaded; `out` and `err`; `cpu` in seconds.
    """

    def __init__(
        self,
        expected: int,
        callbacks: Mapping[str, Callable[..., Any]],
        limits: Limits,
        total_s: float,
        write: Sequence[str],
    ):
        self.expected, self.callbacks, self.limits, self.write = expected, callbacks, limits, write
        self.outcomes: list[Outcome] = []
        self.loaded = False
        self.load_error: str | None = None
        self.stopped: str | None = None
        self.out, self.err, self.cpu = bytearray(), bytearray(), 0.0
        self._asked = 0
        self._ended: int | None = None
        self._inbox, self._reports = Inbox(limits.value), Inbox(1 << 16)
        self._line, self.line = socket.socketpair()
        self._control, self.control = socket.socketpair()
        (self._out, self.out_end), (self._err, self.err_end) = os.pipe(), os.pipe()
        self._outgoing = bytearray()
        self._selector = selectors.DefaultSelector()
        self._end = time.monotonic() + total_s
        self._total_s = total_s

    def files(self) -> list[int]:
        """The program's and the keeper's ends, in the order in which the worker takes them."""
        return [self.line.fileno(), self.control.fileno(), self.out_end, self.err_end]

    def run(self, request: Mapping[str, Json]) -> None:
        """Talk until the keeper says that the program has ended.

        Raises SandboxError if the sandbox fails, and whatever a callback raises that is neither ValueError nor
        TypeError; the program is ended then.
        """
        self._begin(request)
        try:
            while self._ended is None:
                self._turn()
            self._drain()
            if self.stopped is None and len(self.outcomes) < self.expected and self.load_error is None:
                self.stopped = self._why_it_ended()
        finally:
            self.close()

    def close(self) -> None:
        """Give all files back; a program that still runs is ended by its keeper."""
        self._selector.close()
        for end in (self._control, self._line):
            with contextlib.suppress(OSError):  # the other side is gone
                end.shutdown(socket.SHUT_RDWR)  # holds even if another child of this process has a copy
        for own in (self._control, self._line, self.line, self.control):
            own.close()
        for name in ("_out", "_err", "out_end", "err_end"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)

    def _begin(self, request: Mapping[str, Json]) -> None:
        self.line.close()
        self.control.close()
        for name in ("out_end", "err_end"):
            os.close(getattr(self, name))
            setattr(self, name, -1)
        self._outgoing += packed(request)
        self._line.setblocking(False)
        self._selector.register(self._line, selectors.EVENT_READ | selectors.EVENT_WRITE, self._talk)
        self._selector.register(self._control, selectors.EVENT_READ, self._report)
        for pipe, into in ((self._out, self.out), (self._err, self.err)):
            os.set_blocking(pipe, False)
            self._selector.register(pipe, selectors.EVENT_READ, lambda pipe=pipe, into=into: self._print(pipe, into))
        self._before = used_by(self.write)
        self._deadline = time.monotonic() + self.limits.seconds
        self._watched = time.monotonic()

    def _turn(self) -> None:
        due = min(self._deadline, self._end)
        wait = max(due - time.monotonic(), 0.0)
        ready = self._selector.select(min(wait, WATCH_S) if self.write and self.stopped is None else wait)
        for key, _ in sorted(
            ready, key=lambda item: item[0].fileobj is self._control
        ):  # what it said, before that it ended
            key.data()
        now = time.monotonic()
        if self._ended is not None:
            return
        if now >= min(self._deadline, self._end):
            if self.stopped is not None:
                raise SandboxError(f"a program that was stopped ({self.stopped}) did not end within {GRACE_S:g} s")
            over = f"all lists of arguments together (Limits.total_seconds = {self._total_s:.3g})" if self._end <= self._deadline else (
                f"one list of arguments (Limits.seconds = {self.limits.seconds:g})")  # fmt: skip
            self._stop(f"timed out: the time for {over} is over")
        elif self.write and self.stopped is None and now - self._watched >= WATCH_S:
            self._measure()

    def _measure(self) -> None:
        gained = used_by(self.write) - self._before
        if gained > self.limits.folders:
            self._stop(f"wrote {gained:,} bytes to its folders; {self.limits.folders:,} are allowed (Limits.folders)")
        self._watched = time.monotonic()

    def _stop(self, reason: str) -> None:
        if self.stopped is None:
            self.stopped = reason
            self._control.shutdown(socket.SHUT_WR)
            self._deadline = self._end = time.monotonic() + GRACE_S

    def _talk(self) -> None:
        if self._outgoing:
            try:
                del self._outgoing[: self._line.send(self._outgoing[: 1 << 20])]
            except BlockingIOError:
                pass
            except OSError:  # it closed its end: its answers are still to be read
                self._outgoing.clear()
        try:
            chunk = self._line.recv(1 << 18)
        except BlockingIOError:
            chunk = None
        except OSError:
            chunk = b""
        if chunk == b"":
            self._selector.unregister(self._line)
            return
        if chunk and self.stopped is None:
            try:
                for message in self._inbox.add(chunk):
                    self._hear(message)
                    if self.stopped is not None:
                        break
            except Forged as wrong:
                self._stop(str(wrong))
        if self._ended is None:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
            self._selector.modify(self._line, events, self._talk)

    def _hear(self, message: Any) -> None:
        """Take one message; it may say anything, since the program can write to its line as it likes."""
        if not isinstance(message, dict):
            raise Forged("the program sent something other than an answer")
        error = message.get("error")
        if error is not None and not isinstance(error, str):
            raise Forged("the program sent an error that is no text")
        if error is not None and len(error) > LONGEST_ERROR:
            error = f"{error[:LONGEST_ERROR]} [...]"
        match message:
            case {"loaded": True} if not self.loaded and not self.outcomes:
                self.loaded, self.load_error = True, error
            case {"done": int(index)} if index == len(self.outcomes) < self.expected:
                self.outcomes.append(Outcome(None if error is not None else message.get("value"), error))
            case {"ask": str(name), "arguments": list(arguments)} if name in self.callbacks:
                self._answer(name, arguments)
                return
            case _:
                raise Forged("the program sent an answer to something that was not asked")
        self._deadline = time.monotonic() + self.limits.seconds

    def _answer(self, name: str, arguments: list[Any]) -> None:
        self._asked += 1
        if self._asked > self.limits.callbacks:
            self._stop(f"called the host more than {self.limits.callbacks:,} times (Limits.callbacks)")
            return
        begin = time.monotonic()
        try:
            value = self.callbacks[name](*arguments)
            answer = packed({"value": value.tolist() if hasattr(value, "tolist") else value})
        except (ValueError, TypeError) as wrong:
            answer = packed({"error": f"{name}: {wrong}"})
        self._outgoing += answer
        self._deadline += time.monotonic() - begin

    def _print(self, pipe: int, into: bytearray) -> None:
        try:
            chunk = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(pipe)
            return
        room = self.limits.output - len(self.out) - len(self.err)
        into += chunk[: max(room, 0)]
        if len(chunk) > room:
            self._stop(f"printed more than {self.limits.output:,} bytes (Limits.output)")

    def _report(self) -> None:
        chunk = self._control.recv(1 << 16)
        if not chunk:
            raise SandboxError("the sandbox's own process died; nothing is known about the program")
        for report in self._reports.add(chunk):
            if not isinstance(report, dict):
                raise SandboxError("the sandbox's own process spoke nonsense")
            if "failed" in report:
                raise SandboxError(f"the program was not run, it could not be confined: {report['failed']}")
            if "ended" in report:
                self._ended, self.cpu = int(report["ended"]), float(report["cpu"])

    def _drain(self) -> None:
        """Read what was said and printed before the end."""
        while self.stopped is None or any(isinstance(key.fileobj, int) for key in self._selector.get_map().values()):
            ready = [key for key, _ in self._selector.select(0) if key.fileobj is not self._control]
            if not ready:
                return
            for key in ready:
                key.data()

    def _why_it_ended(self) -> str:
        ended = self._ended or 0
        if self.cpu >= self.limits.cpu_seconds - 0.1:
            return f"used all its CPU time (Limits.cpu_seconds = {self.limits.cpu_seconds:g})"
        if ended < 0:
            return (f"died of {signal.Signals(-ended).name}; it may have reached its memory "
                    f"(Limits.memory = {self.limits.memory:,} bytes)")  # fmt: skip
        return f"ended its process with code {ended} and gave no answer"
