from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from upheld.effects.data import load_lalonde, load_nhefs
from upheld.effects.weights import entropy_weights, quadratic_weights


def problem(seed, n=40, D=25, shift=0.2):
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((n, D)) / np.sqrt(D)
    m = rng.integers(1, 5, n).astype(float)
    mu = phi.mean(axis=0) + shift * rng.standard_normal(D) / np.sqrt(D)
    return phi, m, mu, rng.standard_normal(n)


@given(st.integers(0, 10_000), st.floats(0.01, 10))
@settings(max_examples=40, deadline=None)
def test_free_quadratic_balancing_is_ridge_at_the_target(seed, lam):
    """Anchor 1, without intercept: solved by a linear system in the outcomes."""
    phi, m, mu, y = problem(seed)
    alpha = quadratic_weights(phi, m, mu, lam, "none").alpha
    theta = np.linalg.solve(phi.T @ np.diag(m) @ phi + lam * np.eye(25), phi.T @ (m * y))
    assert alpha @ y == pytest.approx(theta @ mu, abs=1e-12)


@given(st.integers(0, 10_000), st.floats(1e-6, 1))
@settings(max_examples=40, deadline=None)
def test_entropy_weights_satisfy_their_optimality_identity(seed, delta):
    """Anchor 2: sum alpha phi - mu = -delta beta, with weights m exp(beta . phi) that sum to one."""
    phi, m, mu, _ = problem(seed, 120, 10)
    weights = entropy_weights(phi, m, mu, delta)
    assert weights.converged
    np.testing.assert_allclose(weights.alpha @ phi - mu, -delta * weights.beta, atol=1e-8)
    assert weights.alpha.sum() == pytest.approx(1)
    assert weights.alpha.min() > 0
    exponent = np.log(weights.alpha / m) - phi @ weights.beta
    assert np.ptp(exponent) < 1e-8


def test_entropy_balancing_as_another_solver_finds_it():
    """Hainmueller's problem: the weights nearest to m/M in Kullback-Leibler divergence that meet the means exactly."""
    phi, m, mu, _ = problem(1, 60, 4)
    found = entropy_weights(phi, m, mu, 1e-12).alpha
    base = m / m.sum()
    alpha = cp.Variable(60)
    cp.Problem(cp.Minimize(cp.sum(cp.kl_div(alpha, base))), [phi.T @ alpha == mu, cp.sum(alpha) == 1]).solve(
        "SCS", eps=1e-9
    )
    np.testing.assert_allclose(found, alpha.value, atol=1e-5)


@pytest.mark.parametrize("lam", [0.01, 0.1, 3.0])
def test_simplex_weights_as_another_solver_finds_them(lam):
    phi, m, mu, _ = problem(2, 50, 8, shift=2.0)
    weights = quadratic_weights(phi, m, mu, lam, "simplex")
    assert weights.converged
    assert (weights.alpha == 0).any(), "the constraint binds"
    alpha = cp.Variable(50)
    loss = cp.sum_squares(phi.T @ alpha - mu) + lam * cp.sum(cp.multiply(1 / m, cp.square(alpha)))
    cp.Problem(cp.Minimize(loss), [alpha >= 0, cp.sum(alpha) == 1]).solve("CLARABEL")
    np.testing.assert_allclose(weights.alpha, alpha.value, atol=1e-6)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_copies_are_multiplicities(seed):
    phi, m, mu, _ = problem(seed, 30, 6)
    copies = np.repeat(np.arange(30), m.astype(int))
    ones = np.ones(len(copies))
    for one, many in (
        (entropy_weights(phi, m, mu, 0.01), entropy_weights(phi[copies], ones, mu, 0.01)),
        (quadratic_weights(phi, m, mu, 0.3, "simplex"), quadratic_weights(phi[copies], ones, mu, 0.3, "simplex")),
        (quadratic_weights(phi, m, mu, 0.3, "none"), quadratic_weights(phi[copies], ones, mu, 0.3, "none")),
    ):
        np.testing.assert_allclose(np.bincount(copies, many.alpha), one.alpha, atol=1e-7)


def test_free_quadratic_weights_minimise_their_loss():
    phi, m, mu, _ = problem(4, 12, 5)

    def loss(alpha):
        return np.sum((alpha @ phi - mu) ** 2) + 0.2 * np.sum(alpha**2 / m)

    found = quadratic_weights(phi, m, mu, 0.2, "none").alpha
    np.testing.assert_allclose(found, minimize(loss, np.zeros(12), tol=1e-14).x, atol=1e-5)


def test_a_target_out_of_reach_leaves_imbalance_and_few_rows():
    phi, m, _, _ = problem(5, 60, 3)
    weights = entropy_weights(phi, m, np.array([5.0, 0, 0]), 1e-3)
    assert weights.converged
    assert np.linalg.norm(weights.alpha @ phi - [5, 0, 0]) > 2
    assert 1 / np.sum(weights.alpha**2) < 3


def standardised(table):
    return ((table - table.mean()) / table.std()).to_numpy()


def test_quitting_smoking_anchor():
    """NHEFS, entropy balancing of main effects and squares: 3.38105, by two implementations outside this one."""
    data = load_nhefs()
    numbers = data.X.select_dtypes("number")
    words = pd.get_dummies(data.X.select_dtypes("category"), drop_first=True).astype(float)
    Z = standardised(pd.concat([words, numbers, (numbers**2).add_suffix(" squared")], axis=1))
    means = [
        entropy_weights(Z[rows], np.ones(rows.sum()), Z.mean(axis=0), 1e-8).alpha @ data.y[rows]
        for rows in (data.w == 1, data.w == 0)
    ]
    assert means[0] - means[1] == pytest.approx(3.38105, abs=5e-6)


def test_job_training_anchor():
    """LaLonde with survey controls, entropy balancing for the treated: 1,406.30 dollars, 269 effective controls."""
    data = load_lalonde("cps")
    zero = pd.DataFrame({"no74": data.X["re74"] == 0, "no75": data.X["re75"] == 0}).astype(float)
    Z = standardised(pd.concat([data.X, zero], axis=1))
    treated = data.w == 1
    weights = entropy_weights(Z[~treated], np.ones((~treated).sum()), Z[treated].mean(axis=0), 1e-10)
    assert data.y[treated].mean() - weights.alpha @ data.y[~treated] == pytest.approx(1406.30, abs=0.005)
    assert np.abs(weights.alpha @ Z[~treated] - Z[treated].mean(axis=0)).max() < 1e-7
    assert 1 / np.sum(weights.alpha**2) == pytest.approx(269, abs=0.5)
