"""Turning a database to the write-ahead log while others hold it."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from upheld.storage import use_write_ahead_log


def test_waits_for_its_turn(tmp_path):
    path = tmp_path / "book.sqlite"
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.3, holder.execute, ["COMMIT"]).start()
    db = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    use_write_ahead_log(db, patience_s=60)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_does_not_wait_for_ever(tmp_path):
    path = tmp_path / "book.sqlite"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    db = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use_write_ahead_log(db, patience_s=0.1)
    holder.execute("ROLLBACK")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
