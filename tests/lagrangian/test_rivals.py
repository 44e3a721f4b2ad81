"""Starts, tuned ascents and solvers' bounds: optima and LP values that two solvers agree on, sandwiches, refusals."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

from upheld.lagrangian import data
from upheld.lagrangian.families import GAP, HardFamily, MultiKnapsack, UnitCommitment
from upheld.lagrangian.rivals import (
    GRID,
    STARTS,
    LastOptimum,
    OwnOptimum,
    RandomStart,
    TunedSGA,
    aim,
    ascend,
    best_factor,
    cp_sat,
    highs_duals,
    highs_root,
    largest_multiplier,
    ortools_duals,
    paper_sga,
    solve_lps_once,
    textbook_commitment,
    tuned_theta,
)


def gaps(count: int, seed: int = 0) -> list[GAP]:
    return list(itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(seed)), count))


# solvers


@pytest.mark.parametrize(("name", "rel"), [("GLOP", 1e-9), ("PDLP", 1e-4)])
def test_three_lp_solvers_agree_and_their_multipliers_prove_the_lp_bound(draw, name, rel):
    P = draw(1)
    M = P.linear_model()
    highs, theirs = highs_duals(M), ortools_duals(M, name)
    assert theirs.value == pytest.approx(highs.value, rel=rel, abs=rel)
    for found in (highs, theirs):
        assert found.pi.shape == (P.n_rows,)
        assert (P.equality | (found.pi >= 0)).all()
        assert P.oracle(found.pi).u >= highs.value - 10 * rel * (1 + abs(highs.value))  # Geoffrion: LR >= LP


def test_solvers_bounds_lie_between_lp_and_optimum(draw):
    P = draw(2)
    M = P.milp()
    optimum = M.optimum().value
    lp, root = highs_root(M, cuts=False), highs_root(M)
    room = 1e-6 * (1 + abs(optimum))
    assert lp.bound == pytest.approx(M.lp_relaxation()[0])
    assert lp.bound - room <= root.bound <= optimum + room
    if M.integrality.all():
        assert cp_sat(M, 10.0).bound == pytest.approx(optimum, rel=1e-5, abs=1e-5)  # solved to the end
    else:
        with pytest.raises(ValueError, match=r"variable \S+ is continuous, and CP-SAT's bound would be none"):
            cp_sat(M, 10.0)


def test_cp_sat_without_time_has_no_bound():
    found = cp_sat(data.gap("E", 10, 40, np.random.default_rng(0)).milp(), 1e-3)
    assert found.bound == -np.inf
    assert found.seconds < 30


def test_a_maximisation_is_a_minimisation_inside():
    P = MultiKnapsack([4, 3], [[1, 1], [2, 1]], [1, 2])  # one item: the better is worth 4
    assert cp_sat(P.milp(), 5.0).bound == pytest.approx(-4.0)
    assert ortools_duals(P.milp()).value == pytest.approx(-4.0)


def test_ortools_sees_offset_and_equations():
    M = HardFamily([0.25, 0.75]).milp()
    M.equality[:] = True
    M.offset = 10.0
    found = ortools_duals(M)
    assert found.value == pytest.approx(10.5)  # x = 1/2 each
    assert found.pi == pytest.approx([0.25, 0.75])


def test_an_infeasible_lp_is_refused():
    M = HardFamily([0.5]).milp()
    M.b[:] = 2.0
    with pytest.raises(RuntimeError, match="GLOP says INFEASIBLE"):
        ortools_duals(M)
    with pytest.raises(RuntimeError, match="CP-SAT says INFEASIBLE"):
        cp_sat(M, 1.0)


def test_textbook_start_costs_have_the_same_optimum_and_a_weaker_lp():
    rng = np.random.default_rng(0)
    units = data.ten_units()
    few = type(units)(*(getattr(units, name)[[0, 2, 9]] for name in type(units).__dataclass_fields__))
    weaker = 0
    for _ in range(4):
        P = UnitCommitment(few, rng.uniform(200, 450, 10), 0.1, "piecewise")
        weak, tight = textbook_commitment(P), P.milp()
        assert weak.optimum().value == pytest.approx(tight.optimum().value, rel=1e-6)
        assert weak.lp_relaxation()[0] <= tight.lp_relaxation()[0] + 1e-6
        weaker += weak.lp_relaxation()[0] < tight.lp_relaxation()[0] - 1.0
    assert weaker


def test_the_instance_is_not_changed_by_its_textbook_form():
    P = data.ten_unit_day(cost="piecewise")
    before = P.milp().lp_relaxation()[0]
    textbook_commitment(P)
    assert P.milp().lp_relaxation()[0] == before


# ascents


@pytest.mark.parametrize("method", ["subgradient", "volume", "level", "kelley"])
def test_every_method_stays_below_the_optimum_and_within_its_budget(method):
    P = gaps(1)[0]
    on = aim(P, largest_multiplier([P]))
    found = ascend(on, np.zeros(P.n_rows), method, 40)
    assert found.calls <= 40
    assert found.u <= P.milp().optimum().value + 1e-6
    assert found.u > P.oracle(np.zeros(P.n_rows)).u


def test_the_bundles_reach_one_value_that_is_known():
    P = HardFamily([0.25, 0.75, 0.5])
    on = aim(P, 1.0)
    for method in ("level", "kelley"):
        assert ascend(on, np.zeros(3), method, 200).u == pytest.approx(0.75, abs=1e-5)  # half the sum of c


def test_the_lp_bound_may_be_given():
    P = gaps(1)[0]
    value = P.milp().lp_relaxation()[0]
    assert aim(P, 1.0, lp=value).target == aim(P, 1.0).target


def test_an_unknown_method_is_refused():
    P = HardFamily([0.5])
    with pytest.raises(ValueError, match="there is no method 'newton'; choose subgradient"):
        ascend(aim(P, 1.0), np.zeros(1), "newton", 5)


def test_the_grid_has_twenty_points_and_the_best_is_taken():
    assert GRID.size == 20
    assert best_factor(lambda factor: -abs(np.log(factor / GRID[7]))) == GRID[7]
    assert best_factor(lambda factor: 0.0) == GRID[0]


def test_a_tuned_theta_does_no_worse_on_what_it_was_tuned_on():
    past = gaps(2)
    on = [aim(P, 300.0) for P in past]
    starts = [np.zeros(7)] * 2
    theta = tuned_theta(on, starts, "subgradient", 30)

    def mean_bound(theta: float) -> float:
        return float(
            np.mean([ascend(one, pi, "subgradient", 30, theta=theta).u for one, pi in zip(on, starts, strict=True)])
        )

    assert theta in GRID
    assert mean_bound(theta) > mean_bound(GRID[0]) + 1.0
    assert mean_bound(theta) > mean_bound(GRID[-1]) + 1.0


# starts


@pytest.mark.parametrize("name", [name for name in STARTS if name != "contextual"])
def test_every_start_lies_in_the_box_and_gives_a_valid_bound(name):
    *past, today = gaps(7)
    end = largest_multiplier(past)
    start = STARTS[name](end, np.random.default_rng(0))
    start.fit(past)
    pi = start.predict(today)
    assert pi.shape == (7,)
    assert (pi >= 0).all()
    assert (pi <= end).all() or name == "own LP dual"  # which knows nothing of the past's box
    assert today.oracle(pi).u <= today.milp().optimum().value + 1e-6


def test_the_end_of_the_box_is_twice_the_largest_lp_multiplier():
    assert largest_multiplier([HardFamily([0.25, 0.75]), HardFamily([0.5, 0.5])]) == pytest.approx(1.5)
    assert largest_multiplier([HardFamily([0.0])]) == 1.0


def test_optima_of_the_hard_family_are_its_costs():
    past = [HardFamily([0.25, 0.75]), HardFamily([0.75, 0.5])]
    assert OwnOptimum(1.0).predict(past[0]) == pytest.approx([0.25, 0.75], abs=1e-4)
    assert LastOptimum(OwnOptimum(1.0)).fit(past).predict(past[0]) == pytest.approx([0.75, 0.5], abs=1e-4)


def test_an_optimum_is_found_once_and_cannot_be_spoilt():
    P = HardFamily([0.25, 0.75])
    own = OwnOptimum(1.0)
    first = own.predict(P)
    kept = first.copy()
    first[:] = 0.0
    assert own.predict(P).tolist() == kept.tolist()


def test_a_random_start_is_another_each_time_and_on_equations_of_either_sign():
    P = HardFamily(np.full(50, 0.5))
    P.equality[:] = True
    start = RandomStart(2.0, np.random.default_rng(0))
    a, b = start.predict(P), start.predict(P)
    assert (a != b).all()
    assert a.min() < -1 < 1 < a.max()
    assert abs(a).max() <= 2


def test_tuning_repairs_a_step_that_barely_moves():
    """A box fifty times too wide for the rows, an instance a row could answer: the published step overshoots, a factor helps."""
    past = gaps(6)
    tuned = TunedSGA(20_000.0).fit(past)
    published = paper_sga(20_000.0).fit(past)
    assert np.mean([P.oracle(tuned.predict(P)).u for P in past]) > published.score(past) + 10
    assert tuned.factor_ in GRID


def test_no_heavy_import_at_the_door():
    code = "import sys, upheld.lagrangian.claims; print({'torch', 'ortools', 'highspy', 'numba'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_known_lps_are_not_solved_again_and_stay_the_same():
    P, fresh = (data.gap("D", 3, 7, np.random.default_rng(0)) for _ in range(2))
    solve_lps_once([P])
    M = P.linear_model()
    assert P.linear_model() is M
    assert M.lp_relaxation() is M.lp_relaxation()
    value, pi = fresh.linear_model().lp_relaxation()
    assert M.lp_relaxation()[0] == value
    assert M.lp_relaxation()[1].tolist() == pi.tolist()
