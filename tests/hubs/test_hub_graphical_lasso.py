import numpy as np
import pytest

from upheld.hubs.hub_graphical_lasso import hub_graphical_lasso
from upheld.hubs.weighted_graphical_lasso import graphical_lasso


def correlations(p, n, seed):
    """A hub at 0 over weak noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1:] += 0.6 * X[:, :1] * rng.choice([-1, 1], p - 1)
    return np.corrcoef(X, rowvar=False)


def objective(S, Theta, V, Z, l1, l2, l3):
    off = ~np.eye(len(S), dtype=bool)
    columns = np.linalg.norm(np.where(off, V, 0), axis=0).sum()
    likelihood = np.sum(S * Theta) - np.linalg.slogdet(Theta)[1]
    return likelihood + l1 * np.abs(Z[off]).sum() + l2 * np.abs(V[off]).sum() + l3 * columns


@pytest.mark.parametrize(("l1", "l2", "l3"), [(0.3, 0.15, 0.3), (0.25, 0.1, 0.9), (0.15, 0.1, 0.6)])
def test_optimum_of_a_general_convex_solver(l1, l2, l3):
    import cvxpy as cp

    S = correlations(8, 20, seed=1)
    Theta, V, Z = cp.Variable((8, 8), PSD=True), cp.Variable((8, 8)), cp.Variable((8, 8), symmetric=True)
    off = 1 - np.eye(8)
    penalties = (
        l1 * cp.sum(cp.abs(cp.multiply(off, Z)))
        + l2 * cp.sum(cp.abs(cp.multiply(off, V)))
        + l3 * cp.sum(cp.norm(cp.multiply(off, V), 2, axis=0))
    )
    likelihood = cp.trace(S @ Theta) - cp.log_det(Theta)
    problem = cp.Problem(cp.Minimize(likelihood + penalties), [Theta == V + V.T + Z])
    expected = problem.solve(solver=cp.SCS, eps=1e-8, max_iters=50000)

    fit = hub_graphical_lasso(S, l1, l2, l3, atol=1e-8, rtol=1e-7, max_iter=20000)
    assert fit.converged
    assert objective(S, fit.network, fit.V, fit.Z, l1, l2, l3) == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(fit.Theta, Theta.value, atol=1e-3)


def test_default_tolerance_is_close_to_the_optimum():
    S = correlations(40, 30, seed=2)
    loose, tight = (
        hub_graphical_lasso(S, 0.3, 0.15, 0.9),
        hub_graphical_lasso(S, 0.3, 0.15, 0.9, rtol=1e-7, max_iter=20000),
    )
    values = [objective(S, fit.Theta, fit.V, fit.Z, 0.3, 0.15, 0.9) for fit in (loose, tight)]
    assert loose.converged
    assert tight.converged
    assert values[0] == pytest.approx(values[1], rel=1e-3)
    np.testing.assert_allclose(loose.network, tight.network, atol=2e-2)


def test_without_hub_columns_it_is_the_graphical_lasso():
    S = correlations(12, 30, seed=3)
    fit = hub_graphical_lasso(S, 0.2, 1.0, 1.0, rtol=1e-6, max_iter=5000)
    assert not fit.hubs.any()
    np.testing.assert_allclose(fit.network, graphical_lasso(S, 0.2, rtol=1e-7).network, atol=1e-4)


def test_a_planted_hub_is_the_only_column():
    S = correlations(30, 200, seed=4)
    fit = hub_graphical_lasso(S, 0.4, 0.3, 1.5)
    assert fit.hubs.nonzero()[0].tolist() == [0]
    assert np.count_nonzero(np.triu(fit.Z, 1)) < 30


def test_parts_have_the_promised_shape():
    fit = hub_graphical_lasso(correlations(15, 30, seed=5), 0.3, 0.1, 0.5)
    np.testing.assert_allclose(fit.Z, fit.Z.T, atol=1e-12)
    assert not np.diag(fit.V).any()
    assert np.linalg.eigvalsh(fit.Theta)[0] > 0
    np.testing.assert_allclose(fit.network, fit.Theta, atol=1e-2)


def test_a_warm_start_reaches_the_same_optimum_sooner():
    S = correlations(30, 30, seed=6)
    neighbour = hub_graphical_lasso(S, 0.3, 0.15, 0.8, rtol=1e-6, max_iter=5000)
    cold = hub_graphical_lasso(S, 0.29, 0.145, 0.78, rtol=1e-6, max_iter=5000)
    warm = hub_graphical_lasso(S, 0.29, 0.145, 0.78, rtol=1e-6, max_iter=5000, start=neighbour)
    np.testing.assert_allclose(warm.Theta, cold.Theta, atol=1e-3)
    assert warm.n_iter < cold.n_iter


def test_parameters_are_counted_as_in_the_paper():
    fit = hub_graphical_lasso(correlations(30, 200, seed=4), 0.4, 0.3, 1.5)
    edges, entries = np.count_nonzero(np.triu(fit.Z, 1)), np.count_nonzero(fit.V)
    assert (edges, entries, fit.hubs.sum()) == (1, 29, 1)
    assert fit.n_parameters(c=1.0) == edges + entries
    assert fit.n_parameters(c=0.0) == edges + 1


def test_running_out_of_steps_is_told():
    assert not hub_graphical_lasso(correlations(20, 30, seed=7), 0.2, 0.1, 0.4, max_iter=3).converged


@pytest.mark.parametrize(
    ("S", "penalties", "message"),
    [
        (np.eye(3), (0.1, 0, 0.1), "the penalty l2 must be positive, got 0"),
        (np.ones((2, 3)), (0.1, 0.1, 0.1), r"square matrix of finite numbers, got shape \(2, 3\)"),
        (
            np.array([[1, 0.5], [0.1, 1]]),
            (0.1, 0.1, 0.1),
            r"S must be symmetric, but S\[0,1\] = 0.5 and S\[1,0\] = 0.1",
        ),
    ],
)
def test_bad_input_is_named(S, penalties, message):
    with pytest.raises(ValueError, match=message):
        hub_graphical_lasso(S, *penalties)
