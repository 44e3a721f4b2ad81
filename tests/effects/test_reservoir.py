from __future__ import annotations

import numpy as np
import pytest

from upheld.effects import ReservoirBalancer, StreamingBalancer
from upheld.effects.data import DriftStream


def test_with_room_for_all_rows_it_is_the_batch_estimator():
    """And so is the coreset before its first compaction, with outcomes of single rows."""
    stream = DriftStream(900, 5, "none", seed=0)
    estimates = [
        one.fit(stream.X, stream.y, treatment=stream.w).estimate()
        for one in (ReservoirBalancer(random_state=3), StreamingBalancer(outcomes="subset", random_state=3))
    ]
    assert estimates[0].ate == pytest.approx(estimates[1].ate, abs=1e-10)
    assert estimates[0].se == pytest.approx(estimates[1].se, abs=1e-10)


def test_memory_does_not_grow():
    stream = DriftStream(6000, 5, "none", seed=0)
    balancer = ReservoirBalancer(100, block_size=None, random_state=0)
    balancer.fit(stream.X[:2000], stream.y[:2000], treatment=stream.w[:2000])
    before = balancer.memory_bytes_
    balancer.partial_fit(stream.X[2000:], stream.y[2000:], treatment=stream.w[2000:])
    assert balancer.memory_bytes_ == before
    assert balancer.estimate().n == 6000
    assert max(balancer.estimate().ess.values()) <= 100


def test_too_few_rows():
    with pytest.raises(ValueError, match="rows_per_arm must be at least 20, got 5"):
        ReservoirBalancer(5).partial_fit(np.eye(4), np.zeros(4), treatment=[0, 1, 0, 1])
