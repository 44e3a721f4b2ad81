"""On one machine with two cores: the same outcomes as the local pool's, to the last bit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import compute_toys as toys
import numpy as np
import psutil
import pytest

from upheld.compute import Job, LocalPool, RayCluster
from upheld.compute.ray import RayCrew

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

LONG = 60.0


@pytest.fixture(scope="module")
def toy_measure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A function in a temporary package, on the search path of this process alone."""
    package = tmp_path_factory.mktemp("ray") / "toy_ray_method"
    package.mkdir()
    (package / "__init__.py").write_text("def measure(x): return x + 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.parent)
        from toy_ray_method import measure

        yield measure


def test_same_outcomes_as_the_local_pool(toy_measure: object, capfd: pytest.CaptureFixture[str]) -> None:
    jobs = [Job(("numbers", seed), toys.numbers, (seed,), LONG) for seed in range(6)]
    jobs += [
        Job("toy", toy_measure, (1,), LONG),  # type: ignore[arg-type]
        Job("raises", toys.raises, ("no",), LONG),
        Job("segfaults", toys.segfaults, (), LONG),
        Job("leaves", toys.leaves, (0,), LONG),
        Job("slow", toys.sleeps, (60,), 0.5),
        Job("lock", toys.returns_a_lock, (), LONG),
        Job("fragile", toys.returns_fragile, (), LONG),
        Job("lambda", lambda: 1, (), LONG),
        Job("noisy", toys.is_noisy, (), LONG),
        Job("order", toys.surroundings, (), LONG),
    ]
    here = {outcome.key: outcome for outcome in LocalPool(2).run(jobs)}
    there = {outcome.key: outcome for outcome in RayCluster("auto", workers=2).run(jobs)}
    assert here.keys() == there.keys() == {job.key for job in jobs}
    for key, outcome in here.items():
        same = there[key]
        assert (same.status, same.reason, same.error) == (outcome.status, outcome.reason, outcome.error)
        np.testing.assert_array_equal(same.value, outcome.value, strict=isinstance(outcome.value, np.ndarray))
    assert there["segfaults"].reason == "killed by signal 11 (SIGSEGV)"
    assert here["toy"].value == 2
    assert capfd.readouterr() == ("", "")


def test_cluster_that_is_started_here_hears_this_machine_alone_and_goes(
    children: Callable[[], list[psutil.Process]],
) -> None:
    outcomes = RayCluster("auto", workers=2).run([Job(n, toys.square, (n,), LONG) for n in range(4)])
    first = next(outcomes)
    ours = children()
    listening = {
        connection.laddr.ip
        for process in ours
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    rest = list(outcomes)
    assert {outcome.value for outcome in (first, *rest)} == {0, 1, 4, 9}
    assert not psutil.wait_procs(ours, timeout=20)[1]


def test_actor_killed_from_outside_is_one_failure_and_jobs_are_drawn_lazily(tmp_path: Path) -> None:
    drawn = 0

    def jobs() -> Iterator[Job]:
        nonlocal drawn
        for n in range(10_000):
            drawn += 1
            yield (
                Job(n, toys.square, (n,), LONG)
                if n
                else Job("victim", toys.tells_its_pid_and_sleeps, (str(tmp_path / "pid"),), LONG)
            )

    def kill() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.05)
        actor = psutil.Process(int((tmp_path / "pid").read_text())).ppid()
        os.kill(actor, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    outcomes = RayCluster("auto", workers=2).run(jobs())
    seen = 0
    for outcome in outcomes:
        seen += 1
        if outcome.key == "victim":
            break
        assert outcome.value == outcome.key**2
    thread.join()
    assert drawn <= seen + 4
    assert outcome.status == "failed"
    assert outcome.reason.startswith("lost by Ray: ActorDiedError: ")
    after = next(outcomes)
    assert after.status == "done"
    outcomes.close()  # type: ignore[attr-defined]
    worker = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(worker) or psutil.Process(worker).status() == psutil.STATUS_ZOMBIE


def test_cluster_without_a_machine_is_not_waited_for() -> None:
    """`benchmarks/faults ray` kills the real one's manager, which takes half a minute."""

    class Reference:
        def remote(self, *_: object) -> Reference:
            return self

        run = property(lambda self: self)

    class Ray:
        alive = True
        waits = 0

        def remote(self, **_: object) -> Callable[[type], Reference]:
            return lambda _: Reference()

        def wait(
            self, references: list[Reference], num_returns: int, timeout: float
        ) -> tuple[list[Reference], list[Reference]]:
            self.waits += 1
            return [], references

        def nodes(self) -> list[dict[str, bool]]:
            return [{"Alive": False}, {"Alive": self.alive}]

    ray = Ray()
    crew = RayCrew(ray)
    crew.begin("job", b"", LONG)
    assert crew.collect() == []
    ray.alive = False
    with pytest.raises(ConnectionError, match="no machine of the Ray cluster is alive any more, with 1 jobs under way"):
        crew.collect()
    assert ray.waits == 2


def test_cluster_at_an_address_is_used_and_left_running() -> None:
    code = (
        "import sys, ray; context = ray.init(address='local', num_cpus=2, include_dashboard=False, logging_level='ERROR'); "
        "print(context.address_info['gcs_address'], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        cluster = RayCluster(program.stdout.readline().strip())
        for _ in range(2):
            outcomes = cluster.run(Job(n, toys.square, (n,), LONG) for n in range(5))
            assert sorted(outcome.value for outcome in outcomes) == [0, 1, 4, 9, 16]
        program.communicate("")
    assert program.returncode == 0


def test_nothing_at_the_address() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(ValueError, match=f"no Ray cluster answers at {address}"):
            list(RayCluster(address).run([]))


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_workers_die_with_the_program(tmp_path: Path, blow: signal.Signals) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        + textwrap.dedent("""
        import compute_toys as toys
        from upheld.compute import Job, RayCluster
        try:
            list(RayCluster("auto", 1).run([Job(1, toys.holds_the_interpreter, (sys.argv[1],), 600.0)]))
        except KeyboardInterrupt:
            print("interrupted")
        """)
    )
    program = subprocess.Popen(
        [sys.executable, str(path), str(tmp_path / "pid")], stdout=subprocess.PIPE, text=True, process_group=0
    )
    deadline = time.monotonic() + 100
    while not (tmp_path / "pid").exists():
        assert time.monotonic() < deadline, "no worker came up"
        time.sleep(0.1)
    everybody = [
        *psutil.Process(program.pid).children(recursive=True),
        psutil.Process(int((tmp_path / "pid").read_text())),
    ]
    if blow is signal.SIGINT:
        os.killpg(program.pid, blow)  # what a terminal does on Ctrl-C
        assert program.communicate(timeout=60)[0] == "interrupted\n"
    else:
        program.kill()
        program.communicate()
    # Ray's own two agents go by themselves too, but after a minute or more if nobody could tell them to.
    left = {process.name() for process in psutil.wait_procs(everybody, timeout=15)[1]}
    assert left <= ({"ray::DashboardAgent", "ray::RuntimeEnvAgent"} if blow is signal.SIGKILL else set())
