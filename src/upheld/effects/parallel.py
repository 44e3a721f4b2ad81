"""One stream read in parts, by processes of this machine or of a Ray cluster, and merged (section 8).

The features are fixed once, by a warm-up that every worker gets; each worker reads its part into an empty sketch; sketches are merged in
the order of the parts. What is then that of one pass, and what is not: `upheld.effects.merging`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from upheld.compute import Compute, Job
from upheld.effects.balancer import StreamingBalancer

B = TypeVar("B", bound=StreamingBalancer)
DAY = 86_400.0
BAD_INPUT = ("ValueError", "BadRowError", "TypeError")


def reduced(
    balancer: B, read: Callable[..., Any], parts: Sequence[tuple[Any, ...]], compute: Compute, *, timeout_s: float = DAY
) -> tuple[B, list[Any]]:
    """`balancer` and all parts as one sketch, and what reading each part returned.

    Parameters
    ----------
    balancer : past its warm-up; its rows count, and it is not changed
    read : ``read(worker, *part)`` feeds an empty balancer; a function of a module that workers can import
    parts : arguments of `read`, one tuple a worker; pickled. Parts of a time series should be consecutive stretches, in order: blocks
        are closed within parts
    compute : `upheld.compute.LocalPool`, or for a Ray cluster `upheld.compute.RayCluster`
    timeout_s : for a part

    Raises
    ------
    ValueError
        Before the warm-up is complete; or what a part's reading raised, naming the part.
    ChildProcessError
        If a worker died or was too slow.

    Notes
    -----
    Rows without timestamps are numbered by each worker from 0, so that the order of blocks is then that of no clock: pass timestamps
    where the recent effect is wanted.

    Examples
    --------
    Parquet files of a bucket, read where the cluster's machines are::

        from upheld.compute import RayCluster

        merged, _ = reduced(balancer, read_file, [(path,) for path in paths], RayCluster("10.0.0.5:6379"))

    On this machine:

    >>> from upheld.compute import LocalPool
    >>> from upheld.effects import StreamingBalancer, parallel
    >>> from upheld.effects.data import DriftStream
    >>> stream = DriftStream(1000, 4, "none", seed=0)
    >>> warm = StreamingBalancer(random_state=0).partial_fit(stream.X, stream.y, treatment=stream.w)
    >>> parts = [(1000, 4, seed) for seed in (1, 2)]
    >>> merged, rows = reduced(warm, parallel.read_simulated, parts, LocalPool(workers=1))
    >>> merged.n_seen_, rows
    (3000, [1000, 1000])
    """
    workers = balancer.spawn(len(parts))
    jobs = [
        Job(number, _learned, (type(balancer), worker.to_bytes(), read, part), timeout_s)
        for number, (worker, part) in enumerate(zip(workers, parts, strict=True))
    ]
    found: dict[Any, tuple[bytes, Any]] = {}
    for outcome in compute.run(jobs):
        if outcome.status == "failed":
            sentence = re.sub(r" \([^()\s]+\.py:\d+\)$", "", outcome.reason.removeprefix(f"{outcome.error}: "))
            kind = ValueError if outcome.error in BAD_INPUT else ChildProcessError
            raise kind(f"part {int(str(outcome.key)) + 1} of {len(parts)}: {sentence}")
        found[outcome.key] = outcome.value
    merged = balancer
    for number in range(len(parts)):
        merged = merged.merge(type(balancer).from_bytes(found[number][0]))
    return merged, [found[number][1] for number in range(len(parts))]


def _learned(kind: type[StreamingBalancer], state: bytes, read: Callable[..., Any], part: tuple[Any, ...]) -> Any:
    """In a worker: the sketch of a part, and what reading it returned."""
    worker = kind.from_bytes(state)
    returned = read(worker, *part)
    return worker.to_bytes(), returned


def read_simulated(worker: StreamingBalancer, n: int, d: int, seed: int) -> int:
    """A part that needs no file: n rows of `upheld.effects.data.DriftStream` without drift; returns n."""
    from upheld.effects.data import DriftStream

    stream = DriftStream(n, d, "none", seed=seed)
    worker.partial_fit(stream.X, stream.y, treatment=stream.w)
    return n
