"""SCIP with the Lagrangian bound: the root's bound is u, the optimum stays what HiGHS says, with presolve and constants, either sense."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from upheld.lagrangian import CoupledMILP, SGAMultipliers, data, dual_value
from upheld.lagrangian.scip import add_relaxator


@pytest.fixture
def scip():
    return pytest.importorskip("pyscipopt", reason='the adapter for SCIP needs pip install "upheld[lagrangian-scip]"')


def learned() -> tuple[CoupledMILP, np.ndarray]:
    """A new instance, and multipliers from sixteen past ones."""
    *past, today = itertools.islice(data.gap_stream("D", 3, 9, np.random.default_rng(0)), 17)
    M = today.milp()
    M.offset = 250.0
    return M, SGAMultipliers().fit(past).predict(today)


def model(scip, M, tmp_path):
    """SCIP's model of a file, silent."""
    M.write(tmp_path / "today.mps")
    read = scip.Model()
    read.hideOutput()
    read.readProblem(str(tmp_path / "today.mps"))
    return read


def bare(model, scip):
    """No cuts, no presolve, no linear program: what is proven is the relaxator's."""
    for turn_off in (model.setPresolve, model.setHeuristics, model.setSeparating):
        turn_off(scip.SCIP_PARAMSETTING.OFF)
    for name, value in (("lp/solvefreq", -1), ("limits/nodes", 1), ("misc/usesymmetry", 0)):
        model.setParam(name, value)


@pytest.mark.parametrize("maximise", [False, True])
def test_the_bound_of_the_root_is_the_dual_value(scip, tmp_path, maximise):
    M, pi = learned()
    M.maximise = maximise  # the same minimisation, told as a maximisation of the negated costs
    root = model(scip, M, tmp_path)
    bare(root, scip)
    relaxator = add_relaxator(root, M, pi)
    root.optimize()
    u = M.user_value(dual_value(pi, M).u)
    assert relaxator.first == pytest.approx(u)
    assert root.getDualbound() == pytest.approx(u)


@pytest.mark.parametrize("maximise", [False, True])
def test_the_optimum_is_the_same_and_the_tree_is_bounded_by_it(scip, tmp_path, maximise):
    M, pi = learned()
    M.maximise = maximise
    optimum = M.user_value(M.optimum().value)
    whole = model(scip, M, tmp_path)
    relaxator = add_relaxator(whole, M, pi)
    whole.optimize()
    assert whole.getStatus() == "optimal"
    assert whole.getObjVal() == pytest.approx(optimum)
    assert relaxator.calls >= 1


def test_alone_in_the_tree_it_finds_the_optimum(scip, tmp_path):
    """Every bound of a node must hold there: with one that were too high SCIP would cut the optimum off."""
    M, pi = learned()
    tree = model(scip, M, tmp_path)
    bare(tree, scip)
    tree.setParam("limits/nodes", -1)
    tree.setParam("lp/solvefreq", 1)
    relaxator = add_relaxator(tree, M, pi)
    tree.optimize()
    assert tree.getObjVal() == pytest.approx(M.optimum().value)
    assert relaxator.calls > 5


def test_another_model_is_refused(scip, tmp_path):
    M, pi = learned()
    other = model(scip, data.gap("D", 2, 4, np.random.default_rng(0)).milp(), tmp_path)
    with pytest.raises(ValueError, match=r"the SCIP model has no variable \S+ \(19 are lacking\)"):
        add_relaxator(other, M, pi)


def test_without_pyscipopt_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyscipopt.scip", None)
    M, pi = learned()
    with pytest.raises(
        ImportError, match=r'pyscipopt cannot be imported .*; install it with pip install "upheld\[lagrangian-scip\]"'
    ):
        add_relaxator(None, M, pi)
