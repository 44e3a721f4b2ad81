"""A Ray worker that is lost in mid-run."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from kills import rows_of

from installed import Command, committed, descendants, install_brittle, install_example

LONGEST_S = 120.0


def ray_worker_lost() -> str:
    """Kill one of Ray's worker processes, then a whole node's manager: the driver goes on, or ends and says so; it never hangs."""
    if importlib.util.find_spec("ray") is None:
        return 'not tried: Ray is not installed (pip install "upheld[ray]")'
    return f"a worker killed: {_killed('ray::Actor')}; the node's raylet killed: {_killed('raylet')}"


def _killed(who: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = Command(place, install_brittle(install_example(place / "site")), {"BRITTLE_SECONDS": "0.5"})
        going = command.start("check", "brittle", "--ray", "auto", "--jobs", 1, "--ledger", "book.sqlite")
        ledger, end = place / "book.sqlite", time.monotonic() + LONGEST_S
        while not (ledger.exists() and committed(ledger) >= 3):
            if going.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"it did not begin: {going.communicate()[1]}")
            time.sleep(0.1)
        victims = [pid for pid in descendants(going.pid) if _is(pid, who)]
        if not victims:
            raise RuntimeError(f"there is no process {who}")
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        begin = time.monotonic()
        try:
            _, said = going.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            survivors = descendants(going.pid)
            for pid in (going.pid, *survivors):
                os.kill(pid, signal.SIGKILL)
            raise RuntimeError(
                f"after {who} was killed the driver hangs, with {committed(ledger)} of 40 trials"
            ) from None
        rows = rows_of(ledger)
        done = sum(row[0] == "done" for row in rows.values())
        if "Traceback" in said:
            raise RuntimeError(said[-800:])
        return f"exit {going.returncode} after {time.monotonic() - begin:.0f} s, {done} of 40 trials done, {len(rows) - done} failed"


def _is(pid: int, who: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    first = words[0].decode(errors="replace")
    return first.startswith(who) or Path(first.split(" ")[0]).name == who
