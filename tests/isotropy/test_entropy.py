"""The entropy against closed forms, a Gram-matrix oracle, the laws it must obey, and the uniform law on the sphere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import eigvalsh
from scipy.stats import entropy as shannon
from scipy.stats import ortho_group

from upheld.isotropy import spectrum, von_neumann_entropies, von_neumann_entropy
from upheld.isotropy.spread import cosine_matrix, purity


def equal_cosines(N: int, r: float) -> np.ndarray:
    """N vectors with all pairwise cosines r."""
    return np.linalg.cholesky(np.full((N, N), r) + (1 - r) * np.eye(N))


@st.composite
def vectors(draw):
    shape = draw(st.integers(2, 9)), draw(st.integers(1, 12))
    X = draw(arrays(np.float64, shape, elements=st.floats(-1, 1, width=16)))
    assume((np.linalg.norm(X, axis=1) > 1e-3).all())
    return X


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(
    ("X", "jitter", "S"),
    [
        (np.tile([3.0, 4.0, 1.0], (5, 1)), 0, 0.0),
        (np.tile([3.0, 4.0, 1.0], (5, 1)), 1e-3, 0.0066137346),  # the repository's formula
        (np.eye(4), 0, 1.3862943611),  # log 4
        (np.eye(4), 1e-3, 1.3866801556),
        ([[1, 0], [0, 1], [1, 1]], 0, 0.6365141683),  # spectrum 2/3, 1/3, 0
        ([[1, 0], [0, 1], [1, 1]], 1e-3, 0.6390174000),  # D < N: all N places are lifted
        (equal_cosines(5, 0.9), 0, 0.3896729207),
        (equal_cosines(10, 0.9), 0, 0.5002880351),
        (equal_cosines(10, 0.5), 0, 1.6768898735),
        (equal_cosines(20, 0.8), 0, 1.0456663707),
        ([[1, 0], [1, 0], [0, 1], [0, 1]], 0, np.log(2)),
        ([[1, 0], [1, 0], [1, 0], [0, 1]], 0, 0.5623351446),
    ],
)
def test_closed_forms(X, jitter, S):
    assert von_neumann_entropy(X, jitter=jitter) == pytest.approx(S, abs=1e-10)


@pytest.mark.parametrize(
    ("N", "r", "score"), [(5, 0.9, 0.2421173987), (10, 0.9, 0.2172723330), (10, 0.5, 0.7282640188), (20, 0.8, 0.3490520097)]
)  # fmt: skip
def test_closed_forms_of_the_score(N, r, score):
    assert von_neumann_entropy(equal_cosines(N, r), normalize=True) == pytest.approx(score, abs=1e-10)


def test_orthogonal_and_identical_answers_are_the_ends_exactly():
    assert von_neumann_entropy(np.eye(7), normalize=True) == 1.0
    assert von_neumann_entropy(np.random.default_rng(0).normal(size=(1, 384)).repeat(9, axis=0)) == 0.0


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 1), seeds)
def test_clusters_of_identical_answers_give_discrete_semantic_entropy(sizes, seed):
    """Shannon's entropy of the clusters' shares, where clusters are orthogonal."""
    basis = ortho_group.rvs(6, random_state=seed) if seed else np.eye(6)
    X = np.repeat(basis[: len(sizes)], sizes, axis=0)
    assert von_neumann_entropy(X) == pytest.approx(shannon(sizes), abs=1e-10)


@given(vectors(), st.sampled_from([0.0, 1e-6, 1e-3]))
def test_singular_values_agree_with_the_gram_matrix(X, jitter):
    K = cosine_matrix(X) + jitter * np.eye(len(X))
    lam = np.clip(eigvalsh(K)[::-1] / len(X), 0, None)
    np.testing.assert_allclose(spectrum(X, jitter), lam, atol=1e-12)
    assert von_neumann_entropy(X, jitter=jitter) == pytest.approx(
        -sum(p * np.log(p) for p in lam if p > 1e-14), abs=1e-9
    )


@given(vectors(), seeds)
def test_what_leaves_it_unchanged(X, seed):
    rng = np.random.default_rng(seed)
    S = von_neumann_entropy(X)
    same = {
        "order": X[rng.permutation(len(X))],
        "lengths": X * 10.0 ** rng.uniform(-30, 30, (len(X), 1)),
        "signs": X * rng.choice([-1, 1], (len(X), 1)),
        "the whole set twice": np.vstack([X, X]),
        "more dimensions": np.hstack([X, np.zeros((len(X), 30))]),
        "orthogonal map": X @ (ortho_group.rvs(X.shape[1], random_state=rng) if X.shape[1] > 1 else -np.eye(1)),
    }
    for what, other in same.items():
        assert von_neumann_entropy(other) == pytest.approx(S, abs=1e-9), what


@given(vectors())
def test_bounds(X):
    S, lam = von_neumann_entropy(X), spectrum(X)
    rank = np.linalg.matrix_rank(X / np.linalg.norm(X, axis=1, keepdims=True), tol=1e-7)
    assert lam.sum() == pytest.approx(1)
    assert (np.diff(lam) <= 1e-15).all()
    assert 0 <= S <= np.log(min(X.shape)) + 1e-12
    assert 1 <= np.exp(S) <= rank + 1e-6
    assert 1 / purity(cosine_matrix(X)) <= np.exp(S) + 1e-9  # order 2 below order 1
    assert 0 <= von_neumann_entropy(X, normalize=True) <= 1


@given(st.integers(2, 8), st.integers(1, 8), seeds)
def test_concave_in_the_second_moment_matrix(N, D, seed):
    one, other = np.random.default_rng(seed).normal(size=(2, N, D))
    other[:, 0] *= 9
    mean = (von_neumann_entropy(one) + von_neumann_entropy(other)) / 2
    M = [
        x.T @ x / N
        for x in (one / np.linalg.norm(one, axis=1)[:, None], other / np.linalg.norm(other, axis=1)[:, None])
    ]
    on_features = shannon(np.clip(eigvalsh((M[0] + M[1]) / 2), 0, None))
    assert von_neumann_entropy(np.vstack([one, other])) == pytest.approx(on_features, abs=1e-9)
    assert on_features >= mean - 1e-9


def test_more_answers_than_dimensions_stay_below_log_d():
    X = np.vstack([np.eye(3)] * 4)
    assert von_neumann_entropy(X) == pytest.approx(np.log(3))
    assert von_neumann_entropy(X, normalize=True) == pytest.approx(np.log(3) / np.log(12))
    assert len(spectrum(X)) == 12
    assert np.count_nonzero(spectrum(X, 1e-3)) == 12


def test_uniform_on_the_sphere():
    """E tr ρ² = 1/N + (1 - 1/N)/D; the mean 1.8535 and standard deviation 0.0505 of S are an independent simulation's."""
    N, D, draws = 8, 16, 20_000
    X = np.random.default_rng(1).normal(size=(draws, N, D))
    tr, S = purity(cosine_matrix(X)), von_neumann_entropies(X)
    assert abs(tr.mean() - (1 / N + (1 - 1 / N) / D)) < 5 * tr.std() / np.sqrt(draws)
    assert S.mean() == pytest.approx(1.8535, abs=5 * 0.0505 / np.sqrt(draws) + 5e-5)
    assert S.std() == pytest.approx(0.0505, abs=0.0015)


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(2, 6), st.integers(1, 9), seeds)
def test_a_stack_equals_one_by_one(P, N, D, seed):
    X = np.random.default_rng(seed).normal(size=(P, N, D)).astype(np.float32)
    for normalize in (False, True):
        one = [von_neumann_entropy(x, normalize=normalize) for x in X]
        np.testing.assert_allclose(von_neumann_entropies(X, normalize=normalize), one, atol=1e-13)


def test_a_stack_is_taken_in_parts(monkeypatch):
    X = np.random.default_rng(0).normal(size=(11, 4, 6))
    whole = von_neumann_entropies(X)
    monkeypatch.setattr("upheld.isotropy.entropy.STACK_ELEMENTS", 50)
    np.testing.assert_array_equal(von_neumann_entropies(X), whole)


def test_float32_rounding_does_not_lift_the_floor():
    """The same answer embedded in two batches: vectors apart by float32's rounding, whose kernel is spoilt where it is formed in it."""
    rng = np.random.default_rng(0)
    e = rng.normal(size=384).astype(np.float32)
    X = (e * (1 + rng.uniform(-6e-8, 6e-8, (20, 384)))).astype(np.float32)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    formed_in_float32 = np.linalg.eigvals(unit @ unit.T / 20)
    assert (np.abs(formed_in_float32[1:]) > 1e-10).any()
    assert von_neumann_entropy(X) < 1e-10


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 0.0]], "1 vector: a spread needs at least 2"),
        (np.zeros((0, 3)), "0 vector: a spread needs at least 2"),
        ([[1.0, 0.0], [0.0, 0.0]], "vector 1 is zero and has no direction"),
        ([[1.0, 0.0], [0.0, 1.0], [np.nan, 1.0]], "vector 2 is not finite"),
        ([[np.inf, 0.0], [0.0, 1.0]], "vector 0 is not finite"),
        ([1.0, 2.0], r"shape \(answers, dimensions\), got \(2,\)"),
        (np.ones((2, 2, 2)), r"shape \(answers, dimensions\), got \(2, 2, 2\)"),
        (np.ones((3, 0)), "no dimensions"),
    ],
)
def test_bad_vectors(X, message):
    with pytest.raises(ValueError, match=message):
        von_neumann_entropy(X)


def test_a_bad_vector_of_a_stack_is_named_by_group():
    X = np.ones((3, 4, 2))
    X[2, 1] = 0
    with pytest.raises(ValueError, match="vector 1 of group 2 is zero"):
        spectrum(X)


@pytest.mark.parametrize("jitter", [-1e-3, np.nan, np.inf])
def test_bad_jitter(jitter):
    with pytest.raises(ValueError, match="jitter must be a number of at least 0"):
        von_neumann_entropy(np.eye(2), jitter=jitter)
