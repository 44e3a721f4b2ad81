from __future__ import annotations

import pytest

from upheld.effects.pending import Pending, WaitingRow


def row(time=0.0):
    return WaitingRow((1.0,), 1, time)


def test_the_oldest_gives_way():
    table = Pending(2)
    for name in "abc":
        table.wait(name, row())
    assert list(table.rows) == ["b", "c"]
    assert table.crowded_out == 1
    with pytest.raises(KeyError, match=r"no row with id 'a' is waiting .*1 gave way to newer ones"):
        table.take("a")


def test_rows_time_out():
    table = Pending(10, timeout=5)
    table.wait("old", row(0))
    table.wait("young", row(4))
    table.wait("now", row(6))
    assert list(table.rows) == ["young", "now"]
    assert table.expired == 1


def test_an_id_waits_once():
    table = Pending(10)
    table.wait("a", row())
    with pytest.raises(ValueError, match="a row with id 'a' is waiting for its outcome already"):
        table.wait("a", row())
    assert table.take("a") == row()
