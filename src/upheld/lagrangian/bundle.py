"""Cutting planes for the dual: Kelley's method and the level bundle (Lemarechal, Nemirovskii & Nesterov 1995), the default.

Every evaluation gives a cut, and the cuts an upper model of the concave dual (of a mean of duals: one set of cuts a group)::

    m(pi) = min_j u_j + g_j (pi - pi_j)  >=  u(pi),             M = max_Pi m                                          (1)

Kelley evaluates the maximiser of m. The level method evaluates the projection of the best point on the level set of m::

    pi <- the point of {m >= l} and Pi nearest to pi_best,      l = u_best + 0.3 (M - u_best)                         (2)

Both stop when M - u_best <= 1e-6 (1 + |M|). Cuts that were inactive for 10 rounds are dropped beyond 3 s of them.
"""

from __future__ import annotations

import numpy as np

from upheld.lagrangian.ascent import Box, DualResult, Evaluation, Search, result
from upheld.lagrangian.highs import linear_program, project, solver
from upheld.lagrangian.projection import nearest_point

LEVEL = 0.3
IDLE_ROUNDS = 10
CUTS_PER_ROW = 3


class CutModel:
    """The model (1) over a box; `n_groups` concave functions whose mean is maximised.

    Cuts are kept as rows r_i - g pi <= u - g pi_j of a linear program in (pi, r), solved by HiGHS from its last basis.
    """

    def __init__(self, box: Box, n_groups: int = 1) -> None:
        self.box, self.n_groups = box, n_groups
        s = box.low.size
        free = np.full(n_groups, np.inf)
        self._lp = solver(
            linear_program(
                np.r_[np.zeros(s), np.full(n_groups, 1.0 / n_groups)], np.empty((0, s + n_groups)), np.empty(0), np.empty(0),
                np.r_[box.low, -free], np.r_[box.high, free], maximise=True,
            )
        )  # fmt: skip
        self.gradients, self.constants = np.empty((0, s)), np.empty(0)  # g, and u - g pi_j
        self.group = np.empty(0, dtype=int)
        self._idle = np.empty(0, dtype=int)
        self._x: list[np.ndarray] = []

    def add(self, pi: np.ndarray, found: Evaluation) -> None:
        """The cuts of one evaluation."""
        s = pi.size
        constants = found.values - found.gradients @ pi
        for i in range(self.n_groups):
            index = np.r_[np.flatnonzero(found.gradients[i]), s + i].astype(np.int32)
            values = np.r_[-found.gradients[i][index[:-1]], 1.0]
            self._lp.addRow(-np.inf, float(constants[i]), index.size, index, values)
        self.gradients = np.vstack([self.gradients, found.gradients])
        self.constants = np.r_[self.constants, constants]
        self.group = np.r_[self.group, np.arange(self.n_groups)]
        self._idle = np.r_[self._idle, np.zeros(self.n_groups, dtype=int)]
        self._x += [found.answer.x] * self.n_groups

    def widen(self, box: Box) -> None:
        """The same cuts over another box."""
        self.box = box
        index = np.arange(box.low.size, dtype=np.int32)
        self._lp.changeColsBounds(index.size, index, box.low, box.high)

    def value(self, pi: np.ndarray) -> float:
        """m(pi), the mean over the groups."""
        cuts = self.constants + self.gradients @ pi
        return float(np.mean([cuts[self.group == i].min() for i in range(self.n_groups)]))

    def maximise(self) -> tuple[float, np.ndarray, np.ndarray]:
        """M, a maximiser, and the weight of every cut there (they sum to 1 in every group)."""
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
        weights = np.abs(np.asarray(solution.row_dual)) * self.n_groups
        self._idle = np.where(weights > 1e-9, 0, self._idle + 1)
        return float(self._lp.getInfo().objective_function_value), pi, weights

    def nearest(self, centre: np.ndarray, level: float) -> np.ndarray | None:
        """The point of {m >= level} nearest to `centre`, (2); None where the quadratic program is not solved.

        One group: least distance programming, several times faster than HiGHS' quadratic solver and more accurate.
        Several groups have the free variables r too, and go to HiGHS.
        """
        s, n = self.box.low.size, self.n_groups
        if n == 1:
            return nearest_point(centre, self.gradients, level - self.constants, self.box.low, self.box.high)
        rows = np.zeros((self.constants.size + 1, s + n))
        rows[:-1, :s] = self.gradients
        rows[np.arange(self.constants.size), s + self.group] = -1.0
        rows[-1, s:] = 1.0 / n
        free = np.full(n, np.inf)
        at_least = np.r_[-self.constants, level]
        return project(centre, rows, at_least, np.r_[self.box.low, -free], np.r_[self.box.high, free])

    def average(self, weights: np.ndarray) -> np.ndarray:
        """The minimisers of the cuts, weighted: nearly feasible for the coupling rows when the model is tight."""
        total = weights.sum()
        used = np.flatnonzero(weights > 1e-12)
        return np.asarray(sum(weights[j] * self._x[j] for j in used) / total) if total > 0 else self._x[-1]

    def drop_idle(self) -> None:
        """Forget cuts that were inactive for `IDLE_ROUNDS` rounds, the longest idle first, down to 3 s a group."""
        surplus = self.constants.size - CUTS_PER_ROW * self.box.low.size * self.n_groups
        old = np.flatnonzero(self._idle >= IDLE_ROUNDS)
        if surplus <= 0 or old.size == 0:
            return
        gone = np.sort(old[np.argsort(-self._idle[old], kind="stable")][:surplus]).astype(np.int32)
        self._lp.deleteRows(gone.size, gone)
        kept = np.setdiff1d(np.arange(self.constants.size), gone)
        self.gradients, self.constants = self.gradients[kept], self.constants[kept]
        self.group, self._idle = self.group[kept], self._idle[kept]
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
