"""The C library's system calls that Python does not offer in every version this package supports."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 24, 38, 36
_CAPABILITY_VERSION_3 = 0x20080522

# One number on every architecture: they were added after the tables were unified.
SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE, SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446

_libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """The result of a call. Raises OSError that names `what` if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: object, what: str) -> int:
    return checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def prctl(option: int, value: int, what: str) -> None:
    zero = ctypes.c_ulong(0)
    checked(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), what)


def unshare(flags: int) -> None:
    checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    checked(_libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount on {target}")


def unmount(target: str, flags: int) -> None:
    checked(_libc.umount2(target.encode(), flags), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    checked(_libc.pivot_root(new.encode(), old.encode()), "pivot_root")


def give_up_privileges() -> None:
    """No capability is left, none can be gained: not by a set-uid file, not by a new program."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    class Sets(ctypes.Structure):
        _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))

    prctl(PR_SET_NO_NEW_PRIVS, 1, "no_new_privs")
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability, "drop a capability")
        except OSError:  # EINVAL: beyond the last one the kernel knows; EPERM: there is none to drop
            break
    header, nothing = Header(_CAPABILITY_VERSION_3, 0), (Sets * 2)()
    checked(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")
