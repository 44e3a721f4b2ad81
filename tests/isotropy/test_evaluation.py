"""How well a signal foretells factuality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from upheld.isotropy.evaluation import foretold, r_squared, screening_lift, spearman

VALUES = arrays.arrays(float, 12, elements=st.integers(-50, 50).map(float))


@given(VALUES, VALUES)
def test_correlations_are_those_of_scipy(s, f):
    if np.ptp(s) == 0 or np.ptp(f) == 0:
        assert spearman(s, f) == r_squared(s, f) == 0
    else:
        assert spearman(s, f) == pytest.approx(stats.spearmanr(s, f).statistic, abs=1e-12)
        assert r_squared(s, f) == pytest.approx(stats.linregress(s, f).rvalue ** 2, abs=1e-12)


def test_a_constant_signal_tells_nothing():
    assert spearman([0.1] * 7, np.arange(7)) == 0
    assert r_squared([0.1] * 7, np.arange(7)) == 0
    assert screening_lift([0.1] * 10, np.arange(10)) == pytest.approx(1)


def test_a_perfect_screen_finds_as_much_as_it_may_look_at():
    factuality = np.linspace(0, 1, 10)
    assert screening_lift(-factuality, factuality, share=0.3) == pytest.approx((3 / 5) / 0.3)
    assert screening_lift(factuality, factuality, share=0.3) == 0


@given(st.permutations(range(10)))
def test_order_of_the_file_does_not_matter(order):
    s, f = np.array([3, 3, 3, 3, 2, 2, 1, 1, 1, 0.0]), np.array([0, 1, 0, 1, 0.5, 0.2, 1, 0.9, 0.8, 1])
    chosen = list(order)
    assert screening_lift(s[chosen], f[chosen]) == pytest.approx(screening_lift(s, f))


def test_screening_nothing_that_is_bad():
    assert np.isnan(screening_lift([1, 2, 3], [1, 1, 1]))


@pytest.mark.slow
def test_interval_of_the_correlation_covers_the_truth():
    """Gaussian pairs of correlation -0.6: the population's Spearman is 6/pi asin(rho/2)."""
    rng = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(-0.3)
    covered = 0
    for _ in range(300):
        s = rng.standard_normal(60)
        f = -0.6 * s + 0.8 * rng.standard_normal(60)
        _, low, high = foretold({"ours": s}, f, ours="ours", draws=400, seed=1)["ours"].spearman
        covered += low <= truth <= high
    assert covered >= stats.binom.ppf(0.001, 300, 0.92)


def test_the_interval_is_as_wide_as_theory_has_it():
    """Gaussian pairs: Spearman's standard error is (1 - rho^2) sqrt((1 + rho^2 / 2) / (n - 3)) (Bonett & Wright 2000)."""
    rng = np.random.default_rng(2)
    n, rho = 200, 0.6
    widths = []
    for _ in range(20):
        s = rng.standard_normal(n)
        f = rho * s + np.sqrt(1 - rho**2) * rng.standard_normal(n)
        _, low, high = foretold({"ours": s}, f, ours="ours", draws=500)["ours"].spearman
        widths.append(high - low)
    assert np.mean(widths) == pytest.approx(2 * 1.96 * (1 - rho**2) * np.sqrt((1 + rho**2 / 2) / (n - 3)), rel=0.12)


def test_a_worse_signal_is_behind_on_the_same_resamples():
    rng = np.random.default_rng(1)
    f = rng.random(80)
    good, worse = -f + 0.1 * rng.standard_normal(80), -f + 0.6 * rng.standard_normal(80)
    found = foretold({"good": good, "worse": worse}, f, ours="good")
    assert found["good"].ahead is None
    assert found["worse"].ahead[1] > 0
    assert found == foretold({"good": good, "worse": worse}, f, ours="good")
    assert foretold({"good": good, "same": good}, f, ours="good")["same"].ahead == (0, 0, 0)


@pytest.mark.parametrize(
    ("scores", "factuality", "message"),
    [
        ([1.0, np.nan], [0, 1], r"scores\[1\] is nan; leave prompts without a finite value out"),
        ([1.0, 2.0], [0, np.inf], r"factuality\[1\] is inf"),
        ([1.0, 2.0, 3.0], [0, 1], "same length, got shapes"),
        ([1.0], [0.5], "give at least two"),
    ],
)
def test_bad_input(scores, factuality, message):
    for figure in (spearman, r_squared, screening_lift):
        with pytest.raises(ValueError, match=message):
            figure(scores, factuality)


def test_too_few_labels_and_a_share_that_is_none():
    with pytest.raises(ValueError, match="label at least 5"):
        foretold({"a": [1, 2, 3]}, [0, 1, 0], ours="a")
    with pytest.raises(ValueError, match="share must lie strictly between 0 and 1, got 1"):
        screening_lift([1, 2], [0, 1], share=1)
