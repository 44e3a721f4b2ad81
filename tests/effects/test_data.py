from __future__ import annotations

import itertools

import numpy as np
import pytest

from upheld.effects.data import (
    FAMILIES,
    LOGITS,
    PACES,
    SCENARIOS,
    DriftStream,
    load_acic,
    load_lalonde,
    load_nhefs,
    replicated_acic,
)  # fmt: skip


def naive(stream):
    return stream.y[stream.w == 1].mean() - stream.y[stream.w == 0].mean()


@pytest.mark.parametrize(
    ("scenario", "family", "logit", "pace"), list(itertools.product(SCENARIOS, FAMILIES, LOGITS, PACES))
)
def test_the_naive_contrast_is_far_off_in_every_cell(scenario, family, logit, pace):
    biases = []
    for seed in range(3):
        stream = DriftStream(8000, 6, scenario, family, logit, pace, seed)
        biases.append(naive(stream) - stream.effect)
    assert abs(np.mean(biases)) >= 0.2


def test_what_does_not_depend_on_covariates():
    """Means that follow from the generator by hand: E tau = 1 + E cos(x)/2 = 1 + exp(-1/2)/2; + E u = 1/2 where outcomes drift."""
    still, moving = (DriftStream(200_000, 4, scenario, seed=1) for scenario in ("none", "outcome"))
    assert still.effect == pytest.approx(1 + np.exp(-0.5) / 2, abs=0.01)
    assert moving.effect - still.effect == pytest.approx(0.5, abs=1e-4)
    late, u = moving.w[-1], 1 - 1 / 200_000
    assert (moving.y - still.y)[-1] == pytest.approx(2 * u + (2 * u - 1) * moving.X[-1, 0] + late * u, abs=1e-9)
    assert DriftStream(200_000, 4, "none", "interaction", seed=1).effect == pytest.approx(1, abs=0.01)
    assert DriftStream(200_000, 4, "none", "step", seed=1).effect == pytest.approx(1.5, abs=0.01)


def test_the_share_of_treated_follows_the_sine_or_the_step():
    gradual, abrupt = (DriftStream(80_000, 4, "assignment", pace=pace, seed=2) for pace in PACES)
    quarters = [part.mean() for part in np.array_split(gradual.w, 8)]
    assert quarters[1] < 0.35 < 0.65 < quarters[5]
    assert abrupt.w[:40_000].mean() < 0.35 < 0.65 < abrupt.w[40_000:].mean()


def test_covariates_can_wander():
    stream = DriftStream(20_000, 4, "none", seed=0, mean_drift=1.0)
    assert np.ptp([part.mean() for part in np.array_split(stream.X[:, 0], 10)]) > 0.5


def test_what_there_is_no_stream_of():
    with pytest.raises(ValueError, match="unknown scenario 'sudden'; take one of none, assignment"):
        DriftStream(100, 6, "sudden")
    with pytest.raises(ValueError, match="at least 4 covariates and one row, got d=2"):
        DriftStream(100, 2, "none")


def test_smoking_data():
    data = load_nhefs()
    assert data.X.shape == (1566, 9)
    assert data.y[data.w == 1].mean() == pytest.approx(4.525079, abs=5e-7)
    assert data.y[data.w == 0].mean() == pytest.approx(1.984498, abs=5e-7)
    assert naive(data) == pytest.approx(2.5405814549, abs=2e-9)


def test_training_data():
    experiment, survey = load_lalonde("experimental"), load_lalonde("cps")
    assert (len(experiment.y), len(survey.y), survey.w.sum()) == (445, 185 + 15_992, 185)
    assert naive(experiment) == pytest.approx(1794.34, abs=0.005)
    assert experiment.effect == survey.effect == naive(experiment)
    assert naive(survey) == pytest.approx(-8497.52, abs=0.005)
    with pytest.raises(ValueError, match="unknown controls 'psid'"):
        load_lalonde("psid")


def test_competition_data():
    data = load_acic(1)
    assert data.X.shape == (4802, 58)
    assert data.effect == pytest.approx(2.1280792580, abs=5e-11)
    assert load_acic(2).effect == pytest.approx(4.6792448770, abs=5e-11)
    assert data.w.mean() == pytest.approx(0.178676, abs=5e-7)
    with pytest.raises(ValueError, match="no response file zymu_11; take 1 to 10"):
        load_acic(11)


def test_orders_of_a_stream():
    data = load_lalonde("experimental")
    assert (np.diff(data.ordered("treatment").w) >= 0).all()
    sorted_by = data.ordered("covariate", seed=1)
    assert any((np.diff(sorted_by.X[name]) >= 0).all() for name in sorted_by.X)
    assert sorted(data.ordered("random", seed=3).y) == sorted(data.y)
    with pytest.raises(ValueError, match="unknown order 'backwards'"):
        data.ordered("backwards")


def test_replicated_competition_data_keep_the_truth():
    data, long = load_acic(1), replicated_acic(1, 50_000, seed=0)
    assert long.effect == pytest.approx(data.effect, abs=0.05)
    for arm in (0, 1):
        assert long.y[long.w == arm].mean() == pytest.approx(data.y[data.w == arm].mean(), abs=0.15)
