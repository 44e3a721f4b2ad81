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

__all__ = ["Compute", "Job", "LocalPool", "Outcome"]
