"""What holds for every oracle: its value is HiGHS', a bound, concave; its g is a supergradient; threads change no bit."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import data, dual_value
from upheld.lagrangian.families import HardFamily
from upheld.lagrangian.oracles import FREE, check_alike


def test_value_and_gradient_are_those_of_highs_on_the_monoliths_blocks(draw, some_pi):
    """An independent evaluation: the monolith without its coupling rows, block by block, as mixed-integer programs."""
    rng = np.random.default_rng(7)
    for seed in range(3):
        P = draw(seed)
        M = P.milp()
        assert M.row_names == P.row_names
        for _ in range(3):
            pi = some_pi(P, rng)
            ours, theirs = P.oracle(pi), M.oracle(pi)
            assert ours.u == pytest.approx(theirs.u, rel=1e-7, abs=1e-7)
            y = P.columns(ours.x)  # the minimiser is feasible for the blocks, and has this value and gradient
            assert (M.C @ y >= M.d - 1e-6).all()
            assert (M.C @ y <= M.d_upper + 1e-6).all()
            assert ((M.lb - 1e-9 <= y) & (y <= M.ub + 1e-9)).all()
            assert M.c @ y + M.offset + pi @ (M.b - M.A @ y) == pytest.approx(ours.u, rel=1e-9, abs=1e-9)
            np.testing.assert_allclose(ours.g, M.b - M.A @ y, atol=1e-9)


def test_every_value_is_below_the_optimum(draw, some_pi):
    rng = np.random.default_rng(1)
    for seed in range(3):
        P = draw(seed)
        optimum = P.milp().optimum()
        assert optimum.x is not None
        for _ in range(20):
            assert P.oracle(some_pi(P, rng)).u <= optimum.value + 1e-6 * (1 + abs(optimum.value))


def test_concave_with_supergradients_within_their_bound(draw, some_pi):
    rng = np.random.default_rng(2)
    for seed in range(5):
        P = draw(seed)
        for _ in range(40):
            here, there = some_pi(P, rng), some_pi(P, rng)
            t = rng.uniform()
            a, b, middle = P.oracle(here), P.oracle(there), P.oracle(t * here + (1 - t) * there)
            slack = 1e-9 * (1 + abs(a.u) + abs(b.u))
            assert b.u <= a.u + a.g @ (there - here) + slack
            assert middle.u >= t * a.u + (1 - t) * b.u - slack
            assert np.linalg.norm(a.g) <= 2 * P.B * np.sqrt(P.n_rows)


def test_B_bounds_the_rows_over_the_blocks(draw):
    """The largest |b| and |A x| that HiGHS finds over the blocks' own rows."""
    P = draw(0)
    M = P.milp()
    largest = float(np.abs(M.b).max())
    for k in range(min(P.n_rows, 5)):
        for sign in (1.0, -1.0):
            M.c = sign * np.asarray(M.A[[k]].todense()).ravel()
            M._engine = None
            largest = max(largest, abs(M.oracle(np.zeros(P.n_rows)).u - M.offset))
    assert largest <= P.B + 1e-6


def test_threads_change_no_bit(draw, some_pi):
    P = draw(3)
    pi = some_pi(P, np.random.default_rng(3))
    for instance in (P, P.milp()):
        one, two = dual_value(pi, instance, n_jobs=1), dual_value(pi, instance, n_jobs=2)
        assert one.u == two.u
        assert (one.g == two.g).all()
        assert (one.x == two.x).all()


def test_costs_in_another_unit_scale_the_dual(draw, some_pi):
    """u(k pi) of the problem with costs k c is k u(pi)."""
    P = draw(4)
    M = P.milp()
    pi = some_pi(P, np.random.default_rng(4))
    before = M.oracle(pi).u
    M.c, M.offset, M._engine = 3 * M.c, 3 * M.offset, None
    assert M.oracle(3 * pi).u == pytest.approx(3 * before, rel=1e-7)


def test_fixed_variables_are_fixed(draw, some_pi):
    """Fixing can only raise a minimum, and the two children of a branch meet it."""
    rng = np.random.default_rng(5)
    for seed in range(3):
        P = draw(seed)
        pi = some_pi(P, rng)
        free = P.oracle(pi)
        for position in rng.permutation(P.branchable)[:4]:
            values = []
            for value in (0, 1):
                fixed = np.full(free.x.size, FREE, dtype=np.int8)
                fixed[position] = value
                try:
                    answer = P.oracle(pi, fixed=fixed)
                except ValueError:  # an hour that the minimum times forbid, say
                    continue
                assert answer.x[position] == value
                values.append(answer.u)
            assert min(values) == pytest.approx(free.u, rel=1e-9, abs=1e-9)


def test_negative_multipliers_are_clipped_with_a_warning():
    P = HardFamily([0.25, 0.75])
    with pytest.warns(
        UserWarning, match=r"1 multipliers of inequality rows are negative \(row_1: -2\) and lie outside Pi"
    ):
        answer = dual_value([0.5, -2.0], P)
    assert answer.u == dual_value([0.5, 0.0], P).u


def test_equations_take_negative_multipliers(recwarn):
    P = data.cvrp(4, np.random.default_rng(0), route="elementary")
    dual_value(-np.ones(4), P)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("pi", "message"),
    [
        ([0.5], r"pi has shape \(1,\), but there are 2 coupling rows"),
        ([0.5, np.nan], "the multiplier of row row_1 is nan"),
        ([np.inf, 0.0], "the multiplier of row row_0 is inf"),
    ],
)
def test_bad_multipliers(pi, message):
    with pytest.raises(ValueError, match=message):
        dual_value(pi, HardFamily([0.25, 0.75]))


def test_instances_with_other_rows_are_named():
    rng = np.random.default_rng(0)
    seven, eight = data.gap("C", 3, 7, rng), data.gap("C", 3, 8, rng)
    with pytest.raises(ValueError, match="instance 2 differ from those of the first: it has also assign_8"):
        check_alike([seven, eight])
    with pytest.raises(ValueError, match="instance 3 differ from those of the first: it lacks assign_8"):
        check_alike([eight, eight, seven])
    with pytest.raises(ValueError, match="there is no instance"):
        check_alike([])
    turned = HardFamily([0.5])
    turned.equality = np.array([True])
    with pytest.raises(ValueError, match="row row_0 is an equation in one instance"):
        check_alike([HardFamily([0.5]), turned])
