"""Where results are kept: one SQLite file, written by one process, a trial at a time.

A result is committed before it is reported, so a run that is killed at any moment resumes from what was committed. The key of a
result is (experiment, condition, seed, scale, fingerprint); the fingerprint hashes the sources that shaped it, so results of
other sources stay in the file but are not read.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pandas as pd

from upheld.claims.trial import Measurement, Scale, Trial, canonical
from upheld.storage import use_write_ahead_log

VERSION = 1
EFFECTIVE = os.access in os.supports_effective_ids
PATIENCE_S = 10.0  # how long another process may hold the file; a commit takes milliseconds
SCHEMA = """
CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    experiment TEXT NOT NULL, condition TEXT NOT NULL, seed INTEGER NOT NULL, scale TEXT NOT NULL, fingerprint TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'not run')),
    reason TEXT NOT NULL, seconds REAL NOT NULL, peak_memory INTEGER NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
    finished TEXT NOT NULL,
    UNIQUE (experiment, scale, fingerprint, condition, seed)
);
CREATE TABLE measurement (
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    method TEXT NOT NULL, metric TEXT NOT NULL, item TEXT NOT NULL, value REAL NOT NULL
);
CREATE INDEX measurement_of_trial ON measurement (trial);
CREATE TABLE verdict (
    claim TEXT NOT NULL, scale TEXT NOT NULL, fingerprint TEXT NOT NULL, rule TEXT NOT NULL, verdict TEXT NOT NULL, judged TEXT NOT NULL
);
CREATE INDEX verdict_of_claim ON verdict (claim, scale);
"""

Status = Literal["done", "failed", "not run"]
Key = tuple[str, int]  # canonical condition, seed


class LedgerError(ValueError):
    """The ledger cannot be used as it is; the message says why and what to do."""


@dataclass(frozen=True)
class Result:
    """What became of one trial."""

    trial: Trial
    status: Status
    measurements: Sequence[Measurement] = ()
    reason: str = ""
    seconds: float = 0.0
    peak_memory: int = 0
    host: str = ""
    versions: dict[str, str] = field(default_factory=dict)


class Ledger:
    """The results file.

    Parameters
    ----------
    path : created when it is not there, with its folder
    for_reading : where the file or its folder cannot be written, read what is there; verdicts are not remembered then

    Raises
    ------
    LedgerError
        If the file is no ledger, is damaged, comes from a newer version, is locked by another run, or cannot be written.
    """

    def __init__(self, path: str | Path, *, for_reading: bool = False) -> None:
        self.path = path = Path(path)
        if path.is_dir():
            raise LedgerError(f"the ledger {path} is a folder: name a file with --ledger")
        with self._explained():
            self.writable = not path.exists() or _can_be_written(path)
            if not self.writable and not for_reading:  # SQLite would notice at the first result
                raise PermissionError("permission denied")
            if self.writable:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
            else:
                self._db = _opened_to_read(path)
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise

    def _open(self) -> None:
        if self._is_new():
            # WAL with FULL survives a power cut as well as a killed process: a commit is on the disk when it returns.
            use_write_ahead_log(self._db, PATIENCE_S)
            with self._transaction():
                if self._is_new():  # nobody else made it meanwhile
                    for statement in SCHEMA.split(";"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")

    def _is_new(self) -> bool:
        """An empty file; raises LedgerError if it holds anything but a ledger of this version."""
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master")}
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if tables and not {"trial", "measurement", "verdict"} <= tables:
            raise LedgerError(f"{self.path} is a database, but no ledger of upheld; name another file with --ledger")
        if version > VERSION:
            raise LedgerError(
                f"{self.path} was written by a newer upheld (ledger version {version}, this one reads {VERSION}); "
                "update upheld, or name another file with --ledger"
            )
        return not tables

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; it takes its turn before it reads."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite itself gives up when the disk is full
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep other runs from measuring into this ledger, which would measure everything twice; reading goes on.

        The system lifts the reservation when the process ends, however it ends.

        Raises
        ------
        LedgerError
            If another run has it.
        """
        path = self.path.resolve()
        with self._explained():
            file = path.with_name(f"{path.name}.lock").open("a")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LedgerError(
                    f"another run is measuring into {self.path}: wait for it, or name another file with --ledger"
                ) from None
            yield

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- writing

    def record(self, result: Result, fingerprint: str) -> None:
        """Commit one trial's result; an earlier one of the same key is replaced."""
        trial = result.trial
        key = (trial.experiment, trial.scale, fingerprint, canonical(trial.condition), trial.seed)
        with self._explained(), self._transaction():
            self._db.execute(
                "DELETE FROM trial WHERE experiment = ? AND scale = ? AND fingerprint = ? AND condition = ? AND seed = ?",
                key,
            )
            row = self._db.execute(
                "INSERT INTO trial (experiment, scale, fingerprint, condition, seed, status, reason, seconds, peak_memory, host,"
                " versions, finished) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, result.status, result.reason, result.seconds, result.peak_memory, result.host,
                 json.dumps(result.versions, sort_keys=True), datetime.now(UTC).isoformat(timespec="seconds")),
            ).lastrowid  # fmt: skip
            self._db.executemany(
                "INSERT INTO measurement (trial, method, metric, item, value) VALUES (?, ?, ?, ?, ?)",
                [(row, m.method, m.metric, m.item, float(m.value)) for m in result.measurements],
            )

    def forget(self, experiments: Iterable[str], scale: Scale) -> None:
        """Remove every result of these experiments at this scale, stale ones too."""
        with self._explained(), self._transaction():
            self._db.executemany(
                "DELETE FROM trial WHERE experiment = ? AND scale = ?", [(name, scale) for name in experiments]
            )

    # -- reading

    def statuses(self, experiment: str, scale: Scale, fingerprint: str) -> dict[Key, Status]:
        """Status by (canonical condition, seed)."""
        with self._explained():
            rows = self._db.execute(
                "SELECT condition, seed, status FROM trial WHERE experiment = ? AND scale = ? AND fingerprint = ?",
                (experiment, scale, fingerprint),
            )
            return {(condition, seed): status for condition, seed, status in rows}

    def measurements(
        self, experiment: str, scale: Scale, fingerprint: str, wanted: Collection[Key] | None = None
    ) -> pd.DataFrame:
        """Measurements in long format: one column a condition key, then seed, item, method, metric, value.

        `wanted` leaves out the trials that an experiment had once, when it had other conditions or more repeats.
        """
        with self._explained():
            rows = pd.read_sql_query(
                "SELECT condition, seed, item, method, metric, value FROM measurement JOIN trial ON trial.id = measurement.trial"
                " WHERE experiment = ? AND scale = ? AND fingerprint = ? AND status = 'done' ORDER BY seed, condition, measurement.rowid",
                self._db,
                params=(experiment, scale, fingerprint),
            )
        rows = _only(rows, wanted)
        conditions = {text: json.loads(text) for text in rows["condition"].unique()}
        keys = list(dict.fromkeys(key for condition in conditions.values() for key in condition))
        columns = {
            key: rows["condition"].map({text: condition.get(key) for text, condition in conditions.items()})
            for key in keys
        }
        return pd.concat([pd.DataFrame(columns, index=rows.index), rows.drop(columns="condition")], axis=1)

    def costs(
        self, experiment: str, scale: Scale, fingerprint: str, wanted: Collection[Key] | None = None
    ) -> pd.DataFrame:
        """Trials with their status, reason, seconds, peak memory (bytes), host, versions and time; `wanted` as above."""
        with self._explained():
            rows = pd.read_sql_query(
                "SELECT condition, seed, status, reason, seconds, peak_memory, host, versions, finished FROM trial"
                " WHERE experiment = ? AND scale = ? AND fingerprint = ? ORDER BY seed, condition",
                self._db,
                params=(experiment, scale, fingerprint),
            )
        return _only(rows, wanted)

    def stale(self, experiment: str, scale: Scale, fingerprint: str) -> int:
        """Number of results of this experiment that other sources produced."""
        with self._explained():
            query = "SELECT count(*) FROM trial WHERE experiment = ? AND scale = ? AND fingerprint != ?"
            return int(self._db.execute(query, (experiment, scale, fingerprint)).fetchone()[0])

    # -- verdicts: recomputed at will, kept so that a changed rule is seen

    def remember_verdict(self, claim: str, scale: Scale, fingerprint: str, rule: str, verdict: str) -> None:
        """Append a verdict when it differs from the last one of the same claim, scale, sources and rule, if the file can be written."""
        last = [row for row in self.verdicts(claim, scale) if row["fingerprint"] == fingerprint and row["rule"] == rule]
        if not self.writable or (last and last[-1]["verdict"] == verdict):
            return
        with self._explained(), self._transaction():
            self._db.execute(
                "INSERT INTO verdict VALUES (?, ?, ?, ?, ?, ?)",
                (claim, scale, fingerprint, rule, verdict, datetime.now(UTC).isoformat(timespec="seconds")),
            )

    def verdicts(self, claim: str, scale: Scale) -> list[dict[str, str]]:
        """Earlier verdicts of a claim, oldest first: fingerprint, rule, verdict, judged."""
        names = ("fingerprint", "rule", "verdict", "judged")
        with self._explained():
            query = f"SELECT {', '.join(names)} FROM verdict WHERE claim = ? AND scale = ? ORDER BY rowid"
            return [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (claim, scale))]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what SQLite and the file system say into a sentence that says what to do."""
        try:
            yield
        except (sqlite3.Error, pd.errors.DatabaseError, OSError) as error:
            raise LedgerError(f"the ledger {self.path} {_explanation(str(error))} ({error})") from error


def _can_be_written(path: Path) -> bool:
    """SQLite also writes beside the file: the write-ahead log, and what its readers share."""
    return all(os.access(place, os.W_OK, effective_ids=EFFECTIVE) for place in (path, path.absolute().parent))


def _opened_to_read(path: Path) -> sqlite3.Connection:
    """A database that cannot be written, or not beside. Nothing new is left there, which its owner could not write.

    While anybody writes it there is a write-ahead log; without one the file is all there is, and SQLite is told so.
    """
    place = f"{path.absolute().as_uri()}?mode=ro"
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        db = sqlite3.connect(place, uri=True, timeout=PATIENCE_S, isolation_level=None)
        try:
            db.execute("SELECT name FROM sqlite_master").fetchone()
            return db
        except sqlite3.OperationalError:
            db.close()
            if log.stat().st_size:  # what was committed last is in there, and would be missed
                raise
    return sqlite3.connect(f"{place}&immutable=1", uri=True, isolation_level=None)


def _only(rows: pd.DataFrame, wanted: Collection[Key] | None) -> pd.DataFrame:
    if wanted is None:
        return rows
    kept = [index for index, key in enumerate(zip(rows["condition"], rows["seed"], strict=True)) if key in wanted]
    return rows.iloc[kept].reset_index(drop=True)


EXPLANATIONS = {
    ("locked", "busy"): "is in use by another run: wait for it, or name another file with --ledger",
    ("malformed", "not a database", "corrupt", "disk i/o"): (
        "is damaged or no ledger: move it away (a new one is made), or name another file with --ledger"
    ),
    ("readonly", "read-only", "unable to open", "permission", "not a directory", "file exists"): (
        "cannot be written: name a file in a folder of yours with --ledger"
    ),
    ("full", "no space"): "cannot grow, the disk is full: free some space and run again, what was committed is kept",
}


def _explanation(error: str) -> str:
    said = error.lower()
    return next((mend for words, mend in EXPLANATIONS.items() if any(word in said for word in words)), "cannot be used")
