from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp

from upheld.effects import ExactMomentBalancer, ReservoirBalancer, StreamingBalancer
from upheld.effects.data import DriftStream

WHOLE = {"n_features": 64, "coreset_size": 256, "block_size": None}


def in_parts(stream, feed, parts=4, seed=0, kind=StreamingBalancer, **parameters):
    """The warm-up, then `parts` workers on one part of the rest each, merged."""
    first = feed(kind(random_state=seed, **parameters), stream, 0, 500)
    edges = np.linspace(500, stream.n, parts + 1).astype(int)
    workers = first.spawn(parts)
    for worker, start, stop in zip(workers, edges[:-1], edges[1:], strict=True):
        feed(worker, stream, start, stop)
    for worker in workers:
        first = first | worker
    return first


def test_four_parts_are_one_pass_in_counts_and_target_mean(stream, feed):
    merged, single = in_parts(stream, feed, **WHOLE), feed(StreamingBalancer(random_state=0, **WHOLE), stream)
    assert merged.n_seen_ == merged.estimate().n == stream.n
    assert merged.n_arm_ == single.n_arm_
    np.testing.assert_allclose(merged._block.phi, single._block.phi, atol=1e-9)
    for arm in (0, 1):
        np.testing.assert_allclose(merged._block.arms[arm].sums.phi, single._block.arms[arm].sums.phi, atol=1e-9)
    items = merged.coreset().groupby("arm")["multiplicity"]
    assert items.sum().tolist() == list(single.n_arm_.values())
    assert items.size().max() <= 4 * 256 + 64
    assert merged.memory_bytes_ == single.memory_bytes_


@pytest.mark.slow
def test_four_parts_can_hardly_be_told_from_one_pass(feed):
    """Estimates on the same rows over 40 seeds of the compression, the features being the same."""
    stream = DriftStream(5000, 5, "none", seed=12)
    template = feed(StreamingBalancer(random_state=5, **WHOLE), stream, 0, 500)
    together, apart = [feed(worker, stream).estimate().ate for worker in template.spawn(40)], []
    for _ in range(40):
        workers = template.spawn(4)
        for number, worker in enumerate(workers):
            feed(worker, stream, 1250 * number, 1250 * (number + 1))
        merged = workers[0] | workers[1] | workers[2] | workers[3]
        apart.append(merged.estimate().ate)
    assert ks_2samp(together, apart).pvalue > 1e-3
    assert np.std(apart) < 2 * np.std(together)
    assert abs(np.mean(apart) - stream.effect) < 0.15


def test_blocks_of_different_times_stay_apart(feed):
    stream = DriftStream(9000, 5, "both", seed=1)
    merged = in_parts(stream, feed, n_features=128)
    assert merged.estimate().n == 9000
    assert abs(merged.estimate().ate - stream.effect) < 0.2
    assert len(merged.blocks_) >= 4
    assert merged.blocks_["start"].is_monotonic_increasing


def test_nothing_added_changes_nothing(stream, feed):
    for n in (300, 4000):
        balancer = feed(StreamingBalancer(random_state=0), stream, 0, n)
        empty = StreamingBalancer(random_state=0) if n < 500 else balancer.spawn(1)[0]
        for merged in (balancer | empty, empty | balancer):
            assert replace(merged.estimate(), memory_bytes=0) == replace(balancer.estimate(), memory_bytes=0)


@pytest.mark.parametrize("kind", [StreamingBalancer, ExactMomentBalancer, ReservoirBalancer])
def test_merging_commutes_in_counts_and_sums_and_changes_neither(stream, feed, kind):
    first = feed(kind(random_state=0, block_size=None), stream, 0, 2000)
    [second] = first.spawn(1)
    feed(second, stream, 2000, 6000)
    before = first.estimate(), second.estimate()
    one, other = first | second, second | first
    np.testing.assert_allclose(one._block.phi, other._block.phi, atol=1e-10)
    assert one.n_arm_ == other.n_arm_
    assert abs(one.estimate().ate - other.estimate().ate) < 0.2
    assert (first.estimate(), second.estimate()) == before


def test_two_unfinished_warm_ups_are_one(stream, feed):
    def early(start, stop):
        return feed(StreamingBalancer(random_state=0), stream, start, stop, timestamps=np.arange(6000.0))

    assert (early(0, 300) | early(300, 700)).estimate() == early(0, 700).estimate()
    first, second = early(0, 300), early(300, 800)
    assert (first | second).n_seen_ == (second | first).n_seen_ == 800


def test_what_does_not_fit_together(stream, feed):
    first = feed(StreamingBalancer(random_state=0), stream, 0, 1000)
    with pytest.raises(ValueError, match="the sketches balance different features"):
        first.merge(feed(StreamingBalancer(random_state=1), stream, 0, 1000))
    with pytest.raises(ValueError, match="the sketches differ in coreset_size \\(256 and 128\\)"):
        first.merge(feed(StreamingBalancer(128, random_state=0), stream, 0, 1000))
    with pytest.raises(TypeError, match="a StreamingBalancer cannot be merged with a ReservoirBalancer"):
        first.merge(feed(ReservoirBalancer(random_state=0), stream, 0, 1000))
    with pytest.raises(ValueError, match="the features are fixed after 500 rows, and 100 have come"):
        feed(StreamingBalancer(), stream, 0, 100).spawn(2)
