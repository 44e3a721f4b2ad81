"""A disk that is full, and one that cannot be written: every verb that writes, on a small disk in memory.

The disk is mounted in a mount namespace of this scenario's own (``unshare``), and gone with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from installed import Command, install_brittle, install_example

INSIDE = "UPHELD_FAULTS_INSIDE"
BALLAST = "ballast"
VERBS = {
    "check": ("check", "mom", "--jobs", "1", "--ledger", "{disk}/book.sqlite"),
    "check --save": ("check", "mom", "--jobs", "1", "--ledger", "book.sqlite", "--save", "{disk}/verdicts.json"),
    "report": ("report", "mom", "--ledger", "book.sqlite", "--out", "{disk}/report"),
    "data": ("data", "bandits", "--out", "{disk}/log.csv"),
    "data, a folder": ("data", "lagrangian", "--out", "{disk}/days"),
    "run --out": ("run", "bandits", "log.csv", "--threshold", "0.9", "--runs", "4", "--out", "{disk}/out"),
}


def disk_full() -> str:
    """Nothing is left but what a folder needs."""
    return _apart("disk_full") or _tried("size=64k", lambda disk: (disk / BALLAST).write_bytes(bytes(2**16)))


def read_only() -> str:
    """Mounted read-only, which binds root too."""
    return _apart("read_only") or _tried("size=1m", lambda disk: _mount("remount,ro", disk))


def _apart(name: str) -> str:
    """Call the scenario again in a mount namespace of its own; empty when it is there already."""
    if os.environ.get(INSIDE):
        return ""
    done = subprocess.run(
        ["unshare", "-m", sys.executable, str(Path(__file__).parent), name],
        env=os.environ | {INSIDE: "1"},
        capture_output=True,
        text=True,
    )
    if "FAILED" in done.stdout or not done.stdout.startswith(name):
        raise RuntimeError(done.stdout.strip() or f"cannot be tried here: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip().removeprefix(name).rpartition(" [")[0].strip()


def _mount(options: str, disk: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True, capture_output=True)


def _tried(size: str, spoil: Callable[[Path], object]) -> str:
    """Every verb; each must end with exit code 2 and a sentence, and leave nothing half-written."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = Command(place, install_brittle(install_example(place / "site")))
        for line in (
            ("check", "mom", "--jobs", "1", "--ledger", "book.sqlite"),
            ("data", "bandits", "--out", "log.csv"),
        ):
            if (done := command(*line)).returncode:
                raise RuntimeError(done.stderr)
        wrong = []
        for name, line in VERBS.items():
            disk = place / "disk"
            disk.mkdir()
            _mount(size, disk)
            spoil(disk)
            done = command(*(word.format(disk="disk") for word in line))
            left = sorted(str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file())
            halves = [path for path in left if path != BALLAST and not path.startswith("book.sqlite")]
            last = done.stderr.strip().splitlines()[-1:] or [""]
            if done.returncode != 2 or "Traceback" in done.stderr or not last[0].startswith("upheld: ") or halves:
                wrong.append(f"{name}: exit {done.returncode}, left {halves}, said {last[0]!r}")
            subprocess.run(["umount", str(disk)], check=True)
            disk.rmdir()
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return f"{len(VERBS)} of {len(VERBS)} ({', '.join(VERBS)}) end with 2 and a sentence, nothing half-written"
