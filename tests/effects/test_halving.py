from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from upheld.effects.halving import PAIRINGS, SIGNINGS, nearest_pairs, pairs, signs


@given(st.sampled_from(PAIRINGS), st.integers(2, 41), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_pairs_are_disjoint_and_leave_out_one_at_most(pairing, n, seed):
    rng = np.random.default_rng(seed)
    p, q = pairs(rng.standard_normal((n, 3)), pairing, rng)
    assert len(p) == len(q) == n // 2
    assert len(set(p) | set(q)) == n // 2 * 2


def test_twins_are_paired_with_each_other():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((20, 4))
    for p, q in nearest_pairs(np.concatenate([points, points + 1e-6])):
        assert abs(p - q) == 20


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_whom_an_odd_level_leaves_over_is_drawn_evenly(pairing):
    phi = np.random.default_rng(0).standard_normal((5, 3))
    left = []
    for seed in range(2000):
        p, q = pairs(phi, pairing, np.random.default_rng(seed))
        left += set(range(5)) - set(p) - set(q)
    assert chisquare(np.bincount(left, minlength=5)).pvalue > 1e-4


@pytest.mark.parametrize("signing", SIGNINGS)
def test_length_is_that_of_the_signed_sum(signing):
    rng = np.random.default_rng(0)
    v = rng.standard_normal((40, 7))
    s, length_sq = signs(v, signing, rng)
    assert set(s) <= {-1.0, 1.0}
    assert length_sq == pytest.approx(np.sum((s @ v) ** 2))


@pytest.mark.parametrize("signing", SIGNINGS)
def test_signs_keep_the_sum_short(signing):
    """Random signs leave |u|^2 = 200 on average for 200 unit vectors in 5 dimensions; balanced ones a fraction of it."""
    rng = np.random.default_rng(1)
    lengths = []
    for _ in range(50):
        v = rng.standard_normal((200, 5))
        lengths.append(signs(v / np.linalg.norm(v, axis=1, keepdims=True), signing, rng)[1])
    assert np.mean(lengths) < 200 / 10


def test_greedy_signs_of_three_vectors():
    """u = (1, 0); then <u, v> = 1 gives -1, u = 0; a tie gives +1."""
    v = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    results = {tuple(signs(v, "greedy", np.random.default_rng(seed))[0]) for seed in range(20)}
    assert results == {(1, -1, 1), (-1, 1, -1)}


@pytest.mark.parametrize("signing", SIGNINGS)
def test_each_sign_is_a_fair_coin(signing):
    v = np.random.default_rng(0).standard_normal((6, 2))
    plus = sum((signs(v, signing, np.random.default_rng(seed))[0] > 0).astype(int) for seed in range(4000))
    for count in plus:
        assert chisquare([count, 4000 - count]).pvalue > 1e-5
