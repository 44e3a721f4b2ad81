"""Blocks as mixed-integer programs: refused by name when unbounded or infeasible, valid when stopped early."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, Infeasible, data, dual_value


def two_blocks(**changed):
    """x and y in one block, z in another, one row that ties them."""
    good = {
        "c": [1.0, 1.0, 1.0], "A": [[1, 1, 1]], "b": [2.0], "C": [[1, 1, 0], [0, 0, 1]], "d": [0, 0], "integrality": False,
        "column_names": ["x", "y", "z"],
    }  # fmt: skip
    return CoupledMILP(**{**good, **changed})


@pytest.mark.parametrize("whole", [False, True])
def test_an_unbounded_block_is_named_with_its_variable(whole):
    P = two_blocks(ub=[1, 1, np.inf], integrality=whole)
    assert dual_value([0.5], P).u == pytest.approx(1.0)  # all at 0
    with pytest.raises(
        ValueError, match="the subproblem of block 1 is unbounded at these multipliers: variable z lacks an upper"
    ):
        dual_value([3.0], P)


def test_an_unbounded_variable_without_block_rows_is_named():
    P = two_blocks(C=[[1, 1, 0]], d=[0], lb=[0, 0, -np.inf], ub=[1, 1, 5])
    with pytest.raises(ValueError, match="block 1 is unbounded at these multipliers: variable z lacks a lower bound"):
        dual_value([0.5], P)


@pytest.mark.parametrize("whole", [False, True])
def test_an_infeasible_block_is_named(whole):
    P = two_blocks(d=[3, 0], ub=1, integrality=whole)
    with pytest.raises(Infeasible, match=r"block 0 \(variables x, y\) has no feasible point"):
        dual_value([0.0], P)


def test_a_variable_without_a_whole_number_in_its_bounds():
    P = two_blocks(C=[[1, 1, 0]], d=[0], lb=[0, 0, 0.2], ub=[1, 1, 0.8], integrality=True)
    with pytest.raises(Infeasible, match="variable z has no whole number within its bounds"):
        dual_value([0.0], P)


def test_negative_lower_bounds_and_open_variables_are_kept():
    """min x + pi (1 - x) over -2 <= x <= 5 is 1 - 2 (1 - pi) ... at pi = .5; a clipped bound would give .5."""
    P = CoupledMILP([1.0], [[1]], [1.0], np.empty((0, 1)), [], False, -2, 5)
    assert dual_value([0.5], P).u == pytest.approx(-2 + 0.5 * 3)


def test_a_block_that_stops_early_gives_its_dual_bound():
    """With a wide gap HiGHS stops at once; u must stay below the exact value, and say that it is not exact."""
    rng = np.random.default_rng(0)
    n, rows = 30, 5
    W = rng.integers(5, 60, (rows, n)).astype(float)
    parts = {
        "c": -rng.integers(10, 60, n).astype(float), "A": np.ones((1, n)), "b": [3.0], "C": -W, "d": -W.sum(axis=1) / 3,
        "integrality": True, "ub": 1.0,
    }  # fmt: skip
    exact, early = CoupledMILP(**parts), CoupledMILP(**parts, gap=0.5)
    seen_early = False
    for pi in (0.0, 2.0, 5.0):
        full, stopped = dual_value([pi], exact), dual_value([pi], early)
        assert full.exact
        assert stopped.u <= full.u + 1e-6
        incumbent = parts["c"] @ stopped.x + pi * (3 - stopped.x.sum())
        assert incumbent >= full.u - 1e-6  # using it as the bound would be wrong
        seen_early |= not stopped.exact
    assert seen_early


def test_a_block_without_any_time_is_an_error_and_no_bound():
    P = data.ten_unit_day(cost="piecewise").milp()
    P.block_seconds = 0.0
    with pytest.raises(ValueError, match=r"block 0 \(variables .*\) was not solved"):
        dual_value(np.full(48, 20.0), P)


def test_the_answer_does_not_depend_on_earlier_calls():
    rng = np.random.default_rng(1)
    fresh, used = (
        data.gap("D", 3, 9, np.random.default_rng(0)).milp(),
        data.gap("D", 3, 9, np.random.default_rng(0)).milp(),
    )
    for _ in range(5):
        used.oracle(rng.uniform(0, 120, 9))
    pi = np.round(rng.uniform(0, 120, 9))  # ties
    assert (used.oracle(pi).x == fresh.oracle(pi).x).all()
