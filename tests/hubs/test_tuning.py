import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.model_selection import KFold

from upheld.hubs.tuning import (
    Group,
    Networks,
    Path,
    PenaltyLattice,
    Problem,
    Sample,
    Solver,
    information_criterion,
    search,
)

LINE = PenaltyLattice(smallest=(0.1,), largest=(0.8,), size=(4,))
PLANE = PenaltyLattice(smallest=(0.1, 1.0), largest=(0.4, 10.0), size=(3, 2))


class Ridge(Solver):
    """Closed form, (S + l I)^{-1}: what the tuning does can be checked by hand. Counts its fits."""

    def __init__(self):
        self.n_fits = 0

    def lattice(self, sample):
        return LINE

    def solve(self, sample, penalty, start):
        self.n_fits += 1
        Thetas = np.linalg.inv(sample.S + penalty[0] * np.eye(sample.S.shape[-1]))
        return Networks(Thetas, Thetas, np.zeros(len(Thetas)), True)


def test_lattice_is_log_spaced_and_goes_on_beyond_its_edges():
    assert [LINE[(i,)][0] for i in range(-1, 5)] == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    assert LINE.indices() == [(3,), (2,), (1,), (0,)]
    assert len(PLANE.indices()) == 6


@settings(deadline=None)
@given(st.integers(-4, 7))
def test_search_finds_the_bottom_of_a_valley_within_reach(bottom):
    choice = search(LINE, lambda index: 1 + (index[0] - bottom) ** 2, density=lambda index: 0.2)
    assert choice.index == (bottom,)
    assert choice.extended == (not 0 < bottom < 3)
    assert not choice.at_edge


@settings(deadline=None)
@given(st.integers(-2, 4), st.integers(-2, 3))
def test_search_follows_both_axes(i, j):
    choice = search(PLANE, lambda index: 1 + (index[0] - i) ** 2 + (index[1] - j) ** 2, density=lambda index: 0.2)
    assert choice.index == (i, j)
    assert not choice.at_edge


def test_a_criterion_without_a_bottom_is_reported():
    choice = search(LINE, lambda index: 1000.0 + 10 * index[0], density=lambda index: 0.2)
    assert choice.at_edge
    assert choice.extended


def test_an_empty_network_is_not_penalised_further():
    tried = []
    choice = search(LINE, lambda index: tried.append(index) or -float(index[0]), density=lambda index: 0.0)
    assert choice.index == (3,)
    assert not choice.extended
    assert not choice.at_edge
    assert len(tried) == 4


def test_no_interpolation_beyond_a_dense_network():
    choice = search(LINE, lambda index: float(index[0]), density=lambda index: 0.9)
    assert choice.index == (0,)
    assert not choice.extended
    assert choice.at_edge


def test_a_plateau_ends_the_search():
    choice = search(LINE, lambda index: 100.0 - min(index[0], 3) - 1e-9 * index[0], density=lambda index: 0.2)
    assert choice.index == (3,)
    assert choice.extended
    assert not choice.at_edge


def test_bic_of_a_gaussian_model():
    """Against scipy's density: BIC = -2 log L + d log n, less the constant n p log 2 pi."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Theta = np.array([[1.2, 0.3, 0.0], [0.3, 1.1, 0.0], [0.0, 0.0, 0.9]])
    bic = -2 * multivariate_normal(np.zeros(3), np.linalg.inv(Theta)).logpdf(X).sum() + 1 * np.log(40)
    sample = Sample((X.T @ X / 40)[None], np.array([40]))
    networks = Networks(Theta[None], Theta[None], np.array([1.0]), True)
    assert information_criterion(sample, networks, gamma=0) == pytest.approx(bic - 40 * 3 * np.log(2 * np.pi))
    extra = information_criterion(sample, networks, gamma=0.5) - information_criterion(sample, networks, gamma=0)
    assert extra == pytest.approx(4 * 0.5 * np.log(3))


def test_cross_validation_is_the_held_out_gaussian_likelihood():
    X = np.random.default_rng(1).standard_normal((30, 4))
    fold = np.zeros(30, dtype=int)
    expected = np.zeros(len(LINE.indices()))
    for label, (train, test) in enumerate(KFold(3).split(X)):
        fold[test] = label
        Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
        for position, index in enumerate(LINE.indices()):
            covariance = np.corrcoef(X[train], rowvar=False) + LINE[index][0] * np.eye(4)
            expected[position] += multivariate_normal(np.zeros(4), covariance).logpdf(Z[test]).sum()
    choice = Problem([Group(X, fold)], Ridge()).choose("cv")
    assert not choice.at_edge
    if not choice.extended:
        assert choice.index == LINE.indices()[int(np.argmax(expected))]
    else:
        assert choice.index[0] >= 3 or choice.index[0] <= 0


def test_folds_are_equal_and_random():
    labels = [Group.of(np.zeros((31, 2)), np.random.default_rng(seed)).fold for seed in (0, 1)]
    assert sorted(np.bincount(labels[0])) == [10, 10, 11]
    assert not np.array_equal(*labels)


def test_nothing_is_estimated_twice():
    solver = Ridge()
    X = np.random.default_rng(2).standard_normal((30, 4))
    problem = Problem([Group.of(X, np.random.default_rng(0))], solver)
    problem.choose("ic")
    fits = solver.n_fits
    problem.choose("ic")
    assert solver.n_fits == fits


def test_each_estimate_starts_from_its_nearest_neighbour():
    starts = {}

    class Recorder(Ridge):
        def solve(self, sample, penalty, start):
            starts[round(penalty[0], 3)] = start
            return super().solve(sample, penalty, start)

    path = Path(Recorder(), Sample(np.eye(3)[None], np.array([10])), LINE)
    estimates = path.estimates_tried_first()
    assert starts[0.8] is None
    assert [starts[penalty] for penalty in (0.4, 0.2, 0.1)] == estimates[:3]


def test_density_counts_pairs():
    network = np.eye(4)
    network[0, 1] = network[1, 0] = 0.5
    assert Networks(np.stack([network, np.eye(4)]), np.eye(4), np.zeros(2), True).density == pytest.approx(1 / 12)


def test_a_column_constant_outside_a_fold_is_named():
    X = np.random.default_rng(3).standard_normal((9, 3))
    X[3:, 1] = 0.0
    with pytest.raises(ValueError, match="column 1 of a group is constant once a third of its 9 samples is held out"):
        Problem([Group(X, np.arange(9) // 3)], Ridge()).choose("cv")


def test_unknown_tuning():
    X = np.random.default_rng(3).standard_normal((9, 3))
    with pytest.raises(ValueError, match="tuning must be 'ic' or 'cv', got 'aic'"):
        Problem([Group(X, np.arange(9) % 3)], Ridge()).choose("aic")
