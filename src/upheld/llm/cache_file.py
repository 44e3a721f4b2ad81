"""The file of a cache: answers and vectors in one SQLite database that several processes may use at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TypeVar

from upheld.storage import use_write_ahead_log

Key = TypeVar("Key")

VERSION = 1
PATIENCE_S = 60.0  # how long another process may hold the file; a commit takes milliseconds
AT_ONCE = 500  # keys in one look-up
SCHEMA = (
    "CREATE TABLE answer (key TEXT NOT NULL, draw INTEGER NOT NULL, model TEXT NOT NULL, request TEXT NOT NULL, answer TEXT NOT NULL,"
    " PRIMARY KEY (key, draw)) WITHOUT ROWID",
    "CREATE TABLE vector (embedder TEXT NOT NULL, template TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL,"
    " PRIMARY KEY (embedder, template, text))",
    f"PRAGMA user_version = {VERSION}",
)


class CacheError(ValueError):
    """A cache or an export that cannot be used as it is; the message says which file, why, and what to do."""


class CacheFile:
    """A cache's file, created with its folder when it is not there. Every row is committed when it is written.

    Raises
    ------
    CacheError
        If the file is no cache, is damaged, comes from a newer version, is locked for a minute, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = RLock()
        self._process = os.getpid()
        if self.path.is_dir():
            raise CacheError(f"the cache {self.path} is a folder: name a file")
        self._db = self._opened()

    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """All rows of one statement, committed if it writes."""
        with self._lock, self._explained():
            if self._process != os.getpid():  # SQLite's connections do not survive a fork
                self._db, self._process = self._opened(), os.getpid()
            return self._db.execute(query, values).fetchall()

    def each_row(self, query: str, values: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
        """Rows of one statement as they stood at its beginning, without holding them all."""
        with self._explained():
            db = self._opened()
            try:
                yield from db.execute(query, values)
            finally:
                db.close()

    def many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """One statement for many rows, all committed or none."""
        with self._lock:
            self.rows("BEGIN IMMEDIATE")
            try:
                with self._explained():
                    self._db.executemany(statement, rows)
                self.rows("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        self._db.close()

    def _opened(self) -> sqlite3.Connection:
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
            try:
                if self._is_new(db):
                    use_write_ahead_log(db, PATIENCE_S)
                    db.execute("BEGIN IMMEDIATE")
                    if self._is_new(db):  # nobody else made it meanwhile
                        for statement in SCHEMA:
                            db.execute(statement)
                    db.execute("COMMIT")
                db.execute(
                    "PRAGMA synchronous = NORMAL"
                )  # in WAL, a killed process loses nothing; a power cut, the last moments
            except BaseException:
                db.close()
                raise
            return db

    def _is_new(self, db: sqlite3.Connection) -> bool:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if tables and not {"answer", "vector"} <= tables:
            raise CacheError(f"{self.path} is a database, but no cache of answers; name another file")
        if version > VERSION:
            raise CacheError(
                f"the cache {self.path} was written by a newer upheld (version {version}); update, or name another file"
            )
        return not tables

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            advice = (
                "wait for the other process" if "locked" in str(error) else "name a file of yours, on a disk with room"
            )
            raise CacheError(f"the cache {self.path} cannot be used ({error}); {advice}") from error
        except sqlite3.DatabaseError as error:
            raise CacheError(
                f"{self.path} is no cache of answers, or it is damaged ({error}); move it away or name another"
            ) from error
        except OSError as error:
            raise CacheError(
                f"the cache {self.path} cannot be made ({error.strerror or error}); name a file of yours"
            ) from error


def portions(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Keys in portions that one look-up takes."""
    for start in range(0, len(keys), AT_ONCE):
        yield keys[start : start + AT_ONCE]
