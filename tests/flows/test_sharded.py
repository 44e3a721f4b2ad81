"""Groups on other processes: the same samples whatever the number of workers, and a failure that says why."""

from __future__ import annotations

import os

import pytest
import torch

from upheld.compute import LocalPool
from upheld.flows import GaussianMixtureFlow, LinearGaussian, TargetedFlow
from upheld.flows.sharded import sample_sharded

SEEN = LinearGaussian(torch.eye(2), torch.tensor([1.0, -0.5]), 0.5)
FLOW = TargetedFlow(GaussianMixtureFlow(torch.zeros(1, 2), 1.0), SEEN, n_steps=16, n_particles=4)


def sharded(workers: int, mode: str = "nested", n: int = 7):
    generator = torch.Generator().manual_seed(0)
    return sample_sharded(
        FLOW, n, shape=(2,), compute=LocalPool(workers), generator=generator, mode=mode, groups_per_job=2, timeout_s=100
    )


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "n"), [("nested", 7), ("pooled", 18)])
def test_the_number_of_workers_does_not_change_a_bit(mode, n):
    one, two = sharded(1, mode, n), sharded(2, mode, n)
    for name in ("samples", "log_weights", "particles", "group_log_evidence", "ess_trace", "resampled_at", "ancestors"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    here = FLOW.sample(n, shape=(2,), generator=torch.Generator().manual_seed(0), mode=mode)
    torch.testing.assert_close(one.samples, here.samples)
    torch.testing.assert_close(one.log_weights, here.log_weights)
    assert one.log_evidence == pytest.approx(here.log_evidence)
    assert one.evaluations == here.evaluations


class Fails:
    """A likelihood that cannot be asked in another process."""

    differentiable = False

    def __init__(self) -> None:
        self.home = os.getpid()

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        if os.getpid() != self.home:
            raise OSError("the disk is gone")
        return x.new_zeros(len(x))


@pytest.mark.slow
def test_a_job_that_fails_says_why():
    flow = TargetedFlow(FLOW.velocity, Fails(), n_steps=8, n_particles=2)
    with pytest.raises(RuntimeError, match=r"groups 0 and on failed: .*the disk is gone"):
        sample_sharded(flow, 1, shape=(2,), compute=LocalPool(1), timeout_s=100)


def test_no_groups_a_job():
    with pytest.raises(ValueError, match="0 groups a job; give at least 1"):
        sample_sharded(FLOW, 2, shape=(2,), compute=LocalPool(1), groups_per_job=0)
