"""Anchors A1-A7, A9, A10: closed forms, brute force and general solvers; and the invariances of (1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from upheld.hubs.dual import DualFunction
from upheld.hubs.eigenspaces import joint_eigenspace


def random_correlations(K, p, seed, n=30):
    rng = np.random.default_rng(seed)
    return np.array([np.corrcoef(rng.standard_normal((n, p)).T) for _ in range(K)])


def star(p, center, leaves):
    A = np.zeros((p, p))
    A[center, leaves] = A[leaves, center] = 1.0
    return A


def two_star_covariances():
    """A9: hub 0 is common; 1, 26 and 27 each lead an equally large star in one group."""
    adjacency = [star(30, 0, list(range(2, 14))) + star(30, c, list(range(14, 26))) for c in (1, 26, 27)]
    shift = 2 - min(np.linalg.eigvalsh(A)[0] for A in adjacency)
    return [np.linalg.inv(A + shift * np.eye(30)) for A in adjacency]


def rotated_pair(degrees):
    t = np.deg2rad(degrees)
    return np.eye(2) / 2 - np.array([[np.cos(t), np.sin(t)], [np.sin(t), -np.cos(t)]]) / 2


def test_a1_star_hub_holds_half_of_the_eigenvector():
    Sigma = np.linalg.inv(star(17, 0, list(range(1, 17))) + 6 * np.eye(17))
    solution = joint_eigenspace([Sigma], 1)
    np.testing.assert_allclose(solution.influence[0], 0.5, atol=1e-12)
    np.testing.assert_allclose(solution.influence[1:], 0.03125, atol=1e-12)
    assert solution.upper == pytest.approx(0.1, abs=1e-12)
    assert solution.status == "certified"


def test_a2_identical_matrices_give_the_bottom_eigenspace():
    R = random_correlations(1, 15, 0)[0]
    values, vectors = np.linalg.eigh(R)
    solution = joint_eigenspace([R] * 4, 5)
    np.testing.assert_allclose(solution.projector, vectors[:, :5] @ vectors[:, :5].T, atol=1e-8)
    assert solution.upper == pytest.approx(values[:5].sum())


def test_a3_tie_of_two_matrices_is_resolved_exactly():
    solution = joint_eigenspace([np.diag([0.0, 1.0]), np.diag([1.0, 0.0])], 1)
    np.testing.assert_allclose(solution.influence, [0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(solution.weights, [0.5, 0.5], atol=1e-9)
    assert solution.lower == pytest.approx(0.5)
    assert solution.upper == pytest.approx(0.5)
    assert solution.status == "certified, not unique"


@pytest.mark.parametrize(("s", "value"), [(1, 1.5), (2, 3.0), (3, 4.5)])
def test_opposed_diagonals_are_exact_because_k_is_two(s, value):
    # (x_i)(i) and (x_i)(3 - i) sum to 3 for every unit vector, so the larger is at least 1.5 each.
    solution = joint_eigenspace([np.diag([0.0, 1, 2, 3]), np.diag([3.0, 2, 1, 0])], s)
    assert solution.upper == pytest.approx(value, abs=1e-9)
    assert solution.certified


def test_a4_inexact_relaxation_is_reported_as_such():
    solution = joint_eigenspace([rotated_pair(t) for t in (0, 120, 240)], 1)
    assert solution.lower == pytest.approx(0.5, abs=1e-9)
    assert solution.upper == pytest.approx(0.75, abs=1e-6)
    assert solution.relative_gap == pytest.approx(0.5, abs=1e-5)
    assert not solution.certified
    assert solution.status == "not certified"


@pytest.mark.parametrize(("s", "optimum", "individual"), [(1, 0.112005, 0.0), (2, 0.257739, 0.2240)])
def test_a9_the_common_hub_is_isolated_from_equally_strong_individual_ones(s, optimum, individual):
    solution = joint_eigenspace(two_star_covariances(), s)
    assert solution.upper == pytest.approx(optimum, abs=1e-6)
    assert solution.influence[0] == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_allclose(solution.influence[[1, 26, 27]], individual, atol=5e-5)
    np.testing.assert_allclose(solution.weights, 1 / 3, atol=1e-9)
    if s == 1:
        assert solution.eigengap == pytest.approx(0.0337, abs=5e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a10_nelder_mead_on_the_softmax_finds_the_same_value(seed):
    S, s = random_correlations(4, 12, seed), 4

    def negated(x):
        weights = np.exp(x - x.max())
        return -np.linalg.eigvalsh(np.tensordot(weights / weights.sum(), S, 1))[:s].sum()

    best = max(
        -minimize(negated, x0, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}).fun
        for x0 in np.random.default_rng(seed).normal(size=(3, 4))
    )
    assert joint_eigenspace(S, s, tol=1e-9).lower == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("s", [1, 4])
def test_a6_agrees_with_a_general_sdp_solver(s):
    cp = pytest.importorskip("cvxpy")
    S = random_correlations(4, 12, 7)
    P, t = cp.Variable((12, 12), symmetric=True), cp.Variable()
    constraints = [P >> 0, np.eye(12) - P >> 0, cp.trace(P) == s, *(cp.trace(S_k @ P) <= t for S_k in S)]
    value = cp.Problem(cp.Minimize(t), constraints).solve(solver=cp.SCS, eps=1e-7, max_iters=50_000)
    solution = joint_eigenspace(S, s, tol=1e-8)
    assert solution.lower == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("n_worst", [2, 3])
def test_at_least_m_agrees_with_a_general_sdp_solver(n_worst):
    cp = pytest.importorskip("cvxpy")
    S, s = random_correlations(4, 10, 3), 3
    P = cp.Variable((10, 10), symmetric=True)
    values = cp.hstack([cp.trace(S_k @ P) for S_k in S])
    objective = cp.sum_largest(values, n_worst) / n_worst
    value = cp.Problem(cp.Minimize(objective), [P >> 0, np.eye(10) - P >> 0, cp.trace(P) == s]).solve(
        solver=cp.SCS, eps=1e-7, max_iters=50_000
    )
    solution = joint_eigenspace(S, s, at_least=4 - n_worst + 1, tol=1e-7)
    assert solution.lower == pytest.approx(value, abs=1e-4)
    t = np.einsum("kij,ij->k", S, solution.projector)
    assert solution.upper == pytest.approx(np.sort(t)[-n_worst:].mean())


def test_at_least_one_averages_the_matrices():
    S = random_correlations(3, 12, 1)
    vectors = np.linalg.eigh(S.mean(axis=0))[1][:, :4]
    np.testing.assert_allclose(joint_eigenspace(S, 4, at_least=1).projector, vectors @ vectors.T, atol=1e-8)


def test_at_least_two_of_three_ignores_a_group_without_the_hub():
    """Two groups share a star, the third is unrelated noise: asking for two of three restores the star's hub."""
    Sigma = np.linalg.inv(star(17, 0, list(range(1, 17))) + 6 * np.eye(17))
    odd = np.linalg.inv(star(17, 16, list(range(1, 16))) + 6 * np.eye(17))
    in_all = joint_eigenspace([Sigma, Sigma, odd], 1).influence[0]
    in_two = joint_eigenspace([Sigma, Sigma, odd], 1, at_least=2).influence[0]
    assert in_two > in_all + 0.01


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("s", [1, 2, 5])
def test_one_or_two_matrices_are_always_certified(K, s):
    for seed in range(8):
        rng = np.random.default_rng([seed, s])
        A = rng.integers(-2, 3, (K, 7, 7)).astype(float)  # small integers make ties frequent
        assert joint_eigenspace(A + A.transpose(0, 2, 1), s).certified


def test_a7_the_authors_descent_never_beats_the_lower_bound():
    for seed in range(3):
        S = random_correlations(3, 20, seed)
        solution = joint_eigenspace(S, 4, solver="stiefel", n_starts=3, random_state=seed)
        exact = joint_eigenspace(S, 4)
        # Weak duality, recomputed: the reported bounds are ordered by construction.
        assert solution.upper >= np.linalg.eigvalsh(np.tensordot(exact.weights, S, 1))[:4].sum() - 1e-9
        assert solution.upper == pytest.approx(np.einsum("kij,ij->k", S, solution.projector).max())
        assert exact.upper <= solution.upper + 1e-9
        np.testing.assert_allclose(solution.projector @ solution.projector, solution.projector, atol=1e-8)


def test_random_search_never_beats_the_lower_bound():
    S = random_correlations(3, 6, 5)
    solution = joint_eigenspace(S, 2, tol=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        V = np.linalg.qr(rng.standard_normal((6, 2)))[0]
        assert np.einsum("is,kij,js->k", V, S, V).max() >= solution.lower - 1e-9


def test_vector_criterion_with_one_matrix_is_the_eigenbasis_in_order():
    R = random_correlations(1, 10, 2)[0]
    solution = joint_eigenspace([R], 3, criterion="vector")
    expected = np.linalg.eigh(R)[1][:, :3].T
    np.testing.assert_allclose(np.abs(solution.components @ expected.T), np.eye(3), atol=1e-7)


def test_vector_criterion_gives_orthonormal_directions_and_the_minimax_vector_first():
    S = random_correlations(3, 12, 4)
    solution = joint_eigenspace(S, 3, criterion="vector")
    np.testing.assert_allclose(solution.components @ solution.components.T, np.eye(3), atol=1e-8)
    first = joint_eigenspace(S, 1)
    np.testing.assert_allclose(np.abs(solution.components[0] @ first.components[0]), 1, atol=1e-6)


problems = st.tuples(st.integers(2, 4), st.integers(5, 9), st.integers(1, 3), st.integers(0, 10_000))


@settings(max_examples=25, deadline=None)
@given(problems)
def test_bounds_and_influences_are_consistent(problem):
    K, p, s, seed = problem
    S = random_correlations(K, p, seed)
    solution = joint_eigenspace(S, s)
    w = solution.influence
    assert w.min() >= 0
    assert w.max() <= 1 + 1e-9
    assert w.sum() == pytest.approx(s)
    weighted = np.linalg.eigvalsh(np.tensordot(solution.weights, S, 1))
    assert solution.lower == pytest.approx(weighted[:s].sum(), abs=1e-12)
    assert solution.upper == pytest.approx(np.einsum("kij,ij->k", S, solution.projector).max(), abs=1e-12)
    assert solution.upper >= weighted[:s].sum() - 1e-12
    np.testing.assert_allclose(solution.eigenvalues, weighted, atol=1e-10)
    assert solution.eigengap == pytest.approx(weighted[s] - weighted[s - 1], abs=1e-10)
    assert solution.weights.sum() == pytest.approx(1)
    assert solution.weights.min() >= 0
    assert len(solution.eigenvalues) == p


def smooth_problem(seed, p=8, s=2):
    """Random correlations with a positive eigengap, where the solution is unique."""
    S = random_correlations(3, p, seed)
    assume(joint_eigenspace(S, s).eigengap > 1e-2)
    solution = joint_eigenspace(S, s, tol=1e-8)
    assert solution.status == "certified"
    return S, s, solution


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 50), st.floats(-1, 5))
def test_scale_and_shift_of_all_matrices_leave_the_eigenspace(seed, a, c):
    S, s, solution = smooth_problem(seed)
    moved = joint_eigenspace(a * S + c * np.eye(8), s, tol=1e-8)
    np.testing.assert_allclose(moved.projector, solution.projector, atol=2e-4)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000))
def test_group_order_signs_and_permutation(seed):
    S, s, solution = smooth_problem(seed)
    rng = np.random.default_rng(seed)
    order, signs = rng.permutation(8), rng.choice([-1.0, 1.0], 8)
    np.testing.assert_allclose(joint_eigenspace(S[::-1], s, tol=1e-8).influence, solution.influence, atol=2e-4)
    flipped = joint_eigenspace(S * np.outer(signs, signs), s, tol=1e-8)
    np.testing.assert_allclose(flipped.influence, solution.influence, atol=2e-4)
    permuted = joint_eigenspace(S[:, order][:, :, order], s, tol=1e-8)
    np.testing.assert_allclose(permuted.influence, solution.influence[order], atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 1))
def test_g_is_concave_and_homogeneous(seed, share):
    S = random_correlations(3, 7, seed)
    a, b = np.random.default_rng(seed).dirichlet(np.ones(3), 2)
    dual = DualFunction(S, 2)
    mixed = dual(share * a + (1 - share) * b)[0]
    assert mixed >= share * dual(a)[0] + (1 - share) * dual(b)[0] - 1e-12
    value, gradient = dual(a)
    assert value == pytest.approx(gradient @ a)
    assert dual(b)[0] <= gradient @ b + 1e-12  # the cut lies above g


@pytest.mark.parametrize(
    ("S", "s", "options", "message"),
    [
        ([np.eye(3)], 3, {}, "between 1 and p - 1 = 2, got 3"),
        ([np.eye(3)], 0, {}, "between 1 and p - 1"),
        ([np.eye(3)], 1.5, {}, "a whole number between 1 and p - 1 = 2, got 1.5"),
        ([np.eye(3)], 1, {"tol": -1.0}, "tol must be at least 0, got -1.0"),
        ([np.eye(3)], 1, {"tol": np.nan}, "tol must be at least 0, got nan"),
        ([np.eye(3)], 1, {"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ([np.eye(3)], 1, {"solver": "stiefel", "n_starts": 0}, "n_starts must be at least 1, got 0"),
        ([np.eye(3), np.eye(2)], 1, {}, r"one shape \(p, p\), got \(3, 3\), \(2, 2\)"),
        (np.ones((2, 3, 2)), 1, {}, "square matrices"),
        ([np.triu(np.ones((3, 3)))], 1, {}, "matrix 0 is not symmetric"),
        ([np.eye(3), np.full((3, 3), np.nan)], 1, {}, "matrix 1 holds values that are not finite"),
        ([np.eye(3)], 1, {"at_least": 2}, "at_least must lie between 1 and the number of groups 1"),
        ([np.eye(3)], 1, {"solver": "newton"}, "'dual' or 'stiefel', got 'newton'"),
        ([np.eye(3)], 1, {"criterion": "det"}, "'trace' or 'vector', got 'det'"),
    ],
)
def test_bad_input_is_named(S, s, options, message):
    with pytest.raises(ValueError, match=message):
        joint_eigenspace(S, s, **options)
