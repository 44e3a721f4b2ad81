"""The command without the seconds in which an interpreter imports numpy, torch and their like.

A process imports what others wrote, once, and forks for every call. The child is the command: in the call's folder, environment,
search path and streams it does what ``python -m upheld.cli`` does, and ends as an interpreter ends. Nothing of `upheld` is loaded
before the fork, nothing has been computed and no thread was started, so that a child starts as a fresh interpreter would that had
imported fast. What could tell the difference (a variable that a library reads when it is imported, a ``sitecustomize``) has an
interpreter of its own; `test_warm.py` holds one beside the other.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

# Read by `upheld`, by the tests' own methods and by the interpreter, never by another library.
MAY_DIFFER = ("UPHELD", "BRITTLE", "PYTEST_CURRENT_TEST", "PYTHONPATH")
STATISTICS = (
    "numpy",
    "scipy.stats",
    "pandas",
    "sklearn",
    "matplotlib.figure",
    "rich.console",
    "typer",
    "pydantic",
    "jinja2",
)
TORCH = (*STATISTICS, "torch")
MODELS = (*TORCH, "transformers.models.llama.modeling_llama", "transformers.models.bert.modeling_bert")
IMPORTS = {  # of a method's command, where that is more than statistics
    "hubs": (*STATISTICS, "sklearn.covariance", "sklearn.neighbors"),
    "memory": (*TORCH, "sklearn.neighbors"),
    "flows": TORCH,
    "lagrangian": TORCH,
    "isotropy": MODELS,
    "speculative": MODELS,
    "context": MODELS,
}
FORKS_WELL = "jemalloc_bg_thd"  # pyarrow's allocator has a thread that frees memory, and provides for forks
NUMBER = struct.Struct("i")


class Warm:
    """The process that forks, seen from the tests.

    Parameters
    ----------
    environment : variables under which it imports
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = _read_at_import(environment)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._channel, far = socket.socketpair()
        with far:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(far.fileno())], env=self._environment, pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, start_new_session=True,
            )  # fmt: skip
        atexit.register(self.end)

    def can(self, environment: Mapping[str, str]) -> bool:
        """Whether a fresh interpreter would start no other way."""
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        customized = any((Path(path) / "sitecustomize.py").exists() for path in paths if path)
        return not customized and _read_at_import(environment) == self._environment

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        fed: str | None = None,
        timeout: float = 200,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of ``python -m module arguments``, with text captured, and `fed` on its standard input.

        Raises
        ------
        subprocess.TimeoutExpired
            After `timeout` seconds; the command is killed.
        RuntimeError
            If the process that forks said something or ended: a fresh interpreter would have said it in every call.
        """  # fmt: skip
        method = arguments[1] if arguments[:1] == ["run"] and len(arguments) > 1 else ""
        call = {
            "imports": IMPORTS.get(method, STATISTICS),
            "module": module,
            "arguments": list(arguments),
            "folder": os.fspath(folder),
            "environment": dict(environment),
        }
        with ExitStack() as files:
            told, given, out, error = (files.enter_context(tempfile.TemporaryFile()) for _ in range(4))
            for file, text in ((told, json.dumps(call)), (given, fed or "")):
                file.write(text.encode())
                file.seek(0)
            read = 0 if fed is None else given.fileno()
            try:
                socket.send_fds(self._channel, [b"!"], [read, out.fileno(), error.fileno(), told.fileno()])
                self._channel.settimeout(timeout)
                code = os.waitstatus_to_exitcode(self._answer())
                if said := self._what_it_said():
                    raise RuntimeError(f"said while importing:\n{said}")
            except BaseException as broken:  # whatever ended the wait, what was begun ends too
                self.end()
                if isinstance(broken, TimeoutError):
                    raise subprocess.TimeoutExpired([module, *arguments], timeout) from None
                raise
            return subprocess.CompletedProcess([module, *arguments], code, _text(out), _text(error))

    def end(self) -> None:
        """End it, and a call that goes on."""
        self._channel.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        atexit.unregister(self.end)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def _answer(self) -> int:
        answer = self._channel.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(answer) < NUMBER.size:
            self._process.wait()
            raise RuntimeError(f"the process that forks has ended:\n{self._what_it_said()}")
        return int(NUMBER.unpack(answer)[0])

    def _what_it_said(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")


def _read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(MAY_DIFFER)}


def _text(file: IO[bytes]) -> str:
    """What was written, with the ends of lines that `subprocess` gives a text."""
    file.seek(0)
    return io.TextIOWrapper(file).read()


# -- the process that forks


def next_call(channel: socket.socket) -> dict[str, Any]:
    """Returns in a child, with the call that it is to be; the process that forks ends in here, with the tests."""
    while True:
        message, fds, *_ = socket.recv_fds(channel, 1, 4)
        if not message:
            os._exit(0)
        *streams, told = fds
        with open(told) as file:
            call: dict[str, Any] = json.load(file)
        for name in call["imports"]:
            importlib.import_module(name)
        assert not [name for name in sys.modules if name.partition(".")[0] == "upheld"], "upheld is each child's own"
        threads = [path.read_text().strip() for path in Path("/proc/self").glob("task/*/comm")]
        assert set(threads[1:]) <= {FORKS_WELL}, f"threads that a child would lack: {threads[1:]}"
        gc.freeze()  # what was imported is nothing for a child to look through
        child = os.fork()
        if not child:
            channel.close()
            become(call, streams)
            return call
        for stream in streams:
            os.close(stream)
        channel.sendall(NUMBER.pack(os.waitpid(child, 0)[1]))


def become(call: dict[str, Any], streams: Sequence[int]) -> None:
    """Be what the interpreter is when it begins with ``-m``."""
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["folder"])
    paths = call["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [os.getcwd(), *filter(None, paths)]
    sys.argv[1:] = call["arguments"]
    importlib.invalidate_caches()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # as `random` does by itself in a child


if __name__ == "__main__":
    call = next_call(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(call["module"], run_name="__main__", alter_sys=True)
