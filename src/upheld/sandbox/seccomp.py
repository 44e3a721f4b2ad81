"""seccomp: system calls that a program that computes has no need of fail with "operation not permitted".

The filter is compiled by libseccomp (LGPL 2.1, part of every Debian, Ubuntu and Fedora: apt and systemd stand on it), which knows each
architecture's numbers and refuses foreign ones, such as 32-bit calls on a 64-bit kernel. It lists what is refused, not what is allowed: an
allow list would break with the next release of the C library or NumPy. Folders, network and processes have their own walls besides.
"""

from __future__ import annotations

import ctypes
import errno

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NOT_EQUAL, _MASKED_EQUAL = 1, 7
_CLONE_THREAD, _O_CREAT, _SETUID, _SETGID = 0x10000, 0o100, 0o4000, 0o2000

PROCESSES = ("fork", "vfork", "execve", "execveat")
NETWORK = (
    "socket",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
)
OTHERS = (
    "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "pidfd_send_signal", "pidfd_getfd", "ptrace",
    "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "setpriority", "ioprio_set",
    "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "move_pages", "migrate_pages", "setsid", "setpgid",
)  # fmt: skip
HIDDEN_MEMORY = (
    "memfd_create",
    "memfd_secret",
    "shmget",
    "shmat",
    "msgget",
    "semget",
    "mq_open",
)  # beyond the address space limit
MACHINE = (
    "unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen",
    "fsmount", "fsconfig", "fspick", "mount_setattr", "bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl",
    "quotactl_fd", "syslog", "personality", "modify_ldt", "open_by_handle_at", "name_to_handle_at", "inotify_init", "inotify_init1",
    "fanotify_init", "fanotify_mark", "sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
    "ioperm", "iopl", "lookup_dcookie", "nfsservctl", "vhangup", "mknod", "mknodat", "setuid", "setgid", "setreuid", "setregid",
    "setresuid", "setresgid", "setgroups", "capset",
)  # fmt: skip
# Landlock has no say over a file's mode, owner and times; a mount namespace has, by what it leaves out.
METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "utimensat", "futimesat",
    "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr",
)  # fmt: skip
# Newer than some libraries still in use; these numbers are the same on every architecture.
NEW_NUMBERS = {
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469, "openat2": 437,
    "clone3": 435, "memfd_secret": 447, "process_mrelease": 448, "quotactl_fd": 443, "mount_setattr": 442, "pidfd_getfd": 438,
    "process_madvise": 440,
}  # fmt: skip


class _Comparison(ctypes.Structure):
    _fields_ = (("argument", ctypes.c_uint), ("how", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


class Filter:
    """A compiled filter, to be laid on a process.

    `metadata=False` refuses changes of any file's mode, owner and times too. Raises OSError where libseccomp is absent or too old.
    """

    def __init__(self, *, metadata: bool):
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(_ALLOW)))
        if not self._context:
            raise OSError("libseccomp could not begin a filter")
        for name in (*PROCESSES, *NETWORK, *OTHERS, *HIDDEN_MEMORY, *MACHINE, *(() if metadata else METADATA)):
            self._refuse(name)
        self._refuse("clone3", number=errno.ENOSYS)  # its flags lie in memory: the C library falls back to clone
        self._refuse("openat2", number=errno.ENOSYS)
        self._refuse("clone", _Comparison(0, _MASKED_EQUAL, _CLONE_THREAD, 0))  # threads yes, processes no
        self._refuse("prlimit64", _Comparison(0, _NOT_EQUAL, 0, 0))  # its own limits only
        for bit in (_SETUID, _SETGID):  # a file left behind must lend nobody its owner's rights
            for name, mode in (
                {"chmod": 1, "fchmod": 1, "fchmodat": 2, "creat": 1}.items() if metadata else {"creat": 1}.items()
            ):
                self._refuse(name, _Comparison(mode, _MASKED_EQUAL, bit, bit))
            for name, flags in {"open": 1, "openat": 2}.items():
                creating = _Comparison(flags, _MASKED_EQUAL, _O_CREAT, _O_CREAT)
                self._refuse(name, creating, _Comparison(flags + 1, _MASKED_EQUAL, bit, bit))
        if metadata:
            self._refuse("fchmodat2")

    def _refuse(self, name: str, *where: _Comparison, number: int = errno.EPERM) -> None:
        syscall = self._library.seccomp_syscall_resolve_name(name.encode())
        if syscall == -1:  # unknown to this release
            if name not in NEW_NUMBERS:
                return
            syscall = NEW_NUMBERS[name]
        comparisons = (_Comparison * max(len(where), 1))(*where)
        failed = self._library.seccomp_rule_add_array(
            self._context,
            ctypes.c_uint32(_ERRNO | number),
            ctypes.c_int(syscall),
            ctypes.c_uint(len(where)),
            comparisons,
        )
        # a call that this architecture never had needs no refusing
        if failed and not (syscall < 0 and -failed in (errno.EDOM, errno.EINVAL)):
            raise OSError(-failed, f"libseccomp refused a rule for {name}")

    def load(self) -> None:
        """Lay the filter on this process and all it starts, for good. Raises OSError where the kernel has no seccomp."""
        failed = self._library.seccomp_load(self._context)
        if failed:
            raise OSError(-failed, "seccomp could not be loaded")
