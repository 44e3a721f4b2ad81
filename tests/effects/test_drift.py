from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from upheld.effects.drift import Cusum, profile, shift_p_values
from upheld.effects.features import draw_features

FEATURES = draw_features(np.random.default_rng(7).standard_normal((100, 3)), 64, np.random.default_rng(8))


def block(rng, n=1500, shift=0.0, propensity_slope=0.0):
    X = rng.standard_normal((n, 3)) + shift
    w = rng.random(n) < 1 / (1 + np.exp(-propensity_slope * X[:, 0]))
    phi = FEATURES(X, np.zeros(n))
    parts = {0: phi[~w], 1: phi[w]}
    return profile(
        {arm: part.T @ part / len(part) for arm, part in parts.items()},
        {arm: (len(part), part.sum(axis=0)) for arm, part in parts.items()},
    )


def test_without_a_shift_p_values_are_uniform():
    rng = np.random.default_rng(0)
    p_values = [shift_p_values(block(rng, propensity_slope=1), block(rng, propensity_slope=1)) for _ in range(250)]
    covariates, joint = zip(*p_values, strict=True)
    assert kstest(covariates, "uniform").pvalue > 1e-3
    assert kstest(joint, "uniform").pvalue > 1e-3


def test_moved_covariates_are_seen_by_both_tests():
    rng = np.random.default_rng(1)
    assert max(shift_p_values(block(rng), block(rng, shift=0.3))) < 1e-6


def test_a_moved_policy_is_seen_by_the_joint_test_alone():
    rng = np.random.default_rng(2)
    covariates, joint = shift_p_values(block(rng), block(rng, propensity_slope=1.0))
    assert covariates > 0.001
    assert joint < 1e-6


def test_an_arm_that_disappears_is_a_shift():
    rng = np.random.default_rng(3)
    now = block(rng)
    gone = profile({0: np.eye(len(now.mean))}, {0: (1000, 1000 * now.mean)})
    assert shift_p_values(now, gone)[1] < 1e-6


def test_cusum_is_quiet_under_a_constant_effect_and_loud_after_a_move():
    rng = np.random.default_rng(4)
    false_alarms = 0
    for _ in range(100):
        watch = Cusum()
        false_alarms += any(watch.step(1 + 0.1 * rng.standard_normal(), 0.01, 1000) for _ in range(50))
    assert false_alarms <= 20
    watch = Cusum()
    assert not any(watch.step(1 + 0.1 * rng.standard_normal(), 0.01, 1000) for _ in range(20))
    assert any(watch.step(1.4 + 0.1 * rng.standard_normal(), 0.01, 1000) for _ in range(5))
