from __future__ import annotations

import numpy as np
from scipy.stats import chisquare

from upheld.effects.uniform import UniformSample


def sample(values, rng, capacity=5, batch=7):
    held = UniformSample(capacity, {"x": ((), float), "ident": ((), np.int64)})
    for at in range(0, len(values), batch):
        part = np.asarray(values[at : at + batch])
        held.add(rng, x=part.astype(float), ident=part.astype(np.int64))
    return held


def test_every_row_is_as_likely():
    counts = np.zeros(30)
    for seed in range(3000):
        counts[sample(range(30), np.random.default_rng(seed)).held("ident")] += 1
    assert chisquare(counts).pvalue > 1e-4


def test_every_row_of_both_is_as_likely_after_merging():
    counts = np.zeros(30)
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        first, second = sample(range(22), rng), sample(range(22, 30), rng)
        first.merge(second, rng)
        assert (first.size, first.seen) == (5, 30)
        counts[first.held("ident")] += 1
    assert chisquare(counts).pvalue > 1e-4


def test_few_rows_are_all_held_and_can_be_taken_out():
    rng = np.random.default_rng(0)
    held = sample(range(4), rng)
    assert held.remove(2)["x"] == 2
    assert held.remove(9) is None
    assert sorted(held.held("ident")) == [0, 1, 3]
