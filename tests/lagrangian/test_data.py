"""Embedded data to the digit, generators to their recipe, files of the users."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, data, dual_value


def test_the_ten_units_to_the_digit():
    """Sums over the table, and the entries of which wrong transcriptions circulate."""
    units = data.ten_units()
    assert len(units) == 10
    assert units.p_max.sum() == 1662
    assert units.a.sum() == 6645
    assert units.b.sum() == pytest.approx(217.23, abs=1e-9)
    assert units.c.sum() == pytest.approx(0.02487, abs=1e-9)
    assert data.TEN_UNIT_DEMAND.sum() == 27_100
    assert units.p_min.tolist() == [150, 150, 20, 20, 25, 20, 25, 10, 10, 10]
    assert (units.c[6], units.b[3], units.a[4], data.TEN_UNIT_DEMAND[15]) == (0.00079, 16.50, 450, 1050)
    assert (2 * units.hot == units.cold).all()
    assert units.hot.tolist() == [4500, 5000, 550, 560, 900, 170, 260, 30, 30, 30]
    assert units.cold_hours.tolist() == [5, 5, 4, 4, 4, 2, 2, 0, 0, 0]
    assert (units.min_up == units.min_down).all()
    assert units.min_up.tolist() == [8, 8, 5, 5, 6, 3, 3, 1, 1, 1]
    assert units.initial.tolist() == [8, 8, -5, -5, -6, -3, -3, -1, -1, -1]
    assert data.ten_unit_day().b[24 + 11] == pytest.approx(1650)


def test_copies():
    assert data.ten_units(4).p_max.sum() == 4 * 1662
    assert data.ten_unit_day(4).demand.sum() == 4 * 27_100


def test_days_have_plans_and_drift_when_told():
    steady = data.daily_profiles(400, np.random.default_rng(0))
    assert (1.1 * steady <= 0.99 * 1662 + 1e-9).all()
    level = steady.sum(axis=1)
    assert np.corrcoef(level[:-1], level[1:])[0, 1] == pytest.approx(0.7, abs=0.12)
    drifting = data.daily_profiles(400, np.random.default_rng(0), drift=-0.001)
    np.testing.assert_allclose(drifting[-1] / steady[-1], 0.999**399, rtol=0.05)
    day = data.unit_commitment_days(1, np.random.default_rng(1))[0]
    assert day.milp().optimum(20, gap=1e-2).x is not None


@pytest.mark.parametrize(
    ("kind", "weights", "costs"), [("C", (5, 25), (10, 50)), ("D", (1, 100), (1, 120)), ("E", (1, 150), (0, 1000))]
)
def test_assignment_types(kind, weights, costs):
    P = data.gap(kind, 5, 40, np.random.default_rng(0))
    assert weights[0] <= P.weight.min() <= P.weight.max() <= weights[1]
    assert costs[0] <= P.cost.min() <= P.cost.max() <= costs[1]
    assert (P.capacity == np.floor(0.8 * P.weight.sum(axis=1) / 5)).all()
    if kind in "DE":
        assert np.corrcoef(np.log(P.weight.ravel()), P.cost.ravel())[0, 1] < -0.7  # the hard types: heavy is cheap


def test_streams_keep_their_structure():
    first, second = itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(0)), 2)
    assert (first.weight == second.weight).all()
    assert (first.cost != second.cost).any()
    assert (np.abs(first.cost / second.cost - 1) <= 0.6).all()
    assert first.integer_costs
    one, two = itertools.islice(data.cflp_stream(4, 6, np.random.default_rng(0)), 2)
    assert (one.demand == two.demand).all()
    assert (one.transport != two.transport).all()
    one, two = itertools.islice(data.set_covering_stream(6, 12, np.random.default_rng(0)), 2)
    assert (one.A != two.A).nnz == 0


def test_facilities_and_coverings():
    P = data.cflp(6, 20, np.random.default_rng(0))
    assert P.capacity.sum() == pytest.approx(3 * P.demand.sum())
    S = data.set_covering(30, 100, np.random.default_rng(0))
    assert np.diff(S.A.indptr).min() >= 2
    assert np.asarray(S.A.sum(axis=0)).min() >= 1


def test_unknown_type():
    with pytest.raises(ValueError, match="there is no GAP type 'Z'; choose C, D or E"):
        data.gap("Z", 2, 3, np.random.default_rng(0))


# files


def test_or_library_assignment(tmp_path):
    (tmp_path / "gap").write_text("2\n 2 3\n 1 2 3\n 4 5 6\n 7 8 9\n 1 2 3\n 10 5\n 1 1\n 7\n 3\n 3\n")
    first, second = data.read_gap(tmp_path / "gap")
    assert first.cost.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert first.weight.tolist() == [[7, 8, 9], [1, 2, 3]]
    assert first.capacity.tolist() == [10, 5]
    assert second.cost.tolist() == [[7]]
    (tmp_path / "short").write_text("1\n 2 3\n 1 2 3\n")
    with pytest.raises(ValueError, match="ends after 6 numbers, where 9 are needed"):
        data.read_gap(tmp_path / "short")
    (tmp_path / "long").write_text("1\n 1 1\n 7\n 3\n 3\n 5\n")
    with pytest.raises(ValueError, match="holds 1 numbers more than its header announces"):
        data.read_gap(tmp_path / "long")
    (tmp_path / "words").write_text("1\n 1 1\n seven\n 3\n 3\n")
    with pytest.raises(ValueError, match="holds a word that is no number after the first 3 numbers"):
        data.read_gap(tmp_path / "words")


def test_or_library_facilities(tmp_path):
    (tmp_path / "cap").write_text("2 1\n 10 100.5\n capacity 7\n 4\n 3.5 2\n")
    P = data.read_cap(tmp_path / "cap", capacity=8)
    assert P.capacity.tolist() == [10, 8]
    assert P.fixed_cost.tolist() == [100.5, 7]
    assert P.demand.tolist() == [4]
    assert P.transport.tolist() == [[3.5], [2]]
    with pytest.raises(ValueError, match="leaves the capacity of its sites open; give capacity="):
        data.read_cap(tmp_path / "cap")


def test_routing_library(tmp_path):
    path = tmp_path / "small.vrp"
    path.write_text(
        "NAME : small\nCOMMENT : (none)\nTYPE : CVRP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 10\n"
        "NODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 8\nDEMAND_SECTION\n1 0\n2 4\n3 5\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )
    P = data.read_cvrp(path, vehicles=1, route="elementary")
    assert P.demand.tolist() == [4, 5]
    assert P.capacity == 10
    assert P.distance[0].tolist() == [0, 5, 10]
    assert P.oracle(np.array([100.0, 100.0])).u == pytest.approx(20.0)  # there and back, both served


def test_the_embedded_example_is_read_back(tmp_path):
    written = data.write_days(tmp_path, past=2, seed=3)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "past/day_001.mps",
        "past/day_002.mps",
        "today.mps",
    ]
    today = data.unit_commitment_days(3, np.random.default_rng(3))[-1]
    read = CoupledMILP.from_mps(written[-1], "demand_.*|reserve_.*")
    assert read.row_names == today.row_names
    assert read.n_blocks == 10
    pi = np.random.default_rng(0).uniform(0, 30, 48)
    assert dual_value(pi, read).u == pytest.approx(dual_value(pi, today).u, rel=1e-8)
