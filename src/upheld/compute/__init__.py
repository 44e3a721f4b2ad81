"""Where work runs: calls in worker processes, each with limits of its own, whose crash is that one call's failure.

>>> import math
>>> from upheld.compute import Job, LocalPool
>>> [outcome] = LocalPool(workers=1).run([Job("six", math.factorial, (3,), timeout_s=10)])
>>> outcome.status, outcome.value
('done', 6)
"""

from __future__ import annotations

from upheld.compute.job import Compute, Job, Outcome
from upheld.compute.local import LocalPool
from upheld.compute.ray import RayCluster

__all__ = ["Compute", "Job", "LocalPool", "Outcome", "RayCluster", "choose"]


def choose(ray: str | None, workers: int | None) -> Compute:
    """The Ray cluster at the address `ray` ("auto": see `RayCluster`), or this machine if `ray` is None.

    Raises ValueError if workers is not positive, or ray is not installed.
    """
    return LocalPool(workers) if ray is None else RayCluster(ray, workers)
