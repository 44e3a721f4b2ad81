"""Multipliers under drift: the regret against moving optima is below its bound, and a lagging average's is not as small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.lagrangian import SGAMultipliers, TrackingMultipliers, bounds, data
from upheld.lagrangian.families import HardFamily


def played(learner, costs: np.ndarray) -> tuple[float, float]:
    """Loss of the points played to the instances' own optima (pi* = c, u* = sum c / 2), and the path of these."""
    past = [HardFamily(c) for c in costs]
    loss = 0.0
    learner.partial_fit(past[0])
    for P in past[1:]:
        loss += float(P.c.sum() / 2 - P.oracle(learner.predict(P)).u)
        learner.partial_fit(P)
    return loss, float(np.linalg.norm(np.diff(costs, axis=0), axis=1).sum())


def test_one_step_by_hand():
    """s = 1, T = 1: D = 1, L = 2, steps 2^-9 .. 2^0 (ceil(log2(3) / 2) = 1, K = 9), prior 11/10 / ((k + 1)(k + 2)); g = 1/2 at 0."""
    learner = TrackingMultipliers(pi_max=1.0, horizon=1, length="theory", init="zero").fit([HardFamily([0.75])])
    prior = [11 / 10 / n for n in (2, 6, 12, 20, 30, 42, 56, 72, 90, 110)]
    np.testing.assert_allclose(learner.weights_, prior)
    assert learner.multipliers_[0] == pytest.approx(sum(w * 2.0**k / 512 / 2 for k, w in enumerate(prior)))
    # 3/2 * 2 * 1 + 2 sqrt(1/2) (1 + ln 110)
    assert learner.bound_ == pytest.approx(3 + np.sqrt(2) * (1 + np.log(110)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.sampled_from([0.0, 0.01, 0.3]))
def test_the_bound_holds_whatever_comes(seed, s, jump):
    rng, T = np.random.default_rng(seed), 60
    costs = np.clip(rng.uniform(0.2, 0.8, s) + np.cumsum(jump * rng.standard_normal((T, s)), axis=0), 0.05, 0.95)
    learner = TrackingMultipliers(pi_max=1.0, horizon=T, length="theory", init="zero")
    loss, path = played(learner, costs)
    assert loss <= learner.regret_bound(path)


@pytest.mark.parametrize(("length", "share"), [("seen", 0.5), ("theory", 1.0)])
def test_it_follows_where_the_average_lags(length, share):
    costs = np.linspace([0.1, 0.9], [0.9, 0.1], 500)
    tracked, _ = played(TrackingMultipliers(pi_max=1.0, horizon=500, length=length, init="zero"), costs)
    average, _ = played(
        SGAMultipliers(pi_max=1.0, init="zero", step="theory", average="uniform", horizon=500, B=1.0), costs
    )
    assert tracked < share * average


def test_where_nothing_moves_it_settles():
    rng = np.random.default_rng(0)
    past = [HardFamily(rng.choice([0.25, 0.75], 8, p=[0.2, 0.8])) for _ in range(2000)]
    pi = TrackingMultipliers(pi_max=1.0).fit(past).multipliers_
    assert np.abs(pi - 0.75).max() < 0.15


def test_a_drifting_power_system():
    """Demand falls by half in 150 days: day by day the tracked prices lose less than the averaged ones."""
    days = data.unit_commitment_days(150, np.random.default_rng(0), drift=-0.004)
    lp = [day.milp().lp_relaxation()[0] for day in days[-5:]]
    tracked, average = TrackingMultipliers(pi_max=60.0), SGAMultipliers(pi_max=60.0)
    for learner in (tracked, average):
        learner.fit(days[:-5])
    ahead = [learner.score(days[-5:]) / np.mean(lp) for learner in (tracked, average)]
    assert ahead[0] > ahead[1]


def test_fit_is_a_stream_with_its_horizon():
    past = [HardFamily(c) for c in np.random.default_rng(1).uniform(0.2, 0.8, (30, 3))]
    one = TrackingMultipliers(pi_max=1.0).fit(past)
    other = TrackingMultipliers(pi_max=1.0, horizon=30)
    for P in past:
        other.partial_fit(P)
    np.testing.assert_array_equal(one.multipliers_, other.multipliers_)
    assert one.n_seen_ == 30
    assert np.isnan(one.bound_)  # the longest gradient was not known beforehand
    assert bounds.experts(30) == one.weights_.size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a stream must say how many instances will come; give horizon, or fit a list"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"length": "short"}, 'length must be "seen" or "theory", got \'short\''),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        TrackingMultipliers(pi_max=1.0, **options).partial_fit(HardFamily([0.5]))
