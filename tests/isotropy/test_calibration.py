"""The calibrator keeps its two guarantees on simulated prompts, refuses leakage and mixed settings, and survives a file."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from upheld.isotropy.calibration import (
    ScoreSetting,
    TrustCalibrator,
    conformal_quantile,
    n_needed,
    n_tolerated,
)

MINILM = ScoreSetting("minilm/mean", None, 5)


def prompts(rng, n):
    """Prompts whose factuality falls with the score, with noise that grows with it: nothing here is homoscedastic."""
    scores = rng.beta(2, 2, n)
    return scores, np.clip(1 - scores**2 + rng.normal(0, 0.05 + 0.3 * scores), 0, 1)


def results(scores, **setting):
    setting = asdict(MINILM) | setting
    return [SimpleNamespace(score=score, **setting) for score in scores]


# --- the guarantees ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_the_interval_holds_the_factuality_of_a_new_prompt_as_often_as_promised(alpha):
    """One new prompt each of 3,000 calibrations of 40 prompts: (3) at its level, and not far above, by a binomial test."""
    rng = np.random.default_rng(1)
    held = 0
    for repeat in range(3000):
        scores, factuality = prompts(rng, 41)
        calibrator = TrustCalibrator(alpha, random_state=repeat).fit(scores[:40], factuality[:40])
        _, lower, upper = calibrator.predict(scores[40:])
        held += lower[0] <= factuality[40] <= upper[0]
    exact = (21 - n_tolerated(alpha, 20)) / 21  # without ties and clipping, k/(m + 1)
    assert stats.binomtest(held, 3000, 1 - alpha, alternative="less").pvalue > 1e-3
    assert held / 3000 < exact + 0.03


@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_the_threshold_keeps_the_risk_and_does_not_waste_it(risk):
    """Accepted though poor: the new prompt is among the m lowest poor ones of all n + 1 with probability m/(n + 1).

    m = risk (n + 1) is a whole number here and poor prompts are plentiful, so that (5) holds with equality.
    """
    rng = np.random.default_rng(2)
    n, accepted_though_poor, repeats = 39, 0, 4000
    for _ in range(repeats):
        scores, factuality = prompts(rng, n + 1)
        calibrator = TrustCalibrator(0.3, random_state=0).fit(scores[:n], factuality[:n])
        t = calibrator.threshold(min_factuality=0.8, risk=risk)
        accepted_though_poor += scores[n] <= t and factuality[n] < 0.8
    assert stats.binomtest(accepted_though_poor, repeats, risk).pvalue > 1e-3


# --- the threshold by hand --------------------------------------------------------------------------------------------


def calibrated(scores, factuality):
    return TrustCalibrator(0.5, random_state=0).fit(scores, factuality)


def test_the_threshold_lies_just_below_the_first_poor_prompt_too_many():
    """n = 9, poor at 0.3, 0.5, 0.7. (9 R + 1)/10 <= 0.2 allows one poor prompt: every t below 0.5, not 0.5 itself."""
    scores = np.arange(1, 10) / 10
    factuality = np.where(np.isin(np.arange(1, 10), [3, 5, 7]), 0.1, 0.9)
    calibrator = calibrated(scores, factuality)
    assert calibrator.threshold(min_factuality=0.5, risk=0.2) == np.nextafter(0.5, 0)
    assert calibrator.threshold(min_factuality=0.5, risk=0.1) == np.nextafter(0.3, 0)
    assert calibrator.threshold(min_factuality=0.5, risk=0.39) == np.nextafter(0.7, 0)
    assert calibrator.threshold(min_factuality=0.5, risk=0.4) == math.inf
    assert calibrator.threshold(min_factuality=0.1, risk=0.1) == math.inf, "0.1 itself is not below 0.1"


def test_no_score_is_accepted_where_so_few_prompts_cannot_vouch_for_the_risk():
    calibrator = calibrated(np.arange(9) / 10, np.ones(9))
    with pytest.warns(UserWarning, match=r"risk = 0.05 needs at least 19 calibration prompts, there are 9"):
        assert calibrator.threshold(min_factuality=0.5, risk=0.05) == -math.inf


def test_poor_prompts_with_one_score_are_refused_together():
    calibrator = calibrated([0.2] * 4 + [0.6] * 6, [0.9] * 4 + [0.1] * 6)
    assert calibrator.threshold(min_factuality=0.5, risk=0.5) == np.nextafter(0.6, 0)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0.0, 0.4, 0.6, 1.0])), min_size=4, max_size=30),
    st.floats(0.05, 0.95),
)
def test_the_threshold_is_the_largest_score_that_meets_its_condition(rows, risk):
    scores, factuality = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    n = len(scores)
    if n < 1 / risk:
        return
    t = calibrated(scores, factuality).threshold(min_factuality=0.5, risk=risk)

    def condition(at):
        return (np.sum((scores <= at) & (factuality < 0.5)) + 1) / (n + 1) <= risk

    assert condition(t)
    assert t == math.inf or not condition(np.nextafter(t, math.inf))


@given(st.floats(0.02, 0.5), st.floats(0.02, 0.5), st.floats(0, 1), st.floats(0, 1))
def test_more_risk_or_a_lower_standard_accepts_more(risk, other_risk, floor, other_floor):
    calibrator = calibrated(*prompts(np.random.default_rng(3), 60))
    (low, high), (least, most) = sorted([risk, other_risk]), sorted([floor, other_floor])
    strict = calibrator.threshold(min_factuality=most, risk=low)
    assert strict <= calibrator.threshold(min_factuality=most, risk=high)
    assert strict <= calibrator.threshold(min_factuality=least, risk=low)


# --- the interval by hand ---------------------------------------------------------------------------------------------


def test_the_quantile_of_nine_residuals():
    assert conformal_quantile([9, 1, 8, 2, 7, 3, 6, 4, 5], alpha=0.1) == 9
    assert conformal_quantile([9, 1, 8, 2, 7, 3, 6, 4, 5], alpha=0.2) == 8
    with pytest.raises(ValueError, match=r"alpha = 0.1 needs 9 residuals, got 8"):
        conformal_quantile(range(8), alpha=0.1)


@pytest.mark.parametrize(
    ("level", "n"),
    [(0.5, 1), (0.9, 1), (0.1, 9), (0.05, 19), (0.01, 99), (0.15, 6), (0.3, 3), (1 / 49, 48), (0.001, 999)],
)
def test_how_many_prompts_a_level_needs(level, n):
    assert n_needed(level) == n
    assert n_tolerated(level, n) >= 1
    assert n == 1 or n_tolerated(level, n - 1) == 0


@given(st.integers(0, 2**31), st.integers(10, 80), st.booleans())
def test_expected_factuality_falls_and_its_interval_is_inside_the_unit_interval(seed, n, tied):
    rng = np.random.default_rng(seed)
    scores, factuality = prompts(rng, n)
    if tied:
        scores = scores.round(1)
    calibrator = TrustCalibrator(0.3, random_state=seed).fit(scores, factuality)
    expected, lower, upper = calibrator.predict(np.linspace(-1, 2, 40))
    assert (np.diff(expected) <= 1e-12).all()
    assert (lower <= expected).all()
    assert (expected <= upper).all()
    assert lower.min() >= 0
    assert upper.max() <= 1


def test_one_score_for_all_gives_the_mean():
    """Nothing to tell apart: the best decreasing map is the mean of the fitting part."""
    calibrator = TrustCalibrator(0.2, random_state=0).fit(np.full(20, 0.4), np.linspace(0, 1, 20))
    fitted = np.linspace(0, 1, 20)[~calibrator.held_out_]
    assert calibrator.predict([0.4]).expected == pytest.approx([fitted.mean()])
    assert len(fitted) == 10


def test_a_rising_relation_is_flattened_never_followed():
    scores = np.linspace(0, 1, 40)
    expected = TrustCalibrator(random_state=0).fit(scores, scores).predict(scores).expected
    assert np.ptp(expected) < 1e-9


def test_the_split_depends_on_the_seed_alone():
    scores, factuality = prompts(np.random.default_rng(4), 40)
    first, again, other = (TrustCalibrator(random_state=seed).fit(scores, factuality) for seed in (1, 1, 2))
    assert (first.held_out_ == again.held_out_).all()
    assert (first.held_out_ != other.held_out_).any()
    assert clone(first).get_params() == {"alpha": 0.1, "holdout": 0.5, "random_state": 1}


# --- leakage and settings ---------------------------------------------------------------------------------------------


def test_a_prompt_of_the_calibration_is_refused_in_evaluation_whatever_the_type_of_its_id():
    scores, factuality = prompts(np.random.default_rng(5), 30)
    calibrator = TrustCalibrator(random_state=0).fit(scores, factuality, ids=range(30))
    calibrator.predict([0.1, 0.2], ids=[30, 31])
    with pytest.raises(ValueError, match=r"1 of 2 prompts took part in the calibration, among them '29'"):
        calibrator.predict([0.1, 0.2], ids=["29", "30"])
    with pytest.raises(ValueError, match="has no ids"):
        TrustCalibrator(random_state=0).fit(scores, factuality).predict([0.1], ids=["a"])
    with pytest.raises(ValueError, match="'0' occurs more than once"):
        TrustCalibrator().fit(scores, factuality, ids=[0, "0", *range(2, 30)])


@pytest.mark.parametrize(
    "other",
    [
        {"embedder_id": "e5"},
        {"template": "excerpt"},
        {"n": 10},
        {"long_text": "truncate"},
        {"jitter": 1e-3},
        {"normalized": False},
    ],
)
def test_scores_of_another_setting_are_refused(other):
    scores, factuality = prompts(np.random.default_rng(6), 30)
    calibrator = TrustCalibrator(random_state=0).fit(results(scores), factuality)
    assert calibrator.setting_ == MINILM
    assert calibrator.predict(results([0.5])) == calibrator.predict([0.5], setting=MINILM)
    with pytest.raises(ValueError, match="cannot be compared"):
        calibrator.predict(results([0.5], **other))
    with pytest.raises(ValueError, match=r"say setting= of the scores"):
        calibrator.predict([0.5])
    with pytest.raises(ValueError, match="fit it anew"):
        TrustCalibrator(random_state=0).fit(scores, factuality).predict(results([0.5]))
    with pytest.raises(ValueError, match="come from 2 settings"):
        TrustCalibrator().fit(results(scores[:-1]) + results(scores[-1:], **other), factuality)
    with pytest.raises(ValueError, match="leave setting= out"):
        calibrator.predict(results([0.5], **other), setting=MINILM)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_saved_calibration_is_the_same_calibration(tmp_path):
    scores, factuality = prompts(np.random.default_rng(7), 40)
    ids = [f"p{i}" for i in range(40)]
    saved = TrustCalibrator(0.2, holdout=0.4).fit(results(scores), factuality, ids)  # a split that no seed repeats
    saved.save(tmp_path / "trust.json")
    loaded = TrustCalibrator.load(tmp_path / "trust.json")
    grid = results(np.linspace(0, 1, 50))
    np.testing.assert_array_equal(saved.predict(grid), loaded.predict(grid))
    assert saved.threshold(min_factuality=0.7, risk=0.1) == loaded.threshold(min_factuality=0.7, risk=0.1)
    assert loaded.get_params() == saved.get_params()
    with pytest.raises(ValueError, match="took part in the calibration"):
        loaded.predict(results([0.5]), ids=["p3"])
    with pytest.raises(ValueError, match="cannot be compared"):
        loaded.predict(results([0.5], n=10))
    assert [path.name for path in tmp_path.iterdir()] == ["trust.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "upheld.isotropy.calibrator/0"}, "its schema is"),
        ({"scores": [0.1]}, "factuality has shape"),
        ({"factuality": [2.0] * 20}, r"factuality of prompt 0 is 2"),
        ({"held_out": [True] * 20}, "no mask"),
        ({"held_out": [1] * 20}, "no mask"),
        ({"alpha": 7}, "alpha must lie"),
        ({"setting": {"model": "x"}}, "unexpected keyword"),
    ],
)
def test_a_file_that_is_no_calibration_is_named(tmp_path, change, message):
    path = tmp_path / "trust.json"
    TrustCalibrator(0.2, random_state=0).fit(*prompts(np.random.default_rng(8), 20)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"trust.json is no saved calibration \(.*{message}"):
        TrustCalibrator.load(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"a"'])
def test_a_file_of_something_else_is_named(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x.json is no saved calibration"):
        TrustCalibrator.load(tmp_path / "x.json")


# --- bad input --------------------------------------------------------------------------------------------------------


def test_too_few_prompts_says_how_many_are_needed():
    """The number named is enough, and one less is not."""
    message = (
        r"alpha = 0.1 needs 9 residuals, but 10 labelled prompts at holdout = 0.5 leave 5; give at least 17 prompts"
    )
    with pytest.raises(ValueError, match=message):
        TrustCalibrator().fit(*prompts(np.random.default_rng(9), 10))
    with pytest.raises(ValueError, match="give at least 17"):
        TrustCalibrator().fit(*prompts(np.random.default_rng(9), 16))
    TrustCalibrator().fit(*prompts(np.random.default_rng(9), 17))
    with pytest.raises(ValueError, match="give at least 10"):
        TrustCalibrator(holdout=0.99).fit(*prompts(np.random.default_rng(9), 9))
    TrustCalibrator(holdout=0.99).fit(*prompts(np.random.default_rng(9), 10))


@pytest.mark.parametrize(
    ("scores", "factuality", "message"),
    [
        ([0.1, np.nan, 0.3], [1, 1, 1], r"score of prompt 1 is nan \(1 in all"),
        ([0.1, 0.2, 0.3], [1, np.inf, np.nan], r"factuality of prompt 1 is inf \(2 in all"),
        ([0.1, 0.2, 0.3], [1, 1, -0.5], r"factuality of prompt 2 is -0.5"),
        ([0.1, 0.2, 0.3], [1, 1], r"factuality has shape \(2,\), but there are 3 scores"),
        ([[0.1, 0.2]], [1, 1], r"array of shape \(1, 2\)"),
        ([], [], "at least one number"),
    ],
)
def test_bad_labels_are_named(scores, factuality, message):
    with pytest.raises(ValueError, match=message):
        TrustCalibrator().fit(scores, factuality)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, np.nan])
def test_a_level_outside_the_open_unit_interval_is_refused(alpha):
    good = prompts(np.random.default_rng(10), 40)
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        TrustCalibrator(alpha).fit(*good)
    with pytest.raises(ValueError, match="holdout must lie strictly between 0 and 1"):
        TrustCalibrator(holdout=alpha).fit(*good)
    with pytest.raises(ValueError, match="risk must lie strictly between 0 and 1"):
        TrustCalibrator().fit(*good).threshold(min_factuality=0.5, risk=alpha)
    with pytest.raises(ValueError, match="min_factuality must lie in"):
        TrustCalibrator().fit(*good).threshold(min_factuality=1.5, risk=0.1)


def test_the_number_of_ids_is_checked():
    scores, factuality = prompts(np.random.default_rng(11), 30)
    with pytest.raises(ValueError, match="there are 2 ids for 30 scores"):
        TrustCalibrator().fit(scores, factuality, ids=["a", "b"])
