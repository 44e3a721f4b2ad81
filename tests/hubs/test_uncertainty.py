from __future__ import annotations

import numpy as np
import pytest

from upheld.hubs import (
    DegenerateJointNullSpaceError,
    JointHubs,
    JointNullSpaceWarning,
    bootstrap_interval,
    hub_table,
    null_reference,
    stability_selection,
)
from upheld.hubs.data import load_khan, make_hub_networks
from upheld.hubs.uncertainty import permuted, rotated


@pytest.fixture(scope="module")
def networks():
    return make_hub_networks(30, 2000, n_common=2, n_individual=2, random_state=1)


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((80, 20)) for _ in range(2)]


def test_true_hubs_are_stable_significant_and_well_apart(networks):
    estimator = JointHubs(2, selection=2)
    stability = stability_selection(estimator, networks.Xs, n_resamples=20)
    assert stability.frequency[networks.common].min() > 0.9
    interval = bootstrap_interval(estimator, networks.Xs, n_resamples=40)
    others = ~networks.is_common
    assert interval.low[networks.common].min() > interval.high[others].max()
    assert np.all(interval.low <= interval.high)
    null = null_reference(estimator, networks.Xs, n_resamples=39)
    assert null.p_values[networks.common].max() == pytest.approx(1 / 40)
    assert null.line() == np.sort(null.maxima)[37]  # the smallest maximum with at most 5 % above


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permutation", "rotation"])
def test_family_wise_error_is_held_under_independence(kind):
    """60 data sets without any network: any p < 0.05 in about 5 % of them; 9 or more has probability below 0.3 %."""
    rejections = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        Xs = [rng.standard_normal((30, 10)) for _ in range(2)]
        null = null_reference(JointHubs(3), Xs, kind=kind, n_resamples=39, random_state=seed)
        rejections += bool((null.p_values < 0.051).any())
    assert rejections <= 9


def test_permutation_keeps_every_column_and_rotation_every_spectrum(noise):
    rng = np.random.default_rng(0)
    for X, Y in zip(noise, permuted(noise, rng), strict=True):
        np.testing.assert_allclose(np.sort(X, axis=0), np.sort(Y, axis=0))
        assert abs(np.corrcoef(X[:, 0], Y[:, 0])[0, 1]) < 0.5
    turned = rotated(noise, rng)
    standard = [(X - X.mean(0)) / X.std(0, ddof=1) for X in noise]
    for Z, Y in zip(standard, turned, strict=True):
        np.testing.assert_allclose(np.linalg.svd(Z)[1], np.linalg.svd(Y)[1])
    # One rotation for all groups: inner products between samples of different groups stay.
    np.testing.assert_allclose(turned[0] @ turned[1].T, standard[0] @ standard[1].T, atol=1e-9)


@pytest.mark.parametrize("run", [stability_selection, bootstrap_interval, null_reference])
def test_same_seed_same_result_whatever_the_number_of_processes(noise, run):
    one = run(JointHubs(3), noise, n_resamples=4, random_state=7)
    two = run(JointHubs(3, n_jobs=2), noise, n_resamples=4, random_state=7)
    other = run(JointHubs(3), noise, n_resamples=4, random_state=8)
    field = next(name for name in ("frequency", "low", "maxima") if hasattr(one, name))
    np.testing.assert_allclose(getattr(one, field), getattr(two, field))
    assert not np.allclose(getattr(one, field), getattr(other, field))


def test_half_samples_of_khan_admit_36_genes():
    X, subtype = load_khan(top=60)
    with pytest.raises(DegenerateJointNullSpaceError, match=r"joint rank 36, .* at most 36 variables"):
        stability_selection(JointHubs(), X, groups=subtype, n_resamples=2)
    with pytest.raises(DegenerateJointNullSpaceError, match="bootstrap resamples have joint rank"):
        bootstrap_interval(JointHubs(), X, groups=subtype, n_resamples=2)
    X, subtype = load_khan(top=38)
    with pytest.warns(JointNullSpaceWarning, match="2 of the 6 components") as caught:
        stability_selection(JointHubs(), X, groups=subtype, n_resamples=3)
    assert len(caught) == 1
    X, subtype = load_khan(top=30)
    stability = stability_selection(JointHubs(), X, groups=subtype, n_resamples=5)
    assert stability.frequency.shape == (30,)


def test_screening_applies_to_the_resamples():
    X, subtype = load_khan(top=60)
    stability = stability_selection(JointHubs(screen=30), X, groups=subtype, n_resamples=4)
    assert 0 < stability.frequency.max() <= 1


@pytest.mark.slow
def test_khan_permutation_and_rotation_lines():
    """Figures of an independent implementation: .30 to .32, and .47 from 80 rotations."""
    X, subtype = load_khan(top=60)
    permutation = null_reference(JointHubs(), X, groups=subtype, n_resamples=200)
    assert permutation.line() == pytest.approx(0.31, abs=0.025)
    rotation = null_reference(JointHubs(), X, groups=subtype, kind="rotation", n_resamples=200)
    assert rotation.line() == pytest.approx(0.47, abs=0.05)


def test_table_takes_all_of_it(networks):
    estimator = JointHubs(2).fit_many(networks.Xs)
    table = hub_table(
        estimator,
        stability=stability_selection(estimator, networks.Xs, n_resamples=3),
        interval=bootstrap_interval(estimator, networks.Xs, n_resamples=3),
        null=[null_reference(estimator, networks.Xs, kind=kind, n_resamples=3) for kind in ("permutation", "rotation")],
    )
    assert {"stability", "low", "high", "p_value_permutation", "p_value_rotation"} <= set(table.columns)
    assert table["p_value_rotation"].between(0.25, 1).all()


def test_a_resample_that_cannot_be_fitted_is_said_to_be_one(noise):
    X = noise[0].copy()
    X[:, 3] = 0.0
    X[0, 3] = 1.0  # two of three resamples hold this sample, the others have a constant column
    with pytest.raises(
        ValueError, match="not all bootstrap resamples can be fitted: in one of them column 3 is constant in group 0"
    ):
        bootstrap_interval(JointHubs(), [X, noise[1]], n_resamples=20)


def test_groups_too_small_to_be_resampled():
    Xs = [np.random.default_rng(seed).standard_normal((3, 4)) for seed in (0, 1)]
    with pytest.raises(DegenerateJointNullSpaceError, match="Collect more samples, or merge small groups"):
        bootstrap_interval(JointHubs(2), Xs, n_resamples=50)


def test_bad_calls_are_explained(noise):
    estimator = JointHubs()
    with pytest.raises(ValueError, match="pass groups, or one matrix per group"):
        stability_selection(estimator, noise[0])
    with pytest.raises(ValueError, match="kind must be 'permutation' or 'rotation', got 'shuffle'"):
        null_reference(estimator, noise, kind="shuffle")
    with pytest.raises(ValueError, match="half of group 1 is 2 samples, at least 3"):
        stability_selection(estimator, [noise[0], noise[1][:5]])
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        bootstrap_interval(estimator, noise, level=95)
    with pytest.raises(ValueError, match="n_resamples must be at least 1"):
        null_reference(estimator, noise, n_resamples=0)
    with pytest.raises(TypeError, match=r"n_resamples must be a whole number, got 1\.5"):
        bootstrap_interval(estimator, noise, n_resamples=1.5)
    with pytest.raises(
        ValueError, match="n_jobs must be a number of processes, None for one, -1 for one a core, got 0"
    ):
        stability_selection(JointHubs(n_jobs=0), noise, n_resamples=2)
