"""The warm interpreter: trusted, started once, runs no program itself. Every call gets a copy of it, which no other call ever sees.

Three generations. The *worker* forks a *keeper* for each call; the keeper leaves the host's namespaces, forks the process that will run the
program, waits for it, and ends it when the host says so or is gone. Only that last process meets the program's text. It holds four files:
nothing as its input, two pipes for what it prints, one socket to the host. What protections are in force the keeper says, over a socket
that the program does not have.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from upheld.sandbox import kernel, program
from upheld.sandbox.confinement import Confinement, examine
from upheld.sandbox.frames import packed, receive, receive_with_files
from upheld.sandbox.limits import Limits
from upheld.sandbox.result import MECHANISMS
from upheld.sandbox.seccomp import Filter

FILES = 4  # that come with a call: input is /dev/null already; line, control, output, error


def main(descriptor: int) -> None:
    """Serve the host at the other end of the socket until it is gone."""
    host = socket.socket(fileno=descriptor)
    parent = os.getppid()
    order: Any = receive(host)
    for name in order["preload"]:
        try:
            importlib.import_module(name)
        except ImportError as wrong:
            host.sendall(packed({"error": f"{name!r} cannot be imported beforehand: {wrong}"}))
            return
    filters, absent = examine(order["without"], order["below"])
    host.sendall(packed({"absent": absent}))
    mechanisms = tuple(name for name in MECHANISMS if name not in absent)
    gc.freeze()  # copies share what is there now
    _serve(host, parent, mechanisms, filters)
    with contextlib.suppress(OSError):  # the host removed it, if it had the time
        os.rmdir(order["below"])


def _serve(host: socket.socket, parent: int, mechanisms: tuple[str, ...], filters: Mapping[bool, Filter]) -> None:
    """A keeper for each call, until the host is gone."""
    while True:
        ready, _, _ = select.select([host], [], [], 1.0)
        _reap()
        if not ready:
            if os.getppid() != parent:  # a copy of the dead host may hold its end of the socket
                return
            continue
        try:
            call, files = receive_with_files(host, FILES)
        except EOFError:
            return
        if not os.fork():
            try:
                host.close()
                _keep(call, files, mechanisms, filters)
            finally:
                os._exit(0)  # never back into this loop
        for file in files:
            os.close(file)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _keep(call: Any, files: list[int], mechanisms: tuple[str, ...], filters: Mapping[bool, Filter]) -> None:
    """Have one call's program run, and end it in time; tell the host over `control`."""
    line, control, out, err = files
    host = socket.socket(fileno=control)
    confinement = Confinement(
        mechanisms, tuple(call["read"]), tuple(call["write"]), call["links"], Limits(**call["limits"]), call["below"]
    )
    reading, writing = os.pipe()
    try:
        if sys.platform == "linux":
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, "end with the parent")
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1, "adopt what the program leaves behind")
        confinement.leave()
        child = os.fork()
    except OSError as wrong:
        host.sendall(packed({"failed": str(wrong)}))
        return
    if not child:
        try:
            _become_program(confinement, filters, {0: line, 1: out, 2: err, 3: writing}, call["folder"])
        finally:
            os._exit(0)
    for file in (line, out, err, writing):
        os.close(file)
    with open(reading, "rb") as said:
        trouble = said.read().decode(errors="replace")
    host.sendall(packed({"failed": trouble} if trouble else {"begun": True}))
    status, used = _wait(child, host)
    _end_orphans()
    host.sendall(packed({"ended": os.waitstatus_to_exitcode(status), "cpu": used.ru_utime + used.ru_stime}))


def _become_program(
    confinement: Confinement, filters: Mapping[bool, Filter], files: Mapping[int, int], folder: str
) -> None:
    """Keep nothing but the call's own files, then be confined, then run.

    What goes wrong before is said over file 5, which is closed then.
    """
    safe = {place: os.dup2(file, 100 + place) for place, file in files.items()}  # clear of the places they go to
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, place in ((nothing, 0), (safe[1], 1), (safe[2], 2), (safe[0], 3), (safe[3], 4)):
        os.dup2(source, place, inheritable=False)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))
    try:
        os.setsid()
        os.umask(0o077)
        os.environ.clear()
        confinement.enter(filters)
    except BaseException as wrong:
        os.write(4, str(wrong).encode()[:1000] or b"the process could not be confined")
        os._exit(1)
    os.close(4)
    program.settle(socket.socket(fileno=3), folder)


def _wait(child: int, host: socket.socket) -> tuple[int, Any]:
    """Status and usage of the child, which is killed as soon as the host closes its end or is gone."""
    handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    while True:
        watched: list[Any] = [host] if handle is None else [host, handle]
        ready, _, _ = select.select(watched, [], [], 0.01 if handle is None else None)
        if host in ready:
            os.kill(child, signal.SIGKILL)
            _, status, used = os.wait4(child, 0)
            return status, used
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return status, used


def _end_orphans() -> None:
    """Kill what outlived the program.

    Only where it could start processes is there anything; with a process namespace the kernel has done it.
    """
    while True:
        try:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        except OSError:  # no /proc, or not Linux: nobody is adopted there
            return
        if not children:
            return
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
