"""Branch and bound on Lagrangian or LP bounds, with the same tree; and `solve`: a feasible plan with a proven gap.

Depth first. A Lagrangian node's bound is the best u in at most 30 subgradient steps from its parent's multipliers (root: 200
from the given start); fixed variables are fixed inside the oracle. Branching is on the variable whose average over the steps is
nearest to 1/2, the child x = 1 first. A node is pruned when its bound exceeds UB - 1 (whole-number objective) or UB - 1e-6
(1 + |UB|). The LP tree differs in its bound and in what is fractional: the LP relaxation, solved from the parent's basis.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from upheld.lagrangian.ascent import Box, Budget, Search, evaluator
from upheld.lagrangian.highs import solver
from upheld.lagrangian.oracles import FREE, DualEval, Infeasible, Instance, inside
from upheld.lagrangian.repair import Incumbent, leaf, repair
from upheld.lagrangian.subgradient import Target, polyak

ROOT_STEPS, NODE_STEPS = 200, 30
MARGIN = 0.02


@dataclass(frozen=True)
class Tree:
    """A search that ended: proven `lower` bound (of the minimisation), the `incumbent`, `nodes` visited, `seconds`, and
    whether the whole tree was searched (`complete`)."""

    lower: float
    incumbent: Incumbent
    nodes: int
    seconds: float
    complete: bool


@dataclass(frozen=True)
class _Node:
    fixed: np.ndarray
    pi: np.ndarray
    bound: float  # its parent's


def lagrangian_tree(
    P: Instance,
    start: ArrayLike | None = None,
    *,
    upper: float = np.inf,
    max_nodes: int = 5000,
    time_limit: float = np.inf,
    incumbent: Incumbent | None = None,
    root_steps: int = ROOT_STEPS,
    improve: bool = False,
) -> Tree:
    """Branch and bound on u.

    Parameters
    ----------
    start : (s,) multipliers at the root; None starts at 0
    upper : objective (of the minimisation) that is known to be attainable; nothing but better solutions is looked for
    max_nodes, time_limit : when to give up; the bound is proven all the same
    incumbent : a solution to begin with
    root_steps : subgradient steps at the root
    improve : repair every node's average into a solution

    Raises
    ------
    ValueError
        If the instance offers no branching.
    """
    if P.branchable.size == 0:
        raise ValueError(f"{type(P).__name__} offers no branching; take its monolith, P.milp()")
    begin, best = time.perf_counter(), incumbent or Incumbent(np.inf, None)
    pi = np.zeros(P.n_rows) if start is None else inside(start, P)
    open_nodes = [_Node(np.full(P.oracle(pi).x.size, FREE, dtype=np.int8), pi, -np.inf)]
    nodes, closed_above = 0, np.inf  # the least bound among leaves that could not be branched on
    while open_nodes and nodes < max_nodes and time.perf_counter() - begin < time_limit:
        node = open_nodes.pop()
        ub = min(upper, best.value)
        if pruned(P, node.bound, ub):
            continue
        nodes += 1
        steps = root_steps if nodes == 1 else NODE_STEPS
        try:
            bounded = _bound(P, node, ub, Budget(steps, time_limit - (time.perf_counter() - begin)))
        except Infeasible:
            continue
        if improve:
            left = time_limit - (time.perf_counter() - begin)
            best = best.better(repair(P, bounded.x_average, time_limit=min(1.0, max(left, 0.0)), fixed=node.fixed))
            ub = min(upper, best.value)
        if pruned(P, bounded.u, ub):
            continue
        free = P.branchable[node.fixed[P.branchable] == FREE]
        if free.size == 0:
            end = leaf(P, node.fixed)
            best, closed_above = best.better(end), min(closed_above, max(bounded.u, end.bound))
            continue
        branch = free[int(np.argmin(np.abs(bounded.x_average[free] - 0.5)))]
        for value in (0, 1):  # the last in is the first out: x = 1
            fixed = node.fixed.copy()
            fixed[branch] = value
            open_nodes.append(_Node(fixed, bounded.pi, bounded.u))
    ub = min(upper, best.value)
    left = min((node.bound for node in open_nodes), default=np.inf)
    lower = min(left, closed_above, ub)
    return Tree(lower, best, nodes, time.perf_counter() - begin, not open_nodes)


def pruned(P: Instance, bound: float, ub: float) -> bool:
    """No solution better than `ub` has this bound."""
    if not np.isfinite(ub):
        return bound == np.inf
    return bound > ub - 1 + 1e-6 if P.integer_costs else bound >= ub - 1e-6 * (1 + abs(ub))


@dataclass(frozen=True)
class _Bounded:
    u: float
    pi: np.ndarray
    x: np.ndarray
    x_average: np.ndarray


def _bound(P: Instance, node: _Node, ub: float, budget: Budget) -> _Bounded:
    """The best u of subgradient steps within the budget, stopped as soon as the node is pruned."""

    def evaluate(pi: np.ndarray) -> DualEval:
        return P.oracle(pi, fixed=node.fixed)

    search = _PrunedSearch(evaluate, budget, lambda u: pruned(P, u, ub))
    box = Box(np.where(P.equality, -np.inf, 0.0), np.full(P.n_rows, np.inf))
    first = P.oracle(node.pi, fixed=node.fixed).u if not np.isfinite(ub) else 0.0
    target = Target(ub) if np.isfinite(ub) else Target(-np.inf, MARGIN * (1 + abs(first)))
    found = polyak(search, node.pi, box, target)
    # The parent's bound holds here too.
    return _Bounded(max(found.u, node.bound), found.pi, found.x, found.x_average)


class _PrunedSearch(Search):
    def __init__(
        self, evaluate: Callable[[np.ndarray], DualEval], budget: Budget, enough: Callable[[float], bool]
    ) -> None:
        super().__init__(evaluate, budget)
        self._enough = enough

    @property
    def spent(self) -> bool:
        return super().spent or self._enough(self.top)


def lp_tree(P: Instance, *, upper: float = np.inf, max_nodes: int = 5000, time_limit: float = np.inf) -> Tree:
    """The same tree on LP bounds of the monolith, by HiGHS' dual simplex from the last basis."""
    import highspy

    M, begin = P.milp(), time.perf_counter()
    h = solver(M._minimisation(integer=False), solver="simplex", presolve="off")
    integers = np.flatnonzero(M.integrality)
    best = Incumbent(np.inf, None)
    stack: list[tuple[dict[int, float], float]] = [({}, -np.inf)]
    set_before: dict[int, float] = {}
    nodes = 0
    while stack and nodes < max_nodes and time.perf_counter() - begin < time_limit:
        fixed, parent = stack.pop()
        if pruned(P, parent, min(upper, best.value)):
            continue
        nodes += 1
        for j in set_before.keys() - fixed.keys():
            h.changeColBounds(j, M.lb[j], M.ub[j])
        for j, value in fixed.items():
            h.changeColBounds(j, value, value)
        set_before = fixed
        h.run()
        if h.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            continue
        bound = float(h.getInfo().objective_function_value)
        if pruned(P, bound, min(upper, best.value)):
            continue
        x = np.asarray(h.getSolution().col_value)
        fraction = np.abs(x[integers] - np.round(x[integers]))
        if fraction.max(initial=0.0) <= 1e-6:
            best = best.better(Incumbent(bound, x))
            continue
        branch = int(integers[np.argmin(np.abs(x[integers] - np.floor(x[integers]) - 0.5))])
        stack += [({**fixed, branch: value}, bound) for value in (0.0, 1.0)]
    lower = min(min((bound for _, bound in stack), default=np.inf), best.value, upper)
    return Tree(lower, best, nodes, time.perf_counter() - begin, not stack)


@dataclass(frozen=True)
class Solution:
    """A plan and its proof, in the user's sense.

    Attributes
    ----------
    bound : proven bound on the optimum (lower for a minimisation, upper for a maximisation)
    value : objective of the plan; infinite if none was found
    x : its monolith columns, or None (quadratic unit costs and vehicle routing: in the layout of the instance's oracle)
    gap : |value - bound| / max(1, |value|)
    nodes, seconds : of branch and bound, and in all
    """

    bound: float
    value: float
    x: np.ndarray | None
    gap: float
    nodes: int
    seconds: float


def solve(P: Instance, multipliers: ArrayLike, time_limit: float = 60.0, max_nodes: int = 5000) -> Solution:
    """A feasible plan, repaired from the Lagrangian solution, with a proven bound: Lagrangian branch and bound from `multipliers`.

    Parameters
    ----------
    P : the instance
    multipliers : (s,), a learner's prediction
    time_limit : seconds

    Raises
    ------
    ValueError
        As in `dual_value`.

    Examples
    --------
    >>> from upheld.lagrangian.families import GAP
    >>> P = GAP([[1, 5], [4, 2]], [[2, 2], [2, 2]], [2, 2])
    >>> done = solve(P, [3.0, 4.0])
    >>> done.bound, done.value, done.gap
    (3.0, 3.0, 0.0)
    """
    begin = time.perf_counter()
    pi = inside(multipliers, P)
    search = Search(evaluator(P), Budget(calls=ROOT_STEPS, seconds=time_limit / 4))
    first = P.oracle(pi)
    box = Box(np.where(P.equality, -np.inf, 0.0), np.full(P.n_rows, np.inf))
    root = polyak(search, pi, box, Target(-np.inf, MARGIN * (1 + abs(first.u))))
    best = repair(P, root.x_average, time_limit=time_limit / 4)
    lower, nodes = root.u, 0
    left = time_limit - (time.perf_counter() - begin)
    if P.branchable.size and left > 0 and not pruned(P, lower, best.value):
        tree = lagrangian_tree(
            P, root.pi, max_nodes=max_nodes, time_limit=left, incumbent=best, root_steps=ROOT_STEPS, improve=True
        )
        best, lower, nodes = tree.incumbent, max(lower, tree.lower), tree.nodes
    elif pruned(P, lower, best.value):
        lower = best.value
    gap = abs(best.value - lower) / max(1.0, abs(best.value)) if np.isfinite(best.value) else np.inf
    return Solution(
        P.user_value(lower), P.user_value(best.value), best.x, gap, nodes, time.perf_counter() - begin
    )  # fmt: skip


@dataclass(frozen=True)
class ObjectiveCut:
    """A row of the monolith that every better solution satisfies: coefficients x >= lower (<= upper for a maximisation).

    Attributes
    ----------
    columns, coefficients : the objective's entries that are not zero
    lower, upper : sides of the row, in the user's sense, without the objective's constant
    """

    columns: np.ndarray
    coefficients: np.ndarray
    lower: float
    upper: float

    def add_to(self, h: object) -> None:
        """Append the row to a HiGHS instance that holds the monolith."""
        h.addRow(  # type: ignore[attr-defined]
            self.lower, self.upper, self.columns.size, self.columns.astype(np.int32), self.coefficients
        )


def root_bound_cut(P: Instance, pi: ArrayLike) -> ObjectiveCut:
    """u(pi) as an objective cut for a MIP solver; rounded up where the objective is a whole number.

    Examples
    --------
    >>> from upheld.lagrangian.families import GAP
    >>> cut = root_bound_cut(GAP([[1, 5], [4, 2]], [[2, 2], [2, 2]], [2, 2]), [2.5, 4.0])
    >>> cut.lower, cut.coefficients.tolist()
    (3.0, [1.0, 5.0, 4.0, 2.0])
    """
    M = P.milp()
    u = P.oracle(inside(pi, P)).u
    bound = (float(np.ceil(u - 1e-6)) if P.integer_costs else u) - M.offset
    columns = np.flatnonzero(M.c)
    sign = -1.0 if P.maximise else 1.0
    side = sign * bound
    return ObjectiveCut(
        columns, sign * M.c[columns], -np.inf if P.maximise else side, side if P.maximise else np.inf
    )  # fmt: skip
