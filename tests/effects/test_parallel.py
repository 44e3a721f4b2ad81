"""A stream in four parts, merged: equal to one pass in counts and target mean, and as good in what is compressed."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.compute import LocalPool, RayCluster
from upheld.compute.job import Outcome
from upheld.effects import StreamingBalancer
from upheld.effects.data import DriftStream
from upheld.effects.parallel import read_simulated, reduced

ROWS = 1000
PARTS = [(ROWS, 4, seed) for seed in (1, 2, 3, 4)]


class Here:
    """Runs jobs in this process, the last first."""

    def run(self, jobs, workers=None):
        for job in reversed(list(jobs)):
            yield Outcome(job.key, "done", job.call(*job.args))


def warm(seed: int = 0, outcomes: str = "pooled") -> StreamingBalancer:
    stream = DriftStream(ROWS, 4, "none", seed=0)
    balancer = StreamingBalancer(256, 64, outcomes=outcomes, pairing="projection", block_size=None, random_state=seed)
    return balancer.partial_fit(stream.X, stream.y, treatment=stream.w)


def in_one_pass(balancer: StreamingBalancer) -> StreamingBalancer:
    for part in PARTS:
        read_simulated(balancer, *part)
    return balancer


def test_counts_and_target_mean_are_those_of_one_pass():
    first = warm()
    merged, read = reduced(first, read_simulated, PARTS, Here())
    one = in_one_pass(warm())
    assert read == [ROWS] * 4
    assert merged.n_seen_ == one.n_seen_ == 5 * ROWS
    assert merged.n_arm_ == one.n_arm_
    assert first.n_seen_ == ROWS
    np.testing.assert_allclose(merged._block.phi / merged._block.n, one._block.phi / one._block.n, atol=1e-12)


def both_ways(outcomes: str, seeds: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Effects merged and in one pass by seed of the sketch, on one stream, and the mean standard error."""
    merged = [reduced(warm(seed, outcomes), read_simulated, PARTS, Here())[0].estimate() for seed in range(seeds)]
    one = [in_one_pass(warm(seed, outcomes)).estimate() for seed in range(seeds)]
    return np.array([e.ate for e in merged]), np.array([e.ate for e in one]), float(np.mean([e.se for e in one]))


def test_subset_coresets_are_as_good_as_those_of_one_pass():
    merged, one, _ = both_ways("subset", 16)
    gap = merged - one
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap))
    assert 0.4 < merged.std() / one.std() < 2.5


def test_pooled_outcomes_differ_by_less_than_a_standard_error():
    """Residuals are pooled under each part's own outcome model: near one pass, not the same."""
    merged, one, se = both_ways("pooled", 12)
    assert abs((merged - one).mean()) < se


def test_processes_give_what_this_process_gives():
    here, _ = reduced(warm(), read_simulated, PARTS[:2], Here())
    there, _ = reduced(warm(), read_simulated, PARTS[:2], LocalPool(workers=1))
    assert there.estimate() == here.estimate()


@pytest.mark.slow
def test_ray_gives_what_this_process_gives():
    here, _ = reduced(warm(), read_simulated, PARTS, Here())
    there, _ = reduced(warm(), read_simulated, PARTS, RayCluster("auto", workers=2))
    assert there.estimate() == here.estimate()


def test_what_goes_wrong_in_a_part_is_told():
    with pytest.raises(ValueError, match="part 2 of 2: a stream has at least 4 covariates"):
        reduced(warm(), read_simulated, [PARTS[0], (ROWS, 3, 0)], LocalPool(workers=1))
    with pytest.raises(ValueError, match="the features are fixed after 500 rows"):
        reduced(StreamingBalancer(random_state=0), read_simulated, PARTS, Here())
