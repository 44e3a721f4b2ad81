"""The results file: what it keeps, and what it says when it cannot."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from upheld.claims import Ledger, LedgerError, Measurement, Result, Scale, Trial
from upheld.claims import ledger as ledger_module

SOURCES = "0123456789ab"


def trial(seed: int = 0, scale: Scale = Scale.QUICK, **condition: object) -> Trial:
    return Trial("toy.race", condition or {"n": 30}, seed, scale)  # type: ignore[arg-type]


def done(one: Trial, *values: float) -> Result:
    return Result(one, "done", [Measurement("ours", "error", value, str(index)) for index, value in enumerate(values)])


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "new" / "folders" / "ledger.sqlite") as book:
        yield book


# -- what it keeps


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(), st.text(), st.floats(allow_nan=False), st.text()), min_size=1, max_size=5
    ),
    st.dictionaries(st.sampled_from(["n", "law", "tail", "fast"]), st.one_of(st.integers(-9, 9), st.text(), st.booleans()), min_size=1),
)  # fmt: skip
def test_round_trip_to_the_last_bit(ledger, rows, condition):
    one = Trial("toy.race", condition, 3, Scale.QUICK)
    ledger.record(Result(one, "done", [Measurement(m, n, v, i) for m, n, v, i in rows]), SOURCES)
    frame = ledger.measurements(
        "toy.race", Scale.QUICK, SOURCES, {next(iter(ledger.statuses("toy.race", Scale.QUICK, SOURCES)))}
    )
    assert list(frame[["method", "metric", "value", "item"]].itertuples(index=False, name=None)) == rows
    assert frame[list(condition)].iloc[0].to_dict() == condition
    assert set(frame["seed"]) == {3}
    ledger.forget(["toy.race"], Scale.QUICK)


def test_costs_are_kept(ledger):
    result = Result(
        trial(), "failed", reason="it broke", seconds=1.5, peak_memory=2**40, host="here", versions={"numpy": "2"}
    )
    ledger.record(result, SOURCES)
    [row] = ledger.costs("toy.race", Scale.QUICK, SOURCES).to_dict("records")
    assert (row["status"], row["reason"], row["seconds"], row["peak_memory"], row["host"], row["versions"]) == (
        "failed", "it broke", 1.5, 2**40, "here", '{"numpy": "2"}'
    )  # fmt: skip


def test_it_is_a_wal_file_that_another_connection_reads_at_once(ledger):
    ledger.record(done(trial(), 0.5), SOURCES)
    other = sqlite3.connect(ledger.path)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert other.execute("SELECT value FROM measurement").fetchall() == [(0.5,)]
    other.close()


def test_results_are_there_when_it_is_opened_again(ledger):
    ledger.record(done(trial(), 0.5), SOURCES)
    ledger.close()
    with Ledger(ledger.path) as again:
        assert again.statuses("toy.race", Scale.QUICK, SOURCES) == {('{"n":30}', 0): "done"}


def test_a_second_result_of_the_same_key_replaces_the_first_whole(ledger):
    ledger.record(done(trial(), 0.5, 0.6, 0.7), SOURCES)
    ledger.record(done(trial(), 0.9), SOURCES)
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES)["value"].tolist() == [0.9]
    left = sqlite3.connect(ledger.path).execute("SELECT count(*) FROM measurement").fetchone()
    assert left == (1,)


def test_condition_seed_scale_and_sources_are_the_key(ledger):
    ledger.record(done(trial(), 0.0), SOURCES)
    ledger.record(done(trial(seed=1), 1.0), SOURCES)
    ledger.record(done(trial(n=60), 2.0), SOURCES)
    ledger.record(done(trial(scale=Scale.FULL), 3.0), SOURCES)
    ledger.record(done(trial(), 4.0), "other sources")
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES)["value"].tolist() == [0.0, 2.0, 1.0]
    assert ledger.measurements("toy.race", Scale.FULL, SOURCES)["value"].tolist() == [3.0]
    assert ledger.stale("toy.race", Scale.QUICK, SOURCES) == 1
    assert ledger.stale("toy.race", Scale.FULL, SOURCES) == 0


def test_order_of_arrival_does_not_show(tmp_path):
    results = [done(trial(seed=seed, n=n), seed + n / 100, -seed) for seed in range(4) for n in (30, 60)]
    frames = []
    for name, order in (("forth", results), ("back", results[::-1])):
        with Ledger(tmp_path / name) as book:
            for result in order:
                book.record(result, SOURCES)
            frames.append(book.measurements("toy.race", Scale.QUICK, SOURCES))
    pd.testing.assert_frame_equal(*frames)


def test_conditions_with_different_keys_stand_side_by_side(ledger):
    ledger.record(done(trial(n=30), 1.0), SOURCES)
    ledger.record(done(trial(law="pareto"), 2.0), SOURCES)
    frame = ledger.measurements("toy.race", Scale.QUICK, SOURCES)
    assert frame.loc[frame["n"] == 30, "value"].tolist() == [1.0]
    assert frame.loc[frame["law"] == "pareto", "value"].tolist() == [2.0]


def test_only_the_trials_that_are_wanted(ledger):
    for seed in range(3):
        ledger.record(done(trial(seed=seed), float(seed)), SOURCES)
    wanted = {('{"n":30}', 0), ('{"n":30}', 2), ('{"n":99}', 1)}
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES, wanted)["value"].tolist() == [0.0, 2.0]
    assert ledger.costs("toy.race", Scale.QUICK, SOURCES, wanted)["seed"].tolist() == [0, 2]
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES, set()).empty


def test_failed_and_absent_trials_have_no_measurements(ledger):
    ledger.record(Result(trial(), "failed", reason="x"), SOURCES)
    ledger.record(Result(trial(seed=1), "not run", reason="no GPU"), SOURCES)
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES).empty
    assert set(ledger.statuses("toy.race", Scale.QUICK, SOURCES).values()) == {"failed", "not run"}


def test_forget_forgets_one_scale_of_the_named_experiments(ledger):
    for scale in (Scale.QUICK, Scale.FULL):
        ledger.record(done(trial(scale=scale), 1.0), SOURCES)
    ledger.record(done(trial(), 1.0), "older sources")
    ledger.record(done(Trial("toy.other", {}, 0, Scale.QUICK), 1.0), SOURCES)
    ledger.forget(["toy.race"], Scale.QUICK)
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES).empty
    assert ledger.stale("toy.race", Scale.QUICK, SOURCES) == 0
    assert len(ledger.measurements("toy.race", Scale.FULL, SOURCES)) == 1
    assert len(ledger.measurements("toy.other", Scale.QUICK, SOURCES)) == 1


def test_a_verdict_is_kept_when_it_changes_and_not_when_it_is_asked_again(ledger):
    for verdict in ("inconclusive", "inconclusive", "upheld", "upheld"):
        ledger.remember_verdict("toy.wins", Scale.QUICK, SOURCES, "rule A", verdict)
    ledger.remember_verdict("toy.wins", Scale.QUICK, SOURCES, "rule B", "not upheld")
    kept = [(row["rule"], row["verdict"]) for row in ledger.verdicts("toy.wins", Scale.QUICK)]
    assert kept == [("rule A", "inconclusive"), ("rule A", "upheld"), ("rule B", "not upheld")]


def test_a_result_that_cannot_be_written_leaves_the_earlier_one(ledger):
    ledger.record(done(trial(), 0.5), SOURCES)
    broken = Result(trial(), "done", [Measurement("ours", "error", 0.9), Measurement("ours", "error", 1.0, "\udcff")])
    with pytest.raises(ValueError, match="surrogates"):
        ledger.record(broken, SOURCES)
    assert ledger.measurements("toy.race", Scale.QUICK, SOURCES)["value"].tolist() == [0.5]
    ledger.record(done(trial(seed=1), 0.7), SOURCES)
    assert len(ledger.measurements("toy.race", Scale.QUICK, SOURCES)) == 2


# -- what it says when it cannot


@pytest.mark.slow
def test_many_processes_may_make_it_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from upheld.claims import *\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "with Ledger(Path(sys.argv[1])) as book:\n"
        "    book.record(Result(Trial('toy.race', {}, int(sys.argv[2]), Scale.QUICK), 'done'), 'x')\n"
    )
    path = tmp_path / "ledger.sqlite"
    crowd = [
        subprocess.Popen([sys.executable, "-c", code, path, str(seed)], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for seed in range(4)
    ]  # fmt: skip
    for one in crowd:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in crowd:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    assert [one.communicate(timeout=120)[1] for one in crowd] == [""] * 4
    with Ledger(path) as book:
        assert len(book.statuses("toy.race", Scale.QUICK, "x")) == 4


def test_one_run_at_a_time_measures_into_it(ledger):
    code = (
        "import sys; from pathlib import Path; from upheld.claims import Ledger\n"
        "book = Ledger(Path(sys.argv[1]))\n"
        "with book.reserved():\n    print('mine', flush=True); sys.stdin.readline()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, ledger.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "mine\n"
    with (
        pytest.raises(LedgerError, match=r"another run is measuring into .*: wait for it, or name another"),
        ledger.reserved(),
    ):
        pass
    ledger.record(done(trial(), 1.0), SOURCES)  # whoever only judges still writes verdicts
    other.kill()
    other.communicate()
    with ledger.reserved():
        pass


def test_an_error_while_it_is_reserved_passes_as_it_is(ledger):
    with pytest.raises(OSError, match="something else"), ledger.reserved():
        raise OSError("something else")


def test_locked_by_another_process(ledger, monkeypatch):
    ledger.close()
    monkeypatch.setattr(ledger_module, "PATIENCE_S", 0.1)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    with Ledger(ledger.path) as book:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            LedgerError, match="is in use by another run: wait for it, or name another file with --ledger"
        ):
            book.record(done(trial(), 1.0), SOURCES)
        other.execute("ROLLBACK")
        book.record(done(trial(), 1.0), SOURCES)
        assert len(book.measurements("toy.race", Scale.QUICK, SOURCES)) == 1
    other.close()


def test_a_newer_version(ledger):
    ledger._db.execute("PRAGMA user_version = 99")
    ledger.close()
    with pytest.raises(
        LedgerError, match=r"written by a newer upheld \(ledger version 99, this one reads 1\); update upheld"
    ):
        Ledger(ledger.path)


def test_a_database_of_something_else(tmp_path):
    path = tmp_path / "bookmarks.sqlite"
    other = sqlite3.connect(path)
    other.executescript("CREATE TABLE bookmark (url TEXT); PRAGMA user_version = 57;")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is a database, but no ledger of upheld; name another file with --ledger"):
        Ledger(path)
    assert path.read_bytes() == before


def test_no_database_at_all(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("value\n" * 1000)
    with pytest.raises(LedgerError, match="is damaged or no ledger: move it away"):
        Ledger(path)
    assert path.read_text() == "value\n" * 1000


@pytest.fixture(scope="module")
def full_file(tmp_path_factory) -> Path:
    """A ledger of a few hundred pages."""
    path = tmp_path_factory.mktemp("full") / "ledger.sqlite"
    with Ledger(path) as book:
        for seed in range(300):
            book.record(done(trial(seed=seed), *map(float, range(20))), SOURCES)
    return path


@pytest.mark.parametrize("kept", [10, 100, 5000, 0.3, 0.7, 0.98])
def test_truncated(full_file, tmp_path, kept):
    """Cut anywhere, it is said to be damaged before anything is read from it as if it were whole."""
    content = full_file.read_bytes()
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(LedgerError, match="is damaged or no ledger: move it away"), Ledger(path) as book:
        book.measurements("toy.race", Scale.QUICK, SOURCES)


def test_overwritten_in_the_middle(full_file, tmp_path):
    content = bytearray(full_file.read_bytes())
    content[4096:-4096] = b"\xa5" * (len(content) - 8192)
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="is damaged or no ledger: move it away"), Ledger(path) as book:
        book.measurements("toy.race", Scale.QUICK, SOURCES)


def test_an_empty_file_becomes_a_ledger(tmp_path):
    (tmp_path / "ledger.sqlite").touch()
    with Ledger(tmp_path / "ledger.sqlite") as book:
        book.record(done(trial(), 1.0), SOURCES)


def test_a_folder(tmp_path):
    with pytest.raises(LedgerError, match="is a folder: name a file with --ledger"):
        Ledger(tmp_path)


def test_below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be written: name a file in a folder of yours with --ledger"):
        Ledger(tmp_path / "file" / "ledger.sqlite")


@pytest.fixture
def somebody_s() -> Iterator[Path]:
    """A folder that this process may make its own, and give away."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        os.chmod(name, 0o700)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Nobody in particular: to the superuser every file can be written."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def check_that_it_is_only_read(path: Path) -> None:
    before = path.read_bytes()
    with Ledger(path, for_reading=True) as book:
        assert not book.writable
        assert list(book.measurements("toy.race", Scale.QUICK, SOURCES)["value"]) == [1.0]
        book.remember_verdict("toy.small", Scale.QUICK, SOURCES, "rule", "upheld")
        assert book.verdicts("toy.small", Scale.QUICK) == []
        with pytest.raises(LedgerError, match="cannot be written: name a file in a folder of yours"):
            book.record(done(trial(), 2.0), SOURCES)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("of_file", "of_folder"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_what_cannot_be_written_is_read(somebody_s, of_file, of_folder):
    path = somebody_s / "ledger.sqlite"
    with Ledger(path) as book:
        book.record(done(trial(), 1.0), SOURCES)
    path.chmod(of_file)
    somebody_s.chmod(of_folder)
    with without_privileges():
        check_that_it_is_only_read(path)
        with pytest.raises(LedgerError, match="cannot be written: name a file in a folder of yours with --ledger"):
            Ledger(path)  # a run is refused before it measures anything
    somebody_s.chmod(0o700)
    path.chmod(0o600)
    with Ledger(path, for_reading=True) as book:
        book.remember_verdict("toy.small", Scale.QUICK, SOURCES, "rule", "upheld")
        assert len(book.verdicts("toy.small", Scale.QUICK)) == 1


def test_it_is_read_while_somebody_writes(somebody_s):
    """A run that goes on holds its results in the write-ahead log; a reader who may not write sees them."""
    path = somebody_s / "ledger.sqlite"
    with Ledger(path) as book:
        book.record(done(trial(), 1.0), SOURCES)
        somebody_s.chmod(0o755)
        path.chmod(0o444)
        with without_privileges(), Ledger(path, for_reading=True) as other:
            assert not other.writable
            assert list(other.measurements("toy.race", Scale.QUICK, SOURCES)["value"]) == [1.0]


def test_a_log_that_cannot_be_read_is_not_passed_over(somebody_s):
    """What was committed last is in the write-ahead log; whoever cannot read it must not be told less."""
    path = somebody_s / "ledger.sqlite"
    with Ledger(path) as book:
        book.record(done(trial(), 1.0), SOURCES)
        for name in ("ledger.sqlite", "ledger.sqlite-wal"):
            (somebody_s / f"copy-{name}").write_bytes((somebody_s / name).read_bytes())
    (somebody_s / "copy-ledger.sqlite").chmod(0o444)
    somebody_s.chmod(0o555)
    with without_privileges(), pytest.raises(LedgerError, match="cannot be"):
        Ledger(somebody_s / "copy-ledger.sqlite", for_reading=True)


# -- small and read-only disks, where this process may mount them


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Two MiB of memory as a disk."""
    place = tmp_path / "disk"
    place.mkdir()
    mount(["-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)])
    yield place
    subprocess.run(["umount", place], check=True)


def mount(options: list[str]) -> None:
    command = shutil.which("mount")
    tried = subprocess.run([command, *options], capture_output=True, text=True) if command else None
    if tried is None or tried.returncode:
        pytest.skip(f"cannot mount here: {tried.stderr.strip() if tried else 'there is no mount'}")


def test_a_read_only_folder(disk):
    with Ledger(disk / "ledger.sqlite") as book:
        book.record(done(trial(), 1.0), SOURCES)
    mount(["-o", "remount,ro", str(disk)])
    for name in ("ledger.sqlite", "new.sqlite", "new/ledger.sqlite"):
        with (
            pytest.raises(LedgerError, match="cannot be written: name a file in a folder of yours"),
            Ledger(disk / name) as book,
        ):
            book.record(done(trial(), 2.0), SOURCES)


def test_a_read_only_disk_is_read(disk):
    with Ledger(disk / "ledger.sqlite") as book:
        book.record(done(trial(), 1.0), SOURCES)
    mount(["-o", "remount,ro", str(disk)])
    check_that_it_is_only_read(disk / "ledger.sqlite")


def test_a_full_disk_keeps_what_was_committed(disk):
    path = disk / "ledger.sqlite"
    values = [float(value) for value in range(500)]
    with Ledger(path) as book:
        with pytest.raises(LedgerError, match="cannot grow, the disk is full: free some space and run again"):
            fill(book, values)
        written = len(book.statuses("toy.race", Scale.QUICK, SOURCES))
        assert book._db.execute("SELECT count(*) FROM measurement").fetchone() == (written * len(values),)
    assert written > 5
    mount(["-o", "remount,size=8m", str(disk)])
    with Ledger(path) as book:
        assert len(book.measurements("toy.race", Scale.QUICK, SOURCES)) == written * len(values)
        book.record(done(trial(seed=written), *values), SOURCES)
        assert book._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_no_room_to_make_one(disk):
    (disk / "ballast").write_bytes(b"x" * 2**21)
    with pytest.raises(LedgerError, match="cannot grow, the disk is full"):
        Ledger(disk / "ledger.sqlite")


def fill(book: Ledger, values: list[float]) -> None:
    for seed in range(10_000):
        book.record(done(trial(seed=seed), *values), SOURCES)


def test_a_path_may_be_text(tmp_path):
    with Ledger(str(tmp_path / "ledger.sqlite")) as book:
        assert book.path == tmp_path / "ledger.sqlite"
