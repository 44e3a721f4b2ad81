"""The sandbox as its users see it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from upheld.sandbox.exchange import Exchange
from upheld.sandbox.frames import packed, receive
from upheld.sandbox.limits import Limits
from upheld.sandbox.result import (
    MECHANISMS,
    CallResult,
    Json,
    Outcome,
    Protections,
    SandboxError,
    SandboxRefused,
    ScriptResult,
)

Folders = Sequence[str | os.PathLike[str]]
_START = (
    "import sys; sys.path.insert(0, {source!r}); from upheld.sandbox.worker import main; del sys.path[0]; main({end})"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_ENVIRONMENT = {
    "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",  # a program gives the same answer twice, sets included
    **dict.fromkeys(_ONE_THREAD, "1"),  # threads would not survive the fork
}  # fmt: skip
_START_S = 60.0


class Sandbox:
    """Runs programs, each call in a process of its own, copied from a warm interpreter that no program ever touched.

    Start it once, use it for many calls, from any thread; leave its context, or `close` it, when done.

    Parameters
    ----------
    limits : for every call that does not bring its own
    preload : modules to import into the warm interpreter, such as "numpy", which then cost a call nothing
    allow_weak : run programs although this machine cannot confine them, with resource limits and what else there is
    without : names of `MECHANISMS` not to use although the machine has them

    Raises
    ------
    SandboxRefused
        On start, where the machine lacks what is needed for strong confinement and `allow_weak` is false.
    ValueError
        If a name in `without` is unknown, or a module of `preload` cannot be imported.

    Examples
    --------
    >>> with Sandbox() as sandbox:
    ...     result = sandbox.call("def half(x):\\n    return x / 2", "half", [[8], ["no number"]])
    >>> [outcome.value for outcome in result.outcomes]
    [4.0, None]
    >>> result.outcomes[1].error
    "TypeError: unsupported operand type(s) for /: 'str' and 'int' (line 2)"
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Sequence[str] = (),
        allow_weak: bool = False,
        without: Collection[str] = (),
    ):
        if unknown := set(without) - set(MECHANISMS):
            raise ValueError(f"no mechanism is called {sorted(unknown)[0]!r}; there are {', '.join(MECHANISMS)}")
        self.limits = limits or Limits()
        self.preload, self.allow_weak, self.without = tuple(preload), allow_weak, tuple(without)
        self._lock = threading.Lock()
        self._worker: tuple[socket.socket, str] | None = None
        self._protections: Protections | None = None

    def __enter__(self) -> Sandbox:
        self._started()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the warm interpreter and every call that still runs. A later call starts it anew."""
        with self._lock:
            if self._worker is not None:
                self._stop()
                self._worker = None

    def protections(self) -> Protections:
        """What is in force for every program this sandbox runs; starts it if need be."""
        self._started()
        assert self._protections is not None
        return self._protections

    def call(
        self,
        program: str,
        function: str,
        arguments: Sequence[Sequence[Json]],
        *,
        keywords: Mapping[str, Json] | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        read: Folders = (),
        write: Folders = (),
        limits: Limits | None = None,
    ) -> CallResult:
        """Load `program` once, call its `function` with each list of `arguments`, in order.

        A call that raises spoils its own outcome only. One that hangs, crashes or goes beyond a limit loses its
        process: the program is loaded
        anew for those after it.

        Parameters
        ----------
        program : Python source; its top level runs in the sandbox too
        function : a name it defines
        arguments : positional arguments of each call, as JSON data
        keywords : keyword arguments the same for all calls, as JSON data
        callbacks : functions of the host, passed as further keyword arguments; they get and give JSON data (or an array with ``tolist``).
            Their arguments are the program's invention: check them, and raise ValueError or TypeError, whose text the program gets as
            ``HostError``. Anything else they raise ends the call and is raised here.
        read, write : existing folders that the program may read, and also change, at their own absolute paths. The
            first one (of `write`, else
            of `read`) is its working folder. It sees no other file but Python's and the system's libraries.

        Raises
        ------
        ValueError, TypeError
            If an argument has no form in JSON, or a folder is absent, is "/", or is readable within a writable one.
        SandboxError, SandboxRefused
            If the sandbox fails or refuses. What the program does wrong is never raised, but told in its outcome.
        """
        limits, callbacks = limits or self.limits, dict(callbacks or {})
        places = _Places.of(read, write)
        begin = time.monotonic()
        outcomes: list[Outcome] = []
        out, err, cpu = "", "", 0.0
        protections = self.protections()
        while len(outcomes) < len(arguments):
            left_s = limits.total_seconds - (time.monotonic() - begin)
            if left_s <= 0:
                late = (
                    f"not begun: the time of the whole call is over (Limits.total_seconds = {limits.total_seconds:g})"
                )
                outcomes += [Outcome(error=late)] * (len(arguments) - len(outcomes))
                break
            request = {
                "program": program, "function": function, "keywords": dict(keywords or {}), "callbacks": list(callbacks),
                "arguments": [list(one) for one in arguments[len(outcomes) :]],
            }  # fmt: skip
            talk = Exchange(len(arguments) - len(outcomes), callbacks, limits, left_s, places.write)
            self._exchange(talk, request, places, limits)
            out, err, cpu = out + _text(talk.out), err + _text(talk.err), cpu + talk.cpu
            outcomes += talk.outcomes
            if talk.load_error or not talk.loaded:  # it would not load the next time either
                why = f"the program could not be loaded: {talk.load_error or talk.stopped}"
                outcomes += [Outcome(error=why)] * (len(arguments) - len(outcomes))
            elif len(outcomes) < len(arguments):
                outcomes.append(Outcome(error=talk.stopped))
        seconds = time.monotonic() - begin
        return CallResult(tuple(outcomes), out[: limits.output], err[: limits.output], seconds, cpu, protections)

    def run(
        self,
        program: str,
        arguments: Sequence[str] = (),
        *,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        read: Folders = (),
        write: Folders = (),
        limits: Limits | None = None,
    ) -> ScriptResult:
        """Run `program` as a script, ``__name__ == "__main__"``, with `arguments` in ``sys.argv[1:]`` and `callbacks` as global names.

        For the rest, see `call`; `Limits.seconds` is the time of the whole script.

        >>> with Sandbox() as sandbox:
        ...     result = sandbox.run("print(open('/etc/passwd').read())")
        >>> result.ok, result.stdout
        (False, '')
        """
        limits, callbacks = limits or self.limits, dict(callbacks or {})
        places = _Places.of(read, write)
        begin = time.monotonic()
        protections = self.protections()
        talk = Exchange(1, callbacks, limits, limits.total_seconds, places.write)
        request = {"program": program, "function": None, "callbacks": list(callbacks), "arguments": list(arguments)}
        self._exchange(talk, request, places, limits)
        error = talk.outcomes[0].error if talk.outcomes else talk.stopped
        return ScriptResult(
            _text(talk.out), _text(talk.err), error or talk.stopped, time.monotonic() - begin, talk.cpu, protections
        )

    def _exchange(self, talk: Exchange, request: Mapping[str, Any], places: _Places, limits: Limits) -> None:
        try:
            packed(request)  # what has no form in JSON is said before anything is started
            host, below = self._started()
            head = {
                "read": places.read, "write": places.write, "links": places.links, "folder": places.folder,
                "limits": asdict(limits), "below": below,
            }  # fmt: skip
            with self._lock:
                _send_with_files(host, packed(head), talk.files())
        except BaseException:
            talk.close()
            raise
        talk.run(request)

    def _started(self) -> tuple[socket.socket, str]:
        with self._lock:
            if self._worker is None:
                self._worker = self._start()
            return self._worker

    def _start(self) -> tuple[socket.socket, str]:
        if os.name != "posix":
            raise SandboxRefused(f"programs cannot be confined on {sys.platform}; run this on Linux")
        host, end = socket.socketpair()
        below = tempfile.mkdtemp(prefix="upheld-sandbox-")
        start = _START.format(source=str(Path(__file__).resolve().parents[2]), end=end.fileno())
        process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-c", start], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            pass_fds=[end.fileno()], env=_ENVIRONMENT, cwd="/", start_new_session=True,
        )  # fmt: skip
        end.close()
        self._stop = weakref.finalize(self, _stop, process, host, below)
        try:
            host.settimeout(_START_S)
            host.sendall(packed({"preload": self.preload, "without": self.without, "below": below}))
            told: Any = receive(host)
            host.settimeout(None)
        except (EOFError, OSError) as wrong:
            process.kill()
            said = process.stderr.read().decode(errors="replace")[-2000:] if process.stderr else ""
            self._stop()
            raise SandboxError(f"the sandbox's interpreter did not start: {wrong or said}") from None
        except BaseException:
            self._stop()
            raise
        if "error" in told:
            self._stop()
            raise ValueError(told["error"])
        self._protections = Protections.of([name for name in MECHANISMS if name not in told["absent"]])
        if not self._protections.strong and not self.allow_weak:
            self._stop()
            raise SandboxRefused(_refusal(self._protections, told["absent"]))
        return host, below


def protections(without: Collection[str] = ()) -> Protections:
    """What this machine offers, whether or not it is enough; takes about a tenth of a second.

    >>> protections().missing  # on a Linux that offers enough
    ()
    """
    with Sandbox(allow_weak=True, without=without) as sandbox:
        return sandbox.protections()


def _refusal(found: Protections, absent: Mapping[str, str]) -> str:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in absent.items())
    return (
        f"programs written by a model are not run here: nothing would protect {', '.join(found.missing)} ({reasons}). "
        "Run on a Linux with user namespaces or Landlock, and libseccomp, or allow weak confinement for programs you would run yourself"
    )


def _stop(process: subprocess.Popen[bytes], host: socket.socket, below: str) -> None:
    with contextlib.suppress(OSError):  # it is gone already
        host.shutdown(socket.SHUT_RDWR)
    host.close()
    process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()
    shutil.rmtree(below, ignore_errors=True)


def _send_with_files(host: socket.socket, message: bytes, files: list[int]) -> None:
    sent = socket.send_fds(host, [message], files)
    host.sendall(message[sent:])


def _text(printed: bytearray) -> str:
    return printed.decode(errors="replace")


class _Places:
    """The folders of one call, resolved and checked."""

    def __init__(self, read: list[str], write: list[str], links: dict[str, str]):
        self.read, self.write, self.links = read, write, links
        self.folder = next(iter((*write, *read)), "/")

    @classmethod
    def of(cls, read: Folders, write: Folders) -> _Places:
        links = {}
        resolved: dict[str, list[str]] = {"read": [], "write": []}
        for right, folders in (("read", read), ("write", write)):
            for folder in folders:
                given, real = os.path.abspath(folder), os.path.realpath(folder)
                if not os.path.isdir(real):
                    raise ValueError(f"the folder to {right}, {os.fspath(folder)!r}, does not exist; make it first")
                if real == "/":
                    raise ValueError(f"the folder to {right} is the whole machine; name one within it")
                if given != real:
                    links[given] = real
                resolved[right].append(real)
        for inner in resolved["read"]:
            for outer in resolved["write"]:
                if inner == outer or inner.startswith(f"{outer}/"):
                    raise ValueError(f"{inner!r} is to be read only, but lies within {outer!r}, which is writable")
        return cls(resolved["read"], resolved["write"], links)
