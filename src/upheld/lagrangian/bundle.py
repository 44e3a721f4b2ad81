"""Cutting planes for the dual: Kelley's method and the level bundle (Lemarechal, Nemirovskii & Nesterov 1995), the default.

Every evaluation gives a cut, and the cuts an upper model of the concave dual::

    m(pi) = min_j u_j + g_j (pi - pi_j)  >=  u(pi),             M = max_Pi m                                          (1)

Kelley evaluates the maximiser of m. The level method evaluates the projection of the best point on the level set of m::

    pi <- the point of {m >= l} and Pi nearest to pi_best,      l = u_best + 0.3 (M - u_best)                         (2)

Both stop when M - u_best <= 1e-6 (1 + |M|). Cuts that were inactive for 10 rounds are dropped beyond 3 s of them.
"""

from __future__ import annotations

import numpy as np

from upheld.lagrangian.ascent import Box, DualResult, Search, result
from upheld.lagrangian.highs import linear_program, solver
from upheld.lagrangian.oracles import DualEval
from upheld.lagrangian.projection import nearest_point

LEVEL = 0.3
IDLE_ROUNDS = 10
CUTS_PER_ROW = 3


class CutModel:
    """The model (1) over a box.

    Cuts are kept as rows r - g pi <= u - g pi_j of a linear program in (pi, r), solved by HiGHS from its last basis.
    """

    def __init__(self, box: Box) -> None:
        self.box = box
        s = box.low.size
        self._lp = solver(
            linear_program(
                np.r_[np.zeros(s), 1.0], np.empty((0, s + 1)), np.empty(0), np.empty(0),
                np.r_[box.low, -np.inf], np.r_[box.high, np.inf], maximise=True,
            )
        )  # fmt: skip
        self.gradients, self.constants = np.empty((0, s)), np.empty(0)  # g, and u - g pi_j
        self._idle = np.empty(0, dtype=int)
        self._x: list[np.ndarray] = []

    def add(self, pi: np.ndarray, found: DualEval) -> None:
        """The cut of one evaluation."""
        constant = found.u - float(found.g @ pi)
        index = np.r_[np.flatnonzero(found.g), pi.size].astype(np.int32)
        self._lp.addRow(-np.inf, constant, index.size, index, np.r_[-found.g[index[:-1]], 1.0])
        self.gradients, self.constants = np.vstack([self.gradients, found.g]), np.r_[self.constants, constant]
        self._idle = np.r_[self._idle, 0]
        self._x.append(found.x)

    def widen(self, box: Box) -> None:
        """The same cuts over another box."""
        self.box = box
        index = np.arange(box.low.size, dtype=np.int32)
        self._lp.changeColsBounds(index.size, index, box.low, box.high)

    def value(self, pi: np.ndarray) -> float:
        """m(pi)."""
        return float((self.constants + self.gradients @ pi).min())

    def maximise(self) -> tuple[float, np.ndarray, np.ndarray]:
        """M, a maximiser, and the weight of every cut there (they sum to 1)."""
        import highspy

        self._lp.run()
        if self._lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self._lp.clearSolver()  # a basis gone bad: once more from scratch
            self._lp.run()
            if self._lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise ValueError(
                    "the cutting-plane model has no optimum: "
                    f"HiGHS says {self._lp.modelStatusToString(self._lp.getModelStatus())!r}; scale the coupling rows"
                )
        solution = self._lp.getSolution()
        pi = self.box.clip(np.asarray(solution.col_value)[: self.box.low.size])
        weights = np.abs(np.asarray(solution.row_dual))
        self._idle = np.where(weights > 1e-9, 0, self._idle + 1)
        return float(self._lp.getInfo().objective_function_value), pi, weights

    def nearest(self, centre: np.ndarray, level: float) -> np.ndarray | None:
        """The point of {m >= level} nearest to `centre`, (2); None where the least distance problem is not solved."""
        return nearest_point(centre, self.gradients, level - self.constants, self.box.low, self.box.high)

    def average(self, weights: np.ndarray) -> np.ndarray:
        """The minimisers of the cuts, weighted: nearly feasible for the coupling rows when the model is tight."""
        total = weights.sum()
        used = np.flatnonzero(weights > 1e-12)
        return np.asarray(sum(weights[j] * self._x[j] for j in used) / total) if total > 0 else self._x[-1]

    def drop_idle(self) -> None:
        """Forget cuts that were inactive for `IDLE_ROUNDS` rounds, the longest idle first, down to 3 s."""
        surplus = self.constants.size - CUTS_PER_ROW * self.box.low.size
        old = np.flatnonzero(self._idle >= IDLE_ROUNDS)
        if surplus <= 0 or old.size == 0:
            return
        gone = np.sort(old[np.argsort(-self._idle[old], kind="stable")][:surplus]).astype(np.int32)
        self._lp.deleteRows(gone.size, gone)
        kept = np.setdiff1d(np.arange(self.constants.size), gone)
        self.gradients, self.constants, self._idle = self.gradients[kept], self.constants[kept], self._idle[kept]
        self._x = [self._x[j] for j in kept]


def level_bundle(
    search: Search, start: np.ndarray, model: CutModel, tolerance: float = 1e-6, level: float = LEVEL
) -> DualResult:
    """The level method (2) from `start`; with ``level=1`` it is Kelley's.

    `model` may hold cuts already; it is left with those of the search.
    """
    pi, upper = start, np.inf
    weights = np.empty(0)
    while True:
        model.add(pi, search(pi))
        M, highest, weights = model.maximise()
        upper = min(upper, M)  # dropping cuts may raise M, but earlier ones bound u too
        converged = upper - search.top <= tolerance * (1 + abs(upper))
        if converged or search.spent:
            return result(search, model.average(weights), upper, converged)
        model.drop_idle()
        if level == 1.0:
            pi = highest
            continue
        nearest = model.nearest(search.best_pi, search.top + level * (upper - search.top))
        # Where the projection fails: by concavity, this point of the segment lies in the level set as well.
        pi = search.best_pi + level * (highest - search.best_pi) if nearest is None else model.box.clip(nearest)
