"""What came of a program, and what stood between it and the machine meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


class SandboxError(RuntimeError):
    """The sandbox itself could not do its work; nothing is said about the program."""


class SandboxRefused(SandboxError):
    """The program was not run: this platform cannot confine it, and weak confinement was not allowed."""


@dataclass(frozen=True)
class Protections:
    """The mechanisms that were in force, by what they protect; an empty tuple means no protection.

    Parameters
    ----------
    network : against opening any connection
    files : against reading or writing anything outside the given folders and Python's own libraries
    processes : against seeing, signalling or tracing other processes, and against outliving the call
    memory : against using more memory than allowed, all children counted
    system : against calls of the kernel that a program has no need of
    """

    network: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    system: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """What nothing protects. Resource limits alone leave all of network, files, processes and memory."""
        return tuple(name for name in ("network", "files", "processes", "memory") if not getattr(self, name))

    @property
    def strong(self) -> bool:
        return not self.missing

    def __str__(self) -> str:
        parts = {name: ", ".join(getattr(self, name)) or "none" for name in self.__dataclass_fields__}
        return "; ".join(f"{name}: {how}" for name, how in parts.items())

    @classmethod
    def of(cls, mechanisms: Sequence[str]) -> Protections:
        """What a set of mechanisms (see `MECHANISMS`) protects when used together."""
        by_namespace, by_landlock, by_seccomp = (name in mechanisms for name in MECHANISMS)
        return cls(
            network=("network namespace",) * by_namespace + ("seccomp",) * by_seccomp,
            files=("mount namespace",) * by_namespace + ("Landlock",) * (by_landlock and (by_namespace or by_seccomp)),
            processes=("process namespace",) * by_namespace + ("seccomp",) * by_seccomp,
            # one process has one address space; where it may start others, they would have as much each
            memory=("address space limit, one process",) * by_seccomp,
            system=("seccomp",) * by_seccomp,
        )


MECHANISMS = ("namespaces", "landlock", "seccomp")
"""What is used where the kernel has it, besides resource limits; namespaces or landlock, with seccomp, are strong."""


@dataclass(frozen=True)
class Outcome:
    """What one list of arguments gave: a value, or an error that says why there is none.

    `value` is plain JSON data written by an untrusted program: check its type and content. None can be a value; ask `ok`.
    """

    value: Json = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True)
class CallResult:
    """Outcomes in the order of the arguments, what was printed, what it cost, and the protections in force."""

    outcomes: tuple[Outcome, ...]
    stdout: str
    stderr: str
    seconds: float
    cpu_seconds: float
    protections: Protections

    def values(self) -> list[Json]:
        """All values. Raises ValueError with the first error, if there is one."""
        for index, outcome in enumerate(self.outcomes):
            if outcome.error is not None:
                raise ValueError(f"argument list {index} of {len(self.outcomes)}: {outcome.error}")
        return [outcome.value for outcome in self.outcomes]


@dataclass(frozen=True)
class ScriptResult:
    """What a script printed and how it ended: `error` is None if it ran to its end, else one sentence (traceback in `stderr`)."""

    stdout: str
    stderr: str
    error: str | None
    seconds: float
    cpu_seconds: float
    protections: Protections

    @property
    def ok(self) -> bool:
        return self.error is None
