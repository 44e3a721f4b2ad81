"""kill -9, two runs at once, a worker without memory, a clock that jumps: what the ledger holds afterwards."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from installed import Command, alive, committed, descendants, install_brittle, install_example

Rows = dict[tuple[str, str, int], tuple[Any, ...]]
WALL_S = 600.0


def rows_of(ledger: Path) -> Rows:
    """What is committed of every trial; fails if the file is not sound, or a trial is there twice."""
    book = sqlite3.connect(ledger)
    try:
        if (
            book.execute("PRAGMA integrity_check").fetchone() != ("ok",)
            or book.execute("PRAGMA foreign_key_check").fetchall()
        ):
            raise RuntimeError(f"{ledger} is damaged")
        found = book.execute(
            "SELECT experiment, condition, seed, status, id, finished,"
            " (SELECT group_concat(method || metric || item || value, ';') FROM measurement WHERE trial = trial.id) FROM trial"
        ).fetchall()
    finally:
        book.close()
    rows = {(experiment, condition, seed): tuple(rest) for experiment, condition, seed, *rest in found}
    if len(rows) < len(found):
        raise RuntimeError("a trial stands twice in the ledger")
    return rows


def _site(place: Path) -> Path:
    return install_brittle(install_example(place / "site"))


def kill_nine(times: int = 50) -> str:
    """Kill the main process at random moments, while it starts and while it measures; in the end the verdicts are a quiet run's."""
    chance = random.Random(20260706)
    kept: Rows = {}
    in_mid_run = rounds = orphans = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = Command(place, _site(place))
        check = ("check", "mom", "--jobs", 2)
        quiet = command(*check, "--ledger", "quiet.sqlite", "--save", "quiet.json")
        if quiet.returncode:
            raise RuntimeError(quiet.stderr)
        number = len(rows_of(place / "quiet.sqlite"))
        ledger = place / "killed0.sqlite"
        for attempt in range(times):
            going = command.start(*check, "--ledger", ledger)
            before, end = (committed(ledger) if ledger.exists() else 0), time.monotonic() + 120
            wanted = 0 if attempt % 4 == 0 else chance.randint(1, 30)  # one in four while the command is starting
            while wanted and going.poll() is None and time.monotonic() < end:
                if ledger.exists() and committed(ledger) >= before + wanted:
                    break
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.05 if wanted else 3.0))
            workers = descendants(going.pid)
            going.kill()
            going.communicate()
            end = time.monotonic() + 20
            while any(map(alive, workers)) and time.monotonic() < end:
                time.sleep(0.05)
            orphans += sum(map(alive, workers))
            now = rows_of(ledger) if ledger.exists() and committed(ledger) else {}
            if {key: now.get(key) for key in kept} != kept:
                raise RuntimeError(f"kill {attempt} changed what was committed")
            in_mid_run += len(kept) < len(now) < number
            kept = now
            if len(now) == number:  # it is through: the next one begins anew
                rounds, kept, ledger = rounds + 1, {}, place / f"killed{rounds + 1}.sqlite"
        last = command(*check, "--ledger", ledger, "--save", "killed.json")
        whole = rows_of(ledger)
        same = (place / "killed.json").read_bytes() == (place / "quiet.json").read_bytes()
        if last.returncode or not same or len(whole) != number or {key: whole.get(key) for key in kept} != kept:
            raise RuntimeError(f"the run did not end with the same verdicts: {last.stderr}")
    return (
        f"{times} kills, {in_mid_run} between two commits of a run, {rounds + 1} runs to the end: integrity ok each time, no trial lost or "
        f"doubled, {orphans} workers outlived a kill, the same verdicts to the byte"
    )


def two_at_once() -> str:
    """Two `upheld check` on one ledger: one measures, the other says so and leaves."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = Command(place, _site(place), {"BRITTLE_SECONDS": "0.1"})
        both = [command.start("check", "brittle", "--jobs", 1, "--ledger", "book.sqlite") for _ in range(2)]
        said = [one.communicate(timeout=WALL_S)[1] for one in both]
        codes = sorted(one.returncode for one in both)
        rows = rows_of(place / "book.sqlite")
        refused = [text for text in said if "another run is measuring into book.sqlite" in text]
        if codes != [0, 2] or len(refused) != 1 or len(rows) != 40 or any("Traceback" in text for text in said):
            raise RuntimeError(f"{codes}, {len(rows)} trials: {said}")
    return "one ends with 0 and 40 trials, the other with 2 and a sentence; no trial twice"


GREEDY = '''
"""A trial that takes all memory, another that is killed as the kernel does it, and sound ones."""

import os
import signal

from upheld.claims import AtMost, Claim, Experiment, Mean, Measurement, Scale


def measure(trial):
    if trial.seed == 3:
        held = []
        while True:
            held.append(bytearray(1 << 26))
    if trial.seed == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    yield Measurement("brittle", "error", trial.rng().random())


RACE = Experiment("brittle.race", measure, {Scale.QUICK: [{}]}, {Scale.QUICK: 40}, {Scale.QUICK: 120})
CLAIMS = [Claim("brittle.small", "its error is below 1", None, RACE, AtMost(Mean("error", "brittle"), 1.0))]
'''


def out_of_memory() -> str:
    """A trial that allocates without end, and one that the kernel kills: each is one failed trial, and the run goes on."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        site = _site(place)
        (site / "brittle" / "claims.py").write_text(GREEDY)
        command = Command(place, site)
        # As many jobs as leave each worker 2 GiB: the greedy one meets its own limit, not the machine's.
        done = command(
            "check", "brittle", "--jobs", _jobs_of_two_gib(), "--ledger", "book.sqlite", "--save", "verdicts.json"
        )
        failed = sorted(row[0] for row in rows_of(place / "book.sqlite").values() if row[0] == "failed")
        reasons = [line for line in done.stderr.splitlines() if line.startswith("failed: ")]
        [claim] = json.loads((place / "verdicts.json").read_text())["methods"][0]["claims"]
        if done.returncode or len(failed) != 2 or claim["outcome"] != "upheld" or "out of memory" not in done.stderr:
            raise RuntimeError(done.stderr)
    return f"38 of 40 trials done, verdict {claim['outcome']}; said of the others: " + "; ".join(
        line.partition(": ")[2].split(" seed ")[1][:70] for line in reasons
    )


def _jobs_of_two_gib() -> int:
    from upheld.compute.local import fair_share

    return max(1, fair_share(1) // 2**31)


SHIFTED = """
import random, sys, time
from datetime import datetime, timezone
import upheld.claims.ledger as ledger
real, jumps, chance = time.time, [0.0], random.Random(0)

def jumping():
    jumps[0] += chance.uniform(-1e6, 1e6)
    return real() + jumps[0]

class Jumping(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.fromtimestamp(jumping(), tz)

time.time = jumping
ledger.datetime = Jumping
from upheld.cli import main
main(sys.argv[1:])
"""


def clock_jump() -> str:
    """The wall clock jumps by up to twelve days either way whenever it is asked."""
    import subprocess
    import sys

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = Command(place, _site(place))
        arguments = ["check", "mom", "--jobs", "1", "--save"]
        still = command(*arguments, "still.json", "--ledger", "still.sqlite")
        jumping = subprocess.run(
            [sys.executable, "-c", SHIFTED, *arguments, "jumping.json", "--ledger", "jumping.sqlite"],
            cwd=place, env=command.variables(), capture_output=True, text=True, timeout=WALL_S,
        )  # fmt: skip
        if still.returncode or jumping.returncode:
            raise RuntimeError(still.stderr + jumping.stderr)
        if (place / "still.json").read_bytes() != (place / "jumping.json").read_bytes():
            raise RuntimeError("the verdicts depend on the clock")
        days = {row[2][:10] for row in rows_of(place / "jumping.sqlite").values()}
        resumed = command("check", "mom", "--ledger", "jumping.sqlite")
        if "0 trials to measure" not in resumed.stderr:
            raise RuntimeError(resumed.stderr)
    return f"400 trials on {len(days)} days, none timed out, nothing measured again, the same verdicts to the byte"
