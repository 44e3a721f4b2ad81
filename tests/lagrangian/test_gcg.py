"""GCG's master problem is the Lagrangian dual from the other side: its root bound is u*. What happens where GCG is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from upheld.claims import NotRun, Scale, Trial
from upheld.lagrangian import Budget, data, maximise_dual
from upheld.lagrangian.claims import measure_gcg
from upheld.lagrangian.families import GAP
from upheld.lagrangian.rivals import GCGMissing, gcg_root
from upheld.lagrangian.rivals.gcg import INTERPRETER, interpreter


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter that has GCG."""
    try:
        return interpreter()
    except GCGMissing as missing:
        pytest.skip(str(missing))


def costly(seed: int) -> GAP:
    """An assignment problem whose costs are no whole numbers, so that no bound is rounded up."""
    rng = np.random.default_rng(seed)
    P = data.gap("D", 4, 12, rng)
    return GAP(P.cost + rng.uniform(0, 1, P.cost.shape), P.weight, P.capacity)


@pytest.mark.parametrize("seed", range(5))
def test_its_root_bound_with_our_blocks_is_the_best_lagrangian_bound(python, seed):
    P = costly(seed)
    best = maximise_dual(P, tolerance=1e-8, budget=Budget(2000))
    assert best.converged
    M = P.milp()
    M.offset = 1000.0
    assert gcg_root(M, given_blocks=True, python=python).bound == pytest.approx(1000 + best.u, rel=1e-6)


def test_as_it_comes_it_proves_no_less(python):
    M = costly(0).milp()
    optimum = M.optimum().value
    found = gcg_root(M, python=python)
    assert M.lp_relaxation()[0] - 1e-6 <= found.bound <= optimum + 1e-6
    assert found.seconds > 0


def test_an_infeasible_model_is_refused(python):
    M = costly(0).milp()
    M.b[:] = 5.0  # of 4 agents
    with pytest.raises(RuntimeError, match="GCG says infeasible"):
        gcg_root(M, given_blocks=True, python=python)


def test_without_an_interpreter_the_sentence_says_how_to_make_one(monkeypatch):
    monkeypatch.delenv(INTERPRETER, raising=False)
    M = data.gap("D", 2, 3, np.random.default_rng(0)).milp()
    with pytest.raises(GCGMissing, match=r"needs an environment of its own: make one by .* and set UPHELD_GCG_PYTHON"):
        gcg_root(M)
    with pytest.raises(GCGMissing, match="names /no/python, which is no program; make one"):
        gcg_root(M, python="/no/python")
    with pytest.raises(GCGMissing, match=r"has no GCG \(ModuleNotFoundError: No module named 'pygcgopt'\)"):
        gcg_root(M, python=sys.executable)


def test_a_trial_without_gcg_says_that_it_was_not_run(monkeypatch):
    monkeypatch.delenv(INTERPRETER, raising=False)
    trial = Trial("lagrangian.columns", {"family": "GAP-D", "size": "2x3", "seconds": 1.0}, 0, Scale.SMOKE)
    with pytest.raises(NotRun, match="GCG needs an environment of its own"):
        list(measure_gcg(trial))


def program(folder: Path, text: str) -> str:
    """An interpreter that does what `text` says, with the order as `order`."""
    file = folder / "python"
    file.write_text(f"#!{sys.executable}\nimport json, sys\norder = json.load(open(sys.argv[3]))\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_the_answer_is_read_from_its_own_file_and_no_bound_is_minus_infinity(tmp_path):
    """Whatever is printed, as GCG prints."""
    M = costly(0).milp()
    said = {"bound": None, "seconds": 0.5, "status": "timelimit"}
    text = f"print('{{}}')\njson.dump(json.loads('{json.dumps(said)}'), open(order['answer'], 'w'))"
    found = gcg_root(M, python=program(tmp_path, text))
    assert (found.bound, found.seconds) == (-np.inf, 0.5)


def test_its_last_words_are_told(tmp_path):
    M = costly(0).milp()
    with pytest.raises(RuntimeError, match="exit code 3; its last words: out of memory"):
        gcg_root(M, python=program(tmp_path, "print('out of memory', file=sys.stderr)\nsys.exit(3)"))
    with pytest.raises(RuntimeError, match="exit code 0; its last words: nothing"):
        gcg_root(M, python=program(tmp_path, ""))
