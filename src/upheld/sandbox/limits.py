"""How much a program may use, and the part of it that the kernel enforces on the process itself."""

from __future__ import annotations

import math
import resource
from dataclasses import dataclass, fields

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """What one call may use. Every limit is always in force; whatever else the platform offers.

    Parameters
    ----------
    seconds : wall time for each list of arguments, and for loading the program; time spent in host callbacks is not counted
    total_seconds : wall time of the whole call, all lists of arguments together, callbacks included
    cpu_seconds : CPU time of the process that serves the call, rounded up to whole seconds
    memory : bytes of address space, the interpreter and its libraries included (about 50 MiB; with NumPy about 250 MiB)
    output : bytes of standard output and error together
    value : bytes of one returned value, or of one callback's arguments, as JSON
    file : bytes of any one file the program writes
    folders : bytes that all writable folders together may gain; watched ten times a second, so that it can be overshot
    open_files : files open at once
    callbacks : calls of host functions

    Raises ValueError if a limit is not positive and finite.

    >>> Limits(seconds=2).seconds
    2
    """

    seconds: float = 10.0
    total_seconds: float = 60.0
    cpu_seconds: float = 60.0
    memory: int = 1024 * MIB
    output: int = 1 * MIB
    value: int = 4 * MIB
    file: int = 16 * MIB
    folders: int = 64 * MIB
    open_files: int = 64
    callbacks: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"limit {field.name!r} must be a positive number, got {value!r}")


def apply(limits: Limits) -> None:
    """Bind this process, and all it may start, for good. Raises OSError where the kernel refuses.

    Time on the wall, output and the size of folders are watched from outside.
    """
    bounds = {
        "RLIMIT_CPU": math.ceil(limits.cpu_seconds),
        "RLIMIT_AS": int(limits.memory),
        "RLIMIT_FSIZE": int(limits.file),
        "RLIMIT_NOFILE": int(limits.open_files),
        "RLIMIT_CORE": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_MEMLOCK": 0,
    }
    for name, bound in bounds.items():
        if (which := getattr(resource, name, None)) is not None:  # not every system has every one
            hard = resource.getrlimit(which)[1]
            bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(which, (bound, bound))
