from __future__ import annotations

import numpy as np
import pytest

from upheld.effects import ExactMomentBalancer, StreamingBalancer
from upheld.effects.data import DriftStream
from upheld.effects.estimate import Recipe
from upheld.effects.exact import MomentArm
from upheld.effects.features import draw_features
from upheld.effects.pooling import GcvTerms, ridge


def arm(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + rng.standard_normal(n)
    features = draw_features(X, 20, rng)
    held = MomentArm(features)
    phi = features(X, np.zeros(n))
    for rows in np.array_split(np.arange(n), 4):
        held.add(X[rows], y[rows], np.zeros(len(rows)), np.zeros(len(rows), dtype=int), phi[rows], rng)
    return held.evidence(), phi, y


def test_moments_give_what_explicit_weights_give():
    """Weights 1/n + d'A z, formed row by row."""
    evidence, phi, y = arm()
    mu, lam = phi.mean(axis=0) + 0.02, 0.7
    Z = phi - phi.mean(axis=0)
    alpha = 1 / len(y) + Z @ np.linalg.solve(Z.T @ Z + lam * np.eye(phi.shape[1]), mu - phi.mean(axis=0))
    plain = evidence.mean_at(mu, Recipe("quadratic", "none", lam, False), lam)
    model = ridge(phi, y, np.ones(len(y)), lam)
    assert plain.mean == pytest.approx(alpha @ y, abs=1e-9) == pytest.approx(model(mu), abs=1e-7)
    assert plain.ess == pytest.approx(1 / np.sum(alpha**2))
    assert plain.imbalance == pytest.approx(np.linalg.norm(alpha @ phi - mu))
    augmented = evidence.mean_at(mu, Recipe("quadratic", "none", lam, True), lam)
    assert augmented.mean == pytest.approx(model(mu) + alpha @ (y - model(phi)), abs=1e-7)


def test_gcv_from_moments_is_gcv_from_rows():
    evidence, phi, y = arm()
    rows = GcvTerms.of(phi, y, np.ones(len(y)))
    np.testing.assert_allclose(evidence.gcv_terms().rss, rows.rss, rtol=1e-8)
    np.testing.assert_allclose(evidence.gcv_terms().df, rows.df, rtol=1e-8)


def test_merging_is_one_pass():
    stream = DriftStream(3000, 5, "none", seed=1)
    first = ExactMomentBalancer(64, block_size=None, random_state=0).fit(
        stream.X[:1500], stream.y[:1500], treatment=stream.w[:1500]
    )
    [second] = first.spawn(1)
    second.partial_fit(stream.X[1500:], stream.y[1500:], treatment=stream.w[1500:])
    both = ExactMomentBalancer(64, block_size=None, random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    assert (first | second).estimate().ate == pytest.approx(both.estimate().ate, abs=1e-9)


def test_it_agrees_with_the_coreset_where_that_keeps_all_rows():
    """Both augmented, on 500 rows: different weights of the same regression."""
    stream = DriftStream(500, 5, "none", "linear", "linear", seed=2)
    fitted = [
        kind(n_features=0, random_state=0).fit(stream.X, stream.y, treatment=stream.w).estimate().ate
        for kind in (ExactMomentBalancer, StreamingBalancer)
    ]
    assert fitted[0] == pytest.approx(fitted[1], abs=0.05)
