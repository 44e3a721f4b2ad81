"""Coupled programs: read from files, split into blocks, and refused with the name of what is wrong."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, data, dual_value
from upheld.lagrangian.highs import quiet
from upheld.lagrangian.instance import detect_coupling

LP = """\
{sense}
 obj: 2 x1 + 3 x2 + 4 y1 + y2 + 10 fee
Subject To
 tie: x1 + x2 + y1 + y2 >= 3
 cap: x1 + y1 <= 2
 even: x2 - y2 = 0
 left: x1 + x2 <= 2
 right: y1 + y2 <= 2
Bounds
 0 <= x1 <= 1
 0 <= x2 <= 1
 0 <= y1 <= 1
 0 <= y2 <= 1
 1 <= fee <= 1
General
 x1 x2 y1 y2
End
"""


@pytest.fixture
def lp_file(tmp_path):
    path = tmp_path / "small.lp"
    path.write_text(LP.format(sense="Minimize"))
    return path


def test_rows_are_read_in_the_form_of_the_method(lp_file):
    P = CoupledMILP.from_mps(lp_file, "tie|cap|even")
    assert P.row_names == ["tie", "cap", "even"]
    assert P.b.tolist() == [3, -2, 0]  # cap is negated
    assert P.equality.tolist() == [False, False, True]
    assert P.negated.tolist() == [False, True, False]
    assert P.n_blocks == 3  # left, right, and the fee alone
    assert P.integrality.tolist() == [True] * 4 + [False]
    # At pi = (2.5, 0, 0): costs -.5, .5, 1.5, -1.5 with x1 and y2 taken; 10 + 7.5 - 2 = 15.5
    assert P.oracle(np.array([2.5, 0.0, 0.0])).u == pytest.approx(15.5)


def test_a_maximisation_is_bounded_from_above(tmp_path):
    path = tmp_path / "max.lp"
    path.write_text(LP.format(sense="Maximize"))
    P = CoupledMILP.from_mps(path, ["tie", "cap", "even"])
    best = P.optimum()
    assert P.user_value(best.value) == pytest.approx(20.0)  # everything taken: 2 + 3 + 4 + 1 + 10
    rng = np.random.default_rng(0)
    for _ in range(20):
        bound = P.user_value(dual_value(rng.uniform(0, 5, 3), P).u)
        assert bound >= 20.0 - 1e-6


@pytest.mark.parametrize("ending", [".mps", ".lp"])
def test_a_round_trip_keeps_the_problem(draw, some_pi, tmp_path, ending):
    P = draw(0)
    M = P.milp()
    path = tmp_path / f"model{ending}"
    M.write(path)
    again = CoupledMILP.from_mps(path, M.row_names)
    assert again.row_names == M.row_names
    assert again.maximise == M.maximise
    pi = some_pi(P, np.random.default_rng(0))
    assert again.oracle(pi).u == pytest.approx(P.oracle(pi).u, rel=1e-6)
    assert again.lp_relaxation()[0] == pytest.approx(M.lp_relaxation()[0], rel=1e-6, abs=1e-9)


def test_a_negated_row_is_written_as_it_was_read(lp_file, tmp_path):
    P = CoupledMILP.from_mps(lp_file, "tie|cap|even")
    P.write(tmp_path / "again.mps")
    h = quiet()
    h.readModel(str(tmp_path / "again.mps"))
    lp = h.getLp()
    rows = dict(zip(lp.row_names_, zip(lp.row_lower_, lp.row_upper_, strict=True), strict=True))
    assert rows["tie"] == (3, np.inf)
    assert rows["cap"] == (-np.inf, 2)
    assert rows["even"] == (0, 0)


def test_compressed_files_are_read(lp_file, tmp_path):
    M = CoupledMILP.from_mps(lp_file, "tie")
    M.write(tmp_path / "plain.mps")
    packed = tmp_path / "packed.mps.gz"
    packed.write_bytes(gzip.compress((tmp_path / "plain.mps").read_bytes()))
    assert CoupledMILP.from_mps(packed, "tie").oracle(np.ones(1)).u == pytest.approx(M.oracle(np.ones(1)).u)


def test_a_row_with_two_sides_becomes_two(tmp_path):
    path = tmp_path / "range.mps"
    path.write_text(
        "NAME range\nROWS\n N obj\n G both\nCOLUMNS\n x obj 1 both 1\n y obj 1 both 1\nRHS\n rhs both 1\n"
        "RANGES\n rng both 2\nBOUNDS\n UP bnd x 2\n UP bnd y 2\nENDATA\n"
    )
    P = CoupledMILP.from_mps(path, "both")
    assert P.row_names == ["both", "both_upper"]
    assert P.b.tolist() == [1, -3]
    assert P.oracle(np.array([0.0, 2.0])).u == pytest.approx(-6.0)  # 2 (x + y - 3) + x + y, least at 0


def test_automatic_coupling_finds_the_demand_rows():
    """The tie rows are few and long; without them the units fall apart."""
    day = data.ten_unit_day(cost="piecewise")
    M = day.milp()
    from upheld.lagrangian.highs import solver

    auto = CoupledMILP.from_highs(solver(M.highs_lp()), "auto")
    assert auto.row_names == day.row_names
    assert auto.n_blocks == 10


def test_automatic_coupling_takes_what_splits_a_gap():
    """Without the 3 capacity rows the 7 assignment rows stand alone: fewer rows than the other way about."""
    M = data.gap("D", 3, 7, np.random.default_rng(0)).milp()
    from scipy import sparse

    chosen = detect_coupling(sparse.vstack([M.A, M.C]))
    assert chosen.tolist() == [False] * 7 + [True] * 3


def test_one_row_cannot_be_split():
    with pytest.raises(ValueError, match="no choice of coupling rows leaves two blocks"):
        detect_coupling(np.ones((1, 3)))


def test_blocks_are_connected_components_whatever_their_order():
    rng = np.random.default_rng(0)
    P = data.gap("D", 3, 7, rng).milp()
    pi = rng.uniform(0, 100, 7)
    order = rng.permutation(P.c.size)
    shuffled = CoupledMILP(P.c[order], P.A[:, order], P.b, P.C[::-1][:, order], P.d[::-1], True, 0, 1)
    assert shuffled.n_blocks == P.n_blocks == 3
    assert shuffled.oracle(pi).u == pytest.approx(P.oracle(pi).u, rel=1e-12)


def test_the_bound_on_rows_comes_from_linear_programs_where_variables_have_no_bounds():
    # x, y >= 0 without upper bounds, x + y <= 4 in the block: 2 x + y is at most 8.
    P = CoupledMILP([1, 1], [[2, 1]], [3], [[-1, -1]], [-4], False)
    assert pytest.approx(8.0) == P.B


def test_lp_multipliers_have_the_right_sign(draw):
    """u at the LP's multipliers is at least the LP's value: it would not be with a sign wrong."""
    for seed in range(3):
        P = draw(seed)
        value, duals = P.milp().lp_relaxation()
        assert P.oracle(duals).u >= value - 1e-6 * (1 + abs(value))


def test_instances_travel_between_processes(draw, some_pi):
    P = draw(0)
    M = P.milp()
    pi = some_pi(P, np.random.default_rng(0))
    before = M.oracle(pi).u  # its solvers exist now
    assert pickle.loads(pickle.dumps(M)).oracle(pi).u == before
    assert pickle.loads(pickle.dumps(P)).oracle(pi).u == P.oracle(pi).u


# bad input


def build(**changed):
    good = {
        "c": [1.0, 2.0],
        "A": [[1, 1]],
        "b": [1.0],
        "C": [[1, 0], [0, 1]],
        "d": [0, 0],
        "integrality": True,
        "ub": 1.0,
    }
    return CoupledMILP(**{**good, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"c": [1.0, np.nan]}, "the cost of x_1 is nan"),
        ({"b": [np.inf]}, "the right-hand side of row_0 is inf"),
        ({"A": [[1, np.nan]]}, "a coefficient of x_1 in a coupling row is nan"),
        ({"C": [[np.inf, 0], [0, 1]]}, "a coefficient of x_0 in a block row is inf"),
        ({"A": [[1, 1, 1]]}, "A has 3 columns, but there are 2 costs"),
        ({"b": [1.0, 2.0]}, r"b has shape \(2,\), expected \(1,\)"),
        ({"d": [0, np.nan]}, "d holds a NaN at position 1"),
        ({"lb": [0, 2]}, "the bounds of x_1 cross: 2 > 1"),
        ({"sense": "maximise"}, 'sense must be "min" or "max"'),
        ({"C": [[1, 1], [0, 1]], "blocks": [0, 1]}, "block row 0 ties blocks 0 and 1"),
        ({"blocks": [0]}, r"blocks has shape \(1,\)"),
        ({"C": [[0, 0], [0, 1]], "d": [1, 0]}, "block row 0 has no entries"),
        ({"row_names": ["a", "b"]}, "one row name a coupling row"),
    ],
)
def test_bad_data(changed, message):
    with pytest.raises(ValueError, match=message):
        build(**changed)


def test_a_pattern_that_matches_nothing(lp_file):
    with pytest.raises(
        ValueError, match=r"the coupling pattern 'demand_\.\*' matches no row; the rows are tie, cap, even"
    ):
        CoupledMILP.from_mps(lp_file, "demand_.*")
    with pytest.raises(ValueError, match=r"the coupling pattern '\(' is no regular expression"):
        CoupledMILP.from_mps(lp_file, "(")
    with pytest.raises(ValueError, match="there is no row 'ties' to couple"):
        CoupledMILP.from_mps(lp_file, ["ties"])
    with pytest.raises(ValueError, match="the list of coupling rows is empty"):
        CoupledMILP.from_mps(lp_file, [])


def test_files_that_are_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        CoupledMILP.from_mps(tmp_path / "nowhere.mps", "tie")
    (tmp_path / "prose.mps").write_text("Dear reader,\n")
    with pytest.raises(ValueError, match=r"HiGHS cannot read .*prose.mps as a model"):
        CoupledMILP.from_mps(tmp_path / "prose.mps", "tie")


def test_a_semicontinuous_variable_is_named(tmp_path):
    path = tmp_path / "semi.lp"
    path.write_text("Minimize\n obj: x\nSubject To\n tie: x >= 1\nBounds\n x <= 3\nSemi-Continuous\n x\nEnd\n")
    with pytest.raises(ValueError, match="variable x is semi-continuous"):
        CoupledMILP.from_mps(path, "tie")


def test_an_infeasible_relaxation_says_so():
    with pytest.raises(ValueError, match="the LP relaxation has no optimum: HiGHS says 'Infeasible'"):
        build(b=[5.0]).lp_relaxation()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match="cannot write"):
        build().write(tmp_path / "nowhere" / "model.mps")
