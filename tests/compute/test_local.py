from __future__ import annotations

import inspect
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compute_toys as toys
import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.compute import Job, LocalPool, Outcome

LONG = 60.0
Children = Callable[[], list[psutil.Process]]


def outcome_of(
    call: Callable[..., Any], *args: Any, timeout_s: float = LONG, memory_limit: int | None = None
) -> Outcome:
    [outcome] = LocalPool(1, memory_limit).run([Job("it", call, args, timeout_s)])
    return outcome


def awaited(condition: Callable[[], Any], what: str) -> Any:
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail(f"waited 12 s in vain for {what}")


def read_pid(path: Path) -> int:
    awaited(path.exists, f"{path.name} to be written")
    return int(path.read_text())


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


# What a job that goes well looks like


def test_done() -> None:
    outcome = outcome_of(toys.square, 7)
    assert (outcome.key, outcome.status, outcome.value) == ("it", "done", 49)
    assert (outcome.reason, outcome.error, outcome.traceback) == ("", None, "")
    assert outcome.host
    assert 0 <= outcome.seconds < LONG
    assert 2**22 < outcome.peak_memory < 2**30  # an interpreter takes some 10 MiB


def test_large_arguments_and_values() -> None:
    array = np.arange(3_000_000.0)
    assert np.array_equal(outcome_of(toys.doubled, array).value, array * 2)


def test_many_jobs_each_once() -> None:
    outcomes = list(LocalPool(2).run(Job(n, toys.square, (n,), LONG) for n in range(300)))
    assert sorted((outcome.key, outcome.value) for outcome in outcomes) == [(n, n * n) for n in range(300)]


def test_no_jobs() -> None:
    assert list(LocalPool(2).run([])) == []


def test_workers_are_kept_from_job_to_job() -> None:
    outcomes = LocalPool(2).run(Job(n, toys.pid, (), LONG) for n in range(20))
    assert len({outcome.value for outcome in outcomes}) <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is enforced on Linux alone")
def test_a_call_with_fewer_workers_leaves_their_limits_as_they_are() -> None:
    pool = LocalPool(2, memory_limit=2**30)
    outcomes = list(pool.run((Job(n, toys.own_limits, (), LONG) for n in range(4)), workers=1))
    assert len({outcome.value[0] for outcome in outcomes}) == 1
    assert {outcome.value[1] for outcome in outcomes} == {2**30}


KINDS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "good": (toys.square, (3,), "done"),
    "raises": (toys.raises, ("no",), "failed"),
    "dies": (toys.leaves, (0,), "failed"),
    "not importable": (lambda: 1, (), "failed"),
    "not picklable": (toys.returns_a_lock, (), "failed"),
}


@settings(max_examples=15, deadline=None)
@given(kinds=st.lists(st.sampled_from(sorted(KINDS)), max_size=8), workers=st.integers(1, 3))
def test_every_job_has_its_own_outcome_whatever_the_others_do(kinds: list[str], workers: int) -> None:
    jobs = [Job(n, *KINDS[kind][:2], LONG) for n, kind in enumerate(kinds)]
    outcomes = list(LocalPool(workers).run(jobs))
    assert {outcome.key: outcome.status for outcome in outcomes} == {n: KINDS[kind][2] for n, kind in enumerate(kinds)}
    assert len(outcomes) == len(jobs)


# How jobs fail


def test_exception_tells_message_and_place() -> None:
    outcome = outcome_of(toys.raises, "weights are\nnegative")
    line = toys.raises.__code__.co_firstlineno + 2
    assert outcome.reason == f"ValueError: weights are negative (compute_toys.py:{line})"
    assert (outcome.status, outcome.error, outcome.value) == ("failed", "ValueError", None)
    assert "in raises" in outcome.traceback
    assert "about to fail" in outcome.traceback


def test_exception_in_a_library_is_placed_there() -> None:
    outcome = outcome_of(toys.raises_deep_in_numpy)
    assert outcome.reason.startswith("LinAlgError: Singular matrix (numpy/linalg/")
    assert "in raises_deep_in_numpy" in outcome.traceback


def test_exception_that_cannot_be_printed() -> None:
    outcome = outcome_of(toys.raises_unprintably)
    assert outcome.reason.startswith("Unprintable: (its message cannot be printed)")


def test_sys_exit() -> None:
    outcome = outcome_of(toys.exits)
    assert outcome.error == "SystemExit"
    assert outcome.reason.startswith("SystemExit: enough (compute_toys.py:")


@pytest.mark.parametrize("code", [0, 3])
def test_process_that_ends_itself(code: int) -> None:
    outcome = outcome_of(toys.leaves, code)
    assert outcome.reason == f"the process ended with exit code {code}"
    assert outcome.error is None


def test_segfault_tells_where_it_happened() -> None:
    outcome = outcome_of(toys.segfaults)
    assert outcome.reason == "killed by signal 11 (SIGSEGV)"
    assert outcome.error is None
    assert "in segfaults" in outcome.traceback


def test_time_limit_tells_where_it_stood() -> None:
    outcomes = {
        outcome.key: outcome
        for outcome in LocalPool(2).run([Job("slow", toys.sleeps, (60,), 0.5), Job("quick", toys.square, (2,), LONG)])
    }
    assert outcomes["slow"].reason == "ran out of time after 0.5 s"
    assert outcomes["slow"].peak_memory > 2**22
    assert "in sleeps" in outcomes["slow"].traceback
    assert outcomes["quick"].value == 4


def test_time_limit_stops_compiled_code(tmp_path: Path) -> None:
    outcome = outcome_of(toys.holds_the_interpreter, str(tmp_path / "pid"), timeout_s=0.5)
    assert outcome.reason == "ran out of time after 0.5 s"
    assert is_gone(read_pid(tmp_path / "pid"))


def test_job_that_ended_too_late_while_nobody_looked() -> None:
    outcomes = LocalPool(1).run([Job("first", toys.square, (1,), LONG), Job("late", toys.sleeps, (0.3,), 0.1)])
    assert next(outcomes).key == "first"
    time.sleep(1.5)
    late = next(outcomes)
    assert (late.status, late.value, late.reason) == ("failed", None, "ran out of time after 0.1 s")


def test_time_limit_does_not_count_the_wait_for_a_worker() -> None:
    outcomes = LocalPool(1).run([Job(n, toys.sleeps, (0.4,), 1.0) for n in range(4)])
    assert [outcome.status for outcome in outcomes] == ["done"] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is enforced on Linux alone")
@pytest.mark.parametrize(("call", "args"), [(toys.allocates, (4000,)), (toys.hoards, ())])
def test_memory_limit_fails_the_job_and_spares_the_worker(call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    jobs = [Job("before", toys.pid, (), LONG), Job("bomb", call, args, LONG), Job("after", toys.pid, (), LONG)]
    before, bomb, after = LocalPool(1, memory_limit=2**28).run(jobs)
    assert bomb.reason.startswith("out of memory (limit 256 MiB): MemoryError (compute_toys.py:")
    assert bomb.error == "MemoryError"
    assert after.value == before.value


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is enforced on Linux alone")
def test_report_of_a_memory_error_has_room_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(toys.hoards) + "# filler\n" * 500_000  # the traceback quotes it, and so has to load it
    (tmp_path / "large_module.py").write_text("from typing import NoReturn\n" + source)
    monkeypatch.syspath_prepend(tmp_path)
    from large_module import hoards

    outcome = outcome_of(hoards, memory_limit=2**27)
    assert outcome.reason == "out of memory (limit 128 MiB): MemoryError (large_module.py:6)"
    assert "hoard.append(bytearray(2**16))" in outcome.traceback


def test_worker_killed_from_outside(tmp_path: Path) -> None:
    def kill() -> None:
        os.kill(read_pid(tmp_path / "pid"), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    jobs = [Job("victim", toys.tells_its_pid_and_sleeps, (str(tmp_path / "pid"),), LONG)]
    jobs += [Job(n, toys.square, (n,), LONG) for n in range(5)]
    outcomes = {outcome.key: outcome for outcome in LocalPool(2).run(jobs)}
    thread.join()
    assert outcomes["victim"].reason == "killed by signal 9 (SIGKILL), by the kernel for want of memory or by hand"
    assert [outcomes[n].value for n in range(5)] == [0, 1, 4, 9, 16]


def test_worker_killed_between_two_jobs_costs_nothing(tmp_path: Path) -> None:
    def jobs() -> Iterator[Job]:
        yield Job("first", toys.tells_its_pid, (str(tmp_path / "pid"),), LONG)
        first = read_pid(tmp_path / "pid")  # drawn once the first job is done
        os.kill(first, signal.SIGKILL)
        awaited(lambda: is_gone(first), "the worker to die")
        yield Job("second", toys.pid, (), LONG)

    first, second = LocalPool(1).run(jobs())
    assert (first.status, second.status) == ("done", "done")
    assert first.value != second.value


def test_result_that_cannot_be_pickled() -> None:
    outcome = outcome_of(toys.returns_a_lock)
    assert outcome.reason == "the result cannot be pickled: TypeError: cannot pickle '_thread.lock' object"


def test_result_that_cannot_be_unpickled() -> None:
    outcome = outcome_of(toys.returns_fragile)
    assert outcome.reason.startswith("the result cannot be unpickled: ValueError: invalid literal for int()")


def test_function_that_cannot_be_sent() -> None:
    outcome = outcome_of(lambda: 1)
    assert outcome.status == "failed"
    assert outcome.reason.startswith("the call of test_function_that_cannot_be_sent.<locals>.<lambda> cannot be sent")


def test_function_that_the_worker_cannot_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ghost_module.py").write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import ghost_module

    monkeypatch.undo()
    outcome = outcome_of(ghost_module.f)
    assert outcome.reason == "ModuleNotFoundError: No module named 'ghost_module'"


def test_module_that_kills_the_worker_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "deadly_module.py"
    module.write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import deadly_module

    module.write_text("import os\nos._exit(5)  # and more than before\n")
    outcome = outcome_of(deadly_module.f)
    assert outcome.reason == "the process ended with exit code 5 while its function was loaded"


def test_module_whose_import_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "endless_module.py"
    module.write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import endless_module

    module.write_text("import time\ntime.sleep(60)  # and more than before\n")
    monkeypatch.setattr("upheld.compute.local.LOAD_LIMIT_S", 1.0)
    outcome = outcome_of(endless_module.f)
    assert outcome.reason == "its function could not be loaded within 1 s"
    assert "endless_module.py" in outcome.traceback


def test_process_that_holds_the_channel_open_after_the_worker_died(tmp_path: Path) -> None:
    outcome = outcome_of(toys.forks_and_dies, str(tmp_path / "pid"))
    assert outcome.reason.startswith("killed by signal 9 (SIGKILL)")
    awaited(lambda: is_gone(read_pid(tmp_path / "pid")), "the orphan to be killed")


def test_forked_child_that_returns_from_the_job_is_not_heard() -> None:
    outcomes = LocalPool(1).run([Job(n, toys.forks_and_both_return, (n,), LONG) for n in range(3)])
    assert [(outcome.key, outcome.value) for outcome in outcomes] == [(0, 0), (1, 1), (2, 2)]


# What surrounds a job


def test_a_package_on_this_process_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "toy_method"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "claims.py").write_text("def measure(x): return x + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    from toy_method.claims import measure

    assert outcome_of(measure, 1).value == 2


def test_one_thread_and_one_order_of_sets() -> None:
    outcomes = [outcome_of(toys.surroundings).value for _ in range(2)]
    assert outcomes[0]["threads"]
    assert set(outcomes[0]["threads"]) == {1}
    assert outcomes[0]["numba"] == "1"
    assert outcomes[0]["order"] == outcomes[1]["order"]


def test_what_jobs_print_does_not_show(capfd: pytest.CaptureFixture[str]) -> None:
    assert outcome_of(toys.is_noisy).value == "quiet"
    assert capfd.readouterr() == ("", "")


def test_output_of_an_earlier_job_is_not_blamed_on_a_later_one() -> None:
    noisy, failed = LocalPool(1).run([Job(1, toys.is_noisy, (), LONG), Job(2, toys.raises, ("no",), LONG)])
    assert noisy.status == "done"
    assert "noise" not in failed.traceback
    assert "\x00" not in failed.traceback


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be reset on Linux alone")
def test_peak_memory_is_the_job_s_own() -> None:
    large, small = LocalPool(1).run([Job(n, toys.allocates, (n,), LONG) for n in (300, 1)])
    assert large.value == small.value
    assert 300 * 2**20 < large.peak_memory < 400 * 2**20
    assert small.peak_memory < 100 * 2**20


def test_jobs_may_start_processes() -> None:
    assert outcome_of(toys.uses_processes, [1, 2, 3]).value == [1, 4, 9]


def test_processes_of_a_job_die_with_it(tmp_path: Path) -> None:
    outcome = outcome_of(toys.starts_a_child_and_sleeps, str(tmp_path / "pid"), timeout_s=1.0)
    assert outcome.reason == "ran out of time after 1 s"
    awaited(lambda: is_gone(read_pid(tmp_path / "pid")), "the child to be killed")


# How a run begins and ends


def test_jobs_are_drawn_only_when_a_worker_is_free(children: Children) -> None:
    drawn = 0

    def endless() -> Iterator[Job]:
        nonlocal drawn
        for n in itertools.count():
            drawn += 1
            yield Job(n, toys.square, (n,), LONG) if n % 2 else Job(n, lambda: 1, (), LONG)

    outcomes = LocalPool(2).run(endless())
    assert drawn == 0
    for seen in range(1, 21):
        next(outcomes)
        assert drawn <= seen + 4  # two at work and two that ended
    outcomes.close()  # type: ignore[attr-defined]
    assert not children()


def test_jobs_that_raise_stop_the_run(children: Children) -> None:
    def jobs() -> Iterator[Job]:
        yield Job("sleeper", toys.sleeps, (60,), LONG)
        raise LookupError("no more ideas")

    with pytest.raises(LookupError, match="no more ideas"):
        list(LocalPool(2).run(jobs()))
    assert not children()


def test_closing_early_stops_the_workers(children: Children) -> None:
    outcomes = LocalPool(2).run([Job("quick", toys.square, (1,), LONG), Job("slow", toys.sleeps, (60,), LONG)])
    assert next(outcomes).key == "quick"
    outcomes.close()  # type: ignore[attr-defined]
    assert not children()  # and no zombies, which count as children


def test_nothing_is_left_after_a_run(children: Children) -> None:
    before = psutil.Process().num_fds()
    list(LocalPool(2).run([Job(n, toys.leaves, (0,), LONG) for n in range(3)]))
    assert not children()
    assert psutil.Process().num_fds() <= before  # fewer, where something else was collected meanwhile


def script(tmp_path: Path, code: str) -> subprocess.Popen[str]:
    """A program that uses the pool, in a process group of its own, as if started from a terminal."""
    path = tmp_path / "program.py"
    path.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import compute_toys as toys\nfrom upheld.compute import Job, LocalPool\n" + textwrap.dedent(code)
    )
    return subprocess.Popen(
        [sys.executable, str(path), str(tmp_path)], stdout=subprocess.PIPE, text=True, process_group=0
    )


BUSY = """
    jobs = [Job(1, toys.holds_the_interpreter, (sys.argv[1] + "/spins",), 600.0),
            Job(2, toys.starts_a_child_and_sleeps, (sys.argv[1] + "/child",), 600.0)]
    try:
        list(LocalPool(2).run(jobs))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = script(tmp_path, BUSY)
    spins, child = read_pid(tmp_path / "spins"), read_pid(tmp_path / "child")
    worker = psutil.Process(child).ppid()
    assert not any(is_gone(pid) for pid in (spins, child, worker))
    program.kill()
    program.communicate()
    for pid in (spins, child, worker):
        awaited(lambda pid=pid: is_gone(pid), "a worker to die with its parent")


def test_interrupt_stops_everything(tmp_path: Path) -> None:
    program = script(tmp_path, BUSY)
    spins, child = read_pid(tmp_path / "spins"), read_pid(tmp_path / "child")
    os.killpg(program.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
    printed, _ = program.communicate(timeout=30)
    assert printed == "interrupted\n"
    assert program.returncode == 0
    for pid in (spins, child):
        awaited(lambda pid=pid: is_gone(pid), "a worker to be stopped")


def test_function_of_the_script_itself_is_refused_with_the_remedy(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        def mine(): return 1
        [outcome] = LocalPool(1).run([Job(1, mine, (), 60.0)])
        print(outcome.reason)
        """,
    )
    printed, _ = program.communicate(timeout=60)
    assert "the call of mine cannot be sent to a worker" in printed
    assert "move it to a module of its own" in printed


# Bad input


@pytest.mark.parametrize("workers", [0, -2])
def test_workers_must_be_positive(workers: int) -> None:
    with pytest.raises(ValueError, match=f"workers must be at least 1, got {workers}"):
        LocalPool(workers)
    with pytest.raises(ValueError, match=f"workers must be at least 1, got {workers}"):
        LocalPool(1).run([], workers)


def test_memory_limit_is_in_bytes() -> None:
    with pytest.raises(ValueError, match=r"memory_limit is in bytes and must be at least 67108864 \(64 MiB\), got 4"):
        LocalPool(1, memory_limit=4)


def test_default_limits_fit_in_the_machine() -> None:
    pool = LocalPool()
    assert pool.workers >= 1
    assert 0.2 * psutil.virtual_memory().total / pool.workers < pool.memory_limit
    assert pool.workers * pool.memory_limit <= 0.9 * psutil.virtual_memory().total


def test_more_workers_than_the_memory_holds_are_refused():
    with pytest.raises(ValueError, match=r"9{20} workers would have less than 64 MiB .* each; take at most \d+"):
        LocalPool(int("9" * 20))
