"""Every dual method climbs to the same value, never above it, from any start, within its budget."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import Budget, data, maximise_dual
from upheld.lagrangian.dual import METHODS
from upheld.lagrangian.families import HardFamily


def test_bundles_reach_the_maximum_and_bracket_it(draw):
    """Kelley's tight optimum against the level method's bracket; an independent check stands in test_gap."""
    P = draw(1)
    level, kelley = maximise_dual(P, budget=Budget(2000)), maximise_dual(P, method="kelley", budget=Budget(5000))
    assert level.converged
    assert kelley.converged
    assert level.u <= kelley.upper + 1e-9 * (1 + abs(level.u))
    assert kelley.u <= level.upper + 1e-9 * (1 + abs(level.u))
    assert P.oracle(level.pi).u == level.u


@pytest.mark.parametrize("method", ["subgradient", "volume"])
def test_subgradient_methods_come_near(draw, method):
    P = draw(1)
    best = maximise_dual(P, budget=Budget(2000))
    optimum = P.user_value(P.milp().optimum().value)
    found = maximise_dual(P, method=method, upper_bound=optimum, budget=Budget(1000))
    assert found.u <= best.upper + 1e-9 * (1 + abs(best.upper))
    assert found.u >= best.u - 0.01 * abs(best.u)


@pytest.mark.parametrize("method", METHODS)
def test_a_good_start_is_never_lost_and_the_budget_is_kept(draw, method):
    P = draw(2)
    start = maximise_dual(P).pi
    found = maximise_dual(P, start, method, Budget(calls=7))
    assert found.calls <= 7
    assert found.u >= P.oracle(start).u
    assert found.u_history[0] == P.oracle(start).u
    assert (np.diff(found.best_history) >= 0).all()
    assert found.best_history[-1] == found.u


def test_a_time_limit_ends_the_search():
    found = maximise_dual(data.ten_unit_day(), budget=Budget(calls=10**6, seconds=0.05), method="kelley")
    assert not found.converged
    assert found.seconds_history[-1] < 5


def test_averages_nearly_satisfy_the_coupling_rows():
    """The weights of the cuts make the supergradients average to something that complements the multipliers."""
    P = data.gap("D", 3, 7, np.random.default_rng(0))
    found = maximise_dual(P, method="kelley", tolerance=1e-9)
    g = 1 - found.x_average.reshape(3, 7).sum(axis=0)
    assert g.max() <= 1e-6
    assert abs(found.pi @ g) <= 1e-4 * (1 + abs(found.u))
    assert P.cost.ravel() @ found.x_average == pytest.approx(found.u, rel=1e-6)  # Dantzig and Wolfe's primal


def test_a_given_end_of_the_box_is_kept():
    """The best multiplier is c = 10, which a box that ends at 4 does not hold."""
    P = HardFamily([10.0])
    assert maximise_dual(P).u == pytest.approx(5.0, rel=4e-6)
    assert maximise_dual(P, pi_max=4.0).u == pytest.approx(2.0, abs=4e-6)  # a given end is kept


def test_scaling_costs_scales_value_and_multipliers():
    P = data.gap("D", 3, 7, np.random.default_rng(3))
    scaled = type(P)(7 * P.cost, P.weight, P.capacity)
    a, b = maximise_dual(P, tolerance=1e-9), maximise_dual(scaled, tolerance=1e-9)
    assert b.u == pytest.approx(7 * a.u, rel=1e-7)
    assert scaled.oracle(7 * a.pi).u == pytest.approx(7 * a.u)


def test_g_of_zero_ends_the_search_with_a_proof():
    P = HardFamily([0.5])
    found = maximise_dual(P, method="subgradient", upper_bound=1.0, budget=Budget(50))
    assert found.u <= 0.25 + 1e-12


def test_unknown_methods_and_ends():
    with pytest.raises(
        ValueError, match="there is no method 'newton'; choose one of level, kelley, subgradient, volume"
    ):
        maximise_dual(HardFamily([0.5]), method="newton")
    with pytest.raises(ValueError, match="pi_max must be positive, got -1"):
        maximise_dual(HardFamily([0.5]), pi_max=-1.0)


def test_the_box_grows_until_the_maximum_is_inside(monkeypatch):
    """From an end of a thousandth, by doubling, to the best multiplier of 10."""
    monkeypatch.setattr("upheld.lagrangian.dual._default_end", lambda P, start: 1e-3)
    found = maximise_dual(HardFamily([10.0]))
    assert found.u == pytest.approx(5.0, rel=4e-6)
    assert found.pi[0] == pytest.approx(10.0, rel=1e-4)
