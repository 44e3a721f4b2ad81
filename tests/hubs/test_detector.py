"""The estimators: recovery, the certificate, equivalences, degeneracy, bad input, scikit-learn's own checks, Khan."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from upheld.hubs import DegenerateJointNullSpaceError, InverseComponentsHubs, JointHubs, JointNullSpaceWarning
from upheld.hubs.data import load_khan, make_hub_networks
from upheld.hubs.detector import select_by_influence


@parametrize_with_checks([JointHubs(), InverseComponentsHubs(), JointHubs(selection=1, screen=2)])
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="No features were selected")
        check(estimator)


@pytest.fixture(scope="module")
def networks():
    return make_hub_networks(60, 240, n_common=4, n_individual=4, random_state=0)


def test_finds_the_common_hubs_and_none_of_the_individual_ones(networks):
    hubs = JointHubs().fit_many(networks.Xs)
    assert set(hubs.hubs_) == set(networks.common)
    assert np.all(np.diff(hubs.influence_[hubs.hubs_]) <= 0)
    assert hubs.certified_
    assert hubs.projector_ @ hubs.projector_ == pytest.approx(hubs.projector_, abs=1e-9)
    assert hubs.influence_.sum() == pytest.approx(7)  # floor(sqrt(60))


def test_three_ways_to_pass_groups_agree(networks):
    X, groups = networks.stacked()
    one = JointHubs().fit(X, groups=groups)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = JointHubs().fit(X[order], groups[order])
    many = JointHubs().fit_many({f"g{k}": X_k for k, X_k in enumerate(networks.Xs)})
    matrices = JointHubs().fit_covariances([np.corrcoef(X_k.T) for X_k in networks.Xs], n_samples=240)
    for other in (shuffled, many, matrices):
        np.testing.assert_allclose(other.influence_, one.influence_, atol=1e-8)
    assert many.groups_ == ["g0", "g1", "g2"]
    assert list(matrices.n_samples_) == [240] * 3


def test_one_group_given_twice_equals_the_single_network_detector(networks):
    X = networks.Xs[0]
    joint = JointHubs(5).fit_many([X, X])
    single = InverseComponentsHubs(5).fit(X)
    np.testing.assert_allclose(joint.influence_, single.influence_, atol=1e-9)
    np.testing.assert_allclose(joint.group_influence_[0], single.influence_, atol=1e-9)
    bottom = np.linalg.eigh(np.corrcoef(X.T))[1][:, :5]
    np.testing.assert_allclose(single.influence_, np.sum(bottom**2, axis=1), atol=1e-9)


def test_no_inverse_and_no_linear_system_is_ever_solved(networks, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a network was estimated")

    import scipy.linalg

    for module in (np.linalg, scipy.linalg):
        for name in ("inv", "solve", "pinv"):
            monkeypatch.setattr(module, name, forbidden)
    for covariance in ("correlation", "covariance", "threshold", "ledoit-wolf", "spearman"):
        JointHubs(covariance=covariance).fit_many(networks.Xs)
    JointHubs(criterion="vector", n_components=2).fit_many(networks.Xs)


def test_minimax_and_averaging_part_where_hubs_are_common_to_all_groups_but_one():
    """Near-common hubs lead in three of four groups; averaging takes them for common, the minimax does not."""
    gains = []
    for seed in range(4):
        networks = make_hub_networks(
            60, 240, n_groups=4, n_common=4, n_individual=0, n_near_common=6, random_state=seed
        )
        minimax = JointHubs().fit_many(networks.Xs)
        average = JointHubs(at_least=1).fit_many(networks.Xs)
        assert np.abs(minimax.influence_ - average.influence_).max() > 0.05
        assert minimax.group_weights_[-1] > 0.4  # the group without the near-common hubs binds
        near = networks.near_common
        gains.append(average.influence_[near].mean() - minimax.influence_[near].mean())
    assert min(gains) > 0.02


def test_khan_anchors():
    """An independent implementation of the specification gave these figures on the embedded table."""
    X, subtype = load_khan(top=60)
    hubs = JointHubs().fit(X, groups=subtype)
    assert hubs.objective_ == pytest.approx(0.0631, abs=5e-5)
    assert hubs.certified_
    influence = pd.Series(hubs.influence_, hubs.feature_names_in_)
    for gene, value in {"G0058": 0.49, "G0524": 0.39, "G0004": 0.38, "G1769": 0.36}.items():
        assert influence[gene] == pytest.approx(value, abs=0.006)
    line = influence.mean() + 2 * influence.std(ddof=1)
    assert line == pytest.approx(0.345, abs=0.001)
    assert list(hubs.get_feature_names_out()) == ["G0004", "G0058", "G0524", "G1769"]


def test_khan_with_a_hundred_genes_is_degenerate():
    X, subtype = load_khan(top=100)
    with pytest.raises(DegenerateJointNullSpaceError) as error:
        JointHubs(10).fit(X, groups=subtype)
    for part in ("p=100", "sum(n_k - 1)=79", "by 21", "n_components=10", "screen=63", 'covariance="threshold"'):
        assert part in str(error.value)
    assert "cannot break ties inside the joint null space" in str(error.value)
    with pytest.raises(DegenerateJointNullSpaceError):
        JointHubs(10, covariance="ledoit-wolf").fit(X, groups=subtype)
    screened = JointHubs(screen="auto").fit(X, groups=subtype)
    assert screened.screened_out_.sum() == 100 - 63
    assert np.all(screened.influence_[screened.screened_out_] == 0)
    assert screened.objective_ > 1e-3
    assert JointHubs(10, covariance="threshold").fit(X, groups=subtype).influence_.sum() == pytest.approx(10)


def test_partly_degenerate_fits_warn_and_contain_the_null_space():
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((9, 20)) for _ in range(2)]  # joint rank 16, null space 4
    with pytest.warns(JointNullSpaceWarning, match="4 of the 6 joint components"):
        hubs = JointHubs(6).fit_many(Xs)
    for X in Xs:
        quadratic_forms = np.diag(hubs.components_ @ np.corrcoef(X.T) @ hubs.components_.T)
        np.testing.assert_allclose(quadratic_forms[:4], 0, atol=1e-9)
    assert hubs.objective_ > 1e-3


def test_degenerate_matrices_are_recognised_through_a_ridge():
    rng = np.random.default_rng(0)
    S = [np.corrcoef(rng.standard_normal((5, 30)).T) + 0.3 * np.eye(30) for _ in range(2)]
    with pytest.raises(DegenerateJointNullSpaceError, match="p=30"):
        JointHubs(5).fit_covariances(S, n_samples=5)
    with pytest.raises(DegenerateJointNullSpaceError, match="p=30"):
        JointHubs(5, covariance=lambda X: np.corrcoef(X.T)).fit_many([rng.standard_normal((5, 30)) for _ in range(2)])


def test_matrices_of_few_samples_are_refused_and_warned_of_like_the_samples():
    """Two groups of 8 samples leave a joint null space of 20 - 14 = 6 dimensions."""
    rng = np.random.default_rng(0)
    S = [np.corrcoef(rng.standard_normal((8, 20)).T) for _ in range(2)]
    for s in (5, 6):
        with pytest.raises(DegenerateJointNullSpaceError, match="by 6"):
            JointHubs(s).fit_covariances(S, n_samples=8)
    with pytest.warns(JointNullSpaceWarning, match="6 of the 7 joint components"):
        JointHubs(7).fit_covariances(S, n_samples=8)
    same = [np.corrcoef(rng.standard_normal((60, 6)).T)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        JointHubs(1).fit_covariances(
            same, n_samples=60
        )  # flat in one direction each, and none of it for want of samples


def test_repeated_samples_do_not_count():
    """A bootstrap resample of the Khan data has far less than 79 degrees of freedom; "auto" keeps to what it has."""
    X, subtype = load_khan(top=100)
    rng = np.random.default_rng(0)
    rows = [rng.integers(len(part), size=len(part)) for _, part in X.groupby(subtype)]
    Xs = [part.to_numpy()[chosen] for (_, part), chosen in zip(X.groupby(subtype), rows, strict=True)]
    rank = sum(len(np.unique(chosen)) - 1 for chosen in rows)
    hubs = JointHubs(screen="auto").fit_many(Xs)
    assert (~hubs.screened_out_).sum() == int(0.8 * rank) < 0.8 * 79
    assert hubs.objective_ > 1e-3
    with pytest.raises(DegenerateJointNullSpaceError):
        JointHubs(screen=63).fit_many(Xs)


def test_too_many_variables_are_refused_before_their_matrices_are_formed():
    """4,000 variables: one (p, p) matrix takes 128 MB."""
    import tracemalloc

    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((30, 4000)) for _ in range(2)]
    tracemalloc.start()
    with pytest.raises(DegenerateJointNullSpaceError, match="screen=46"):
        JointHubs().fit_many(Xs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6


def test_single_network_below_full_rank_is_refused():
    with pytest.raises(DegenerateJointNullSpaceError, match=r"Use at most 7 variables, or covariance=\"threshold\""):
        InverseComponentsHubs(5).fit(np.random.default_rng(0).standard_normal((10, 40)))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_units_of_the_variables_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    Xs = [rng.standard_normal((40, 8)) for _ in range(2)]
    factors, shifts = rng.uniform(0.01, 100, 8), rng.normal(size=8)
    plain = JointHubs(tol=1e-9).fit_many(Xs)
    moved = JointHubs(tol=1e-9).fit_many([X * factors + shifts for X in Xs])
    np.testing.assert_allclose(moved.influence_, plain.influence_, atol=1e-5)


def test_covariances_of_very_different_scale_warn():
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((40, 8)), 10 * rng.standard_normal((40, 8))]
    with pytest.warns(UserWarning, match=r"group 1 is [\d.]+ times that of group 0"):
        hubs = JointHubs(covariance="covariance").fit_many(Xs)
    assert hubs.group_weights_[1] > 0.99


def test_equal_influences_select_nothing_and_the_rule_is_strict():
    rounding = np.full(50, 0.2)
    rounding[7] += 1e-15
    assert rounding[7] > rounding.mean() + 2 * rounding.std(ddof=1)
    assert not select_by_influence(rounding, "2sd").any()
    w = np.array([0.9] + [0.1] * 19)
    np.testing.assert_array_equal(np.flatnonzero(select_by_influence(w, "2sd")), [0])
    np.testing.assert_array_equal(np.flatnonzero(select_by_influence(np.array([0.1, 0.5, 0.5, 0.2]), 2)), [1, 2])


def test_two_sd_rule_uses_the_divisor_n_minus_one():
    # Mean 0.2917; sd 0.3297 with divisor n (line 0.951), 0.3611 with n - 1 (line 1.014).
    w = np.array([1.0, 0.35, 0.1, 0.1, 0.1, 0.1])
    assert not select_by_influence(w, "2sd").any()


def test_works_in_a_pipeline_and_names_what_it_keeps(networks):
    X, groups = networks.stacked()
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(60)])
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), JointHubs(selection=4))
    reduced = pipeline.fit_transform(frame, groups)
    assert reduced.shape == (720, 4)
    assert set(pipeline[-1].get_feature_names_out()) == {f"gene{j}" for j in networks.common}


def test_clone_and_repeated_fits_are_deterministic(networks):
    hubs = JointHubs(solver="stiefel", n_starts=2, random_state=1, selection=3)
    first = clone(hubs).fit_many(networks.Xs).influence_
    np.testing.assert_array_equal(first, clone(hubs).fit_many(networks.Xs).influence_)


def test_weights_name_the_binding_group():
    """A group whose matrix dominates the other binds alone."""
    rng = np.random.default_rng(0)
    low = np.corrcoef(rng.standard_normal((50, 8)).T)
    hubs = JointHubs(2).fit_covariances({"low": low, "high": low + 2 * np.eye(8)}, n_samples=50)
    np.testing.assert_allclose(hubs.group_weights_, [0, 1], atol=1e-9)


good = np.random.default_rng(0).standard_normal((12, 6))
labels = np.repeat(["a", "b"], 6)


def spoiled(row, column, value):
    X = good.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("X", "groups", "message"),
    [
        (spoiled(7, 2, np.nan), labels, "column 2 in group 'b' holds 1 NaN or infinity"),
        (spoiled(0, 1, np.inf), labels, "column 1 in group 'a' holds 1 NaN or infinity"),
        (spoiled(slice(0, 6), 3, 1.5), labels, "column 3 is constant in group 'a'"),
        (good, np.repeat(["a", "b"], [10, 2]), "too few samples in group 'b': n_samples = 2, at least 3"),
        (good, np.repeat("a", 12), "use InverseComponentsHubs for a single network"),
        (good, None, "group label of every row"),
        (good, labels[:-1], "12 rows but there are 11 group labels"),
        (good, np.array(["a"] * 6 + ["b"] * 5 + [None], dtype=object), "1 group labels are missing .* row 11"),
        (pd.DataFrame(good, columns=list("abcdea")), labels, "column 'a' occurs more than once"),
        (pd.DataFrame(good, columns=list("abcdef")).assign(c="x"), labels, "column 'c' is not numeric"),
        (good[:, :1], labels, "1 feature"),
    ],
)
def test_bad_input_names_the_culprit(X, groups, message):
    with pytest.raises(ValueError, match=message):
        JointHubs().fit(X, groups=groups)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 6}, "n_components=6 must lie between 1 and p - 1 = 5"),
        ({"n_components": "ratio"}, "got 'ratio'"),
        ({"screen": 1}, "at least 2, got 1"),
        ({"selection": 0}, "selection must be '2sd' or a number"),
        ({"covariance": "tau"}, "covariance must be one of"),
        ({"at_least": 3}, "at_least must lie between 1 and the number of groups 2"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        JointHubs(**parameters).fit(good, groups=labels)


@pytest.mark.parametrize(
    ("S", "n_samples", "message"),
    [
        ([np.eye(4), np.full((4, 4), np.nan)], 9, "matrix 1 holds values that are not finite"),
        ([np.eye(4), np.eye(5)], 9, r"one shape \(p, p\), got \(4, 4\), \(5, 5\)"),
        ([np.triu(np.ones((4, 4)))] * 2, 9, "matrix 0 is not symmetric"),
        ([np.eye(4)] * 2, [9, 9, 9], "n_samples holds 3 numbers for 2 matrices"),
        ([np.eye(4)], 9, "use InverseComponentsHubs"),
        ([], 9, "no matrices were given"),
    ],
)
def test_bad_matrices_are_named(S, n_samples, message):
    with pytest.raises(ValueError, match=message):
        JointHubs(2).fit_covariances(S, n_samples=n_samples)


def test_a_matrix_of_one_network_is_checked_too():
    with pytest.raises(ValueError, match="matrix 0 holds values that are not finite"):
        InverseComponentsHubs().fit_covariance(np.full((4, 4), np.nan))
    with pytest.raises(ValueError, match=r"covariance returned matrices of shape \(3, 3\) for 6 variables"):
        JointHubs(covariance=lambda X: np.eye(3)).fit(good, groups=labels)


def test_named_matrices_are_matched_by_name():
    S = pd.DataFrame(np.diag([1.0, 2.0, 3.0, 4.0]), index=list("abcd"), columns=list("abcd"))
    hubs = JointHubs(1).fit_covariances({"x": S, "y": S.loc[list("dbca"), list("dbca")]}, n_samples=None)
    np.testing.assert_allclose(hubs.influence_, [1, 0, 0, 0], atol=1e-12)
    assert list(hubs.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="group 'y' lacks 'd'"):
        JointHubs(1).fit_covariances({"x": S, "y": S.rename(columns={"d": "e"})}, n_samples=None)


def test_tables_with_different_columns_are_named():
    left, right = pd.DataFrame(good[:6], columns=list("abcdef")), pd.DataFrame(good[6:], columns=list("abcdeg"))
    with pytest.raises(ValueError, match="group 'two' lacks 'f', compared with group 'one'"):
        JointHubs().fit_many({"one": left, "two": right})
    with pytest.raises(ValueError, match="group 1 has 5 columns but group 0 has 6"):
        JointHubs().fit_many([good[:6], good[6:, :5]])
    reordered = right.rename(columns={"g": "f"})[list("fedcba")]
    direct = JointHubs().fit_many([left, right.rename(columns={"g": "f"})])
    np.testing.assert_allclose(JointHubs().fit_many([left, reordered]).influence_, direct.influence_)
