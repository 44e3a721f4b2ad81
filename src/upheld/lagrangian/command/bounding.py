"""What is proven and planned for one new instance, and what the rivals prove."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from upheld.lagrangian.ascent import Budget, DualResult, box_of
from upheld.lagrangian.branch_and_bound import Solution, solve
from upheld.lagrangian.command.learning import Learned
from upheld.lagrangian.command.options import Options
from upheld.lagrangian.command.reading import Read, explained, named
from upheld.lagrangian.dual import maximise_dual
from upheld.lagrangian.rivals import SolverBound, gcg_root, highs_root

LEARNED, ZERO, LP = "learned multipliers", "zero", "own LP dual"


@dataclass(frozen=True)
class Run:
    """Steps from one start: `calls` block solutions with their values (in the user's sense), norms of supergradients, seconds."""

    start: str
    u: np.ndarray
    g_norm: np.ndarray
    seconds: np.ndarray
    exact: bool
    maximise: bool

    @property
    def first(self) -> float:
        return float(self.u[0])

    @property
    def best(self) -> float:
        return float(self.u.min() if self.maximise else self.u.max())


@dataclass
class Bounded:
    """One new instance: everything in the user's sense."""

    read: Read
    lp_bound: float
    lp_seconds: float
    pi: np.ndarray
    runs: dict[str, Run] = field(default_factory=dict)
    plan: Solution | None = None
    highs_root: SolverBound | None = None
    gcg_root: SolverBound | None = None
    not_run: dict[str, str] = field(default_factory=dict)
    strangeness: float | None = None

    @property
    def bound(self) -> float:
        """The best that was proven on the way: the LP's bound, the steps' from the learned multipliers, the tree's."""
        proven = [self.lp_bound, self.runs[LEARNED].best, *([self.plan.bound] if self.plan is not None else [])]
        return min(proven) if self.read.P.maximise else max(proven)

    @property
    def gap(self) -> float | None:
        """Between plan and bound, relative to the plan."""
        if self.plan is None or not np.isfinite(self.plan.value):
            return None
        return abs(self.plan.value - self.bound) / max(1.0, abs(self.plan.value))


def pieces(options: Options) -> int:
    """Pieces of work an instance."""
    return 1 + (options.seconds > 0) + 2 * options.compare * (1 + (options.seconds > 0))


def bounded(read: Read, found: Learned, options: Options, told: Callable[[], None]) -> Bounded:
    """Bound, plan, and with ``--compare`` the rivals; `told` hears of each piece of work done."""
    P = read.P
    with named(read.path):
        begin = time.perf_counter()
        with explained(P):
            lp, dual = read.M.lp_relaxation()
        lp_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        pi = found.predict(P)
        result = Bounded(read, P.user_value(lp), lp_seconds, pi)
        steps = _steps(read, pi, options)
        result.runs[LEARNED] = _run(
            read, LEARNED, steps, time.perf_counter() - begin - float(steps.seconds_history[-1])
        )
        told()
        if found.alarm is not None:
            result.strangeness = found.alarm.p_value(P)
        if options.seconds > 0:
            result.plan = solve(P, steps.pi, time_limit=options.seconds)
            told()
        if options.compare:
            _rivals(result, dual, options, told)
    return result


def _rivals(result: Bounded, dual: np.ndarray, options: Options, told: Callable[[], None]) -> None:
    """The same steps from zero and from the instance's LP; HiGHS' and GCG's root nodes with as many seconds as the plan had."""
    read = result.read
    result.runs[ZERO] = _run(read, ZERO, _steps(read, np.zeros(read.P.n_rows), options), 0.0)
    told()
    result.runs[LP] = _run(read, LP, _steps(read, dual, options), result.lp_seconds)
    told()
    if options.seconds > 0:
        root = highs_root(read.M, time_limit=options.seconds)
        result.highs_root = SolverBound(read.P.user_value(root.bound), root.seconds)
        told()
        try:
            root = gcg_root(read.M, time_limit=options.seconds)
            result.gcg_root = SolverBound(read.P.user_value(root.bound), root.seconds)
        except RuntimeError as reason:  # a rival that is missing or fails is told, and stops nobody
            result.not_run["GCG, root node"] = str(reason)
        told()


def _steps(read: Read, start: np.ndarray, options: Options) -> DualResult:
    P = read.P
    inside = box_of(P, np.inf).clip(start)
    return maximise_dual(P, inside, options.method, Budget(calls=options.steps + 1), n_jobs=options.jobs)


def _run(read: Read, start: str, steps: DualResult, seconds_before: float) -> Run:
    P = read.P
    u = np.array([P.user_value(float(value)) for value in steps.u_history])
    return Run(start, u, steps.g_norm_history, seconds_before + steps.seconds_history, steps.exact, P.maximise)
