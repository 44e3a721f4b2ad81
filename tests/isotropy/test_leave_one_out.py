"""The score without each answer: against scores of the smaller sets, and the error bar against simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.isotropy import (
    influence,
    jackknife_standard_error,
    leave_one_out_scores,
    von_neumann_entropies,
    von_neumann_entropy,
)


@given(st.integers(3, 8), st.integers(1, 12), st.sampled_from([0.0, 1e-3]), st.integers(0, 2**32 - 1))
def test_each_is_the_score_of_the_others(N, D, jitter, seed):
    X = np.random.default_rng(seed).normal(size=(N, D))
    each = [von_neumann_entropy(np.delete(X, i, axis=0), jitter=jitter, normalize=True) for i in range(N)]
    np.testing.assert_allclose(leave_one_out_scores(X, jitter=jitter), each, atol=1e-10)


def test_a_stack_equals_one_by_one():
    X = np.random.default_rng(0).normal(size=(4, 5, 7))
    np.testing.assert_allclose(leave_one_out_scores(X), [leave_one_out_scores(x) for x in X], atol=1e-13)


def test_the_odd_answer_adds_the_spread():
    left_out = leave_one_out_scores([[1, 0], [1, 0], [1, 0], [0, 1]])
    # 3 + 1 answers: H(1/4) / log 4; without the odd one 0, without another H(1/3) / log 3.
    H = [-p * np.log(p) - (1 - p) * np.log(1 - p) for p in (1 / 4, 1 / 3)]
    score = H[0] / np.log(4)
    expected = [score - H[1] / np.log(3)] * 3 + [score]
    np.testing.assert_allclose(influence(score, left_out), expected, atol=1e-12)


def test_two_answers_have_neither_error_nor_influence():
    left_out = leave_one_out_scores(np.eye(2))
    assert np.isnan(left_out).all()
    assert np.isnan(jackknife_standard_error(left_out))
    assert np.isnan(influence(1.0, left_out)).all()


def test_the_standard_error_of_known_scores():
    """For a mean of N values the jackknife is s / √N; here the values are 0, 0, 3: s² = 3."""
    values = np.array([0.0, 0.0, 3.0])
    means_without = (values.sum() - values) / 2
    assert jackknife_standard_error(means_without) == pytest.approx(1.0)


@pytest.mark.parametrize("N", [5, 10])
def test_the_error_bar_errs_on_the_safe_side(N):
    """Answers around a common direction in 16 dimensions: 1.1 to 1.3 times the true standard deviation."""
    rng = np.random.default_rng(N)
    X = rng.normal(size=(4000, N, 16)) * 0.7 + 1.0 * (np.arange(16) == 0)
    scores = von_neumann_entropies(X, normalize=True)
    ratio = jackknife_standard_error(leave_one_out_scores(X)).mean() / scores.std()
    assert 1.0 < ratio < 1.4
