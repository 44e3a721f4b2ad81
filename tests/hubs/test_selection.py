import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from upheld.hubs.selection import (
    above_two_sd,
    common_score,
    degrees,
    intersection,
    partial_correlations,
    strengths,
    z_scores,
)

rows = arrays(
    float, st.tuples(st.integers(1, 4), st.integers(3, 30)), elements=st.floats(-1e3, 1e3).map(lambda x: round(x, 3))
)


def star(p, hub, weight):
    Theta = np.eye(p)
    Theta[hub, :] = Theta[:, hub] = weight
    Theta[hub, hub] = 1.0
    return Theta


def test_partial_correlation_is_that_of_the_residuals():
    """Definition: correlation of the residuals of two variables after regression on all others."""
    X = np.random.default_rng(0).standard_normal((50, 4)) @ np.random.default_rng(1).standard_normal((4, 4))
    X -= X.mean(axis=0)
    others = X[:, 2:]
    residuals = X[:, :2] - others @ np.linalg.lstsq(others, X[:, :2], rcond=None)[0]
    expected = np.corrcoef(residuals, rowvar=False)[0, 1]
    assert partial_correlations(np.linalg.inv(X.T @ X))[0, 1] == pytest.approx(expected)


def test_star_degrees_and_strengths():
    Thetas = np.stack([star(10, 3, 0.2), star(10, 3, 0.1)])
    assert degrees(Thetas)[:, 3].tolist() == [9, 9]
    assert degrees(Thetas)[:, 0].tolist() == [1, 1]
    assert strengths(Thetas)[:, 3] == pytest.approx([1.8, 0.9])
    assert intersection(degrees(Thetas)).nonzero()[0].tolist() == [3]
    assert common_score(strengths(Thetas)).argmax() == 3


def test_a_hub_of_one_group_only_is_not_common():
    Thetas = np.stack([star(20, 3, 0.1), star(20, 7, 0.1)])
    assert not intersection(degrees(Thetas)).any()
    assert not above_two_sd(common_score(strengths(Thetas)))[[3, 7]].any()


def test_empty_network_selects_and_ranks_nobody():
    Thetas = np.stack([np.eye(12)] * 3)
    assert not intersection(degrees(Thetas)).any()
    assert np.array_equal(common_score(strengths(Thetas)), np.zeros(12))


def test_rounding_noise_selects_nobody():
    values = np.full(50, 0.1)
    values[7] += 1e-15
    assert not above_two_sd(values).any()


def test_sd_divides_by_p_minus_one():
    # 1 among p-1 zeros: (1 - 1/p) / sqrt(1/p) with divisor p-1; p = 6 gives 2.0412, p = 5 gives 1.7889.
    assert above_two_sd([0, 0, 0, 0, 0, 1.0]).tolist() == [False] * 5 + [True]
    assert not above_two_sd([0, 0, 0, 0, 1.0]).any()
    assert z_scores([0, 0, 0, 0, 0, 1.0])[0, 5] == pytest.approx(2.0412, abs=1e-4)


@settings(deadline=None)
@given(rows)
def test_never_more_than_a_fifth_of_a_row(values):
    assert (above_two_sd(values).sum(axis=1) <= values.shape[1] / 5).all()


@settings(deadline=None)
@given(rows, st.floats(0.5, 20), st.floats(-50, 50))
def test_scale_and_shift_of_a_row_do_not_matter(values, scale, shift):
    np.testing.assert_allclose(z_scores(values * scale + shift), z_scores(values), atol=1e-4)


@settings(deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_variables_may_come_in_any_order(values, random):
    order = list(range(values.shape[1]))
    random.shuffle(order)
    np.testing.assert_allclose(common_score(values[:, order]), common_score(values)[order], atol=1e-9)
