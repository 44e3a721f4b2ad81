"""Runs program text written by a model, confined: as calls of a function, or as a script.

>>> from upheld.sandbox import Limits, Sandbox
>>> with Sandbox(limits=Limits(seconds=2)) as sandbox:
...     result = sandbox.call("def greet(name):\\n    return 'Hello ' + name", "greet", [["Ada"], ["Carl"]])
>>> result.values()
['Hello Ada', 'Hello Carl']

Arguments, values and callbacks are JSON, never pickle. `CallResult.protections` says what was in force; where a
machine can offer resource limits
only, `Sandbox` refuses, unless it is told to go on (``allow_weak=True``).

**What a program gets.** A process of its own, copied from a warm interpreter that has run no other program; Python's
and the system's libraries, to
read; the folders that were given, to read or to change; one thing to talk to, the host's callbacks. It has no network, no other process in
sight, no child of its own (threads it may start), none of the host's files, environment or open descriptors, and it ends with the call.

**How.** Either of two walls, both with seccomp: namespaces (user, process, network, mount, IPC, host name; a root
that holds the given folders alone),
with Landlock inside where the kernel has it; or, where a container forbids namespaces, Landlock. Resource limits always.

**What it does not protect from.** A hole in the kernel, or in the processor: use a virtual machine for programs from somebody who would pay
for one. Wrong values: a program can return anything, so check what comes back. Whatever it writes into a folder given
to it for writing, such
as modules that somebody later imports, or links that somebody later follows. The names, sizes and contents of all
Python libraries installed
beside it, which it may read. With Landlock alone, the existence, size and times of the host's files (not their
content). Writable folders are measured ten times
a second, so a fast disk can take more than `Limits.folders` before the program is ended. Time and memory it may use
up to its limits, and so may each of
several calls at once.
"""

from __future__ import annotations

from upheld.sandbox.limits import Limits
from upheld.sandbox.program import HostError
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
from upheld.sandbox.sandbox import Sandbox, protections

__all__ = [
    "MECHANISMS",
    "CallResult",
    "HostError",
    "Json",
    "Limits",
    "Outcome",
    "Protections",
    "Sandbox",
    "SandboxError",
    "SandboxRefused",
    "ScriptResult",
    "protections",
]
