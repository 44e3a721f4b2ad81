"""Kernel language entropy: against lm-polygraph, closed forms, and what the entailment test changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, inv

from upheld.isotropy.rivals.kernel_language_entropy import (
    entailment_graph,
    heat_kernel,
    kernel_language_entropy,
    matern_kernel,
    semantic_graph,
)

KERNELS = [heat_kernel, matern_kernel]

# The likeliest class of premise i and hypothesis j: 0 contradiction, 1 neutral, 2 entailment.
LIKELIEST = np.array([[2, 2, 1, 2, 0], [2, 2, 2, 2, 0], [1, 1, 2, 1, 1], [2, 2, 2, 2, 0], [0, 0, 0, 0, 2]])
LOG_P = np.log(np.full((5, 5, 3), 0.1) + 0.7 * np.eye(3)[LIKELIEST])


def judged(classes):
    return np.log(np.full((*np.shape(classes), 3), 0.1) + 0.7 * np.eye(3)[np.asarray(classes)])


# lm-polygraph 0.7.0, KernelLanguageEntropy(t), on the one-hot matrices of LIKELIEST
@pytest.mark.parametrize(("t", "expected"), [(0.3, 0.7654886114268158), (0.5, 0.5269965844863371)])
def test_equals_lm_polygraph(t, expected):
    entropy = kernel_language_entropy(semantic_graph(LOG_P), lambda L: heat_kernel(L, t))
    assert entropy == pytest.approx(expected, abs=1e-7)


def test_graph_adds_both_directions():
    W = semantic_graph(LOG_P)
    assert W[0, 1] == 2  # entailed both ways
    assert W[1, 2] == W[2, 1] == 1.5  # entailed one way, neutral the other
    assert W[0, 2] == 1  # neutral both ways
    assert W[2, 4] == 0.5  # neutral one way, contradicted the other
    assert W[0, 4] == 0
    assert not W.diagonal().any()


def test_the_tested_graph_links_what_entails():
    expected = np.zeros((5, 5))
    for i, j in [(0, 1), (0, 3), (1, 3), (1, 2), (2, 3)]:
        expected[i, j] = expected[j, i] = 1
    expected[2, 3] = expected[3, 2] = 1  # 3 entails 2, neutral back
    np.testing.assert_array_equal(entailment_graph(LOG_P), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_edges_is_the_maximum(kernel):
    assert kernel_language_entropy(semantic_graph(judged(2 * np.eye(4, dtype=int))), kernel) == pytest.approx(1)


# Five answers that all entail each other: weights 2, so L has 0 once and 10 four times.
@pytest.mark.parametrize(
    ("kernel", "f"), [(heat_kernel, lambda lam: np.exp(-0.3 * lam)), (matern_kernel, lambda lam: 1 / (2 + lam))]
)
def test_mutual_entailment_in_closed_form(kernel, f):
    N = 5
    r = (f(0) - f(10)) / (f(0) + (N - 1) * f(10))  # K_ij / K_ii
    lam = np.array([(1 + (N - 1) * r) / N] + [(1 - r) / N] * (N - 1))
    expected = -(lam * np.log(lam)).sum() / np.log(N)
    assert expected < 0.8
    assert kernel_language_entropy(semantic_graph(judged(np.full((N, N), 2))), kernel) == pytest.approx(expected)


def test_kernels_are_those_of_matrix_functions():
    W = semantic_graph(LOG_P)
    L = np.diag(W.sum(axis=1)) - W
    np.testing.assert_allclose(heat_kernel(L, 0.4), expm(-0.4 * L), atol=1e-12)
    M = inv(2 * 2 / 1.5**2 * np.eye(5) + L)
    np.testing.assert_allclose(matern_kernel(L, kappa=1.5, nu=2), M @ M, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_order_does_not_matter_and_bounds_hold(N, seed):
    rng = np.random.default_rng(seed)
    log_p = judged(rng.integers(0, 3, (N, N)))
    order = rng.permutation(N)
    shuffled = log_p[np.ix_(order, order)]
    for kernel in KERNELS:
        for graph in (semantic_graph, entailment_graph):
            entropy = kernel_language_entropy(graph(log_p), kernel)
            assert -1e-12 <= entropy <= 1 + 1e-12
            assert kernel_language_entropy(graph(shuffled), kernel) == pytest.approx(entropy, abs=1e-9)
