"""GCG, the branch-and-price solver: it finds the blocks by itself and prices columns, but learns nothing from yesterday.

With the same blocks, and neither cuts nor heuristics, its root bound is the value of Dantzig and Wolfe's master problem, which is
max_pi u(pi) (Geoffrion 1974), rounded up where all objectives are whole numbers. Its Python package wants a NumPy that is older
than ours, so that it runs in an environment of its own, and the model goes there as a file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from upheld.lagrangian.highs import linear_program, solver
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.rivals.solvers import SolverBound

INTERPRETER = "UPHELD_GCG_PYTHON"
HOW = (
    'make one by python3.11 -m venv gcg && gcg/bin/pip install "pygcgopt==0.4.0" "pyscipopt==5.2.1" "numpy<2", '
    f"and set {INTERPRETER} to gcg/bin/python"
)
PATIENCE = 60.0  # seconds beyond its limit, for starting and for reading the model


class GCGMissing(RuntimeError):
    """No interpreter with GCG was named, or the one that was has none."""


def gcg_root(
    M: CoupledMILP, *, given_blocks: bool = False, time_limit: float = 600.0, python: str | None = None
) -> SolverBound:
    """GCG's bound after the root node, or after `time_limit` seconds of it; minus infinity if it proved nothing in that time.

    Parameters
    ----------
    given_blocks : it is told the coupling rows and the blocks, and neither cuts nor searches: the value of the master problem.
        Else it presolves, detects blocks, cuts and searches as it does out of the box
    python : the interpreter that has GCG; None takes the environment's UPHELD_GCG_PYTHON

    Returns
    -------
    The bound, of the minimisation, and GCG's own seconds: its start and the way through the file are not counted.

    Raises
    ------
    GCGMissing
        If there is no such interpreter; the sentence says how to make one.
    RuntimeError
        If GCG fails (its last words are told), or finds the model infeasible or unbounded.
    """
    python = interpreter(python)
    with tempfile.TemporaryDirectory() as folder:
        order = _order(M, Path(folder), given_blocks, time_limit)
        answer = _asked(python, order, Path(folder), time_limit + PATIENCE)
    if answer["status"] in ("infeasible", "unbounded", "inforunbd"):
        raise RuntimeError(f"GCG says {answer['status']}")
    bound = -np.inf if answer["bound"] is None else answer["bound"] + M.offset
    return SolverBound(float(bound), float(answer["seconds"]))


def interpreter(python: str | None = None) -> str:
    """The program that has GCG: `python`, or that of the environment.

    Raises
    ------
    GCGMissing
        If none is named, or what is named is no program.
    """
    named = python or os.environ.get(INTERPRETER, "")
    if not named:
        raise GCGMissing(f"GCG needs an environment of its own: {HOW}")
    found = shutil.which(named)
    if found is None:
        raise GCGMissing(f"{INTERPRETER} names {named}, which is no program; {HOW}")
    return found


def _order(M: CoupledMILP, folder: Path, given_blocks: bool, time_limit: float) -> dict[str, Any]:
    """The model as a file with short names, for those of users may hold what MPS does not, and what shall be done with it."""
    rows = sparse.vstack([M.A, M.C], format="csr")
    names = [f"r{k}" for k in range(rows.shape[0])]
    lp = linear_program(
        M.c, rows, np.r_[M.b, M.d], np.r_[np.where(M.equality, M.b, np.inf), M.d_upper], M.lb, M.ub,
        integrality=M.integrality, column_names=[f"x{j}" for j in range(M.c.size)], row_names=names,
    )  # fmt: skip
    model = folder / "model.mps"
    solver(lp).writeModel(str(model))
    return {
        "model": str(model), "answer": str(folder / "answer.json"), "seconds": time_limit, "coupling": names[: M.n_rows],
        "blocks": _rows_of_blocks(M, names[M.n_rows :]) if given_blocks else None,
    }  # fmt: skip


def _rows_of_blocks(M: CoupledMILP, names: list[str]) -> list[list[str]]:
    """The block rows by blocks; a row without entries belongs to none."""
    rows: dict[int, list[str]] = {}
    for k in np.flatnonzero(np.diff(M.C.indptr)):
        block = int(M.blocks[M.C.indices[M.C.indptr[k]]])
        rows.setdefault(block, []).append(names[k])
    return list(rows.values())


def _asked(python: str, order: dict[str, Any], folder: Path, patience: float) -> dict[str, Any]:
    (folder / "order.json").write_text(json.dumps(order))
    process = Path(__file__).with_name("gcg_process.py")
    try:
        done = subprocess.run(
            [python, "-I", str(process), str(folder / "order.json")], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=patience, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"GCG did not end {PATIENCE:g} seconds after its limit") from None
    words = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    if "ModuleNotFoundError" in words or "ImportError" in words:
        raise GCGMissing(f"{python} has no GCG ({words}); {HOW}")
    answer = Path(order["answer"])
    if done.returncode or not answer.exists():
        raise RuntimeError(f"GCG ended with exit code {done.returncode}; its last words: {words}")
    answered: dict[str, Any] = json.loads(answer.read_text())
    return answered
