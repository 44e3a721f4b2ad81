"""SQLite files that several processes may make and use at once."""

from __future__ import annotations

import sqlite3
import time


def use_write_ahead_log(db: sqlite3.Connection, patience_s: float) -> None:
    """Turn to the write-ahead log: readers and a writer do not wait for each other, and a killed process loses nothing.

    SQLite does not wait its turn for this one change, whatever its time-out, so the waiting is done here.

    Parameters
    ----------
    db : a connection outside any transaction
    patience_s : how long another process may hold the file, in seconds

    Raises
    ------
    sqlite3.OperationalError
        If another process holds the file for longer, or it cannot be written.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
