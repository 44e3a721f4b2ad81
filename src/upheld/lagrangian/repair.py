"""From a Lagrangian solution to a feasible plan: greedy repair and swaps, savings for routes, a restricted MILP for the rest.

The x-average of a dual search is a convex combination of block solutions that nearly satisfies the coupling rows; what it
agrees on is kept, and the rest is decided anew; everything, where that leaves no plan.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass

import numpy as np

from upheld.lagrangian.gap import GAP
from upheld.lagrangian.oracles import FREE, Instance
from upheld.lagrangian.routing import CVRP
from upheld.lagrangian.unit_commitment import UnitCommitment

AGREED = (
    0.1,
    0.01,
    1e-6,
)  # within so much of 0 or 1 an average counts as decided; within a tree, until a plan is found


@dataclass(frozen=True)
class Incumbent:
    """A feasible solution: its value (of the minimisation) and columns; `bound` is what its subproblem proved, if anything."""

    value: float
    x: np.ndarray | None
    bound: float = -np.inf

    def better(self, other: Incumbent) -> Incumbent:
        return other if other.value < self.value else self


NONE = Incumbent(np.inf, None)


def repair(P: Instance, x_average: np.ndarray, *, time_limit: float, fixed: np.ndarray | None = None) -> Incumbent:
    """The best plan found near `x_average`, under `fixed`; without a value if none was found."""
    if isinstance(P, CVRP):
        return routes(P)
    best = assignment(P, x_average, fixed) if isinstance(P, GAP) else NONE
    if fixed is not None and best.x is not None:
        return best  # within a tree greed must do
    begin = time.perf_counter()
    for width in AGREED:
        decided = np.full(x_average.size, FREE, dtype=np.int8)
        near = P.branchable
        decided[near[x_average[near] <= width]] = 0
        decided[near[x_average[near] >= 1 - width]] = 1
        if fixed is not None:
            decided = np.where(fixed == FREE, decided, fixed).astype(np.int8)
        found = _restricted(P, decided, time_limit / len(AGREED), gap=1e-4)
        best = best.better(found)
        if time.perf_counter() - begin > time_limit or (fixed is not None and best.x is not None):
            break
    left = time_limit - (time.perf_counter() - begin)
    if fixed is None and best.x is None and left > 0:  # what the average agrees on leaves no plan: decide all anew
        best = _restricted(P, np.full(x_average.size, FREE, dtype=np.int8), left, gap=1e-4)
    return best


def leaf(P: Instance, fixed: np.ndarray) -> Incumbent:
    """The best plan when every binary variable is fixed, with its proof: an infinite bound if there is none."""
    return _restricted(P, fixed, np.inf, gap=0.0)


def _restricted(P: Instance, decided: np.ndarray, time_limit: float, gap: float) -> Incumbent:
    """HiGHS decides what is free in `decided`."""
    M, near = copy(P.linear_model()), P.branchable
    held = decided[near] != FREE
    where = P.monolith_positions()[held]
    M.lb, M.ub = M.lb.copy(), M.ub.copy()
    M.lb[where] = M.ub[where] = decided[near[held]]
    found = M.optimum(time_limit, gap)
    if found.x is None:
        return Incumbent(np.inf, None, found.bound)
    if isinstance(P, UnitCommitment) and P.cost == "quadratic":
        on = np.round(found.x[P.monolith_positions()]).reshape(len(P.units), P.demand.size)
        value, p = P.schedule_cost(on)
        # With all hours fixed the dispatch is exact; else the piecewise model proves nothing about quadratic costs.
        return Incumbent(value, np.r_[on.ravel(), p.ravel()], value if held.all() else -np.inf)
    return Incumbent(found.value, found.x, found.bound)


def assignment(P: GAP, x_average: np.ndarray, fixed: np.ndarray | None = None) -> Incumbent:
    """Greedy: tasks by regret (second best less best), each to the cheapest agent with room; then 1-moves and 1-swaps.

    Cheap by the average's preference, by cost and by weight: the best of three.
    """
    prefer = P.cost - (P.cost.max() - P.cost.min() + 1.0) * x_average.reshape(P.m, P.n)
    allowed = np.ones((P.m, P.n), dtype=bool)
    agent = np.full(P.n, -1)
    if fixed is not None:
        held = fixed.reshape(P.m, P.n)
        allowed = held != 0
        agent = np.where((held == 1).any(axis=0), np.argmax(held == 1, axis=0), -1)
    room = P.capacity.astype(float)
    for j in np.flatnonzero(agent >= 0):
        room[agent[j]] -= P.weight[agent[j], j]
    movable, best = agent < 0, NONE
    for prices in (prefer, P.cost, P.weight / P.capacity[:, None].clip(1)):
        found = _greedy(P, prices, allowed, agent.copy(), room.copy())
        if found is not None:
            best = best.better(_swaps(P, found, allowed, movable))
    return best


def _greedy(P: GAP, prices: np.ndarray, allowed: np.ndarray, agent: np.ndarray, room: np.ndarray) -> np.ndarray | None:
    while (agent < 0).any():
        left = np.flatnonzero(agent < 0)
        fits = np.where(allowed[:, left] & (P.weight[:, left] <= room[:, None]), prices[:, left], np.inf)
        order = np.sort(fits, axis=0)
        if not np.isfinite(order[0]).all():
            return None
        regret = (order[1] if P.m > 1 else np.full(left.size, np.inf)) - order[0]
        k = int(np.argmax(regret))
        i = int(np.argmin(fits[:, k]))
        agent[left[k]] = i
        room[i] -= P.weight[i, left[k]]
    return agent


def _swaps(P: GAP, agent: np.ndarray, allowed: np.ndarray, movable: np.ndarray) -> Incumbent:
    """Move one task, or exchange the agents of two, as long as that is cheaper."""
    tasks = np.flatnonzero(movable)
    room = P.capacity - np.bincount(agent, P.weight[agent, np.arange(P.n)], P.m)
    improved = True
    while improved:
        improved = False
        for j in tasks:
            i = agent[j]
            gain = np.where(allowed[:, j] & (P.weight[:, j] <= room), P.cost[i, j] - P.cost[:, j], -np.inf)
            k = int(np.argmax(gain))
            if gain[k] > 1e-9:
                room[i] += P.weight[i, j]
                room[k] -= P.weight[k, j]
                agent[j], improved = k, True
                continue
            others = tasks[agent[tasks] != i]
            a = agent[others]
            fits = (
                allowed[a, j] & allowed[i, others]
                & (P.weight[a, j] <= room[a] + P.weight[a, others])
                & (P.weight[i, others] <= room[i] + P.weight[i, j])
            )  # fmt: skip
            saved = np.where(fits, P.cost[i, j] + P.cost[a, others] - P.cost[a, j] - P.cost[i, others], -np.inf)
            if saved.size and saved.max() > 1e-9:
                other = others[int(np.argmax(saved))]
                k = agent[other]
                room[i] += P.weight[i, j] - P.weight[i, other]
                room[k] += P.weight[k, other] - P.weight[k, j]
                agent[j], agent[other], improved = k, i, True
    x = np.zeros((P.m, P.n))
    x[agent, np.arange(P.n)] = 1.0
    return Incumbent(float((P.cost * x).sum()), x.ravel())


def routes(P: CVRP) -> Incumbent:
    """Savings (Clarke & Wright 1964) down to at most K routes, else first fit by falling demand; arcs in the oracle's layout."""
    n = P.demand.size
    tours: list[list[int]] = [[j + 1] for j in range(n)]
    gain = P.distance[:, [0]] + P.distance[[0], :] - P.distance
    while len(tours) > 1:
        best, pair = -np.inf, None
        for a, first in enumerate(tours):
            for b, second in enumerate(tours):
                fits = a != b and P.demand[np.array(first + second) - 1].sum() <= P.capacity
                if fits and gain[first[-1], second[0]] > best:
                    best, pair = gain[first[-1], second[0]], (a, b)
        if pair is None or (best <= 0 and len(tours) <= P.vehicles):
            break
        merged = tours[pair[0]] + tours[pair[1]]
        tours = [tour for k, tour in enumerate(tours) if k not in pair] + [merged]
    if len(tours) > P.vehicles:
        tours = _first_fit(P)
    if len(tours) > P.vehicles:
        return NONE
    arcs = np.zeros(P.distance.shape)
    for tour in tours:
        stops = [0, *tour, 0]
        arcs[stops[:-1], stops[1:]] += 1
    return Incumbent(float((arcs * P.distance).sum()), arcs.ravel())


def _first_fit(P: CVRP) -> list[list[int]]:
    tours: list[list[int]] = []
    for j in np.argsort(-P.demand, kind="stable"):
        for tour in tours:
            if P.demand[np.array(tour) - 1].sum() + P.demand[j] <= P.capacity:
                tour.append(int(j) + 1)
                break
        else:
            tours.append([int(j) + 1])
    return tours
