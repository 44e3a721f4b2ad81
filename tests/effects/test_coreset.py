from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from upheld.effects.coreset import ArmCoreset, Policy, capacity, kept_levels, most_items
from upheld.effects.features import draw_features
from upheld.effects.pooling import OutcomeModel, PoolingModel

D = 3


@cache
def features(seed=0):
    rng = np.random.default_rng(seed)
    return draw_features(rng.standard_normal((100, D)), 16, rng)


def no_model():
    return None


def filled(n, k=16, seed=0, batches=(), model=no_model, X=None, y=None, **policy):
    """A coreset of n rows given in batches."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) if X is None else X
    y = rng.standard_normal(n) if y is None else y
    coreset = ArmCoreset(Policy(k, **policy), D)
    edges = [0, *sorted({b for b in batches if 0 < b < n}), n]
    for start, stop in itertools.pairwise(edges):
        rows = slice(start, stop)
        coreset.add(
            X[rows], y[rows], np.arange(start, stop, dtype=float), np.arange(start, stop), features(), model, rng
        )
    return coreset


@given(st.integers(16, 3000))
def test_capacities_add_up_to_less_than_the_bound(k):
    levels = kept_levels(k)
    assert sum(capacity(level, levels - 1, k) for level in range(levels)) <= most_items(k)
    assert all(capacity(level, 20, k) % 2 == 0 for level in range(21))


def test_capacities_of_k_256():
    """2 ceil(256 (2/3)^j / 2) for j = 0, 1, ..., the top doubled, none below 16."""
    assert [capacity(9 - j, 9, 256) for j in range(10)] == [512, 172, 114, 76, 52, 34, 24, 16, 16, 16]
    assert kept_levels(256) == 9


@given(
    st.integers(1, 4000), st.sampled_from([16, 21, 40]), st.lists(st.integers(1, 4000), max_size=6), st.integers(0, 999),
    st.sampled_from(["pooled", "subset", "subset-xy"]), st.sampled_from(["nearest", "projection", "random"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_multiplicities_sum_to_the_rows_and_items_stay_within_the_bound(n, k, batches, seed, outcomes, pairing):
    coreset = filled(n, k, seed, batches, outcomes=outcomes, pairing=pairing)
    items = coreset.items()
    assert items.m.sum() == coreset.n_rows == n
    assert len(items) <= most_items(k)
    assert coreset.nbytes == ArmCoreset(Policy(k), D).nbytes


def test_two_hundred_thousand_rows_in_the_same_memory():
    coreset = ArmCoreset(Policy(16, "pooled", "projection"), D)
    rng = np.random.default_rng(0)
    empty = coreset.nbytes
    for _ in range(20):
        X = rng.standard_normal((10_000, D))
        coreset.add(X, X[:, 0], np.zeros(10_000), np.zeros(10_000, dtype=int), features(), no_model, rng)
        items = coreset.items()
        assert len(items) <= most_items(16)
    assert coreset.base > 5, "the sampler is at work"
    assert items.m.sum() == 200_000
    assert coreset.nbytes == empty
    assert items.m @ items.X / items.m.sum() == pytest.approx([0, 0, 0], abs=0.5)
    assert items.m @ items.y / items.m.sum() == pytest.approx(0, abs=0.01), "outcomes were averaged over all rows"


@given(st.integers(1, 31))
def test_below_the_first_compaction_all_rows_are_there(n):
    coreset = filled(n)
    items = coreset.items()
    assert (items.m == 1).all()
    assert items.raw.all()
    assert sorted(items.t) == list(range(n))


def test_discrepancy_is_the_displacement_of_the_sum_of_features():
    """One compaction of 32 rows at level 0, and another one of 32 items at level 1."""
    rng = np.random.default_rng(3)
    phi = features()
    X = rng.standard_normal((32, D))
    coreset = filled(32, X=X, y=np.zeros(32))
    items = coreset.items()
    assert (items.m == 2).all()
    moved = items.m @ phi(items.X, items.t) - phi(X, np.arange(32.0)).sum(axis=0)
    assert coreset.discrepancy_sq == pytest.approx(moved @ moved)


@pytest.mark.parametrize("pairing", ["nearest", "projection", "random"])
def test_every_row_survives_a_compaction_with_probability_one_half(pairing):
    X = np.random.default_rng(5).standard_normal((32, D))
    X[0] = 9.0  # even an outlier
    survived = np.zeros(32)
    for seed in range(1500):
        survived[filled(32, seed=seed, X=X, y=np.zeros(32), pairing=pairing, own_time=True).items().t.astype(int)] += 1
    p_values = [chisquare([count, 1500 - count]).pvalue for count in survived]
    assert min(p_values) > 1e-4 / 3
    assert kstest(p_values, "uniform").pvalue > 1e-4


def test_what_enters_the_sampler_is_a_fair_draw():
    """The mean of the weighted items is unbiased over seeds, with a run left open and batches that cut runs."""
    values = np.arange(1000.0) % 40
    means = []
    for seed in range(150):
        items = filled(1000, 16, seed, range(0, 1000, 37), y=values, outcomes="subset").items()
        means.append(items.m @ items.y / items.m.sum())
    error = np.std(means) / np.sqrt(150)
    assert abs(np.mean(means) - values.mean()) < 4 * error


@given(st.integers(1, 3000), st.integers(0, 99), st.lists(st.integers(1, 3000), max_size=5))
@settings(max_examples=30, deadline=None)
def test_pooling_keeps_the_sum_of_residuals(n, seed, batches):
    """sum m (y - f) is what it was, whatever is merged, sampled or left open, for a model that does not change."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, D)), rng.standard_normal(n)
    phi, t = features(), np.arange(float(n))
    fixed = PoolingModel(OutcomeModel(0.3, rng.standard_normal(phi.n_features + 1 + D), 1.0), 300.0, 800.0)
    items = filled(n, seed=seed, batches=batches, model=lambda: fixed, X=X, y=y).items()
    before, now = y - fixed(phi(X, t), X, t), items.y - fixed(phi(items.X, items.t), items.X, items.t)
    assert items.m @ now == pytest.approx(before.sum(), abs=1e-7)
    assert items.m @ np.where(items.raw, now**2, items.q) == pytest.approx(np.sum(before**2), rel=1e-6)


def test_a_subset_keeps_outcomes_of_its_own_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, D))
    items = filled(5000, X=X, y=X[:, 0] * 7, outcomes="subset").items()
    np.testing.assert_array_equal(items.y, items.X[:, 0] * 7)


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_merging_adds_up(a, b, seed):
    first, second = filled(a, seed=seed) if a else ArmCoreset(Policy(16), D), filled(max(b, 1), seed=seed + 1)
    before = second.items().m.sum(), second.run.rows
    first.absorb(second, features(), no_model, np.random.default_rng(seed))
    items = first.items()
    assert items.m.sum() == first.n_rows == a + max(b, 1)
    assert len(items) <= most_items(16)
    assert first.nbytes == second.nbytes
    assert (second.items().m.sum(), second.run.rows) == before, "the other one is left as it was"


def test_a_row_is_taken_back_while_it_is_alone():
    coreset = filled(20)
    x, _, t = coreset.remove(7)
    assert t == 7
    assert coreset.n_rows == 19
    assert not (x == coreset.items().X).all(axis=1).any()
    assert coreset.remove(7) is None
    assert filled(32).remove(7) is None
