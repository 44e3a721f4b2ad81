"""Confounders that nobody measured: E-values and marginal sensitivity bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from upheld.effects import ExactMomentBalancer, ReservoirBalancer, StreamingBalancer
from upheld.effects.data import DriftStream
from upheld.effects.sensitivity import FACTORS, Sensitivity, e_value, extreme_means


def test_e_value_of_published_examples():
    """VanderWeele & Ding 2017: a risk ratio of 3.9 has E-value 7.26, one of 0.80 that of 1.25, 1.81."""
    for ratio, published in ((3.9, 7.26), (1 / 0.80, 1.81)):
        assert e_value(np.log(ratio) / 0.91, 1.0) == pytest.approx(published, abs=0.005)
    assert e_value(-2.0, 4.0) == e_value(2.0, 4.0) == e_value(0.5, 1.0)
    assert e_value(0.0, 1.0) == 1.0
    assert np.isnan(e_value(1.0, 0.0))
    assert np.isnan(e_value(np.nan, 1.0))


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.05, 1)), min_size=1, max_size=12), st.floats(1, 6))
def test_extreme_means_are_those_of_linear_programming(rows, factor):
    """Charnes & Cooper: with p = w l / sum w l and s = 1 / sum w l, the mean is linear in (p, s)."""
    values, weights = map(np.array, zip(*rows, strict=True))
    n = len(values)
    sides = np.concatenate(
        [np.column_stack([np.eye(n), -factor * weights]), np.column_stack([-np.eye(n), weights / factor])]
    )
    ones = np.append(np.ones(n), 0)[None]
    found = [
        sign
        * linprog(sign * np.append(values, 0), sides, np.zeros(2 * n), ones, [1.0], bounds=[(0, None)] * (n + 1)).fun
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(extreme_means(values, weights, factor), found, atol=1e-6)


def balanced(stream: DriftStream, **parameters) -> Sensitivity:
    [one] = StreamingBalancer(random_state=0, **parameters).fit(stream.X, stream.y, treatment=stream.w).sensitivity()
    return one


def test_bounds_begin_at_the_effect_and_widen():
    stream = DriftStream(5000, 5, "none", seed=4)
    balancer = StreamingBalancer(random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    [one] = balancer.sensitivity()
    assert one.low[0] == pytest.approx(one.high[0]) == pytest.approx(balancer.estimate().ate, abs=1e-9)
    assert (np.diff(one.low) < 0).all()
    assert (np.diff(one.high) > 0).all()
    assert 1 < one.e_value_interval < one.e_value


def test_bounds_from_pooled_items_are_near_those_from_all_rows():
    stream = DriftStream(6000, 5, "none", seed=2)
    few, all_rows = balanced(stream, block_size=None), balanced(stream, block_size=None, coreset_size=4096)
    width_few, width_all = np.subtract(few.high, few.low)[1:], np.subtract(all_rows.high, all_rows.low)[1:]
    np.testing.assert_allclose(width_few / width_all, 1.0, atol=0.2)


def test_a_hidden_confounder_within_the_bound_is_bounded():
    """Treatment odds differ by 2 with the sign of the outcome's hidden cause: weights are off by less than 2."""
    rng = np.random.default_rng(5)
    n = 8000
    x, hidden = rng.standard_normal((n, 4)), rng.random(n) < 0.5
    logit = 0.5 * x[:, 0] + np.log(2) * (hidden - 0.5)
    w = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    y = x[:, 0] + 2 * hidden + 1.0 * w + rng.standard_normal(n)
    balancer = StreamingBalancer(random_state=0).fit(x, y, treatment=w)
    [one] = balancer.sensitivity()
    estimate = balancer.estimate()
    at = FACTORS.index(2.0)
    assert estimate.ci_low > 1.0  # what is not measured biases
    assert one.low[at] < 1.0 < one.high[at]


def test_the_treated_own_mean_needs_no_bound():
    stream = DriftStream(4000, 5, "none", seed=4)
    effect, treated = balanced(stream), balanced(stream, estimand="att")
    assert treated.tipping > effect.tipping > 1


def test_the_tipping_point_lies_where_a_bound_passes_zero():
    low = (1.0, 0.5, -0.5, -1.0, -2.0, -3.0, -4.0)
    one = Sensitivity(1, 0, 2.0, 1.5, low, tuple(2 - value for value in low))
    assert one.tipping == pytest.approx(np.sqrt(1.1 * 1.25))
    mirrored = Sensitivity(1, 0, 2.0, 1.5, tuple(-value for value in one.high), tuple(-value for value in low))
    assert mirrored.tipping == pytest.approx(one.tipping)
    never = Sensitivity(1, 0, 2.0, 1.5, (1.0,) * 7, (2.0,) * 7)
    assert never.tipping == np.inf


def test_they_survive_sketches_and_merging(stream, feed):
    first = feed(StreamingBalancer(random_state=0), stream, 0, 3000)
    [second] = first.spawn(1)
    feed(second, stream, 3000, 6000)
    assert StreamingBalancer.from_bytes(first.to_bytes()).sensitivity() == first.sensitivity()
    [one], [other] = (first | second).sensitivity(), feed(first, stream, 3000, 6000).sensitivity()
    np.testing.assert_allclose(one.low, other.low, atol=0.25)
    assert one.e_value == pytest.approx(other.e_value, rel=0.1)


def test_without_rows_or_without_an_effect_there_is_none(stream, feed):
    [moments] = feed(ExactMomentBalancer(random_state=0), stream).sensitivity()
    assert moments.e_value > 1
    assert np.isnan(moments.tipping)
    assert np.isnan(moments.low).all()
    [sample] = feed(ReservoirBalancer(random_state=0), stream).sensitivity()
    assert sample.tipping > 1
    with pytest.raises(ValueError, match="the first 500 rows are not complete \\(100 so far\\)"):
        feed(StreamingBalancer(random_state=0), stream, 0, 100).sensitivity()
    lonely = StreamingBalancer(random_state=0).fit(stream.X, stream.y, treatment=np.zeros(6000))
    [none] = lonely.sensitivity()
    assert np.isnan([none.e_value, none.e_value_interval, none.tipping]).all()
    free = StreamingBalancer(random_state=0, loss="quadratic", constraints="none")
    [negative] = feed(free, stream).sensitivity()
    assert np.isnan(negative.low).all()
