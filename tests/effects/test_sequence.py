from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from upheld.effects.sequence import fixed_factor, sequence_factor


def ever_missed(factor, start=50, n=20_000, runs=400, alpha=0.1, seed=0):
    """How many runs' intervals for a mean of exponential variables miss it at any time from `start` on."""
    rng = np.random.default_rng(seed)
    t = np.arange(1, n + 1)
    width = np.array([factor(one, alpha) for one in t[::10]])
    missed = 0
    for _ in range(runs):
        x = rng.exponential(size=n)
        mean = np.cumsum(x) / t
        se = np.sqrt(np.maximum(np.cumsum(x**2) / t - mean**2, 0) / t)
        looks = slice(start // 10, None)
        missed += bool(np.any(np.abs(mean - 1)[::10][looks] > (width * se[::10])[looks]))
    return missed


def test_looking_all_the_time_keeps_the_level():
    assert binom.sf(ever_missed(lambda t, a: sequence_factor(t, a, 1000)) - 1, 400, 0.1) > 1e-3


def test_the_usual_interval_does_not():
    assert ever_missed(lambda t, a: norm.ppf(1 - a / 2)) > 200


def test_it_is_nearly_tightest_where_it_should_be():
    """Relative to 1/sqrt(t), the boundary at n* is within a fraction of a percent of its best over the tuning parameter."""
    at = sequence_factor(10_000, 0.05, 10_000)
    assert at == pytest.approx(min(sequence_factor(10_000, 0.05, other) for other in np.logspace(3, 5, 50)), rel=5e-3)


def test_one_look_is_the_normal_quantile():
    assert fixed_factor(0.05) == pytest.approx(1.959964, abs=1e-6)
    assert sequence_factor(0, 0.05) == np.inf
