from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import Ridge

from upheld.effects import StreamingBalancer
from upheld.effects.data import DriftStream


def fitted(stream, **parameters):
    return StreamingBalancer(random_state=0, **parameters).fit(stream.X, stream.y, treatment=stream.w)


def batch_effect(phi, w, y, lam=0.1):
    """Entropy balancing and ridge on all rows, by other solvers: an augmented contrast."""
    mu, means = phi.mean(axis=0), []
    for arm in (0, 1):
        Z, r = phi[w == arm], y[w == arm]
        delta = lam / len(r)

        def dual(beta, Z=Z, delta=delta):
            exponent = (Z - mu) @ beta
            weight = np.exp(exponent - logsumexp(exponent))
            return logsumexp(exponent) + delta / 2 * beta @ beta, weight @ (Z - mu) + delta * beta

        beta = minimize(dual, np.zeros(len(mu)), jac=True, method="BFGS", options={"gtol": 1e-9}).x
        alpha = np.exp((Z - mu) @ beta - logsumexp((Z - mu) @ beta))
        model = Ridge(alpha=lam, solver="cholesky").fit(Z, r)
        means.append(model.predict(mu[None])[0] + alpha @ (r - model.predict(Z)))
    return means[1] - means[0]


def test_before_the_first_compaction_it_is_the_batch_estimator():
    """Anchor 3, on 800 rows."""
    stream = DriftStream(800, 4, "none", seed=5)
    balancer = fitted(stream, n_features=20)
    phi = balancer.feature_map_(balancer.encoding_.transform(as_covariates(stream.X)), np.zeros(800))
    assert balancer.estimate().ate == pytest.approx(batch_effect(phi, stream.w, stream.y), abs=1e-6)


def as_covariates(X):
    from upheld.effects.rows import checked_covariates

    return checked_covariates(X)


@pytest.mark.parametrize("preset", [{}, {"outcomes": "subset", "augment": False, "loss": "quadratic"}])
@pytest.mark.parametrize("n", [700, 4000])
def test_outcomes_in_another_unit(preset, n):
    """y -> 7 - 3 y maps the effect to -3 times it, compression included."""
    stream = DriftStream(n, 5, "none", seed=2)
    one, other = fitted(stream, **preset), fitted(stream, **preset)
    other.fit(stream.X, 7 - 3 * stream.y, treatment=stream.w)
    assert other.estimate().ate == pytest.approx(-3 * one.estimate().ate, abs=1e-7)
    assert other.estimate().se == pytest.approx(3 * one.estimate().se, rel=1e-6)


@given(st.lists(st.floats(0.01, 100), min_size=5, max_size=5), st.floats(-50, 50))
@settings(max_examples=10, deadline=None)
def test_covariates_in_other_units(scales, shift):
    stream = DriftStream(900, 5, "none", seed=3)
    one = fitted(stream, n_features=64).estimate().ate
    other = StreamingBalancer(n_features=64, random_state=0).fit(
        stream.X * scales + shift, stream.y, treatment=stream.w
    )
    assert other.estimate().ate == pytest.approx(one, abs=1e-8)


def test_compression_does_not_see_the_units_either():
    stream = DriftStream(5000, 5, "none", seed=3)
    one = fitted(stream).estimate().ate
    other = StreamingBalancer(random_state=0).fit(stream.X * 4 + 8, stream.y, treatment=stream.w)
    assert other.estimate().ate == pytest.approx(one, abs=1e-8)


def test_swapping_the_arms_negates():
    stream = DriftStream(900, 5, "none", seed=4)
    swapped = StreamingBalancer(random_state=0).fit(stream.X, stream.y, treatment=1 - stream.w)
    assert swapped.estimate().ate == -fitted(stream).estimate().ate


def test_words_and_truth_values_as_arms():
    stream = DriftStream(900, 5, "none", seed=4)
    expected = fitted(stream).estimate().ate
    words = StreamingBalancer(random_state=0).fit(stream.X, stream.y, treatment=np.where(stream.w, "drug", "control"))
    truth = StreamingBalancer(random_state=0).fit(stream.X, stream.y, treatment=stream.w == 1)
    assert words.estimate().ate == truth.estimate().ate == expected
    assert words.estimate().contrasts[0].arm == "drug"


def test_three_arms_against_the_first():
    stream = DriftStream(3000, 5, "none", seed=6)
    w = np.where(np.random.default_rng(0).random(3000) < 0.5, stream.w, 2)
    y = np.where(w == 2, stream.y - stream.w * stream.tau + 3, stream.y)
    estimate = StreamingBalancer(random_state=0, block_size=None).fit(stream.X, y, treatment=w).estimate()
    first, second = estimate.contrasts
    assert (first.arm, second.arm, first.reference) == (1, 2, 0)
    assert abs(first.ate - stream.effect) < 4 * first.se
    assert abs(second.ate - 3) < 4 * second.se
    with pytest.raises(ValueError, match="there are 2 contrasts, not one"):
        _ = estimate.ate


@pytest.mark.parametrize("estimand", ["att", "atc"])
def test_effects_on_the_treated_and_on_the_others(estimand):
    stream = DriftStream(8000, 5, "none", seed=7)
    estimate = fitted(stream, estimand=estimand).estimate()
    truth = stream.tau[stream.w == (estimand == "att")].mean()
    assert abs(estimate.ate - truth) < 4 * estimate.se
    assert abs(truth - stream.effect) > 0.1
    own = 1 if estimand == "att" else 0
    closed = stream.y[:2048][stream.w[:2048] == own].mean()
    assert StreamingBalancer(random_state=0, estimand=estimand).fit(
        stream.X[:2040], stream.y[:2040], treatment=stream.w[:2040]
    ).estimate().mu[own] == pytest.approx(stream.y[:2040][stream.w[:2040] == own].mean())
    assert np.isfinite(closed)


def test_pooled_outcomes_have_the_noise_of_all_rows_and_subsets_that_of_their_own():
    stream = DriftStream(10_000, 5, "none", seed=8)
    pooled, subset = (
        fitted(stream, block_size=None, outcomes=outcomes).estimate() for outcomes in ("pooled", "subset")
    )
    assert min(pooled.ess.values()) > 2000
    assert max(subset.ess.values()) < 1088
    assert subset.se > 2 * pooled.se
    assert pooled.compression_allowance > 0


def test_the_population_has_the_spread_of_the_effect_on_top():
    """In the family whose effect is 1 + x1/2, its variance over rows is 1/4."""
    stream = DriftStream(900, 5, "none", "linear", "linear", seed=9)
    sample, population = (fitted(stream, inference=kind, n_features=0).estimate() for kind in ("sample", "population"))
    assert population.ate == sample.ate
    assert population.se**2 - sample.se**2 == pytest.approx(0.25 / 900, rel=0.4)


def test_lost_overlap_is_refused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    w = (X[:, 0] > 0).astype(int)
    estimate = (
        StreamingBalancer(random_state=0, block_size=None)
        .fit(X + 4 * w[:, None], rng.standard_normal(3000), treatment=w)
        .estimate()
    )
    assert np.isnan(estimate.ate)
    assert estimate.reason == "overlap"


def test_few_rows_of_an_arm_are_refused():
    rng = np.random.default_rng(0)
    w = (np.arange(1000) % 60 == 0).astype(int)  # 17 rows
    estimate = (
        StreamingBalancer(random_state=0)
        .fit(rng.standard_normal((1000, 3)), rng.standard_normal(1000), treatment=w)
        .estimate()
    )
    assert estimate.reason == "overlap"
    assert np.isnan([estimate.ate, estimate.ci_low, estimate.ci_high]).all()


def test_one_arm_alone_is_refused():
    rng = np.random.default_rng(0)
    balancer = StreamingBalancer(random_state=0).fit(
        rng.standard_normal((800, 3)), rng.standard_normal(800), treatment=np.ones(800)
    )
    assert balancer.estimate().reason == "fewer than two arms seen"


def test_an_estimate_is_a_line_of_json():
    stream = DriftStream(900, 5, "none", seed=4)
    line = fitted(stream).estimate().to_json()
    assert "\n" not in line
    assert json.loads(line)["contrasts"][0]["arm"] == 1
    assert len(json.loads(line)["assumptions"]) == 3
    nothing = json.loads(StreamingBalancer().estimate().to_json())
    assert nothing["contrasts"][0]["ate"] is None


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["none", "both"])
def test_intervals_cover(scenario):
    """30 streams, both with blocks; at 95 %, fewer than 25 hits have probability 0.002."""
    hits = 0
    for seed in range(30):
        stream = DriftStream(5000, 6, scenario, seed=1000 + seed)
        estimate = StreamingBalancer(random_state=seed).fit(stream.X, stream.y, treatment=stream.w).estimate()
        hits += estimate.ci_low <= stream.effect <= estimate.ci_high
    assert hits >= 25


@pytest.mark.slow
def test_sequences_cover_at_all_looks_together():
    """A look every 500 rows, 40 streams, at 90 %: fewer than 30 without a miss have probability 0.001."""
    never_missed = 0
    for seed in range(40):
        stream = DriftStream(4000, 5, "none", "linear", "linear", seed=2000 + seed)
        balancer = StreamingBalancer(
            n_features=64,
            block_size=1024,
            ci="sequence",
            alpha=0.1,
            tightest_at=2000,
            random_state=seed,
            inference="population",
        )
        fine = True
        for at in range(0, 4000, 500):
            rows = slice(at, at + 500)
            balancer.partial_fit(stream.X[rows], stream.y[rows], treatment=stream.w[rows])
            look = balancer.estimate()
            fine &= look.ci_low <= 1.0 <= look.ci_high  # the population's effect
        never_missed += fine
    assert never_missed >= 30
