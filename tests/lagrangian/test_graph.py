"""Graphs of instances: what is in them, and that no order shows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from upheld.lagrangian import CoupledMILP, data
from upheld.lagrangian.families import GAP, HardFamily
from upheld.lagrangian.graph import COLUMN_FEATURES, ROW_FEATURES, graph_of


def test_it_holds_every_row_column_and_entry(draw):
    P = draw(0)
    M, graph = P.linear_model(), graph_of(P)
    assert graph.rows.shape == (M.b.size + M.d.size, len(ROW_FEATURES))
    assert graph.columns.shape == (M.c.size, len(COLUMN_FEATURES))
    assert graph.edge_row.size == graph.edge_column.size == graph.weight.size == M.A.nnz + M.C.nnz
    assert np.isfinite(graph.rows).all()
    assert np.isfinite(graph.columns).all()
    assert (abs(graph.weight) <= 1 + 1e-12).all()
    assert P.oracle(graph.lp_dual).u >= M.lp_relaxation()[0] - 1e-6 * (1 + abs(M.lp_relaxation()[0]))


def test_features_of_a_problem_done_by_hand():
    """x_0 costs 5, x_1 costs 4, 2 x_0 + x_1 >= 3: both are taken, x_0 at a reduced cost below 0 if the row were cheap."""
    graph = graph_of(CoupledMILP([5, 4], [[2, 1]], [2], sparse.csr_array((0, 2)), [], True, 0, 1))
    named = dict(zip(ROW_FEATURES, np.expm1(graph.rows[0]), strict=True))
    assert named["coupling"] == pytest.approx(1)
    assert named["norm"] == pytest.approx(5**0.5)
    assert named["side"] == pytest.approx(2 / 5**0.5)
    assert named["degree"] == pytest.approx(2)
    assert named["mean cost"] == pytest.approx(4.5)
    assert named["least cost"] == pytest.approx(4)
    assert named["blocks"] == pytest.approx(2)
    assert graph.lp_dual == pytest.approx([2.5])  # x_0 = 1 alone, at 5 for 2
    assert named["LP slack"] == pytest.approx(0)
    assert np.expm1(graph.columns[:, COLUMN_FEATURES.index("LP value")]) == pytest.approx([1, 0])


def test_renumbering_tasks_renumbers_rows():
    P = data.gap("D", 3, 7, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(7)
    Q = GAP(P.cost[:, order], P.weight[:, order], P.capacity)
    steady = [k for k, name in enumerate(ROW_FEATURES) if not name.startswith("LP")]  # LP solutions need not be unique
    a, b = graph_of(P), graph_of(Q)
    assert b.rows[:7, steady] == pytest.approx(a.rows[order][:, steady])
    assert np.sort(b.rows[7:, steady], axis=0) == pytest.approx(np.sort(a.rows[7:, steady], axis=0))


def test_an_infeasible_relaxation_is_refused():
    M = HardFamily([0.5]).milp()
    M.b[:] = 2.0
    with pytest.raises(ValueError, match="the LP relaxation has no optimum: HiGHS says"):
        graph_of(M)
