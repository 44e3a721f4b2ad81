"""Lays the protections on a process, in the order in which they can be laid, and finds out which ones this machine has."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from upheld.sandbox import kernel, landlock, limits, namespaces
from upheld.sandbox.limits import Limits
from upheld.sandbox.result import MECHANISMS
from upheld.sandbox.seccomp import Filter

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache")


def _wanted() -> list[str]:
    paths = sysconfig.get_paths()
    python = (
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        *(paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
    )
    return [path for path in (*python, *SYSTEM) if os.path.exists(path)]


def libraries() -> list[str]:
    """Python's own folders and the system's shared libraries: read-only to every program. Nothing else of the machine is.

    An editable install's sources are not among them: they lie in somebody's working tree.
    """
    real = {os.path.realpath(path) for path in _wanted()} - {"/"}
    return sorted(path for path in real if not any(path.startswith(f"{outer}/") for outer in real))


def links() -> dict[str, str]:
    """Links by which Python and the loader know these folders, and what they point to."""
    return {path: real for path in _wanted() if (real := os.path.realpath(path)) != path}


@dataclass(frozen=True)
class Confinement:
    """What one process is left with. `mechanisms` are names of `MECHANISMS`; `below` is an empty folder."""

    mechanisms: Collection[str]
    read: tuple[str, ...]
    write: tuple[str, ...]
    links: Mapping[str, str]
    limits: Limits
    below: str

    def leave(self) -> None:
        """The parent's part. Raises OSError."""
        if "namespaces" in self.mechanisms:
            namespaces.leave()

    def enter(self, filters: Mapping[bool, Filter]) -> None:
        """The child's part, for good. Raises OSError if anything of it cannot be had; nothing may be run then."""
        apart = "namespaces" in self.mechanisms
        read = [*libraries(), *self.read]
        if apart:
            namespaces.build_root(read, self.write, {**links(), **self.links}, self.below)
        if sys.platform == "linux":
            kernel.give_up_privileges()
            kernel.prctl(kernel.PR_SET_PDEATHSIG, 9, "end with the parent")
        if "landlock" in self.mechanisms:
            landlock.restrict(read, self.write)
        limits.apply(self.limits)
        if "seccomp" in self.mechanisms:
            filters[apart].load()


def compile_filters() -> dict[bool, Filter]:
    """The filters for a process without a root of its own, and for one with. Raises OSError or AttributeError without libseccomp."""
    return {apart: Filter(metadata=apart) for apart in (False, True)}


def examine(without: Collection[str], below: str) -> tuple[dict[bool, Filter], dict[str, str]]:
    """Try every mechanism on a process made for it: the filters, and for each mechanism that is absent the reason."""
    absent = {name: "left out on request" for name in MECHANISMS if name in without}
    if sys.platform != "linux":
        return {}, dict.fromkeys(MECHANISMS, f"{sys.platform} has no such thing") | absent
    filters = {}
    if "seccomp" not in absent:
        try:
            filters = compile_filters()
        except (OSError, AttributeError) as wrong:
            absent["seccomp"] = f"libseccomp cannot be used: {wrong}"
    for name in MECHANISMS:
        if name not in absent and (reason := _try(Confinement((name,), (), (), {}, Limits(), below), filters)):
            absent[name] = reason
    return filters, absent


def _try(confinement: Confinement, filters: Mapping[bool, Filter]) -> str:
    """Why a process cannot be confined so; empty if it can."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            confinement.leave()
            grandchild = os.fork()
            if not grandchild:
                confinement.enter(filters)
                os._exit(0)
            if os.waitpid(grandchild, 0)[1]:
                os.write(writing, b" ")
        except BaseException as wrong:
            os.write(writing, str(wrong).encode()[:1000])
        finally:
            os._exit(0)  # a copy of the worker must never go on as one
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, "rb") as said:
        return said.read().decode(errors="replace").strip(" ")
