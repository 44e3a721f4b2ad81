"""Degree, Eccentricity and EigV: against lm-polygraph, closed forms, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.isotropy.rivals.entailment import entailment_similarity
from upheld.isotropy.rivals.graphs import degree, eccentricity, eigenvalue_sum
from upheld.isotropy.rivals.overlap import jaccard

TEXTS = [
    "Ada Lovelace was born in London and wrote the first program.",
    "Ada Lovelace, born in London, wrote the first computer program.",
    "Ada was a mathematician who was born in Paris and taught at a university.",
    "The first program was written by Ada Lovelace in London",
    "Grace Hopper built the compiler at Harvard.",
]

# Logits of contradiction, neutral, entailment of an imagined NLI model; answers 0, 1 and 3 entail each other.
LOGITS = np.array(
    [
        [[-9, -9, 9], [-1.1, -0.5, 2.8], [0.1, 1.6, -0.6], [-0.7, 0.6, 4.4], [2.1, -1.1, -0.0]],
        [[0.8, -1.6, 3.5], [-9, -9, 9], [-0.3, -1.5, 0.3], [0.2, -0.2, 1.0], [1.4, -0.1, 0.1]],
        [[-1.8, 1.4, -1.2], [-1.0, 3.3, -1.0], [-9, -9, 9], [-0.1, 2.1, 0.1], [0.5, 2.1, 1.6]],
        [[-1.9, 1.0, 4.1], [-0.8, 2.4, 4.9], [-1.4, 0.1, 0.7], [-9, -9, 9], [2.8, 1.7, -0.8]],
        [[3.2, -0.6, 0.2], [1.6, -0.7, -0.2], [4.1, 1.4, -1.6], [2.0, 0.8, -2.4], [-9, -9, 9]],
    ]
)
LOG_P = LOGITS - np.logaddexp.reduce(LOGITS, axis=-1, keepdims=True)

GRAPHS = [degree, eccentricity, eigenvalue_sum]


# lm-polygraph 0.7.0, estimators DegMat, Eccentricity and EigValLaplacian with similarity_score="Jaccard_score" on TEXTS,
# and with "NLI_score", affinity="entail", on the softmax of LOGITS.
@pytest.mark.parametrize(
    ("graph", "on_jaccard", "on_entailment"),
    [
        (degree, 0.6333642930856553, 0.496684533904841),
        (eccentricity, 2.0, 1.4143698672180345),
        (eigenvalue_sum, 2.856235684555587, 2.228534978020643),
    ],
)
def test_equals_lm_polygraph(graph, on_jaccard, on_entailment):
    assert graph(jaccard(TEXTS)) == pytest.approx(on_jaccard, abs=1e-8)
    assert graph(entailment_similarity(LOG_P)) == pytest.approx(on_entailment, abs=1e-8)


@pytest.mark.parametrize("N", [2, 5])
def test_identical_answers_are_one_meaning(N):
    W = np.ones((N, N))
    assert degree(W) == 0
    assert eccentricity(W) == pytest.approx(0, abs=1e-7)
    assert eigenvalue_sum(W) == pytest.approx(1)


@pytest.mark.parametrize("N", [2, 5])
def test_answers_with_nothing_in_common_are_n_meanings(N):
    W = np.eye(N)
    assert degree(W) == pytest.approx(1 - 1 / N)
    assert eccentricity(W) == pytest.approx(np.sqrt(N - 1))
    assert eigenvalue_sum(W) == pytest.approx(N)


def test_two_blocks_are_two_meanings():
    W = np.kron(np.eye(2), np.ones((3, 3)))
    assert eigenvalue_sum(W) == pytest.approx(2)
    # Of the two eigenvectors below 0.9 only their difference is not constant over the answers.
    assert eccentricity(W) == pytest.approx(1)


def test_equal_similarities_in_closed_form():
    # W = (1-r) I + r 11': L has 0 once and 1 - (1-r)/(1 + (N-1) r) else.
    N, r = 6, 0.3
    rest = (1 - r) / (1 + (N - 1) * r)
    assert eigenvalue_sum((1 - r) * np.eye(N) + r) == pytest.approx(1 + (N - 1) * rest)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_order_of_answers_does_not_matter(N, seed):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((N, N)), 1)
    W = W + W.T + np.eye(N)
    order = rng.permutation(N)
    for graph in GRAPHS:
        assert graph(W[np.ix_(order, order)]) == pytest.approx(graph(W), abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_bounds(N, seed):
    W = np.triu(np.random.default_rng(seed).random((N, N)), 1)
    W = W + W.T + np.eye(N)
    assert 0 <= degree(W) <= 1 - 1 / N
    assert 0 <= eccentricity(W) <= np.sqrt(N - 1) + 1e-9
    assert 1 - 1e-9 <= eigenvalue_sum(W) <= N + 1e-9


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), r"square matrix over at least 2 answers, got shape \(2, 3\)"),
        (np.ones((1, 1)), "at least 2 answers"),
        ([[1, 1.5], [1.5, 1]], "similarity of answers 0 and 1 is 1.5; it must lie between 0 and 1"),
        ([[1, np.nan], [np.nan, 1]], "similarity of answers 0 and 1 is nan"),
        ([[1, 0.2], [0.4, 1]], "0.2 one way and 0.4 the other"),
        ([[1, 0.2], [0.2, 0.5]], "similarity of answer 1 with itself is 0.5; it must be 1"),
    ],
)
def test_what_is_no_similarity_matrix_is_named(graph, W, message):
    with pytest.raises(ValueError, match=message):
        graph(W)
