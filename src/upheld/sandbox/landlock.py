"""Landlock: the kernel refuses this process every file beneath no folder that was named, for good.

Kernel documentation, "Landlock: unprivileged access control". Version 3 of the interface (Linux 6.2) is the first
that covers truncation, so
older ones count as absent. It does not cover looking at a file's size and times, nor changing its mode and owner:
`seccomp` refuses the latter.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from upheld.sandbox import kernel

OLDEST = 3
_EXECUTE, _WRITE, _READ, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 10, 1 << 11
_TRUNCATE = 1 << 14
# the first version of the interface that knows each right, as the number of rights it knows
_FILE_RIGHTS = {3: 15, 5: 16}
_NET_RIGHTS = {4: 0b11}  # bind and connect of TCP
_SCOPES = {6: 0b11}  # abstract UNIX sockets and signals, of processes outside

READ = (
    _EXECUTE | _READ | _READ_DIR
)  # an extension module is mapped executable; starting it as a program is refused by seccomp
_FILE_ONLY = _EXECUTE | _WRITE | _READ | _TRUNCATE  # what the kernel accepts for a rule on a single file


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Version of the kernel's interface, 0 where there is none."""
    try:
        return kernel.syscall(
            kernel.SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1), what="Landlock version"
        )
    except OSError:
        return 0


def restrict(read: Iterable[str], write: Iterable[str]) -> None:
    """Leave this process the files beneath these folders, `write` ones also to change. Raises OSError where that cannot be."""
    abi = version()
    if abi < OLDEST:
        raise OSError(f"Landlock version {abi} is older than {OLDEST}")
    handled = (1 << max(n for since, n in _FILE_RIGHTS.items() if since <= abi)) - 1
    rules = _Ruleset(handled, _known(_NET_RIGHTS, abi), _known(_SCOPES, abi))
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = kernel.syscall(
        kernel.SYS_LANDLOCK_CREATE_RULESET,
        ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0), what="Landlock rules",
    )  # fmt: skip
    try:
        for path in read:
            _allow(ruleset, path, READ)
        changing = handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_SOCK | _MAKE_FIFO | _MAKE_BLOCK)
        for path in write:
            _allow(ruleset, path, changing)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, "no_new_privs")
        kernel.syscall(
            kernel.SYS_LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0), what="Landlock restriction"
        )
    finally:
        os.close(ruleset)


def _known(rights: dict[int, int], abi: int) -> int:
    return sum(bits for since, bits in rights.items() if since <= abi)


def _allow(ruleset: int, path: str, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(rights if os.path.isdir(path) else rights & _FILE_ONLY, parent)
        kernel.syscall(
            kernel.SYS_LANDLOCK_ADD_RULE,
            ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0), what=f"Landlock rule for {path}",
        )  # fmt: skip
    finally:
        os.close(parent)
