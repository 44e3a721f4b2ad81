"""Companions against closed forms, the law of the sphere, and their own limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.isotropy.spread import cosine_matrix, mean_cosine_distance, medoid, purity, purity_unbiased, vmf_kappa


def test_equal_cosines():
    K = np.full((5, 5), 0.6) + 0.4 * np.eye(5)
    assert purity(K) == pytest.approx((1 + 4 * 0.36) / 5)
    assert purity_unbiased(K) == pytest.approx(0.36)
    assert mean_cosine_distance(K) == pytest.approx(0.4)


@pytest.mark.parametrize("N", [2, 3, 12])
def test_the_unbiased_purity_has_one_mean_at_every_n(N):
    """Uniform on S^15: E (ē . ē')² = 1/16, while the plain purity's mean moves with N."""
    X = np.random.default_rng(N).normal(size=(20_000, N, 16))
    estimate = purity_unbiased(cosine_matrix(X))
    assert abs(estimate.mean() - 1 / 16) < 5 * estimate.std() / np.sqrt(len(X))
    assert purity(cosine_matrix(X)).mean() > 1 / 16 + 0.05


def test_the_logarithm_of_the_unbiased_purity_is_biased():
    """The figures that forbid it: 3.10 at N = 3, 2.79 at N = 12."""
    rng = np.random.default_rng(0)
    means = [-np.log(purity_unbiased(cosine_matrix(rng.normal(size=(20_000, N, 16))))).mean() for N in (3, 12)]
    assert means == pytest.approx([3.10, 2.79], abs=0.02)


def test_kappa_recovers_a_concentration():
    """Answers of a von Mises-Fisher law in 3 dimensions, where R̄ = coth κ - 1/κ and the usual approximation is within a few per cent."""
    from scipy.stats import vonmises_fisher

    X = vonmises_fisher([0, 0, 1], 20).rvs(4000, random_state=0)
    assert vmf_kappa(cosine_matrix(X), 3) == pytest.approx(20, rel=0.08)


def test_kappa_at_its_ends():
    assert vmf_kappa(np.ones((4, 4)), 384) == np.inf
    assert vmf_kappa(cosine_matrix(np.vstack([np.eye(3), -np.eye(3)])), 3) == pytest.approx(0, abs=1e-6)
    nearly = cosine_matrix([[1, 0], [1, 1e-5]])
    # R̄ = cos(angle/2): 1 - R̄² = sin²(angle/2)
    assert vmf_kappa(nearly, 2) == pytest.approx(1 / np.sin(np.arctan(1e-5) / 2) ** 2, rel=1e-4)


def test_the_medoid_is_the_answer_nearest_to_all():
    X = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0.2], [0, 0, 1]])
    assert medoid(cosine_matrix(X)) == 2
    assert medoid(np.ones((3, 3))) == 0


@given(st.integers(2, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_ranges(N, D, seed):
    K = cosine_matrix(np.random.default_rng(seed).normal(size=(N, D)))
    assert (np.diag(K) == 1).all()
    assert np.abs(K).max() <= 1
    assert 1 / N - 1e-12 <= purity(K) <= 1 + 1e-12
    assert -1e-12 <= purity_unbiased(K) <= 1 + 1e-12
    assert -1e-12 <= mean_cosine_distance(K) <= N / (N - 1) + 1e-12
    assert vmf_kappa(K, D) >= 0
