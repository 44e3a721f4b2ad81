"""The machines of a Ray cluster.

Ray carries the jobs; on each machine they run in the same worker processes as `LocalPool`'s, behind a small Ray actor.
So a limit, a crash or an exception has the same outcome in both places, and what Ray does not tell, such as the signal
that killed a job or the line where it crashed, is not lost.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import sys
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from upheld.compute.crew import at_a_time, drive
from upheld.compute.job import Job, Outcome, failed, one_line
from upheld.compute.local import LocalCrew, cores, fair_share

LOOK_AROUND_S = 5.0  # so often is looked whether a machine is left, while no job ends


class RayCluster:
    """Run jobs on a Ray cluster, one job a core at a time; limits and failures are `LocalPool`'s.

    Workers get this process's module search path; on other machines the same paths, or installed packages, must hold
    what the jobs import. Each worker may allocate an equal share of its machine's memory, one share a core.

    Parameters
    ----------
    address : "host:port" of a cluster's head; or "auto": the cluster that runs on this machine, else one that is started
        here, reachable from this machine alone, and stopped after the run. A program that is connected already
        stays with its cluster.
    workers : most jobs at a time; by default, the cluster's cores

    Raises
    ------
    ValueError
        If ray is not installed, workers is not positive, or address is of another form; from `run`, if nothing listens at
        the address.
    """

    def __init__(self, address: str = "auto", workers: int | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ValueError('ray is not installed; it comes with: pip install "upheld[ray]"')
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        if address != "auto" and not re.fullmatch(r"[^:/]+:\d+", address):
            raise ValueError(f'the address of a Ray cluster is "auto" or "host:port", got {address!r}')
        self.address = address
        self.workers = workers

    def run(self, jobs: Iterable[Job], workers: int | None = None) -> Iterator[Outcome]:
        """Outcomes of `jobs`, as they end; see `Compute.run`."""
        with self._cluster() as ray:
            most = self.workers or int(ray.cluster_resources()["CPU"])
            yield from drive(jobs, at_a_time(workers, most), RayCrew(ray))

    @contextmanager
    def _cluster(self) -> Iterator[Any]:
        """The module `ray`, connected."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        import ray

        if ray.is_initialized():
            yield ray
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address != "auto":
            _expect_listener(self.address)
        try:
            ray.init(address=self.address, **quiet)
        except ConnectionError:
            if self.address != "auto":
                raise
            with _loopback_only():
                ray.init(address="local", num_cpus=self.workers or cores(), include_dashboard=False, **quiet)
        try:
            yield ray
        finally:
            ray.shutdown()


def _expect_listener(address: str) -> None:
    """Find out in seconds what Ray would try to for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"no Ray cluster answers at {address} ({error}); start one there with: ray start --head, or use auto"
        ) from error


@contextmanager
def _loopback_only() -> Iterator[None]:
    """Have a cluster started here keep 127.0.0.1 as its node's address, and thereby listen to this machine alone.

    Ray does so by itself on systems where it supports one machine only, and has no public setting for it on Linux.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


class RayCrew:
    """Actors of a Ray cluster, each with a core."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._hire = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Actor)
        self._paths = [os.path.abspath(path) for path in sys.path if isinstance(path, str)]
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Hashable, Any]] = {}  # by the reference to the outcome: key, actor

    def begin(self, key: Hashable, payload: bytes, timeout_s: float) -> None:
        actor = self._idle.pop() if self._idle else self._hire.remote(self._paths)
        self._busy[actor.run.remote(payload, timeout_s)] = key, actor

    def collect(self) -> list[Outcome]:
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=LOOK_AROUND_S)
        if not ready and not any(node["Alive"] for node in self._ray.nodes()):
            # Ray would wait for a machine to join, for ever.
            raise ConnectionError(
                f"no machine of the Ray cluster is alive any more, with {len(self._busy)} jobs under way; "
                "start a cluster and run again: what had ended is kept"
            )
        ended = []
        for reference in ready:
            key, actor = self._busy.pop(reference)
            try:
                ended.append(replace(self._ray.get(reference), key=key))
                self._idle.append(actor)
            except self._ray.exceptions.RayError as error:  # the actor or its machine is gone
                ended.append(failed(key, f"lost by Ray: {one_line(error)}", type(error).__name__))
                self._ray.kill(actor)
        return ended

    def stop(self) -> None:
        for actor in (*self._idle, *(actor for _, actor in self._busy.values())):
            self._ray.kill(actor)


class Actor:
    """What Ray starts on one of its machines: a crew of one."""

    def __init__(self, paths: list[str]) -> None:
        sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
        self._crew = LocalCrew(fair_share(cores()))

    def run(self, payload: bytes, timeout_s: float) -> Outcome:
        """The outcome of one pickled call, its value still pickled."""
        self._crew.begin(None, payload, timeout_s)
        while not (ended := self._crew.collect()):
            pass
        return ended[0]
