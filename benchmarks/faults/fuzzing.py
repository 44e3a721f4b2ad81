"""Damaged files on every loader, through the command, in worker processes with a time limit: a crash or a hang is found too."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from readings import WRITERS, attempt, prepare, readings_of
from upheld.compute import Job, LocalPool

LIMIT_S = 240.0  # for one file, on a busy machine; alone they take half a second


def damaged_files(many: int = 150) -> str:
    """So many a method; the file, the accident and its place are drawn from the number."""
    found: Counter[str] = Counter()
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UPHELD_CACHE"] = str(Path(folder) / "cache")
        root = Path(folder)
        for outcome in LocalPool(1).run([Job(one, prepared, (one, str(root / one)), 600.0) for one in WRITERS]):
            if outcome.status == "failed":
                raise RuntimeError(f"{outcome.key}: {outcome.reason}")
        jobs = (
            Job((one, number), tried, (one, str(root / one), number), LIMIT_S)
            for one in WRITERS
            for number in range(many)
        )
        for outcome in LocalPool(1).run(jobs):
            code, fault = outcome.value if outcome.status == "done" else ("", f"{outcome.reason}")
            found["refused" if code == 2 else "answered" if code == 0 else "fault"] += 1
            if fault:
                method, number = outcome.key
                faults.append(f"{method} {number}: {fault}")
                print(f"  {faults[-1]}", flush=True)
    if faults:
        raise RuntimeError(f"{len(faults)} of {found.total()}")
    said = f"{found['refused']:,} refused in a sentence, {found['answered']:,} read all the same"
    return f"{found.total():,} files: {said}, no traceback, no hang"


def prepared(method: str, folder: str) -> None:
    prepare(method, Path(folder) / "sound")


def tried(method: str, folder: str, number: int) -> tuple[int, str]:
    """Exit code, and what was wrong."""
    readings = readings_of(method)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        verdict, what = attempt(readings[number % len(readings)], Path(folder) / "sound", Path(place), Random(number))
    return verdict.code, f"{verdict.fault} ({what})" if verdict.fault else ""
