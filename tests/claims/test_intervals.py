"""Anchors from scipy, statsmodels, tables and a bootstrap; properties; bad input; error rates by simulation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.multitest import multipletests

from upheld.claims import functionals as fn
from upheld.claims import intervals as iv

DIFFERENCE = fn.contrast([1, -1])
MEAN = fn.contrast([1])
LOG_RATIO = fn.log_contrast([1, -1])
SLOPE = fn.slope_weights(np.log([100, 200, 400, 800]))


def lognormal(n: int, cells: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(size=(n, cells))


# --- anchors ---


def test_many_units_give_student_s_interval():
    x = np.random.default_rng(0).normal(3, 2, size=5000)
    low, high = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    found = iv.smooth_interval(x, MEAN)
    assert found.estimate == pytest.approx(x.mean())
    assert found.low == pytest.approx(low, abs=0.02 * (high - low))
    assert found.high == pytest.approx(high, abs=0.02 * (high - low))


@pytest.mark.parametrize(("estimand", "cells"), [(MEAN, 1), (LOG_RATIO, 2), (fn.log_contrast(SLOPE), 4)])
def test_ends_are_never_nearer_than_student_s(estimand, cells):
    for seed in range(50):
        y = lognormal(6, cells, seed)
        m = y.mean(0)
        influence = (y - m) @ estimand.gradient(m)
        reach = stats.t.isf(0.01, 5) * influence.std(ddof=1) / np.sqrt(6)
        found = iv.smooth_interval(y, estimand, 0.01, 0.01)
        assert found.estimate - found.low >= reach * (1 - 1e-12)
        assert found.high - found.estimate >= reach * (1 - 1e-12)


@pytest.mark.parametrize(
    ("estimand", "cells"), [(MEAN, 1), (fn.ratio(fn.contrast([1, 0]), fn.contrast([0, 1])), 2)], ids=["mean", "ratio"]
)
def test_the_far_end_agrees_with_the_bootstrap_t(estimand, cells):
    # gamma noise at n = 150: both are right to second order, Student's t only to first
    n, draws = 150, 20_000
    rng = np.random.default_rng(5)
    y = rng.gamma(0.7, size=(n, cells))
    m = y.mean(0)
    se = ((y - m) @ estimand.gradient(m)).std() / np.sqrt(n - 1)
    t = np.empty(draws)
    for b in range(draws):
        z = y[rng.integers(n, size=n)]
        mz = z.mean(0)
        se_z = ((z - mz) @ estimand.gradient(mz)).std() / np.sqrt(n - 1)
        t[b] = (estimand.value(mz) - estimand.value(m)) / se_z
    bootstrap = -np.quantile(t, 0.025)
    student = stats.t.isf(0.025, n - 1)
    ours = (iv.smooth_interval(y, estimand).high - float(estimand.value(m))) / se
    assert bootstrap > 1.08 * student
    assert ours == pytest.approx(bootstrap, abs=0.35 * (bootstrap - student))


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 5), (5, 5), (17, 40)])
def test_shares_are_clopper_and_pearson_s(k, n):
    exact = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    found = iv.share_interval(np.arange(n) < k)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert found.p_above(0.3) == pytest.approx(stats.binomtest(k, n, 0.3, alternative="greater").pvalue)
    assert found.p_below(0.3) == pytest.approx(stats.binomtest(k, n, 0.3, alternative="less").pvalue)


@pytest.mark.parametrize(("n", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (30, 10, 21), (50, 18, 33)])
def test_ranks_of_the_median_are_those_of_the_sign_test_s_table(n, low, high):
    # two-sided 5 % critical values of the sign test: 0, 1, 5, 9, 17
    found = iv.quantile_interval(np.arange(1.0, n + 1), 0.5)
    assert (found.low, found.high) == (low, high)


def test_upper_end_of_q99_needs_368_units():
    assert iv.quantile_interval(np.arange(367.0), 0.99).high == np.inf
    assert iv.quantile_interval(np.arange(368.0), 0.99).high == 367
    assert np.isfinite(iv.quantile_interval(np.arange(100.0), 0.99).low)


def test_holm_is_statsmodels():
    rng = np.random.default_rng(0)
    for m in (1, 2, 5, 9):
        p = rng.random(m) ** 3
        assert iv.holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_crossed_units_with_idle_columns_are_the_rows_alone():
    rows = np.random.default_rng(0).normal(size=7)
    y = np.repeat(rows[:, None], 30, axis=1)[..., None]
    crossed, plain = iv.crossed_interval(y, MEAN), iv.smooth_interval(rows, MEAN)
    assert (crossed.low, crossed.high) == pytest.approx((plain.low, plain.high))


# --- properties ---

ESTIMANDS = {
    "contrast": fn.contrast([1, -2, 0.5]),
    "log_contrast": fn.log_contrast([1, 0, -1.5]),
    "ratio": fn.ratio(fn.contrast([1, 1, 0]), fn.log_contrast([0, 0.2, 1])),
}


@pytest.mark.parametrize("name", ESTIMANDS)
@given(m=hnp.arrays(float, 3, elements=st.floats(1.5, 9)))
def test_derivatives_are_those_of_the_value(name, m):
    h = ESTIMANDS[name]
    step = 1e-5 * np.eye(3)
    slope = (h.value(m + step) - h.value(m - step)) / 2e-5
    curvature = (h.gradient(m + step) - h.gradient(m - step)) / 2e-5
    assert h.gradient(m) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert h.hessian(m) == pytest.approx(curvature, rel=1e-5, abs=1e-6)


units = st.integers(3, 25)
levels = st.sampled_from([0.0005, 0.005, 0.025, 0.1, 0.4])


@given(n=units, seed=st.integers(0, 10**6), low=levels, high=levels)
def test_swapping_the_methods_swaps_the_ends(n, seed, low, high):
    y = lognormal(n, 2, seed)
    for h in (DIFFERENCE, LOG_RATIO):
        a, b = iv.smooth_interval(y, h, low, high), iv.smooth_interval(y[:, ::-1], h, high, low)
        assert (a.low, a.high) == pytest.approx((-b.high, -b.low), rel=1e-9, abs=1e-9)


@given(n=units, seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3))
def test_units_of_measurement_and_order_do_not_matter(n, seed, factor):
    y = lognormal(n, 2, seed)
    shuffled = np.random.default_rng(seed).permutation(y) * factor
    for h, power in ((DIFFERENCE, 1), (LOG_RATIO, 0)):
        a, b = iv.smooth_interval(y, h), iv.smooth_interval(shuffled, h)
        assert (b.low, b.high) == pytest.approx((a.low * factor**power, a.high * factor**power), rel=1e-6, abs=1e-9)


def intervals_of(seed: int, n: int) -> list[iv.Interval]:
    rng = np.random.default_rng(seed)
    y = rng.lognormal(size=(n, 2))
    return [
        iv.smooth_interval(y, DIFFERENCE),
        iv.smooth_interval(y, LOG_RATIO),
        iv.crossed_interval(rng.normal(size=(n, 6, 1)), MEAN),
        iv.share_interval(rng.random(n) < 0.6),
        iv.quantile_interval(y[:, 0], 0.5),
    ]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=units, alpha=levels, null=st.floats(-2, 2))
def test_p_values_are_dual_to_the_ends(seed, n, alpha, null):
    for found in intervals_of(seed, n):
        at = found.at(alpha, alpha)
        assert (at.low > null) == (found.p_above(null) <= alpha), found.method_name
        assert (at.high < null) == (found.p_below(null) <= alpha), found.method_name


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=units)
def test_smaller_levels_give_wider_intervals_about_the_estimate(seed, n):
    for found in intervals_of(seed, n):
        ends = np.array([(i.low, i.high) for i in (found.at(a, a) for a in (0.4, 0.1, 0.025, 0.005, 0.0005))])
        assert np.all(ends[1:, 0] <= ends[:-1, 0])
        assert np.all(ends[1:, 1] >= ends[:-1, 1])


@given(p=hnp.arrays(float, st.integers(1, 8), elements=st.floats(0, 1)), alpha=st.sampled_from([0.025, 0.05, 0.2]))
def test_holm_s_levels_decide_as_its_p_values(p, alpha):
    levels = iv.holm_levels(p, alpha)
    assert np.array_equal(p <= levels, iv.holm(p) <= alpha)
    assert np.all((levels >= alpha / p.size - 1e-12) & (levels <= alpha))


def test_an_interval_survives_pickling_with_its_curve():
    for found in intervals_of(0, 12):
        again = pickle.loads(pickle.dumps(found))
        assert again == found
        assert again.at(0.01, 0.01) == found.at(0.01, 0.01)


# --- degenerate and bad input ---


def test_no_spread_gives_a_point_with_a_note():
    y = np.c_[np.arange(5.0) + 0.3, np.arange(5.0) + 0.1]  # differences 0.2 up to rounding
    found = iv.smooth_interval(y, DIFFERENCE)
    assert found.low == found.high == found.estimate == pytest.approx(0.2)
    assert found.note == iv.NO_SPREAD
    assert (found.p_above(0.0), found.p_above(0.3), found.p_above(found.estimate)) == (0, 1, 1)
    crossed = iv.crossed_interval(np.full((3, 4, 1), 2.0), MEAN)
    assert (crossed.low, crossed.high, crossed.note) == (2, 2, iv.NO_SPREAD)


def test_one_unit_bounds_nothing():
    for found in (
        iv.smooth_interval([[3.0, 1.0]], DIFFERENCE),
        iv.crossed_interval(np.full((1, 9, 2), 3.0), DIFFERENCE),
    ):
        assert (found.low, found.high, found.n_units) == (-np.inf, np.inf, 1)
        assert found.note == iv.ONE_UNIT
        assert found.p_above(-1e9) == 1


def test_an_unused_cell_may_have_any_mean():
    y = lognormal(8, 2)
    alone, beside_zeros = fn.log_contrast([1, -1]), fn.log_contrast([1, 0, -1])
    with np.errstate(all="raise"):
        found = iv.smooth_interval(np.c_[y[:, 0], np.zeros(8), y[:, 1]], beside_zeros)
    assert (found.low, found.high) == pytest.approx(
        (iv.smooth_interval(y, alone).low, iv.smooth_interval(y, alone).high)
    )


def test_two_units_give_a_finite_interval_about_the_estimate():
    found = iv.smooth_interval([1.0, 2.0], MEAN)
    assert -np.inf < found.low < found.estimate < found.high < np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: iv.smooth_interval([[1, -2.0], [2, 1.0]], LOG_RATIO), "mean of cell 1 is -0.5 and has no logarithm"),
        (lambda: iv.smooth_interval([[1, np.nan], [2, 1]], DIFFERENCE), r"y\[0, 1\] is nan: drop units"),
        (lambda: iv.smooth_interval(np.ones((4, 3)), DIFFERENCE), r"3 cells \(columns of y\) meet 2 weights"),
        (lambda: iv.smooth_interval([], MEAN), "no empty one, got shape"),
        (lambda: iv.smooth_interval([1.0, 2.0], MEAN, alpha_low=0.7), r"alpha_low must lie in \(0, 0.5\], got 0.7"),
        (lambda: iv.crossed_interval(np.ones((4, 3)), MEAN), "y must have 3 dimensions"),
        (lambda: iv.share_interval([0, 1, 2]), r"hits\[2\] is 2: a share is taken over values that are 0 or 1"),
        (lambda: iv.quantile_interval([1.0], 1.0), "q must lie strictly between 0 and 1, got 1.0"),
        (lambda: fn.slope_weights([2.0, 2.0]), "at least two different values of x"),
        (lambda: iv.smooth_interval([[1, 2.0]], fn.ratio(DIFFERENCE, MEAN)), "2 cells .* meet 1 weights"),
        (lambda: iv.smooth_interval([[1, 0.0]], fn.ratio(fn.contrast([1, 0]), fn.contrast([0, 1]))), "exactly 0"),
        (lambda: iv.holm([0.1, np.inf]), r"p_values\[1\] is inf"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- error rates: 2,000 experiments; docs/error-rates.md has the full tables ---

R = 2000
LEFT = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t3": lambda rng, size: rng.standard_t(3, size),
    "exponential": lambda rng, size: 1 - rng.exponential(size=size),
    "ties": lambda rng, size: rng.choice([-0.02, 0.0, 0.02], size=size),
    "skewed score": lambda rng, size: np.round(20 * rng.beta(6, 1.5, size)) / 20 - 0.79999,
}


@pytest.mark.parametrize("law", LEFT)
@pytest.mark.parametrize("n", [5, 6, 8, 12, 20, 50, 100])
def test_better_is_said_without_a_difference_in_at_most_one_in_twenty(law, n):
    x = LEFT[law](np.random.default_rng(11), (R, n))[..., None]
    s = iv.studentise(x, MEAN)
    assert np.mean(s.low(0.025) > 0) <= 0.05
    assert np.mean(s.high(0.025) < 0) <= 0.05


def test_the_exponential_law_would_catch_student_s_t():
    x = LEFT["exponential"](np.random.default_rng(11), (R, 8))
    t = stats.ttest_1samp(x, 0, axis=1, alternative="greater")
    assert np.mean(t.pvalue <= 0.025) > 0.08


def test_many_normal_units_reach_the_level():
    x = np.random.default_rng(3).standard_normal((20_000, 100))[..., None]
    s = iv.studentise(x, MEAN)
    assert np.mean(s.low(0.025) > 0) == pytest.approx(0.025, abs=0.004)
    assert np.mean(s.low(0.005) > 0) == pytest.approx(0.005, abs=0.002)


@pytest.mark.parametrize(("n", "d", "at_least"), [(5, 5, 0.92), (8, 2, 0.92), (20, 0.75, 0.83), (50, 0.45, 0.86)])
def test_planted_differences_are_found(n, d, at_least):
    x = np.random.default_rng(4).standard_normal((R, n))[..., None] + d
    assert np.mean(iv.studentise(x, MEAN).p_above(0.0) <= 0.025) >= at_least


@pytest.mark.parametrize("law", ["normal", "exponential", "t3"])
def test_equivalence_at_the_margin(law):
    x = LEFT[law](np.random.default_rng(6), (R, 10))
    for side in (-1, 1):
        s = iv.studentise((x + side)[..., None], MEAN)
        assert np.mean((s.low(0.025) > -1) & (s.high(0.025) < 1)) <= 0.05


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_log_log_slopes_under_multiplicative_noise(sigma):
    scale = np.array([100, 200, 400, 800.0]) ** 1.5
    y = np.exp(sigma * np.random.default_rng(7).standard_normal((R, 10, 4))) * scale
    s = iv.studentise(y, fn.log_contrast(SLOPE))
    for error in (s.low(0.025) > 1.5, s.high(0.025) < 1.5):
        assert 0.005 <= np.mean(error) <= 0.05


@pytest.mark.parametrize("parts", [(1, 1, 1), (1, 0, 0.2), (0, 1, 0.2), (0, 0, 1)])
@pytest.mark.parametrize("columns", [8, 40])
def test_crossed_units_at_five_seeds(parts, columns):
    rng = np.random.default_rng(8)
    shapes = ((R, 5, 1), (R, 1, columns), (R, 5, columns))
    y = sum(np.sqrt(v) * rng.standard_normal(shape) for v, shape in zip(parts, shapes, strict=True))
    s = iv.studentise_crossed(np.asarray(y)[..., None], MEAN)
    assert np.mean(s.low(0.025) > 0) <= 0.035


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_family_of_five_correlated_rivals(law):
    rng = np.random.default_rng(9)
    x = LEFT[law](rng, (R, 8, 1)) + LEFT[law](rng, (R, 8, 5))
    p = np.stack([iv.studentise(x[..., j, None], MEAN).p_above(0.0) for j in range(5)], axis=1)
    assert np.mean([np.any(iv.holm(row) <= 0.025) for row in p]) <= 0.05


def test_a_quantile_s_ends_err_at_most_at_their_levels():
    x = np.random.default_rng(12).exponential(size=(R, 30))
    found = [iv.quantile_interval(row, 0.8) for row in x]
    truth = -np.log(0.2)
    assert np.mean([f.low > truth for f in found]) <= 0.035
    assert np.mean([f.high < truth for f in found]) <= 0.035
