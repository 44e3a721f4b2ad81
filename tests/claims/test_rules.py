"""Rules on planted truths: error rates by simulation, families, composition, and what they say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from upheld.claims import (
    All,
    Any,
    AtLeast,
    AtMost,
    Difference,
    Equivalent,
    Mean,
    Measurements,
    NeverViolated,
    Outcome,
    Quantile,
    QuantileRatio,
    Rate,
    Share,
    Superior,
    Within,
)
from upheld.claims.functionals import contrast, log_contrast, slope_weights
from upheld.claims.intervals import studentise

EXPERIMENTS = 10_000  # of one law, decided together
JUDGED = 30  # of them, at each border, by the rule itself
PAIR = contrast([1.0, -1.0])


def measured(**columns) -> Measurements:
    """Measurements of metric "f" from one array of values a method."""
    values = [np.asarray(column, float) for column in columns.values()]
    frame = {
        "seed": np.concatenate([np.arange(len(column)) for column in values]),
        "item": "",
        "method": [method for method, column in zip(columns, values, strict=True) for _ in column],
        "metric": "f",
        "value": np.concatenate(values),
    }
    return Measurements(pd.DataFrame(frame))


def paired(y: np.ndarray) -> Measurements:
    """Measurements of two methods from one experiment, of shape (units, 2)."""
    return measured(ours=y[:, 0], theirs=y[:, 1])


def ceiling(simulations) -> float:
    """An observed rate stays below this with probability 0.999 when the true rate is 5 %."""
    return stats.binom.ppf(0.999, simulations, 0.05) / simulations


def rates(rule, y, functional, low=-math.inf, high=math.inf, measurements=paired) -> dict[Outcome, float]:
    """Share of simulated experiments, of shape (experiments, units, cells), with each outcome.

    They are decided together by their intervals, as the rules are documented: 2.5 % an end, and half of it at each end of
    a region with two borders where it refutes. The rule itself judges those that lie nearest to a border, where another
    level or another end would tell, and some from everywhere.
    """
    curve = studentise(y, functional)
    refute = 0.025 if math.isinf(low) or math.isinf(high) else 0.0125
    inside = np.minimum(curve.low(0.025) - low, high - curve.high(0.025))
    outside = np.maximum(curve.low(refute) - high, low - curve.high(refute))
    decided = np.select([inside > 0, outside > 0], [Outcome.UPHELD, Outcome.NOT_UPHELD], Outcome.INCONCLUSIVE)
    for border in (inside, outside):
        order = np.argsort(np.abs(border))
        for index in (*order[:JUDGED], *order[:: len(y) // 10]):
            assert rule.judge(measurements(y[index])).outcome == decided[index]
    return {outcome: float(np.mean(decided == outcome)) for outcome in Outcome}


DIFFERENCES = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed up": lambda rng, shape: rng.exponential(size=shape) - 1,
    "skewed down": lambda rng, shape: 1 - rng.exponential(size=shape),
    "heavy": lambda rng, shape: rng.standard_t(3, shape),
}


def beside(rng, differences, scale=3.0) -> np.ndarray:
    """Ours and theirs, with the given differences: what a pair shares must not matter."""
    theirs = rng.normal(10, scale, differences.shape)
    return np.stack([theirs + differences, theirs], axis=-1)


@pytest.mark.parametrize("law", DIFFERENCES)
@pytest.mark.parametrize("n", [5, 20, 200])
def test_superior_is_rarely_upheld_without_a_difference(law, n):
    rng = np.random.default_rng(0)
    y = beside(rng, DIFFERENCES[law](rng, (EXPERIMENTS, n)))
    found = rates(Superior("f", ours="ours", rivals=("theirs",)), y, PAIR, low=0.0)
    assert 0 < found[Outcome.UPHELD] <= ceiling(EXPERIMENTS)


@pytest.mark.parametrize(("n", "least"), [(6, 0.35), (20, 0.9)])
def test_superior_finds_a_planted_difference_as_often_as_its_interval_does(n, least):
    """Power is the interval's own; from twenty units on nearly that of Student's t, which controls no error under skewness."""
    effect = 1.2
    differences = np.random.default_rng(1).normal(effect, 1, (20_000, n, 1))
    power = np.mean(studentise(differences, contrast([1.0])).low(0.025) > 0)
    rng = np.random.default_rng(0)
    y = beside(rng, rng.normal(effect, 1, (EXPERIMENTS, n)))
    found = rates(Superior("f", ours="ours", rivals=("theirs",)), y, PAIR, low=0.0)
    assert abs(found[Outcome.UPHELD] - power) <= 4 * math.sqrt(power * (1 - power) / EXPERIMENTS) + 0.005
    students = stats.nct.sf(stats.t.isf(0.025, n - 1), n - 1, effect * math.sqrt(n))
    assert least * students <= power <= students + 0.01


def shares(rule, draw, simulations) -> dict[Outcome, float]:
    """Share of simulated experiments with each outcome, each judged by the rule."""
    rng = np.random.default_rng(0)
    outcomes = [rule.judge(measured(**draw(rng))).outcome for _ in range(simulations)]
    return {outcome: outcomes.count(outcome) / simulations for outcome in Outcome}


@pytest.mark.slow
def test_a_method_equal_to_its_five_rivals_is_rarely_refuted():
    """Holm: five chances to look worse than somebody, still one error rate."""

    def draw(rng):
        shared = rng.normal(size=12)
        return {name: 0.5 * shared + rng.normal(size=12) for name in ("ours", *"abcde")}

    found = shares(Superior("f", ours="ours", rivals=tuple("abcde")), draw, simulations=500)
    assert found[Outcome.NOT_UPHELD] <= ceiling(500)
    assert found[Outcome.UPHELD] <= 0.01


@pytest.mark.slow
def test_equal_to_the_strongest_rival_and_far_above_the_others_is_rarely_upheld():
    """The worst case of a claim about every rival; without a correction it keeps its error rate, since all must be beaten."""

    def draw(rng):
        return {
            "ours": rng.normal(size=10),
            "strong": rng.normal(size=10),
            "weak": rng.normal(-9, 1, 10),
            "weaker": rng.normal(-19, 1, 10),
        }

    found = shares(Superior("f", ours="ours", rivals=("strong", "weak", "weaker")), draw, simulations=500)
    assert found[Outcome.UPHELD] <= ceiling(500)


def test_equivalent_is_rarely_upheld_at_the_margin():
    rng = np.random.default_rng(0)
    y = beside(rng, 0.5 + rng.normal(scale=0.4, size=(EXPERIMENTS, 30)), scale=1.0)
    found = rates(Equivalent("f", "ours", "theirs", 0.5), y, PAIR, low=-0.5, high=0.5)
    assert 0 < found[Outcome.UPHELD] <= ceiling(EXPERIMENTS)
    assert 0 < found[Outcome.NOT_UPHELD] <= ceiling(EXPERIMENTS)


SIZES = np.array([100, 200, 400, 800])


def powers(exponent, rng, *shape) -> np.ndarray:
    """A metric of shape (..., units, sizes) that goes with a power of the sample size."""
    noise = rng.standard_t(5, (*shape[:-1], len(SIZES), shape[-1]))
    return SIZES**exponent * np.exp(0.3 * np.swapaxes(noise, -1, -2))


def by_size(y: np.ndarray) -> Measurements:
    """Measurements of one experiment, of shape (units, sizes)."""
    units = len(y)
    frame = {
        "n": np.repeat(SIZES, units),
        "seed": np.tile(np.arange(units), len(SIZES)),
        "item": "",
        "method": "ours",
        "metric": "f",
        "value": y.T.ravel(),
    }
    return Measurements(pd.DataFrame(frame))


def test_rate_is_rarely_upheld_at_the_border_of_its_range():
    y = powers(-0.4, np.random.default_rng(1), EXPERIMENTS, 10)
    slope = log_contrast(slope_weights(np.log(SIZES)))
    found = rates(Rate("f", "ours", x="n", high=-0.4), y, slope, high=-0.4, measurements=by_size)
    assert 0 < found[Outcome.UPHELD] <= ceiling(EXPERIMENTS)
    assert 0 < found[Outcome.NOT_UPHELD] <= ceiling(EXPERIMENTS)


def test_rate_recognises_root_n():
    rng = np.random.default_rng(2)
    rule = Rate("f", "ours", x="n", low=-0.65, high=-0.35)
    assert rule.judge(by_size(powers(-0.5, rng, 40))).outcome is Outcome.UPHELD
    assert rule.judge(by_size(powers(-1.0, rng, 40))).outcome is Outcome.NOT_UPHELD


def test_any_pays_for_its_tries():
    """Ten useless alternatives: each may uphold at a tenth of the error rate only."""
    rng = np.random.default_rng(3)
    rule = Any(tuple(AtLeast(Mean("f", name), 0.0) for name in "abcdefghij"))
    outcomes = [
        rule.judge(measured(**{name: rng.normal(size=15) for name in "abcdefghij"})).outcome for _ in range(400)
    ]
    assert outcomes.count(Outcome.UPHELD) / 400 <= ceiling(400)


# -- exact logic


UP, DOWN, BOTH = np.linspace(1, 2, 9), np.linspace(-2, -1, 9), np.linspace(-1, 1, 9)


@pytest.mark.parametrize(
    ("parts", "every", "one"),
    [
        ((UP, UP), Outcome.UPHELD, Outcome.UPHELD),
        ((UP, BOTH), Outcome.INCONCLUSIVE, Outcome.UPHELD),
        ((UP, DOWN), Outcome.NOT_UPHELD, Outcome.UPHELD),
        ((BOTH, DOWN), Outcome.NOT_UPHELD, Outcome.INCONCLUSIVE),
        ((DOWN, DOWN), Outcome.NOT_UPHELD, Outcome.NOT_UPHELD),
    ],
)
def test_all_and_any(parts, every, one):
    data = measured(a=parts[0], b=parts[1])
    rules = (AtLeast(Mean("f", "a"), 0.0), AtLeast(Mean("f", "b"), 0.0))
    assert All(rules).judge(data).outcome is every
    assert Any(rules).judge(data).outcome is one


def test_identical_methods_are_inconclusive():
    assert Superior("f", ours="a", rivals=("b",)).judge(measured(a=UP, b=UP)).outcome is Outcome.INCONCLUSIVE
    assert Equivalent("f", "a", "b", 0.1).judge(measured(a=UP, b=UP)).outcome is Outcome.UPHELD


def test_four_units_decide_nothing():
    judgement = Superior("f", ours="a", rivals=("b",)).judge(measured(a=[5, 6, 7, 8], b=[1, 1, 1, 1]))
    assert judgement.outcome is Outcome.INCONCLUSIVE
    assert "fewer than 5" in judgement.findings[0].note


def test_never_violated_needs_no_units_and_one_violation_refutes():
    rule = NeverViolated("f", "a", at_most=2.0)
    assert rule.judge(measured(a=[1.0, 2.0])).outcome is Outcome.UPHELD
    refuted = rule.judge(measured(a=[1.0, 2.0, 2.5, math.inf]))
    assert refuted.outcome is Outcome.NOT_UPHELD
    assert refuted.findings[0].note == "2 violations in 4 measurements"


def test_direction_margin_and_ratio():
    data = measured(fast=[1.0, 1.1, 0.9, 1.0, 1.05], slow=[2.0, 2.3, 1.7, 2.1, 1.9])
    faster = Superior("f", ours="fast", rivals=("slow",), relative=True, lower_is_better=True)
    assert faster.judge(data).findings[0].estimate == pytest.approx(
        stats.gmean([1 / 2, 1.1 / 2.3, 0.9 / 1.7, 1 / 2.1, 1.05 / 1.9])
    )
    assert faster.judge(data).outcome is Outcome.UPHELD
    by_two_thirds = Superior("f", ours="fast", rivals=("slow",), relative=True, lower_is_better=True, margin=2 / 3)
    assert by_two_thirds.judge(data).outcome is Outcome.NOT_UPHELD


def test_pairs_are_matched_by_unit_not_by_row():
    frame = pd.DataFrame(
        [
            {"seed": seed, "item": "", "method": method, "metric": "f", "value": value}
            for method, seeds in (("a", range(8)), ("b", reversed(range(8)))) for seed in seeds
            for value in [seed + (0.5 + seed / 100 if method == "a" else 0)]
        ]
    )  # fmt: skip
    finding = Superior("f", ours="a", rivals=("b",)).judge(Measurements(frame)).findings[0]
    assert finding.outcome is Outcome.UPHELD
    assert finding.high - finding.low < 0.1


def test_quantile_ratio_agrees_with_its_parts():
    rng = np.random.default_rng(5)
    short, long = rng.exponential(1, 600), rng.exponential(8, 600)
    data = measured(short=short, long=long)
    finding = (
        AtLeast(QuantileRatio(Quantile("f", "long", q=0.99), Quantile("f", "short", q=0.99)), 2.0)
        .judge(data)
        .findings[0]
    )
    assert finding.estimate == pytest.approx(np.quantile(long, 0.99) / np.quantile(short, 0.99))
    assert finding.low < 8 < finding.high
    assert finding.outcome is Outcome.UPHELD


def test_a_share_needs_enough_trials_to_be_above_095():
    assert AtLeast(Share("f", "a"), 0.95).judge(measured(a=np.ones(50))).outcome is Outcome.INCONCLUSIVE
    assert AtLeast(Share("f", "a"), 0.95).judge(measured(a=np.ones(80))).outcome is Outcome.UPHELD


def test_a_metric_that_was_not_measured_is_named():
    with pytest.raises(ValueError, match="nothing was measured for f of nobody"):
        AtMost(Mean("f", "nobody"), 1.0).judge(measured(a=UP))


def test_logarithm_of_a_loss_that_is_zero_is_refused_with_its_name():
    with pytest.raises(
        ValueError, match="f of a is compared on the log scale, but holds 1 values that are not positive"
    ):
        Superior("f", ours="a", rivals=("b",), relative=True).judge(measured(a=[0, 1, 2, 3, 4], b=UP[:5]))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            Superior("f", "a", ("b", "c"), margin=-0.1, per=("n",)),
            "the paired difference in f of a to b and c is above -0.1, for every n",
        ),
        (Within(Difference(Mean("f", "a"), Mean("f", "b")), -0.1, 0.1), "the f: a − b lies between -0.1 and 0.1"),
        (NeverViolated("f", "a", at_most=1), "no measured f of a is above 1"),
        (Rate("f", "a", x="n", high=-0.4), "the slope of log f in log n of a is below -0.4"),
    ],
)
def test_words(rule, words):
    assert rule.words() == words


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (float("nan"), 1.0), (0.0, float("nan"))])
def test_a_region_that_nothing_lies_in_is_refused(low, high):
    with pytest.raises(ValueError, match=r"nothing lies between .*; give the .* room, low below high"):
        Within(Mean("error", "ours"), low, high)


def test_a_margin_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="nothing lies between"):
        Equivalent("error", "ours", "theirs", 0.0)
