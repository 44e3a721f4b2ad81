"""A ledger of a million rows: how long `upheld report`, `show` and an idle `check` take over it."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np

from installed import Command, declare

CROWD = '''
"""A large experiment, of which nothing is ever measured here."""

from upheld.claims import AtMost, Claim, Experiment, Mean, Measurement, Quantile, Scale, Superior

METHODS = ("ours", "first", "second", "third")
METRICS = tuple(f"m{j}" for j in range(25))
SIZES = (10, 30, 100, 300, 1000)


def measure(trial):
    rng = trial.rng()
    for method in METHODS:
        for metric in METRICS:
            yield Measurement(method, metric, rng.random())


RACE = Experiment(
    "crowd.race", measure, {Scale.SMOKE: [{"n": 10}], Scale.QUICK: [{"n": n} for n in SIZES]},
    {Scale.SMOKE: 2, Scale.QUICK: SEEDS}, {Scale.SMOKE: 60, Scale.QUICK: 60})
CLAIMS = [
    Claim("crowd.beats", "it beats its rivals", None, RACE, Superior("m0", "ours", METHODS[1:], per=("n",))),
    Claim("crowd.small", "its error is small", None, RACE, AtMost(Mean("m1", "ours"), 0.6)),
    Claim("crowd.tail", "its tail is short", None, RACE, AtMost(Quantile("m2", "ours", {"n": 10}, q=0.95), 0.97)),
    *(Claim(f"crowd.m{j}", f"metric {j} is small", None, RACE, AtMost(Mean(f"m{j}", "ours"), 0.6)) for j in range(3, 25)),
]
'''
METHOD = """
from upheld.catalog import Method

METHOD = Method("crowd", title="A crowd", field="tests", summary="many rows", paper="none", package="crowd")
"""
VALUES_A_TRIAL, CONDITIONS = 100, 5
LIMIT_S = 30.0


def install(site: Path, seeds: int) -> None:
    """The method as pip would leave it."""
    (site / "crowd").mkdir(parents=True)
    (site / "crowd" / "__init__.py").write_text('"""A crowd."""')
    (site / "crowd" / "claims.py").write_text(CROWD.replace("SEEDS}", f"{seeds}}}"))
    (site / "crowd" / "plots.py").write_text("PICTURES = {}")
    (site / "crowd_method.py").write_text(METHOD)
    declare(site, "crowd", "crowd_method:METHOD")


def fill(ledger: Path, command: Command, seeds: int) -> int:
    """Have a smoke run make the ledger, then add the quick trials by SQL; returns the number of measurements."""
    done = command("check", "crowd", "--scale", "smoke", "--jobs", 1, "--ledger", ledger)
    if done.returncode:
        raise RuntimeError(done.stderr)
    book = sqlite3.connect(ledger)
    fingerprint, versions = book.execute("SELECT fingerprint, versions FROM trial").fetchone()
    rng = np.random.default_rng(0)
    names = [(method, f"m{j}") for method in ("ours", "first", "second", "third") for j in range(25)]
    number = 1000
    with book:
        for seed in range(seeds):
            for n in (10, 30, 100, 300, 1000):
                number += 1
                book.execute(
                    "INSERT INTO trial VALUES (?, 'crowd.race', ?, ?, 'quick', ?, 'done', '', 0.1, 1000000, 'host', ?, '2026-01-01')",
                    (number, f'{{"n":{n}}}', seed, fingerprint, versions),
                )
                book.executemany(
                    "INSERT INTO measurement VALUES (?, ?, ?, '', ?)",
                    [(number, *name, float(value)) for name, value in zip(names, rng.random(len(names)), strict=True)],
                )
    rows = int(book.execute("SELECT count(*) FROM measurement").fetchone()[0])
    book.close()
    return rows


def large_ledger(seeds: int = 2000) -> str:
    """A million measurements of one experiment, 25 claims on it."""
    with tempfile.TemporaryDirectory() as place:
        site = Path(place) / "site"
        install(site, seeds)
        command = Command(Path(place), site)
        ledger = Path(place) / "ledger.sqlite"
        rows = fill(ledger, command, seeds)
        took = {}
        for verb in (("report", "--out", "report"), ("show",), ("check", "--jobs", "1")):
            begin = time.perf_counter()
            done = command(verb[0], "crowd", *verb[1:], "--ledger", ledger)
            took[verb[0]] = time.perf_counter() - begin
            if done.returncode:
                raise RuntimeError(done.stderr)
        if "0 trials to measure" not in done.stderr:
            raise RuntimeError(f"the bench does not know its own rows: {done.stderr}")
        size = ledger.stat().st_size / 2**20
    if took["report"] > LIMIT_S:
        raise RuntimeError(f"the report took {took['report']:.1f} s, more than {LIMIT_S:g}")
    each = ", ".join(f"{verb} {seconds:.1f} s" for verb, seconds in took.items())
    return f"{rows:,} measurements in {size:.0f} MiB: {each} (a report may take {LIMIT_S:g} s)"
