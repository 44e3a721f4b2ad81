"""Unit commitment: the published ten-unit day, schedules against enumeration, and what the monolith proves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from upheld.lagrangian import Budget, data, maximise_dual
from upheld.lagrangian.families import UnitCommitment, Units

DUAL_MAXIMUM = 559_405.97  # of the quadratic ten-unit day with 10 % reserve
BEST_PUBLISHED = 563_937.7  # cost of the best schedule in the literature


def one_unit(**changed: float) -> Units:
    plain = {"p_max": 100, "p_min": 20, "a": 300, "b": 15, "c": 0.02, "min_up": 1, "min_down": 1, "hot": 200, "cold": 500,
             "cold_hours": 0, "initial": 1}  # fmt: skip
    return Units(*([value] for value in {**plain, **changed}.values()))


def test_the_published_dual_maximum():
    found = maximise_dual(data.ten_unit_day(), budget=Budget(1000), tolerance=2e-8)
    assert found.u == pytest.approx(DUAL_MAXIMUM, abs=0.01)
    assert DUAL_MAXIMUM - 0.005 <= found.upper <= DUAL_MAXIMUM + 0.02
    assert (BEST_PUBLISHED - found.u) / BEST_PUBLISHED == pytest.approx(0.008, abs=5e-4)


def test_subgradient_steps_from_zero_come_near_it():
    found = maximise_dual(data.ten_unit_day(), method="subgradient", upper_bound=BEST_PUBLISHED, budget=Budget(400))
    assert 559_377 <= found.u <= DUAL_MAXIMUM + 0.01


@pytest.mark.slow
def test_the_best_published_schedule():
    """HiGHS' optimum of the piecewise monolith, dispatched with the quadratic costs, costs what the literature's best does."""
    day = data.ten_unit_day(cost="piecewise")
    found = day.milp().optimum(120)
    assert found.value - found.bound < 1e-3
    on = np.round(found.x[day.monolith_positions()]).reshape(10, 24)
    cost, p = data.ten_unit_day().schedule_cost(on)
    assert cost == pytest.approx(BEST_PUBLISHED, abs=0.05)
    np.testing.assert_allclose(p.sum(axis=0), data.TEN_UNIT_DEMAND, atol=1e-6)
    assert found.value == pytest.approx(day.schedule_cost(on)[0], rel=1e-9)  # start costs and segments agree
    assert found.value >= cost  # chords lie above the curve


def schedules(unit: Units, T: int):
    """Every on/off vector that respects the minimum times, with its start cost: by running through the hours."""
    for bits in itertools.product([0, 1], repeat=T):
        state, cost, fine = int(unit.initial[0]), 0.0, True
        for on in bits:
            if on and state > 0:
                state += 1
            elif not on and state < 0:
                state -= 1
            elif on:
                fine &= -state >= unit.min_down[0]
                cold = -state > unit.min_down[0] + unit.cold_hours[0]
                cost += unit.cold[0] if cold else unit.hot[0]
                state = 1
            else:
                fine &= state >= unit.min_up[0]
                state = -1
        if fine:
            yield np.array(bits), cost


@pytest.mark.parametrize("cost", ["quadratic", "piecewise"])
@pytest.mark.parametrize("initial", [2, 1, -1, -2, -9])
def test_the_dynamic_program_is_enumeration(cost, initial):
    unit = one_unit(min_up=3, min_down=2, cold_hours=1, initial=initial)
    P = UnitCommitment(unit, np.full(8, 60.0), cost=cost)
    rng = np.random.default_rng(abs(initial))
    share = np.linspace(0, 1, 11) if cost == "piecewise" else np.linspace(0, 1, 20001)
    p = unit.p_min[0] + share * (unit.p_max[0] - unit.p_min[0])
    for _ in range(10):
        pi = rng.uniform(0, 40, 16)
        running = [
            (unit.a[0] + unit.b[0] * p + unit.c[0] * p**2 - pi[t] * p).min() - pi[8 + t] * unit.p_max[0]
            for t in range(8)
        ]
        best = min(start + on @ running for on, start in schedules(unit, 8))
        assert P.oracle(pi).u == pytest.approx(pi @ P.b + best, rel=1e-7)


def test_schedule_cost_counts_starts_as_enumeration_does():
    unit = one_unit(min_up=1, min_down=1, cold_hours=2, initial=-2)
    P = UnitCommitment(unit, np.full(6, 50.0), reserve=0.0)
    for on, start in itertools.islice(schedules(unit, 6), 0, 64, 7):
        P.demand = 50.0 * on
        P.b = np.r_[P.demand, P.demand]
        value, p = P.schedule_cost(on[None].astype(float))
        hours = unit.a[0] + unit.b[0] * 50 + unit.c[0] * 2500
        assert value == pytest.approx(start + on.sum() * hours)
        np.testing.assert_allclose(p[0], 50.0 * on, atol=1e-9)


def test_a_schedule_that_lacks_reserve_costs_infinitely_much():
    P = UnitCommitment(one_unit(), np.full(2, 95.0))
    assert P.schedule_cost(np.ones((1, 2)))[0] == np.inf


def test_dispatch_equalises_marginal_costs():
    """Two running units between their limits share the demand so that b + 2 c p is the same."""
    P = data.ten_unit_day()
    on = np.zeros((10, 24))
    on[[0, 1]] = 1
    P.demand = np.full(24, 700.0)
    P.b = np.r_[P.demand, np.zeros(24)]
    p = P.schedule_cost(on)[1]
    assert p[0, 0] == pytest.approx(455.0)  # cheaper all the way up
    on[[2, 3, 4]] = 1
    P.demand = np.full(24, 1100.0)
    p = P.schedule_cost(on)[1]
    u = P.units
    assert 20 < p[2, 0] <= 130
    assert p[:, 0].sum() == pytest.approx(1100.0, abs=1e-6)
    between = [i for i in range(5) if u.p_min[i] + 1e-6 < p[i, 0] < u.p_max[i] - 1e-6]
    marginal = [u.b[i] + 2 * u.c[i] * p[i, 0] for i in between]
    assert np.ptp(marginal) < 1e-9 if marginal else True


def test_quadratic_costs_have_no_milp():
    with pytest.raises(ValueError, match="a mixed-integer quadratic program, which HiGHS does not take"):
        data.ten_unit_day().milp()


def test_copies_of_the_system_scale_the_dual():
    rng = np.random.default_rng(0)
    pi = rng.uniform(0, 30, 48)
    assert data.ten_unit_day(3).oracle(pi).u == pytest.approx(3 * data.ten_unit_day().oracle(pi).u)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"p_min": 200}, "unit 1 needs 0 <= p_min <= p_max"),
        ({"c": -1}, "unit 1 needs c >= 0"),
        ({"min_up": 0}, "unit 1 needs min_up, min_down >= 1"),
        ({"cold": 1}, "unit 1 needs cold >= hot"),
        ({"initial": 0}, "unit 1 needs initial hours on"),
        ({"a": np.nan}, "a of unit 1 is not finite"),
    ],
)
def test_bad_units(changed, message):
    with pytest.raises(ValueError, match=message):
        one_unit(**changed)


def test_bad_days():
    with pytest.raises(ValueError, match="demand of hour 2 must be finite"):
        UnitCommitment(one_unit(), [1.0, np.nan])
    with pytest.raises(ValueError, match='cost must be "quadratic" or "piecewise"'):
        UnitCommitment(one_unit(), [1.0], cost="cubic")
    with pytest.raises(ValueError, match='unit 1 has c = 0; take cost="piecewise"'):
        UnitCommitment(one_unit(c=0), [1.0])
    with pytest.raises(ValueError, match=r"p_min has shape \(2,\)"):
        Units(*([[1.0, 2.0] if k == 1 else [1] for k in range(11)]))
