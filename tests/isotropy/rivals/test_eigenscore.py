"""EigenScore: against lm-polygraph, the determinant, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.isotropy.rivals.eigenscore import eigenscore

X = np.array(
    [
        [2.04, -2.56, 0.42, -0.57, -0.45, -0.22],
        [-2.02, -0.23, -0.87, 3.32, 0.23, -0.35],
        [-0.28, -0.67, -1.06, -0.39, 0.48, -0.24],
        [0.96, -0.2, 0.02, 1.55, 0.55, -0.51],
    ]
)


def test_equals_lm_polygraph():
    # lm-polygraph 0.7.0, EigenScore() on the unit rows of X
    assert eigenscore(X) == pytest.approx(-0.5145962915067548, abs=1e-10)


def test_is_the_log_determinant_of_the_published_form():
    E = X / np.linalg.norm(X, axis=1, keepdims=True)
    mu = E.mean(axis=1)
    sigma = E @ E.T - 6 * np.outer(mu, mu)
    assert eigenscore(X) == pytest.approx(np.linalg.slogdet(sigma + 1e-3 * np.eye(4))[1] / 4)


def test_centred_orthogonal_vectors_reach_the_top_and_equal_ones_fall_far_below():
    # Rows of a 4 x 4 Hadamard matrix without the constant one: mean 0, orthogonal.
    H = np.array([[1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    assert eigenscore(H) == pytest.approx(np.log(1.001))
    assert eigenscore(H[[0, 0, 0]]) == pytest.approx((np.log(3.001) + 2 * np.log(0.001)) / 3)


def test_length_and_order_do_not_matter():
    assert eigenscore(X[[2, 0, 3, 1]] * [[3], [1], [0.5], [7]]) == pytest.approx(eigenscore(X))


def test_a_zero_vector_is_named():
    with pytest.raises(ValueError, match=r"1"):
        eigenscore([[1.0, 2.0], [0.0, 0.0]])
