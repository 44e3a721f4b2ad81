"""Blocks of a mixed-integer program, each minimised by HiGHS under changing costs.

Variables that stand in no block row need no solver: each sits at the bound its cost points away from. A block that stops
early (at a gap, or for lack of time) gives its dual bound, which keeps the Lagrangian value below the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from upheld.lagrangian.highs import linear_program, solver
from upheld.lagrangian.oracles import Infeasible, shared

if TYPE_CHECKING:
    import highspy

    from upheld.lagrangian.instance import CoupledMILP

EXACT = 1e-7  # relative difference of a block's value and dual bound that counts as none
WHOLE = 1e-6  # HiGHS' tolerance for whole numbers


class Blocks:
    """All blocks of `P`, with their solvers."""

    def __init__(self, P: CoupledMILP) -> None:
        in_rows = np.diff(P.C.tocsc().indptr) > 0
        self.P = P
        self.loose = np.flatnonzero(~in_rows)
        block_of_row = P.blocks[P.C.indices[P.C.indptr[:-1][np.diff(P.C.indptr) > 0]]]
        rows = np.flatnonzero(np.diff(P.C.indptr) > 0)
        labels = np.unique(P.blocks[in_rows])
        self.labels = labels
        self.columns = [np.flatnonzero((P.blocks == label) & in_rows) for label in labels]
        self.rows = [rows[block_of_row == label] for label in labels]
        self.solvers = [self._solver(j) for j in range(labels.size)]

    def minimise(self, cost: np.ndarray, lb: np.ndarray, ub: np.ndarray, n_jobs: int) -> tuple[np.ndarray, float, bool]:
        """x, the sum of the blocks' values (dual bounds where they stopped early), and whether none stopped early."""
        x, values = np.zeros(cost.size), np.zeros(len(self.solvers))
        exact = np.ones(len(self.solvers), dtype=bool)
        x[self.loose] = self._loose(cost, lb, ub)

        def work(lo: int, hi: int) -> None:
            for j in range(lo, hi):
                columns = self.columns[j]
                x[columns], values[j], exact[j] = self._minimise(j, cost[columns], lb[columns], ub[columns])

        shared(work, len(self.solvers), n_jobs)
        return x, float(cost[self.loose] @ x[self.loose] + values.sum()), bool(exact.all())

    def _loose(self, cost: np.ndarray, lb: np.ndarray, ub: np.ndarray) -> np.ndarray:
        j = self.loose
        whole = self.P.integrality[j]
        low, high = np.where(whole, np.ceil(lb[j] - WHOLE), lb[j]), np.where(whole, np.floor(ub[j] + WHOLE), ub[j])
        empty = np.flatnonzero(low > high)
        if empty.size:
            raise Infeasible(f"variable {self.P.column_names[j[empty[0]]]} has no whole number within its bounds")
        resting = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        x = np.where(cost[j] > 0, low, np.where(cost[j] < 0, high, resting))
        open_end = np.flatnonzero(~np.isfinite(x))
        if open_end.size:
            self._unbounded(int(self.P.blocks[j[open_end[0]]]), int(j[open_end[0]]), float(cost[j[open_end[0]]]))
        return x

    def _solver(self, j: int) -> highspy.Highs:
        P, columns, rows = self.P, self.columns[j], self.rows[j]
        lp = linear_program(
            P.c[columns], P.C[rows][:, columns], P.d[rows], P.d_upper[rows], P.lb[columns], P.ub[columns],
            integrality=P.integrality[columns],
        )  # fmt: skip
        h = solver(lp, mip_rel_gap=P.gap, mip_abs_gap=0.0)
        if np.isfinite(P.block_seconds):
            h.setOptionValue("time_limit", float(P.block_seconds))
        return h

    def _minimise(self, j: int, cost: np.ndarray, lb: np.ndarray, ub: np.ndarray) -> tuple[np.ndarray, float, bool]:
        import highspy

        h, n = self.solvers[j], cost.size
        index = np.arange(n, dtype=np.int32)
        h.clearSolver()  # no start from the last call: the answer depends on the multipliers alone
        h.changeColsCost(n, index, cost)
        h.changeColsBounds(n, index, lb, ub)
        h.run()
        status, info = h.getModelStatus(), h.getInfo()
        mixed = self.P.integrality[self.columns[j]].any()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise Infeasible(f"{self._name(j)} has no feasible point; its own rows and bounds contradict each other")
        if status in (highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            self._explain(j, cost, lb, ub)
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if not found or (not mixed and status != highspy.HighsModelStatus.kOptimal):
            raise ValueError(
                f"{self._name(j)} was not solved (HiGHS: {h.modelStatusToString(status)}); "
                "give its blocks more time or a larger gap"
            )
        x = np.asarray(h.getSolution().col_value)
        x = np.clip(np.where(self.P.integrality[self.columns[j]], np.round(x), x), lb, ub)
        value = float(info.objective_function_value)
        bound = min(value, float(info.mip_dual_bound)) if mixed else value
        return x, bound, value - bound <= EXACT * (1 + abs(value))

    def _name(self, j: int) -> str:
        names = [self.P.column_names[k] for k in self.columns[j][:3]]
        return f"block {self.labels[j]} (variables {', '.join(names)}{', ...' if self.columns[j].size > 3 else ''})"

    def _explain(self, j: int, cost: np.ndarray, lb: np.ndarray, ub: np.ndarray) -> NoReturn:
        """Tell an infeasible block from an unbounded one, and name the variable along which it is unbounded."""
        import highspy

        P, columns, rows = self.P, self.columns[j], self.rows[j]
        h = solver(
            linear_program(cost, P.C[rows][:, columns], P.d[rows], P.d_upper[rows], lb, ub),
            presolve="off", solver="simplex",
        )  # fmt: skip
        h.run()
        if h.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            raise Infeasible(f"{self._name(j)} has no feasible point; its own rows and bounds contradict each other")
        _, has_ray, ray = h.getPrimalRay()  # type: ignore[attr-defined]
        ray = np.asarray(ray) if has_ray else np.zeros(cost.size)
        falling = np.where(cost * ray < 0, cost * ray, 0.0)
        k = int(np.argmin(falling)) if falling.any() else int(np.argmin(np.where(np.isinf(ub), cost, np.inf)))
        self._unbounded(int(self.labels[j]), int(columns[k]), float(cost[k]))

    def _unbounded(self, block: int, column: int, cost: float) -> NoReturn:
        side = "an upper" if cost < 0 else "a lower"
        raise ValueError(
            f"the subproblem of block {block} is unbounded at these multipliers: variable {self.P.column_names[column]} "
            f"lacks {side} bound; bound it in the model"
        )
