import numpy as np
import pytest
from sklearn.covariance import graphical_lasso as reference

from upheld.hubs.weighted_graphical_lasso import graphical_lasso, hub_weights


def correlations(p, n, seed):
    rng = np.random.default_rng(seed)
    return np.corrcoef(rng.standard_normal((n, p)) @ rng.standard_normal((p, p)), rowvar=False)


@pytest.mark.parametrize("penalty", [0.1, 0.3])
def test_agrees_with_scikit_learn(penalty):
    S = correlations(15, 60, seed=0)
    _, expected = reference(S, penalty, tol=1e-8, enet_tol=1e-8, max_iter=1000)
    fit = graphical_lasso(S, penalty, rtol=1e-7)
    assert fit.converged
    np.testing.assert_allclose(fit.Theta, expected, atol=2e-4)
    assert np.array_equal(fit.network != 0, np.abs(expected) > 1e-10)


def test_largest_correlation_empties_the_network():
    S = correlations(10, 40, seed=1)
    largest = np.max(np.abs(S - np.eye(10)))
    assert not np.triu(graphical_lasso(S, 1.0001 * largest).network, 1).any()
    assert np.triu(graphical_lasso(S, 0.95 * largest).network, 1).any()


def test_weighted_optimum_of_a_general_convex_solver():
    import cvxpy as cp

    X = np.random.default_rng(2).standard_normal((30, 7))
    X[:, 1:] += 0.7 * X[:, :1]
    S = np.corrcoef(X, rowvar=False)
    weights = hub_weights(S, 30)
    Theta = cp.Variable((7, 7), PSD=True)
    penalty = 0.5 * cp.sum(cp.abs(cp.multiply(weights, Theta)))
    cp.Problem(cp.Minimize(cp.trace(S @ Theta) - cp.log_det(Theta) + penalty)).solve(cp.SCS, eps=1e-8, max_iters=50000)
    np.testing.assert_allclose(graphical_lasso(S, 0.5, weights=weights, rtol=1e-7).Theta, Theta.value, atol=1e-3)


def test_warm_start_reaches_the_same_optimum():
    S = correlations(20, 25, seed=3)
    neighbour = graphical_lasso(S, 0.4).Theta
    warm, cold = graphical_lasso(S, 0.3, start=neighbour, rtol=1e-7), graphical_lasso(S, 0.3, rtol=1e-7)
    np.testing.assert_allclose(warm.Theta, cold.Theta, atol=1e-4)


def test_edges_of_a_hub_are_cheap():
    p = 12
    Theta = 4.0 * np.eye(p)
    Theta[0, 1:] = Theta[1:, 0] = 0.9
    Theta[3, 4] = Theta[4, 3] = 0.9
    weights = hub_weights(np.linalg.inv(Theta), n_samples=10_000)
    # By (1), with a_0 = 9.9, a_3 = a_4 = 1.8, a_j = 0.9: the hub's edge is 0.9 * 9.9 * 0.9, the other 0.9 * 1.8 * 1.8.
    assert weights[0, 1] / weights[3, 4] == pytest.approx((0.9 * 1.8 * 1.8) / (0.9 * 9.9 * 0.9))
    assert weights[0, 1] < weights[3, 4] < weights[1, 2]


def test_weights_are_finite_without_an_inverse():
    weights = hub_weights(correlations(30, 10, seed=4), n_samples=10)
    off = weights[~np.eye(30, dtype=bool)]
    np.testing.assert_array_equal(weights, weights.T)
    assert np.isfinite(off).all()
    assert (off > 0).all()
    assert off.max() == 1


def test_without_an_inverse_the_ridge_is_the_noise_of_an_entry():
    S = correlations(8, 5, seed=5)
    ridge = np.sqrt(np.log(8) / 5)
    np.testing.assert_allclose(hub_weights(S, n_samples=5), hub_weights(S + ridge * np.eye(8), n_samples=1000))
