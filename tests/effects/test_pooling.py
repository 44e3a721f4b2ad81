from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from upheld.effects.pooling import GRID, GcvTerms, fit_pooling_model, least_gcv, ridge


def weighted_problem(n, D, seed=0):
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((n, D))
    return phi, phi[:, 0] + rng.standard_normal(n), rng.integers(1, 5, n).astype(float)


@pytest.mark.parametrize(("n", "D"), [(60, 8), (8, 60)])
def test_ridge_is_scikit_learns(n, D):
    phi, y, m = weighted_problem(n, D)
    peer = Ridge(alpha=0.7, solver="cholesky", tol=1e-12).fit(phi, y, sample_weight=m)
    model = ridge(phi, y, m, 0.7)
    np.testing.assert_allclose(model.coef, peer.coef_, atol=1e-7)
    assert model.intercept == pytest.approx(peer.intercept_, abs=1e-7)
    assert model.spread == pytest.approx(np.sqrt(np.average((y - peer.predict(phi)) ** 2, weights=m)), rel=1e-5)


def test_multiplicities_are_copies():
    phi, y, m = weighted_problem(30, 5)
    copies = np.repeat(np.arange(30), m.astype(int))
    np.testing.assert_allclose(
        ridge(phi, y, m, 0.3).coef, ridge(phi[copies], y[copies], np.ones(len(copies)), 0.3).coef, atol=1e-8
    )


def test_gcv_is_that_of_the_hat_matrix():
    phi, y, m = weighted_problem(40, 6)
    terms = GcvTerms.of(phi, y, m)
    for lam, rss, df in zip(GRID, terms.rss, terms.df, strict=True):
        hat = np.column_stack(
            [Ridge(alpha=lam, solver="svd").fit(phi, unit, sample_weight=m).predict(phi) for unit in np.eye(40)]
        )
        assert df == pytest.approx(np.trace(hat), rel=1e-6)
        assert rss == pytest.approx(m @ (y - hat @ y) ** 2, rel=1e-6)
    score = terms.rss / (40 - terms.df) ** 2
    assert least_gcv([terms]) == GRID[np.argmin(score)]


def test_gcv_shrinks_noise_and_lets_signals_be():
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((300, 20))
    noise = GcvTerms.of(phi, rng.standard_normal(300), np.ones(300))
    signal = GcvTerms.of(phi, 5 * phi.sum(axis=1) + rng.standard_normal(300), np.ones(300))
    assert least_gcv([noise]) >= 100
    assert least_gcv([signal]) <= 1


def test_the_pooling_model_follows_a_drift_in_time():
    """Outcomes 2u + (2u - 1) x: a regression without time leaves all of it, this one nothing."""
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((2000, 2)), np.arange(2000.0)
    u = t / 2000
    y = 2 * u + (2 * u - 1) * X[:, 0]
    model = fit_pooling_model(X, X, 50 + 7 * t, y, np.ones(2000), 0.3)
    assert np.std(y - model(X, X, 50 + 7 * t)) < 0.01
    assert np.std(y - ridge(X, y, np.ones(2000), 0.3)(X)) > 0.5


def test_rows_of_one_time_have_no_drift_to_follow():
    phi, y, m = weighted_problem(50, 4)
    model = fit_pooling_model(phi, phi, np.full(50, 3.0), y, m, 0.3)
    np.testing.assert_allclose(model(phi, phi, np.full(50, 3.0)), ridge(phi, y, m, 0.3)(phi), atol=1e-6)
