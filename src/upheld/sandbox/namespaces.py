"""Namespaces: a machine of its own, with no network, no other process, and no file but those put into it.

man 7 namespaces, user_namespaces, pid_namespaces; man 2 pivot_root. Two steps, in two processes: the parent leaves the host's namespaces
(its next child is process 1 of the new one, whose death ends all others), the child builds a root that holds the given folders alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from upheld.sandbox import kernel

_NEW_MOUNTS, _NEW_NAMES, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXECUTION = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH, _AT_RECURSIVE, _AT_CURRENT_FOLDER = 2, 0x8000, -100
TASKS = 301  # the least that the kernel takes for a process namespace (since Linux 6.14)


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace"))


def leave() -> None:
    """Move this process to new user, network and IPC namespaces, its children to a new process namespace.

    Inside, it is the same user without rights outside. Raises OSError where the kernel, or a container around us, forbids it.
    """
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_NEW_USER | _NEW_PIDS | _NEW_NET | _NEW_IPC | _NEW_NAMES)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def build_root(read: Sequence[str], write: Sequence[str], links: Mapping[str, str], below: str) -> None:
    """Make the given folders and files, at their own paths, all that this process can see. Raises OSError where that cannot be.

    Parameters
    ----------
    read, write : absolute paths without symbolic links; a writable folder may lie within one that is not
    links : symbolic links that lead to them, and where each points
    below : an empty folder, the root's place while it is built
    """
    kernel.unshare(_NEW_MOUNTS)
    kernel.mount("none", "/", None, _RECURSIVE | _PRIVATE)
    # descriptors, since the new root may cover the way to what lies beneath `below`
    bound = {path: (os.open(path, os.O_PATH | os.O_CLOEXEC), _READ_ONLY) for path in read}
    bound |= {path: (os.open(path, os.O_PATH | os.O_CLOEXEC), _NO_EXECUTION) for path in write}
    _limit_tasks(below)
    kernel.mount("root", below, "tmpfs", _NO_SETUID | _NO_DEVICES, "size=1m,mode=755")
    for path in sorted(bound, key=lambda path: path.count("/")):  # outer folders first
        source, attributes = bound[path]
        _bind(source, below + path, attributes)
        os.close(source)
    for link, target in links.items():
        if not os.path.lexists(below + link):
            os.makedirs(os.path.dirname(below + link), exist_ok=True)
            os.symlink(target, below + link)
    kernel.mount("none", below, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES)
    os.chdir(below)
    kernel.pivot_root(".", ".")  # the old root lies over the new one until it is taken away
    kernel.unmount(".", _DETACH)
    os.chdir("/")


def _bind(source: int, target: str, attributes: int) -> None:
    if os.path.isdir(f"/proc/self/fd/{source}"):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o644))
    kernel.mount(f"/proc/self/fd/{source}", target, None, _BIND | _RECURSIVE)
    wanted = _Attributes(set=attributes | _NO_SETUID | _NO_DEVICES)
    kernel.syscall(
        kernel.SYS_MOUNT_SETATTR, ctypes.c_int(_AT_CURRENT_FOLDER), ctypes.c_char_p(target.encode()),
        ctypes.c_uint(_AT_RECURSIVE), ctypes.byref(wanted), ctypes.c_size_t(ctypes.sizeof(wanted)), what=f"protect {target}",
    )  # fmt: skip


def _limit_tasks(below: str) -> None:
    """Bound threads where the kernel counts them per namespace. A help, not a wall: address space and time bound them anyway."""
    try:
        kernel.mount("proc", below, "proc", _NO_SETUID | _NO_DEVICES | _NO_EXECUTION)
    except OSError:  # a container hides parts of /proc, so that no new one may be mounted
        return
    try:
        if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (
            6,
            14,
        ):  # before, it bounds the host
            Path(below, "sys/kernel/pid_max").write_text(str(TASKS))
    finally:
        kernel.unmount(below, _DETACH)
