"""Jobs that behave well, and jobs that do not."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn


def square(x: int) -> int:
    return x * x


def pid() -> int:
    return os.getpid()


def own_limits() -> tuple[int, int]:
    """Process id and the most private memory, bytes."""
    return os.getpid(), resource.getrlimit(resource.RLIMIT_DATA)[0]


def raises(message: str) -> NoReturn:
    print("about to fail")
    raise ValueError(message)


def raises_deep_in_numpy() -> None:
    import numpy as np

    np.linalg.inv(np.zeros((2, 2)))


def raises_unprintably() -> NoReturn:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    raise Unprintable


def leaves(code: int) -> NoReturn:
    os._exit(code)


def exits() -> NoReturn:
    sys.exit("enough")


def segfaults() -> None:
    ctypes.string_at(0)


def sleeps(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def holds_the_interpreter(pid_file: str) -> None:
    """Compiled code that neither returns nor lets another thread run."""
    _write(pid_file, os.getpid())
    while True:
        ctypes.PyDLL(None).usleep(900_000)


def allocates(megabytes: int) -> int:
    """Return the process, and hold so much memory meanwhile."""
    held = bytearray(megabytes * 2**20)
    held[:: 2**12] = b"x" * len(held[:: 2**12])
    return os.getpid()


def hoards() -> NoReturn:
    """Fill memory in small pieces that the traceback keeps alive."""
    hoard = []
    while True:
        hoard.append(bytearray(2**16))


def kills_itself(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def tells_its_pid_and_sleeps(pid_file: str) -> None:
    _write(pid_file, os.getpid())
    time.sleep(60)


def tells_its_pid(pid_file: str) -> int:
    _write(pid_file, os.getpid())
    return os.getpid()


def starts_a_child_and_sleeps(pid_file: str) -> None:
    child = subprocess.Popen(["sleep", "60"])
    _write(pid_file, child.pid)
    time.sleep(60)


def forks_and_dies(pid_file: str) -> None:
    """Leave a child that holds all of this process's files open."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    _write(pid_file, child)
    os.kill(os.getpid(), signal.SIGKILL)


def forks_and_both_return(x: int) -> int:
    child = os.fork()
    if child == 0:
        return -1
    os.waitpid(child, 0)
    return x


def uses_processes(numbers: list[int]) -> list[int]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(square, numbers)


def returns_a_lock() -> Any:
    return threading.Lock()


class Fragile:
    """Can be pickled, and never again read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("not a number",)


def returns_fragile() -> Fragile:
    return Fragile()


def is_noisy() -> str:
    print("noise on stdout")
    print("noise on stderr", file=sys.stderr)
    subprocess.run("echo noise of a child; echo more >&2", shell=True, check=True)
    return "quiet"


def surroundings() -> dict[str, Any]:
    import numpy  # noqa: F401 - its thread pool is what is looked at
    import threadpoolctl

    return {
        "threads": [library["num_threads"] for library in threadpoolctl.threadpool_info()],
        "numba": os.environ["NUMBA_NUM_THREADS"],
        "order": list({"one", "two", "three", "four", "five", "six"}),
    }


def numbers(seed: int) -> Any:
    """Floating-point work whose last bits depend on the number of threads and on the library used."""
    import numpy as np

    matrix = np.random.default_rng(seed).standard_normal((60, 60))
    return np.linalg.svd(matrix @ matrix.T)[1]


def doubled(array: Any) -> Any:
    return array * 2


def _write(path: str, number: int) -> None:
    """In one step, so that no reader sees half of it."""
    part = Path(f"{path}.part")
    part.write_text(str(number))
    part.rename(path)
