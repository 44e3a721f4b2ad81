"""What solvers prove of the monolith on their own, and the multipliers their LPs give.

HiGHS cannot be told to leave its cuts out of the root node alone; without cuts its root bound is the LP relaxation's value.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from upheld.lagrangian.highs import solver
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.unit_commitment import UnitCommitment


@dataclass(frozen=True)
class SolverBound:
    """A proven lower bound (of the minimisation), and its seconds."""

    bound: float
    seconds: float


@dataclass(frozen=True)
class LPDuals:
    """Value of the LP relaxation, the (s,) multipliers of the coupling rows clipped into Pi, and the seconds."""

    value: float
    pi: np.ndarray
    seconds: float


def highs_root(M: CoupledMILP, *, cuts: bool = True, time_limit: float = np.inf) -> SolverBound:
    """HiGHS' bound after the root node (or `time_limit` seconds of it): with its presolve, cuts and heuristics, or the LP value."""
    begin = time.perf_counter()
    if not cuts:
        return SolverBound(M.lp_relaxation()[0], time.perf_counter() - begin)
    h = solver(M._minimisation(integer=True), mip_max_nodes=1, mip_rel_gap=0.0, mip_abs_gap=0.0)
    if np.isfinite(time_limit):
        h.setOptionValue("time_limit", float(time_limit))
    h.run()
    return SolverBound(float(h.getInfo().mip_dual_bound), time.perf_counter() - begin)


def highs_duals(M: CoupledMILP) -> LPDuals:
    """By HiGHS' own choice of simplex or interior point."""
    begin = time.perf_counter()
    value, pi = M.lp_relaxation()
    return LPDuals(value, pi, time.perf_counter() - begin)


def ortools_duals(M: CoupledMILP, name: str = "GLOP") -> LPDuals:
    """By OR-Tools' simplex ``"GLOP"`` or its first-order method ``"PDLP"``, whose duals are good to about 1e-6.

    Raises
    ------
    RuntimeError
        If the solver finds no optimum.
    """
    from ortools.linear_solver.python import model_builder

    begin = time.perf_counter()
    model, done = _model(M, integer=False), model_builder.Solver(name)
    status = done.solve(model)
    if status != model_builder.SolveStatus.OPTIMAL:
        raise RuntimeError(f"{name} says {status.name} of the LP relaxation")
    duals = np.asarray(done.dual_values(model.get_linear_constraints()))[: M.n_rows]
    pi = np.where(M.equality, duals, np.maximum(duals, 0.0))
    return LPDuals(float(done.objective_value), pi, time.perf_counter() - begin)


def cp_sat(M: CoupledMILP, seconds: float) -> SolverBound:
    """The bound of OR-Tools' CP-SAT after `seconds`, one worker; minus infinity if it has found nothing in that time.

    Raises
    ------
    ValueError
        If a variable is continuous: CP-SAT puts those on a grid, and what it proves is no bound on the model (on a small unit
        commitment it lies above the optimum).
    RuntimeError
        If it refuses the model, or finds it infeasible.
    """
    from ortools.linear_solver.python import model_builder

    if not M.integrality.all():
        name = M.column_names[int(np.argmin(M.integrality))]
        raise ValueError(f"variable {name} is continuous, and CP-SAT's bound would be none; take highs_root")
    begin = time.perf_counter()
    model, done = _model(M, integer=True), model_builder.Solver("SAT")
    done.set_time_limit_in_seconds(seconds)
    done.set_solver_specific_parameters("num_workers: 1")
    status = done.solve(model)
    if status == model_builder.SolveStatus.NOT_SOLVED:
        return SolverBound(-np.inf, time.perf_counter() - begin)
    if status not in (model_builder.SolveStatus.OPTIMAL, model_builder.SolveStatus.FEASIBLE):
        raise RuntimeError(f"CP-SAT says {status.name} after {seconds:g} seconds")
    return SolverBound(float(done.best_objective_bound), time.perf_counter() - begin)


def _model(M: CoupledMILP, *, integer: bool) -> Any:
    """The monolith as a minimisation; coupling rows first."""
    from ortools.linear_solver.python import model_builder

    model: Any = model_builder.Model()  # type: ignore[no-untyped-call]
    model.helper.fill_model_from_sparse_data(
        M.lb, M.ub, M.c, np.r_[M.b, M.d], np.r_[np.where(M.equality, M.b, np.inf), M.d_upper],
        sparse.csr_matrix(sparse.vstack([M.A, M.C])),
    )  # fmt: skip
    model.helper.set_objective_offset(M.offset)
    for j in np.flatnonzero(M.integrality & integer):
        model.helper.set_var_integrality(int(j), True)
    return model


def textbook_commitment(P: UnitCommitment) -> CoupledMILP:
    """The piecewise monolith with start costs as in textbooks: the same integer solutions, a weaker LP relaxation.

    In place of "hot only after a recent stop" it has, for a start at t after n or more hours off, n = min down + cold hours + 1::

        start cost_t >= cold (on_t - sum_{k=1}^{n} on_{t-k}),      start cost_t >= hot start_t
    """
    M, units, T = copy(P.linear_model()), P.units, P.demand.size
    rows_of_unit, width = T * (5 + P.segments), T * (4 + P.segments)
    C, d = M.C.tolil(), M.d.copy()
    for i in np.flatnonzero(units.cold > units.hot):
        row, column = i * rows_of_unit + 4 * T, i * width
        window = int(units.min_down[i] + units.cold_hours[i]) + 1
        share = float(units.cold[i] / (units.cold[i] - units.hot[i]))
        for t in range(T):
            # start cost = cold start - (cold - hot) hot_t, so that the row bounds hot_t from above.
            C[[row + t], :] = 0.0
            C[row + t, column + T + t] = share
            C[row + t, column + t] = -share
            C[row + t, column + 3 * T + t] = -1.0
            before = 0
            for k in range(1, window + 1):
                if t >= k:
                    C[row + t, column + t - k] = share
                else:
                    before += _was_on(int(units.initial[i]), k - t)
            d[row + t] = -share * before
    M.C, M.d = sparse.csr_array(C), d
    M.C.sort_indices()
    M._engine = None
    return M


def _was_on(initial: int, hours_ago: int) -> bool:
    """Whether a unit ran so many hours before the first hour; before what is known, it did the opposite."""
    return hours_ago <= initial if initial > 0 else hours_ago > -initial
