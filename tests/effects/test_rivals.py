"""Rivals say what their own packages say, on one pass, within the bytes they are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from upheld.effects import StreamingBalancer, rivals
from upheld.effects.data import DriftStream, load_acic
from upheld.effects.feed import Feed
from upheld.effects.reweighted import ReweightedBalancer
from upheld.effects.rivals import answer, thinned
from upheld.effects.rows import checked_covariates

DRIFT = rivals.TUNED["drift"]


def feed_of(stream: Any, on: str = "drift", **described: Any) -> Feed:
    """With the budget of the method as described."""
    balancer = StreamingBalancer.as_described(random_state=0, **described)
    balancer.partial_fit(stream.X, stream.y, treatment=stream.w)
    return Feed.of(
        stream.X, stream.w, stream.y, seed=0, budget=balancer.memory_bytes_, items=min(balancer.n_items_.values()),
        settings=rivals.TUNED[on],
    )  # fmt: skip


@pytest.fixture(scope="module")
def feed():
    return feed_of(DriftStream(3000, 6, "assignment", seed=5))


def test_covariates_are_standardised_on_the_warm_up_alone(feed):
    first = feed.X[:500]
    quartiles = np.quantile(first, [0.25, 0.5, 0.75], axis=0)
    assert_allclose(feed.coordinates, (feed.X - quartiles[1]) / ((quartiles[2] - quartiles[0]) / 1.349), atol=1e-12)


def by_hand(feed, estimator):
    for row, w, y in zip(feed.coordinates, feed.w, feed.y, strict=True):
        estimator.learn_one({f"x{j + 1}": value for j, value in enumerate(row)}, int(w), float(y))
    return estimator


def river_logistic(name):
    from river import linear_model, optim

    rate = DRIFT[name]["ps_rate"]
    return linear_model.LogisticRegression(optim.SGD(rate), l2=DRIFT[name]["ps_l2"], intercept_lr=rate)


@pytest.mark.parametrize(("name", "normalize"), [("online ipw", False), ("online normalised ipw", True)])
def test_ipw_is_its_package_on_the_same_rows(feed, name, normalize):
    from onlinecml.reweighting import OnlineIPW

    clip = DRIFT[name]["clip"]
    model = OnlineIPW(river_logistic(name), clip, 1 - clip, normalize=normalize, warmup=DRIFT[name]["warmup"])
    assert_allclose(answer(name, feed).effect, by_hand(feed, model).predict_ate(), rtol=1e-12)


def test_aipw_is_its_package_and_its_recent_effect_the_package_s_forgetting(feed):
    from onlinecml.reweighting import OnlineAIPW
    from river import linear_model, optim

    settings = {**DRIFT["online aipw"], "warmup": 200}
    rate, clip = settings["rate"], settings["clip"]

    def package(**more):
        outcome = [
            linear_model.LinearRegression(optim.SGD(rate), l2=settings["l2"], intercept_lr=rate) for _ in range(2)
        ]
        return by_hand(
            feed, OnlineAIPW(river_logistic("online aipw"), *outcome, clip_min=clip, clip_max=1 - clip, **more)
        )

    found = rivals.aipw(feed, settings)
    assert_allclose(found.effect, package(warmup=200).predict_ate(), rtol=1e-12)
    assert_allclose(found.pseudo.mean(), found.effect, rtol=1e-9)
    # The package starts from its first value, which 2,800 rows at a half-life of 200 forget.
    forgetting = package(warmup=200, forgetting_factor=2 ** (-1 / 200)).predict_ate()
    assert_allclose(found.recent(200), forgetting, atol=0.02)


@pytest.fixture(scope="module")
def short():
    """600 rows; the first 30 are in one arm, so that nobody is there to be matched with."""
    stream = DriftStream(600, 4, "assignment", seed=4)
    w = stream.w.copy()
    w[:30] = 1
    return Feed.of(stream.X, w, stream.y, seed=0, budget=0, items=0, settings=rivals.TUNED["drift"])


@pytest.mark.parametrize("settings", [{"k": 1, "buffer": 200}, {"k": 3, "buffer": 50}, DRIFT["online matching"]])
def test_matching_is_its_package_on_the_same_rows(short, settings):
    from onlinecml.matching import OnlineMatching

    found = rivals.matching(short, settings)
    package = by_hand(short, OnlineMatching(k=settings["k"], buffer_size=settings["buffer"]))
    assert_allclose(found.effect, package.predict_ate(), rtol=1e-12)
    held = len(package._treated_buffer) + len(package._control_buffer)
    assert found.nbytes == held * 5 * 8  # four covariates and the outcome


def test_matched_differences_are_those_with_the_nearest_of_the_other_arm(short):
    """Row by row in NumPy, over the last 50 rows of each arm."""
    expected = []
    for i in range(30, 600):
        others = np.flatnonzero(short.w[:i] != short.w[i])[-50:]
        if not len(others):
            continue
        distance = np.linalg.norm(short.coordinates[others] - short.coordinates[i], axis=1)
        gap = short.y[i] - short.y[others[np.argsort(distance)[:3]]].mean()
        expected.append(gap if short.w[i] else -gap)
    found = rivals.matching(short, {"k": 3, "buffer": 50})
    assert_allclose(found.pseudo, expected, atol=1e-9)
    assert np.isfinite(found.recent(100))


def test_the_slow_rival_stands_apart_and_is_answered_all_the_same(short):
    assert not rivals.SLOW.keys() & rivals.RIVALS.keys()
    assert not set(rivals.SLOW) & {*rivals.ONLINE, *rivals.MEMORY_MATCHED}
    for name in rivals.SLOW:
        assert np.isfinite(answer(name, short).effect)


def test_only_pseudo_outcomes_have_a_recent_effect(feed):
    with pytest.raises(ValueError, match="no effect of single rows"):
        answer("difference in means", feed).recent(100)


def test_stochastic_gradients_predict_before_they_learn():
    stream = DriftStream(2000, 4, "none", seed=1)
    first = Feed.of(stream.X, stream.w, stream.y, seed=0, budget=0, items=0, settings=DRIFT)
    changed = stream.y.copy()
    changed[-rivals.SGD_BATCH :] += 100
    second = replace(first, y=changed)
    settings = DRIFT["online aipw on features"]
    (before, _), (after, _) = (rivals.kernel_pseudo_outcomes(one, settings) for one in (first, second))
    assert_allclose(after[: -rivals.SGD_BATCH], before[: -rivals.SGD_BATCH])
    assert np.abs(after[-rivals.SGD_BATCH :] - before[-rivals.SGD_BATCH :]).min() > 50  # 100 / p or -100 / (1 - p)


def test_stochastic_gradients_find_the_effect_where_the_difference_in_means_does_not():
    stream = DriftStream(8000, 6, "assignment", seed=77)
    one = Feed.of(stream.X, stream.w, stream.y, seed=0, budget=0, items=0, settings=DRIFT)
    assert abs(answer("online aipw on features", one).effect - stream.effect) < 0.3
    assert abs(answer("difference in means", one).effect - stream.effect) > 0.6


@dataclass
class Transformer:
    """Features of a feed as a kernel of a balancer."""

    feed: Feed

    def transform(self, X):
        return self.feed.features(X, np.zeros(len(X)))


def test_whole_blocks_are_what_a_coreset_too_large_to_compress_says():
    stream = DriftStream(5000, 6, "both", seed=3)
    feed = feed_of(stream)
    kept = StreamingBalancer(
        coreset_size=4096, kernel=Transformer(feed), inference="sample", random_state=0
    ).partial_fit(stream.X, stream.y, treatment=stream.w)
    assert len(kept.blocks_) == 2
    assert_allclose(answer("window, whole blocks", feed).effect, kept.estimate().ate, atol=1e-6)


def test_few_rows_are_not_thinned():
    assert_allclose(thinned(np.zeros((50, 2)), 60, 1.0, 0), np.arange(50))


def test_thinning_without_its_package_says_what_to_install(feed, absent):
    absent("goodpoints")
    with pytest.raises(ImportError, match=r'goodpoints cannot be imported .* pip install "upheld\[effects-thinning\]"'):
        answer("compress++, whole blocks", feed)


def test_thinned_rows_stand_for_all_better_than_rows_drawn_at_random():
    pytest.importorskip("goodpoints.compress")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1100, 3))
    kept = thinned(X, 300, 2.0, seed=1)
    assert 150 <= len(kept) <= 300
    assert len(set(kept.tolist())) == len(kept)

    def distance(rows):
        kernel = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 8)
        weight = np.full(len(X), -1 / len(X))
        weight[rows] += 1 / len(rows)
        return float(weight @ kernel @ weight)

    assert distance(kept) < 0.2 * np.mean([distance(rng.choice(1100, len(kept), replace=False)) for _ in range(5)])


def test_thinned_blocks_find_the_effect():
    pytest.importorskip("goodpoints.compress")
    stream = DriftStream(5000, 6, "assignment", seed=3)
    feed = feed_of(stream)
    assert abs(answer("compress++, whole blocks", feed).effect - stream.effect) < 0.25
    assert answer("compress++, whole blocks", feed).nbytes == answer("window, whole blocks", feed).nbytes


def test_windows_end_when_they_are_long_enough_and_have_both_arms():
    w = np.array([0, 0, 0, 0, 1, 1, 0, 1])
    assert rivals.window_end(w, 0, size=3, least_arm=0) == 3
    assert rivals.window_end(w, 0, size=3, least_arm=1) == 5
    assert rivals.window_end(w, 5, size=3, least_arm=2) == 8
    assert rivals.window_end(w, 5, size=9, least_arm=0) == 8


def test_nobody_holds_more_than_the_method_and_who_stores_uses_what_it_may(feed):
    answers = {name: answer(name, feed) for name in rivals.MEMORY_MATCHED}
    assert max(one.nbytes for one in answers.values()) <= feed.budget
    for name in ("reservoir", "window", "exact moments, equal memory"):
        assert answers[name].nbytes > 0.85 * feed.budget
    assert answer("exact moments, equal features", feed).nbytes > feed.budget


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:constant in the first")
def test_the_same_holds_with_seventy_nine_columns():
    data = load_acic(10).ordered("random", 1)
    feed = feed_of(data, "acic")
    for name in ("reservoir", "small reservoir", "window", "window, whole blocks", "exact moments, equal memory"):
        found = answer(name, feed)
        assert found.nbytes <= feed.budget
        assert abs(found.effect - data.effect) < 1.5  # the difference in means is off by more


def test_reweighting_leaves_the_balancer_s_own_estimate_alone(feed):
    own, other = (
        kind(random_state=1).partial_fit(feed.X, feed.y, treatment=feed.w)
        for kind in (StreamingBalancer, ReweightedBalancer)
    )
    assert own.estimate().ate == other.estimate().ate


def test_x_alone_is_balancing_without_random_features():
    """Before the first compaction, where both hold every row."""
    stream = DriftStream(700, 5, "none", seed=2)
    both = ReweightedBalancer.as_described(coreset_size=2048, random_state=0)
    both.partial_fit(stream.X, stream.y, treatment=stream.w)
    alone = StreamingBalancer.as_described(coreset_size=2048, n_features=0, random_state=0)
    alone.partial_fit(stream.X, stream.y, treatment=stream.w)
    assert_allclose(both.reweighted()["x alone"], alone.estimate().ate, atol=1e-7)


def test_logistic_weights_are_inverse_propensity_weights_of_the_items():
    from sklearn.linear_model import LogisticRegression

    stream = DriftStream(700, 5, "none", seed=2)
    balancer = ReweightedBalancer.as_described(coreset_size=2048, random_state=0)
    balancer.partial_fit(stream.X, stream.y, treatment=stream.w)
    X = balancer.encoding_.transform(checked_covariates(stream.X))
    p = np.clip(LogisticRegression(max_iter=2000).fit(X, stream.w).predict_proba(X)[:, 1], 0.01, 0.99)
    means = [np.average(stream.y[stream.w == arm], weights=1 / q[stream.w == arm]) for arm, q in ((0, 1 - p), (1, p))]
    assert_allclose(balancer.reweighted()["logistic"], means[1] - means[0], atol=1e-4)


def test_quick_copies_hold_the_same_numbers_and_leave_the_package_as_it_was():
    import copy

    from river import stats

    spread = stats.Var()
    for value in (1.0, 2.0, 5.0):
        spread.update(value)
    with rivals.quick_copies():
        twin = copy.deepcopy(spread)
    twin.update(11.0)
    assert (spread.n, spread.mean.get(), spread.get()) == (3.0, pytest.approx(8 / 3), pytest.approx(13 / 3))
    assert (twin.n, twin.mean.get()) == (4.0, pytest.approx(19 / 4))
    assert "__deepcopy__" not in vars(stats.Var)
    assert "__deepcopy__" not in vars(stats.Mean)
