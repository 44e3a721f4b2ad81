"""Compiled dynamic programs: knapsacks, unit schedules, vehicle routes. Imported by the families when they are evaluated."""

from __future__ import annotations

import numba
import numpy as np

INFINITY = np.inf


@numba.njit(cache=True, nogil=True)
def knapsacks(
    profit: np.ndarray, weight: np.ndarray, capacity: np.ndarray, fixed: np.ndarray, lo: int, hi: int, x: np.ndarray
) -> int:
    """Rows lo..hi of max profit x, weight x <= capacity, x binary, `fixed` -1 (free), 0 or 1; x is written.

    Returns -1, or the first row whose prescribed items alone exceed its capacity.
    """
    n = profit.shape[1]
    item = np.empty(n, dtype=np.int64)
    for i in range(lo, hi):
        room, m, total = capacity[i], 0, 0
        for j in range(n):
            x[i, j] = 0.0
            if fixed[i, j] == 1:
                x[i, j] = 1.0
                room -= weight[i, j]
            elif fixed[i, j] == -1 and profit[i, j] > 0.0:
                item[m] = j
                m += 1
        if room < 0:
            return i
        for k in range(m):
            total += weight[i, item[k]]
        if total <= room:
            for k in range(m):
                x[i, item[k]] = 1.0
            continue
        best = np.zeros(room + 1)
        taken = np.zeros((m, room + 1), dtype=np.bool_)
        for k in range(m):
            w, p = weight[i, item[k]], profit[i, item[k]]
            for q in range(room, w - 1, -1):
                value = best[q - w] + p
                if value > best[q]:
                    best[q] = value
                    taken[k, q] = True
        q = room
        for k in range(m - 1, -1, -1):
            if taken[k, q]:
                x[i, item[k]] = 1.0
                q -= weight[i, item[k]]
    return -1


@numba.njit(cache=True, nogil=True)
def unit_schedules(
    stage: np.ndarray, up: np.ndarray, down: np.ndarray, cold_after: np.ndarray, hot: np.ndarray, cold: np.ndarray,
    initial: np.ndarray, fixed: np.ndarray, lo: int, hi: int, on: np.ndarray, value: np.ndarray,
) -> int:  # fmt: skip
    """Cheapest schedules of units lo..hi: `stage` (units, T) is the cost of an hour on; `on` and `value` are written.

    States: on for 1..up hours (the last means "or longer"), off for 1..cold_after + 1 hours (likewise). A start out of
    at most `cold_after` hours off costs `hot`, else `cold`. `initial` is hours on (positive) or off (negative) before the
    first hour; `fixed` (units, T) is -1, 0 or 1. Returns -1, or the first unit without a feasible schedule.
    """
    T = stage.shape[1]
    for i in range(lo, hi):
        n_on, n_off = up[i], cold_after[i] + 1
        n = n_on + n_off
        cost, fresh = np.full(n, INFINITY), np.empty(n)
        came = np.zeros((T, n), dtype=np.int16)
        if initial[i] > 0:
            cost[min(initial[i], n_on) - 1] = 0.0
        else:
            cost[n_on + min(-initial[i], n_off) - 1] = 0.0
        for t in range(T):
            fresh[:] = INFINITY
            if fixed[i, t] != 0:
                for k in range(n_on - 1):  # one hour longer on
                    if cost[k] < fresh[k + 1]:
                        fresh[k + 1] = cost[k]
                        came[t, k + 1] = k
                if cost[n_on - 1] < fresh[n_on - 1]:
                    fresh[n_on - 1] = cost[n_on - 1]
                    came[t, n_on - 1] = n_on - 1
                for k in range(down[i] - 1, n_off):  # a start after k + 1 hours off
                    start = cost[n_on + k] + (hot[i] if k + 1 <= cold_after[i] else cold[i])
                    if start < fresh[0]:
                        fresh[0] = start
                        came[t, 0] = n_on + k
                for k in range(n_on):
                    fresh[k] += stage[i, t]
            if fixed[i, t] != 1:
                for k in range(n_off - 1):  # one hour longer off
                    if cost[n_on + k] < fresh[n_on + k + 1]:
                        fresh[n_on + k + 1] = cost[n_on + k]
                        came[t, n_on + k + 1] = n_on + k
                if cost[n - 1] < fresh[n - 1]:
                    fresh[n - 1] = cost[n - 1]
                    came[t, n - 1] = n - 1
                if cost[n_on - 1] < fresh[n_on]:  # a stop
                    fresh[n_on] = cost[n_on - 1]
                    came[t, n_on] = n_on - 1
            cost, fresh = fresh, cost
        state = 0
        for k in range(1, n):
            if cost[k] < cost[state]:
                state = k
        value[i] = cost[state]
        if value[i] == INFINITY:
            return i
        for t in range(T - 1, -1, -1):
            on[i, t] = 1.0 if state < n_on else 0.0
            state = came[t, state]
    return -1


@numba.njit(cache=True, nogil=True)
def outputs_quadratic(
    b: np.ndarray,
    c: np.ndarray,
    p_min: np.ndarray,
    p_max: np.ndarray,
    price: np.ndarray,
    p: np.ndarray,
    cost: np.ndarray,
) -> None:
    """The output that minimises b p + c p^2 - price_t p on [p_min, p_max], and that minimum; (units, T) are written."""
    for i in range(b.size):
        for t in range(price.size):
            q = min(max((price[t] - b[i]) / (2.0 * c[i]), p_min[i]), p_max[i])
            p[i, t] = q
            cost[i, t] = (b[i] - price[t]) * q + c[i] * q * q


@numba.njit(cache=True, nogil=True)
def outputs_piecewise(point: np.ndarray, level: np.ndarray, price: np.ndarray, p: np.ndarray, cost: np.ndarray) -> None:
    """As `outputs_quadratic`, for costs `level` (units, K) at outputs `point` (units, K), linear between them."""
    for i in range(point.shape[0]):
        for t in range(price.size):
            best = INFINITY
            for k in range(point.shape[1]):
                value = level[i, k] - price[t] * point[i, k]
                if value < best:
                    best = value
                    p[i, t] = point[i, k]
            cost[i, t] = best


@numba.njit(cache=True, nogil=True)
def q_route(
    distance: np.ndarray, prize: np.ndarray, demand: np.ndarray, capacity: int, route: np.ndarray
) -> tuple[float, int]:
    """Cheapest closed walk from the depot (0) whose visits' demands sum to at most `capacity`, visits earning `prize`.

    A customer may be visited more than once, but not twice in a row. Returns the cost (0 for staying) and the number of
    visits; the walk is written to `route`.
    """
    n = prize.size  # customers 1..n stand at 0..n-1 here
    cost = np.full((capacity + 1, n), INFINITY)
    came = np.full((capacity + 1, n), -1, dtype=np.int32)
    for load in range(1, capacity + 1):
        for j in range(n):
            if demand[j] > load:
                continue
            if demand[j] == load:
                cost[load, j] = distance[0, j + 1] - prize[j]
            before = load - demand[j]
            for k in range(n):
                if k != j and cost[before, k] < INFINITY:
                    value = cost[before, k] + distance[k + 1, j + 1] - prize[j]
                    if value < cost[load, j]:
                        cost[load, j] = value
                        came[load, j] = k
    best, at, load = 0.0, -1, 0
    for q in range(1, capacity + 1):
        for j in range(n):
            value = cost[q, j] + distance[j + 1, 0]
            if value < best:
                best, at, load = value, j, q
    length = 0
    while at >= 0:
        route[length] = at
        length += 1
        previous = came[load, at]
        load -= demand[at]
        at = previous
    return best, length


@numba.njit(cache=True, nogil=True)
def elementary_route(
    distance: np.ndarray, prize: np.ndarray, demand: np.ndarray, capacity: int, route: np.ndarray
) -> tuple[float, int]:
    """As `q_route`, but no customer is visited twice: a dynamic program over subsets."""
    n = prize.size
    cost = np.full((1 << n, n), INFINITY)
    came = np.full((1 << n, n), -1, dtype=np.int8)
    load = np.zeros(1 << n, dtype=np.int64)
    for j in range(n):
        cost[1 << j, j] = distance[0, j + 1] - prize[j]
    best, at, visited = 0.0, -1, 0
    for subset in range(1, 1 << n):
        lowest = 0
        while not (subset >> lowest) & 1:
            lowest += 1
        load[subset] = load[subset & (subset - 1)] + demand[lowest]
        if load[subset] > capacity:
            continue
        for j in range(n):
            if cost[subset, j] == INFINITY:
                continue
            closed = cost[subset, j] + distance[j + 1, 0]
            if closed < best:
                best, at, visited = closed, j, subset
            for k in range(n):
                if not (subset >> k) & 1:
                    value = cost[subset, j] + distance[j + 1, k + 1] - prize[k]
                    if value < cost[subset | (1 << k), k]:
                        cost[subset | (1 << k), k] = value
                        came[subset | (1 << k), k] = j
    length = 0
    while at >= 0:
        route[length] = at
        length += 1
        previous = came[visited, at]
        visited ^= 1 << at
        at = previous
    return best, length
