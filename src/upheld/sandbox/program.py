"""What happens inside: the program's text is run, its functions called, its answers sent. Nothing here is trusted by the host."""

from __future__ import annotations

import functools
import io
import os
import socket
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, cast

from upheld.sandbox.frames import packed, receive

NAME = "<program>"


class HostError(RuntimeError):
    """Raised in the program when the host refused a callback, with the host's words."""


def serve(line: socket.socket) -> None:
    """Do the one request that comes over `line`, and say what came of each of its parts."""
    request: Any = receive(line)
    callbacks = {name: _callback(name, line) for name in request["callbacks"]}
    if request["function"] is None:
        _send(line, {"done": 0, **_attempt(lambda: _run_script(request, callbacks))})
        return
    loaded = _attempt(lambda: _load(request["program"], request["function"]))
    function = loaded.pop("value", None)
    _send(line, {"loaded": True, **loaded})
    if function is None:
        return
    keywords = {**request["keywords"], **callbacks}
    for index, arguments in enumerate(request["arguments"]):
        answer = {"done": index, **_attempt(functools.partial(function, *arguments, **keywords))}
        try:
            sealed = packed(answer)
        except (TypeError, ValueError, RecursionError) as wrong:
            sealed = packed(
                {"done": index, "error": f"what {request['function']} returned has no form in JSON: {wrong}"}
            )
        line.sendall(sealed)


def _attempt(work: Callable[[], Any]) -> dict[str, Any]:
    """The value, or the error in one sentence; its traceback goes to standard error."""
    try:
        return {"value": work()}
    except MemoryError as wrong:
        wrong.__traceback__ = None  # its frames hold what filled the memory, and the answer needs some
        return {"error": "MemoryError: the program used all its memory (Limits.memory)"}
    except SystemExit as end:
        code = end.code if isinstance(end.code, int | None) else 1
        if not isinstance(end.code, int | None):
            print(end.code, file=sys.stderr)
        return {"error": f"SystemExit: the program ended itself with code {code}"} if code else {"value": None}
    except BaseException as wrong:  # whatever it is: the program's own failure, to be told, never ours
        own = wrong.__traceback__.tb_next if wrong.__traceback__ is not None else None  # without this very frame
        try:
            traceback.print_exception(type(wrong), wrong, own)
        except BaseException:  # an exception whose own text fails
            print(type(wrong).__name__, file=sys.stderr)
        lines = [frame.lineno for frame in traceback.extract_tb(own, limit=200) if frame.filename == NAME]
        return {"error": f"{_described(wrong)}{f' (line {lines[-1]})' if lines else ''}"}


def _described(wrong: BaseException) -> str:
    try:
        text = str(wrong)
    except BaseException:
        text = "its text could not be had"
    return f"{type(wrong).__name__}: {text}" if text else type(wrong).__name__


def _module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    return module


def _load(program: str, function: str) -> Callable[..., Any]:
    module = _module("program")
    exec(compile(program, NAME, "exec"), module.__dict__)
    found: Any = getattr(module, function, None)
    if not callable(found):
        raise NameError(f"the program defines no function {function!r}")
    return cast("Callable[..., Any]", found)


def _run_script(request: Mapping[str, Any], callbacks: Mapping[str, Callable[..., Any]]) -> None:
    module = _module("__main__")
    module.__dict__.update(callbacks)
    sys.argv = [NAME, *request["arguments"]]
    exec(compile(request["program"], NAME, "exec"), module.__dict__)


def _callback(name: str, line: socket.socket) -> Callable[..., Any]:
    def ask(*arguments: Any) -> Any:
        _send(line, {"ask": name, "arguments": arguments})
        answer: Any = receive(line)
        if "error" in answer:
            raise HostError(answer["error"])
        return answer["value"]

    ask.__name__ = ask.__qualname__ = name
    return ask


def _send(line: socket.socket, message: Mapping[str, Any]) -> None:
    line.sendall(packed(message))


def settle(line: socket.socket, folder: str) -> None:
    """Take the place that the program will be in: files 0, 1 and 2 are given, `line` is the only other one."""
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), encoding="utf-8")
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        raw = io.FileIO(descriptor, "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    serve(line)
    sys.stdout.flush()
    sys.stderr.flush()
