"""The family of the lower bound: closed forms, Bayes values, and the vectorised learners against the general ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.lagrangian import SGAMultipliers, maximise_dual
from upheld.lagrangian.ascent import box_of
from upheld.lagrangian.bounds import bayes_risk, warm_start_bayes_risk, warm_start_mean_risk
from upheld.lagrangian.hard_family import MU, SIGMA, HardFamily, draw, excess, learn
from upheld.lagrangian.minimum_norm import minimum_norm_maximiser

costs = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(np.array)


@given(costs, st.data())
def test_u_is_the_closed_form(c, rest):
    pi = np.array(rest.draw(st.lists(st.floats(0, 1), min_size=c.size, max_size=c.size)))
    assert HardFamily(c).oracle(pi).u == pytest.approx(np.minimum(pi / 2, c - pi / 2).sum(), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_its_optima_are_known(seed):
    c = np.random.default_rng(seed).uniform(0.1, 0.9, 5)
    P = HardFamily(c)
    assert P.oracle(c).u == pytest.approx(c.sum() / 2)
    assert maximise_dual(P).u == pytest.approx(c.sum() / 2, abs=4e-6)
    np.testing.assert_allclose(minimum_norm_maximiser(P, box_of(P, 1.0)).pi, c, atol=2e-5)
    assert P.milp().lp_relaxation()[0] == pytest.approx(c.sum() / 2)
    assert P.milp().optimum().value == pytest.approx(c.sum())


def test_excess_is_what_is_lost_on_the_mean_of_u():
    """Against the mean of u over the two costs, computed by the oracle."""
    rng = np.random.default_rng(0)
    v, eps = np.array([0, 1, 1]), 0.3

    def mean_u(pi):
        p = (1 + eps * (2 * v - 1)) / 2
        return sum(
            p[k] * HardFamily([MU + SIGMA]).oracle(pi[[k]]).u + (1 - p[k]) * HardFamily([MU]).oracle(pi[[k]]).u
            for k in range(3)
        )

    best = MU + SIGMA * v
    for _ in range(20):
        pi = rng.uniform(0, 1, 3)
        assert excess(pi, v, eps) == pytest.approx(mean_u(best) - mean_u(pi), abs=1e-12)
        assert excess(pi, v, eps) >= 0
    inside = rng.uniform(MU, MU + SIGMA, 3)
    assert excess(inside, v, eps) == pytest.approx(eps / 2 * np.abs(inside - best).sum())


def test_vectorised_sga_is_the_published_algorithm_to_the_last_bit():
    v = np.array([[1, 0, 1]])
    found = learn(v, 50, 0.2, np.random.default_rng(5))
    past = draw(v[0], 50, 0.2, np.random.default_rng(5))
    general = SGAMultipliers(pi_max=1.0, init="zero", step="theory", average="uniform").fit(past)
    assert (found.sga[0] == general.multipliers_).all()
    np.testing.assert_allclose(found.warm_mean[0], np.mean([P.c for P in past], axis=0))


def test_erm_reaches_the_exact_bayes_risk_and_nobody_beats_it():
    rng = np.random.default_rng(1)
    N, s, repetitions = 256, 16, 3000
    eps = 0.75 / np.sqrt(N)
    v = rng.integers(0, 2, (repetitions, s))
    found = learn(v, N, eps, rng)
    risk = bayes_risk(s, N, eps)
    for name in ("erm", "sga", "warm_mean", "random", "constant"):
        losses = excess(getattr(found, name), v, eps)
        error = losses.std() / np.sqrt(repetitions)
        assert losses.mean() >= risk - 4 * error, name
        if name == "erm":
            assert losses.mean() == pytest.approx(risk, abs=4 * error)
    squared = ((found.warm_mean - found.target) ** 2).sum(axis=1)
    error = squared.std() / np.sqrt(repetitions)
    assert squared.mean() == pytest.approx(warm_start_mean_risk(s, N, eps), abs=4 * error)
    assert squared.mean() >= warm_start_bayes_risk(s, N, eps)


def test_negative_costs_are_refused():
    with pytest.raises(ValueError, match="c must be a vector of finite costs"):
        HardFamily([-0.1])
