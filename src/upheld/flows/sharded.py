"""Many independent groups over processes or machines: every group has a seed of its own, so the result is the same bit for bit whatever
the number of workers."""

from __future__ import annotations

from collections.abc import Callable

import torch

from upheld.compute import Compute, Job
from upheld.flows.sampler import TargetedFlow
from upheld.flows.samples import FlowSamples

GROUPS_A_JOB = 16


class JobFailed(RuntimeError):
    """Groups that could not be run, and why."""


def sample_sharded(
    flow: TargetedFlow, n: int, *, shape: tuple[int, ...], compute: Compute, generator: torch.Generator | None = None,
    mode: str = "nested", groups_per_job: int = GROUPS_A_JOB, timeout_s: float = 3600.0, callback: Callable[[int], None] | None = None,
) -> FlowSamples:  # fmt: skip
    """What ``flow.sample`` gives, from groups that run elsewhere.

    Parameters
    ----------
    n, shape, generator, mode : as of `TargetedFlow.sample`
    compute : `upheld.compute.LocalPool` or `upheld.compute.RayCluster`; flow, likelihood and networks are pickled to its workers
    groups_per_job : how many groups go together; batches of other sizes round otherwise, so this is part of the result, workers are not
    timeout_s : seconds that one job may take
    callback : told after every job how many groups are done

    Raises
    ------
    ValueError
        If an option is none.
    JobFailed
        If a job fails; the message says why.

    Examples
    --------
    >>> from upheld.compute import LocalPool
    >>> from upheld.flows import GaussianMixtureFlow, LinearGaussian
    >>> seen = LinearGaussian(torch.eye(2), torch.ones(2), 1.0)
    >>> flow = TargetedFlow(GaussianMixtureFlow(torch.zeros(1, 2), 1.0), seen, n_steps=16)
    >>> found = sample_sharded(flow, 32, shape=(2,), compute=LocalPool(workers=1))          # doctest: +SKIP
    """
    seeds = flow.seeds(n, mode, generator)
    if groups_per_job < 1:
        raise ValueError(f"{groups_per_job} groups a job; give at least 1")
    settled = flow.settled(shape)
    shards = [seeds[start : start + groups_per_job] for start in range(0, len(seeds), groups_per_job)]
    jobs = (Job(place, _run, (settled, shard, shape, mode), timeout_s) for place, shard in enumerate(shards))
    parts: dict[int, FlowSamples] = {}
    for outcome in compute.run(jobs):
        place = int(str(outcome.key))
        if outcome.status == "failed":
            raise JobFailed(f"groups {place * groups_per_job} and on failed: {outcome.reason}")
        parts[place] = outcome.value
        if callback is not None:
            callback(sum(len(part.group_log_evidence) for part in parts.values()))
    return FlowSamples.joined([parts[place] for place in range(len(shards))])


def _run(flow: TargetedFlow, seeds: list[int], shape: tuple[int, ...], mode: str) -> FlowSamples:
    """One job, in a worker."""
    torch.set_num_threads(1)
    return flow.sample_groups(seeds, shape=shape, mode=mode)
