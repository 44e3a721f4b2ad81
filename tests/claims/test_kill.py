"""kill -9 at any moment: nothing that was committed is lost, nothing is measured twice, nothing lives on."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from installed import Command, alive, committed, descendants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = 20
CHECK = ("check", "mom", "--jobs", "2")


def rows(ledger: Path) -> dict[tuple[str, int], tuple[object, ...]]:
    """What is committed of every trial, with what tells one measurement of it from another."""
    book = sqlite3.connect(ledger)
    assert book.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert book.execute("PRAGMA foreign_key_check").fetchall() == []
    found = {
        (condition, seed): (number, *rest)
        for number, condition, seed, *rest in book.execute(
            "SELECT id, condition, seed, status, seconds, finished,"
            " (SELECT group_concat(method || metric || value, ';') FROM measurement WHERE trial = trial.id) FROM trial"
        )
    }
    book.close()
    return found


def killed(going, after_trials: int, after_s: float, ledger: Path) -> set[int]:
    """Kill the main process once it has measured so much, and waited so long; returns the workers that it had."""
    before = committed(ledger) if ledger.exists() else 0
    end = time.monotonic() + 120
    while after_trials and (committed(ledger) if ledger.exists() else 0) < before + after_trials:
        assert time.monotonic() < end
        if going.poll() is not None:
            break
        time.sleep(0.005)
    time.sleep(after_s)
    workers = set(descendants(going.pid))
    going.kill()  # does nothing to a command that has ended meanwhile, and its process id is still ours: not yet waited for
    going.communicate()
    return workers


def test_main_process_killed_twenty_times(upheld: Command, measured: Command):
    chance = random.Random(20260706)
    ledger = upheld.folder / ".upheld" / "ledger.sqlite"
    kept: dict[tuple[str, int], tuple[object, ...]] = {}
    in_mid_run = 0
    for attempt in range(KILLS):
        # One kill in four while the command is still starting, the others while trials are measured.
        starting = attempt % 4 == 0
        going = upheld.start(*CHECK)
        workers = killed(
            going, 0 if starting else chance.randint(1, 20), chance.uniform(0, 3.0 if starting else 0.05), ledger
        )
        end = time.monotonic() + 10
        while any(map(alive, workers)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not [worker for worker in workers if alive(worker)], f"workers outlived kill {attempt}"
        if ledger.exists():
            now = rows(ledger) if committed(ledger) else {}
            assert {key: now.get(key) for key in kept} == kept, f"kill {attempt} changed what was committed"
            in_mid_run += len(kept) < len(now) < 400
            kept = now
    assert in_mid_run >= 10

    last = upheld.cold(*CHECK, "--save", "verdicts.json")
    assert last.returncode == 0
    assert (
        last.stderr.splitlines()[0]
        == f"quick scale: {400 - len(kept)} trials to measure, {len(kept)} are there already"
    )
    whole = rows(ledger)
    assert len(whole) == 400
    assert {key: whole[key] for key in kept} == kept
    assert {row[1] for row in whole.values()} == {"done"}
    assert (upheld.folder / "verdicts.json").read_bytes() == (measured.folder / "verdicts.json").read_bytes()


def test_a_worker_killed_in_mid_trial_costs_that_trial_alone(upheld: Command):
    going = upheld.start("check", "brittle", "--jobs", "2", "--save", "verdicts.json", BRITTLE_SECONDS="0.2")
    ledger = upheld.folder / ".upheld" / "ledger.sqlite"
    while not (ledger.exists() and committed(ledger) >= 3):
        assert going.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)  # a trial was begun when the last one ended
    os.kill(descendants(going.pid)[0], signal.SIGKILL)
    _, stderr = going.communicate(timeout=120)
    assert going.returncode == 0
    lost = re.findall(r"^failed: brittle.race\(\) seed \d+: killed by signal 9 \(SIGKILL\)", stderr, re.MULTILINE)
    assert len(lost) == 1
    [claim] = json.loads((upheld.folder / "verdicts.json").read_text())["methods"][0]["claims"]
    assert claim["trials"] == {"wanted": 40, "done": 39, "failed": 1, "not_run": 0, "missing": 0}
    assert claim["outcome"] == "upheld"

    mended = upheld("check", "brittle", "--retry-failed")
    assert mended.stderr == "quick scale: 1 trials to measure, 39 are there already\n"
