from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from upheld.hubs.covariance import COVARIANCES, FACTORS, covariance_function, thresholded_correlation


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6)) * [1, 2, 3, 4, 5, 6] + 10


def test_correlation_and_covariance_match_numpy(X):
    np.testing.assert_allclose(COVARIANCES["correlation"](X), np.corrcoef(X.T))
    np.testing.assert_allclose(COVARIANCES["covariance"](X), np.cov(X.T))


@pytest.mark.parametrize("kind", FACTORS)
def test_factors_reproduce_their_matrix(X, kind):
    Z = FACTORS[kind](X)
    np.testing.assert_allclose(Z.T @ Z, COVARIANCES[kind](X))


def test_threshold_zeroes_seven_tenths_of_the_off_diagonal_and_keeps_the_rest(X):
    R, T = np.corrcoef(X.T), thresholded_correlation(X)
    off = np.triu_indices(6, 1)
    assert np.sum(T[off] == 0) == 10  # 0.7 of 15 pairs lies between the 10th and the 11th
    kept = T != 0
    np.testing.assert_allclose(T[kept], R[kept])
    assert np.abs(R[off][T[off] == 0]).max() < np.abs(T[off][T[off] != 0]).min()


def test_spearman_is_the_latent_correlation_of_monotone_transforms():
    """At large n, 2 sin(pi rho / 6) recovers the correlation of the normals behind exp and cube transforms."""
    rng = np.random.default_rng(1)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 50_000)
    X = np.c_[np.exp(z[:, 0]), z[:, 1] ** 3]
    S = COVARIANCES["spearman"](X)
    assert S[0, 1] == pytest.approx(0.6, abs=0.01)
    np.testing.assert_allclose(S[0, 1], 2 * np.sin(np.pi / 6 * spearmanr(X).statistic))
    np.testing.assert_allclose(np.diag(S), 1)


def test_spearman_does_not_change_under_monotone_maps(X):
    np.testing.assert_allclose(COVARIANCES["spearman"](X), COVARIANCES["spearman"](norm.cdf(X / 50)))


def test_ledoit_wolf_lies_between_the_correlation_and_the_identity(X):
    R, S = np.corrcoef(X.T), COVARIANCES["ledoit-wolf"](X)
    off = ~np.eye(6, dtype=bool)
    share = S[off] / R[off]
    assert 0 < share.min() < 1
    np.testing.assert_allclose(share, share[0])
    np.testing.assert_allclose(np.diag(S), 1)
    np.testing.assert_allclose(COVARIANCES["ledoit-wolf"](X * 100), S)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'correlation', 'covariance', .* got 'kendall'"):
        covariance_function("kendall")
