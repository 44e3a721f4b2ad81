"""Unit commitment: which power plants run in which hour, and at what output; demand and reserve rows are dualised.

    sum_i p_it >= D_t  (price lambda_t),     sum_i Pmax_i on_it >= (1 + reserve) D_t  (price rho_t),      t = 1 .. T

    u(lambda, rho) = sum_t lambda_t D_t + sum_t rho_t (1 + reserve) D_t + sum_i w_i(lambda, rho)

w_i is unit i's cheapest schedule by dynamic programming over hours on (1 .. min up, or longer) and hours off (1 .. min down
+ cold-start hours + 1, or longer). An hour on costs min_p a + b p + c p^2 - lambda_t p - rho_t Pmax on [Pmin, Pmax]; a start
costs `hot` after at most min down + cold-start hours off, else `cold`. The 2 T multipliers are $/MWh of energy and of reserve.

`cost="quadratic"` leaves w_i concave but not polyhedral, and the monolith a mixed-integer quadratic program, which HiGHS
does not take. `cost="piecewise"` replaces a + b p + c p^2 by equal chords between [Pmin, Pmax]; the dynamic program is exact
with p at a breakpoint and the monolith is a MILP: on, start and stop binaries, minimum up and down rows of Rajan and Takriti
(2005), and hot starts tied to a recent stop (Morales-Espana, Latorre & Ramos 2013), the tightest compact form known.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.highs import Sparse
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import DualEval, Infeasible, Instance, all_free, numbered, shared


@dataclass(frozen=True)
class Units:
    """Thermal units, one entry each.

    Attributes
    ----------
    p_max, p_min : output limits, MW
    a, b, c : cost of an hour at output p, a + b p + c p^2, in $/h, $/MWh, $/MW^2h
    min_up, min_down : hours
    hot, cold : cost of a start, $
    cold_hours : a start is cold after more than min_down + cold_hours hours off
    initial : hours on (positive) or off (negative) before the first hour
    """

    p_max: np.ndarray
    p_min: np.ndarray
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    min_up: np.ndarray
    min_down: np.ndarray
    hot: np.ndarray
    cold: np.ndarray
    cold_hours: np.ndarray
    initial: np.ndarray

    def __post_init__(self) -> None:
        for field in fields(self):
            whole = field.name in ("min_up", "min_down", "cold_hours", "initial")
            values = np.asarray(getattr(self, field.name), dtype=np.int64 if whole else float)
            object.__setattr__(self, field.name, values)
            if values.shape != self.p_max.shape:
                raise ValueError(f"{field.name} has shape {values.shape}, but p_max has {self.p_max.shape}")
            if not np.isfinite(values).all():
                raise ValueError(f"{field.name} of unit {int(np.argmin(np.isfinite(values))) + 1} is not finite")
        for wrong, rule in (
            ((self.p_min < 0) | (self.p_min > self.p_max), "needs 0 <= p_min <= p_max"),
            (self.c < 0, "needs c >= 0: costs must be convex"),
            (
                (self.min_up < 1) | (self.min_down < 1) | (self.cold_hours < 0),
                "needs min_up, min_down >= 1, cold_hours >= 0",
            ),
            (self.cold < self.hot, "needs cold >= hot"),
            (self.initial == 0, "needs initial hours on (positive) or off (negative), not 0"),
        ):
            if wrong.any():
                raise ValueError(f"unit {int(np.argmax(wrong)) + 1} {rule}")

    def __len__(self) -> int:
        return int(self.p_max.size)

    def repeat(self, k: int) -> Units:
        """Every unit `k` times."""
        return Units(*(np.tile(getattr(self, field.name), k) for field in fields(self)))


class UnitCommitment(Instance):
    """A day of `units` under `demand`.

    Parameters
    ----------
    units : the plants
    demand : (T,) MW
    reserve : share of demand that must be on line beyond it
    cost : ``"quadratic"`` or ``"piecewise"``
    segments : chords of the piecewise cost

    The oracle's x is the flattened (units, T) on/off matrix, then the (units, T) outputs. Branching is on on/off.

    Examples
    --------
    >>> one = Units(*([v] for v in (100, 10, 0, 20, 0, 1, 1, 0, 0, 0, 1)))
    >>> P = UnitCommitment(one, [50.0], reserve=0.0, cost="piecewise")
    >>> P.oracle(np.array([20.0, 0.0])).u                # at the marginal cost
    1000.0
    """

    def __init__(
        self, units: Units, demand: ArrayLike, reserve: float = 0.1, cost: str = "quadratic", segments: int = 10
    ) -> None:
        if cost not in ("quadratic", "piecewise"):
            raise ValueError(f'cost must be "quadratic" or "piecewise", got {cost!r}')
        self.units, self.cost, self.segments, self.reserve = units, cost, segments, reserve
        self.demand = np.array(demand, dtype=float)
        wrong = ~(np.isfinite(self.demand) & (self.demand >= 0))
        if self.demand.ndim != 1 or wrong.any():
            raise ValueError(f"demand of hour {int(np.argmax(wrong)) + 1} must be finite and not negative")
        if cost == "quadratic" and (units.c == 0).any():
            raise ValueError(f'unit {int(np.argmax(units.c == 0)) + 1} has c = 0; take cost="piecewise"')
        T = self.demand.size
        self.b = np.r_[self.demand, (1 + reserve) * self.demand]
        self._B = float(max(units.p_max.sum(), self.b.max(initial=0.0)))
        self.equality = np.zeros(2 * T, dtype=bool)
        self.row_names = [*numbered("demand", T), *numbered("reserve", T)]
        self._cold_after = units.min_down + units.cold_hours
        self._point, self._level = _chords(units, segments)

    @property
    def B(self) -> float:
        """All capacity, or the largest requirement."""
        return self._B

    def piecewise(self) -> UnitCommitment:
        """The same day with piecewise linear costs."""
        return UnitCommitment(self.units, self.demand, self.reserve, "piecewise", self.segments)

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        from upheld.lagrangian._kernels import unit_schedules

        units, T = self.units, self.demand.size
        energy, reserve = pi[:T], pi[T:]
        p, stage = self._outputs(energy)
        stage -= units.p_max[:, None] * reserve
        on, value = np.empty(p.shape), np.empty(len(units))
        free = all_free(p.shape) if fixed is None else fixed[: p.size].reshape(p.shape)

        def work(lo: int, hi: int) -> None:
            stuck = unit_schedules(
                stage, units.min_up, units.min_down, self._cold_after, units.hot, units.cold, units.initial, free,
                lo, hi, on, value,
            )  # fmt: skip
            if stuck >= 0:
                raise Infeasible(f"unit {stuck + 1} has no schedule under the hours prescribed")

        shared(work, len(units), n_jobs)
        p *= on
        g = self.b - np.concatenate((p.sum(axis=0), units.p_max @ on))
        return DualEval(float(pi @ self.b + value.sum()), g, np.concatenate((on.ravel(), p.ravel())))

    def _outputs(self, price: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(units, T) best output of an hour on at the energy price, and its cost less what it earns."""
        from upheld.lagrangian._kernels import outputs_piecewise, outputs_quadratic

        units = self.units
        p, cost = np.empty((len(units), price.size)), np.empty((len(units), price.size))
        if self.cost == "quadratic":
            outputs_quadratic(units.b, units.c, units.p_min, units.p_max, price, p, cost)
            cost += units.a[:, None]
        else:
            outputs_piecewise(self._point, self._level, price, p, cost)
        return p, cost

    # schedules

    def schedule_cost(self, on: np.ndarray) -> tuple[float, np.ndarray]:
        """Cost of the (units, T) on/off matrix with its best outputs, and these; infinite where demand or reserve fails.

        Minimum up and down times are not looked at.
        """
        units, hours = self.units, range(self.demand.size)
        p = np.zeros(on.shape)
        lacks = (units.p_max @ on < self.b[self.demand.size :] - 1e-6) | (units.p_max @ on < self.demand - 1e-6)
        if lacks.any():
            return np.inf, p
        for t in hours:
            running = np.flatnonzero(on[:, t] > 0.5)
            p[running, t] = self._dispatch(running, self.demand[t])
        return float(self._running_cost(on, p) + self._start_cost(on)), p

    def _dispatch(self, running: np.ndarray, demand: float) -> np.ndarray:
        """Cheapest outputs of the running units that sum to at least `demand`: bisection on the energy price."""
        units = self.units
        low, high = 0.0, float((units.b + 2 * units.c * units.p_max).max()) + 1.0
        if self.cost == "piecewise":
            return self._merit_order(running, demand)
        for _ in range(100):
            price = (low + high) / 2
            p = np.clip((price - units.b) / (2 * units.c), units.p_min, units.p_max)[running]
            low, high = (price, high) if p.sum() < demand else (low, price)
        return np.asarray(np.clip((high - units.b) / (2 * units.c), units.p_min, units.p_max)[running])

    def _merit_order(self, running: np.ndarray, demand: float) -> np.ndarray:
        """Fill the running units' segments from the cheapest on."""
        width = np.diff(self._point[running], axis=1)
        slope = np.diff(self._level[running], axis=1) / np.where(width > 0, width, 1.0)
        order = np.argsort(slope, axis=None, kind="stable")
        missing = max(demand - self.units.p_min[running].sum(), 0.0)
        filled = np.clip(missing - (np.cumsum(width.ravel()[order]) - width.ravel()[order]), 0.0, width.ravel()[order])
        taken = np.empty(width.size)
        taken[order] = filled
        return np.asarray(self.units.p_min[running] + taken.reshape(width.shape).sum(axis=1))

    def _running_cost(self, on: np.ndarray, p: np.ndarray) -> float:
        units = self.units
        if self.cost == "quadratic":
            return float((on * units.a[:, None] + units.b[:, None] * p + units.c[:, None] * p**2).sum())
        return float(
            sum(on[i] @ np.interp(p[i], self._point[i], self._level[i]) for i in range(len(units)))
        )  # an hour off has output 0, and is not counted

    def _start_cost(self, on: np.ndarray) -> float:
        units, total = self.units, 0.0
        for i in range(len(units)):
            off = max(-int(units.initial[i]), 0)
            for running in on[i] > 0.5:
                if running and off:
                    total += units.hot[i] if off <= self._cold_after[i] else units.cold[i]
                off = 0 if running else off + 1
        return float(total)

    # the monolith

    def milp(self) -> CoupledMILP:
        if self.cost == "quadratic":
            raise ValueError(
                "with quadratic costs the monolith is a mixed-integer quadratic program, which HiGHS does not take; "
                'use cost="piecewise"'
            )
        return self.linear_model()

    def linear_model(self) -> CoupledMILP:
        """The piecewise monolith (with quadratic costs: its close cousin, for multipliers only)."""
        numbers = zip(*(getattr(self.units, field.name).tolist() for field in fields(self.units)), strict=True)
        blocks = [_unit_block(unit, self.demand.size, self.segments) for unit in numbers]
        names = [f"{kind}_{t + 1}" for kind in ("on", "start", "stop", "hot") for t in range(self.demand.size)]
        names += [f"p_{t + 1}_{k + 1}" for t in range(self.demand.size) for k in range(self.segments)]
        return CoupledMILP(
            np.concatenate([block.cost for block in blocks]),
            sparse.hstack([block.coupling for block in blocks], format="csr"),
            self.b,
            sparse.block_diag([block.rows for block in blocks], format="csr"),
            np.concatenate([block.lower for block in blocks]),
            np.concatenate([block.binary for block in blocks]),
            np.concatenate([block.lb for block in blocks]),
            np.concatenate([block.ub for block in blocks]),
            d_upper=np.concatenate([block.upper for block in blocks]),
            row_names=self.row_names,
            column_names=[f"{name}_unit{i + 1}" for i in range(len(self.units)) for name in names],
        )

    def columns(self, x: np.ndarray) -> np.ndarray:
        units, T, K = self.units, self.demand.size, self.segments
        on, p = x[: len(units) * T].reshape(len(units), T), x[len(units) * T :].reshape(len(units), T)
        parts = []
        for i in range(len(units)):
            initial = int(units.initial[i])
            change = np.diff(np.r_[float(initial > 0), on[i]])
            start, stop, hot = np.maximum(change, 0.0), np.maximum(-change, 0.0), np.zeros(T)
            off = max(-initial, 0)
            for t in range(T):
                hot[t] = start[t] * (off <= self._cold_after[i])
                off = 0 if on[i, t] > 0.5 else off + 1
            width = (units.p_max[i] - units.p_min[i]) / K
            beyond = np.maximum(p[i] - units.p_min[i] * on[i], 0.0)
            parts += [on[i], start, stop, hot, np.clip(beyond[:, None] - width * np.arange(K), 0.0, width).ravel()]
        return np.concatenate(parts)

    @property
    def branchable(self) -> np.ndarray:
        return np.arange(len(self.units) * self.demand.size)

    def monolith_positions(self) -> np.ndarray:
        T = self.demand.size
        width = T * (4 + self.segments)
        return (np.arange(len(self.units))[:, None] * width + np.arange(T)).ravel()


@dataclass(frozen=True)
class _UnitBlock:
    cost: np.ndarray
    coupling: sparse.csr_array
    rows: sparse.csr_array
    lower: np.ndarray
    upper: np.ndarray
    binary: np.ndarray
    lb: np.ndarray
    ub: np.ndarray


@lru_cache(maxsize=256)
def _unit_block(unit: tuple[float, ...], T: int, K: int) -> _UnitBlock:
    """Columns of a unit: T of on, start, stop and hot each, then T x K segments of output beyond Pmin.

    The same on every day: `unit` holds its numbers in the order of `Units`.
    """
    one = Units(*(np.array([number]) for number in unit))
    p_max, p_min, hot, cold = (float(values[0]) for values in (one.p_max, one.p_min, one.hot, one.cold))
    up, down, initial = int(one.min_up[0]), int(one.min_down[0]), int(one.initial[0])
    cold_after = down + int(one.cold_hours[0])
    width, level = (p_max - p_min) / K, _chords(one, K)[1][0]
    slope = np.diff(level) / width if width > 0 else np.zeros(K)
    eye, before = sparse.eye_array(T, format="csr"), sparse.eye_array(T, k=-1, format="csr")
    none, segment = sparse.csr_array((T, T)), sparse.kron(sparse.eye_array(T), np.ones((1, K)), format="csr")
    no_segment = sparse.csr_array((T, T * K))
    stopped = -initial - 1  # the hour -stopped (before the first, 0) is the one of the last stop, if the unit is off
    recent = np.array([initial < 0 and down <= t + 1 + stopped <= cold_after for t in range(T)], dtype=float)
    rows: list[list[Sparse]] = [
        [eye - before, -eye, eye, none, no_segment],  # on_t - on_{t-1} = start_t - stop_t
        [eye, -_window(T, 0, up), none, none, no_segment],  # started within min up: on
        [-eye, none, -_window(T, 0, down), none, no_segment],  # stopped within min down: off
        [none, eye, none, -eye, no_segment],  # hot only at a start
        [none, none, _window(T, down, cold_after + 1), -eye, no_segment],  # and only after a recent stop
        [
            sparse.kron(eye, np.full((K, 1), width)),
            None,
            None,
            None,
            -sparse.eye_array(T * K),
        ],  # output only when on
    ]
    first = np.zeros(T)
    first[0] = float(initial > 0)
    lower = np.r_[first, np.zeros(T), -np.ones(T), np.zeros(T), -recent, np.zeros(T * K)]
    upper = np.where(np.arange(lower.size) < T, lower, np.inf)
    on_lb, on_ub = np.zeros(T), np.ones(T)
    if initial > 0:
        on_lb[: max(up - initial, 0)] = 1.0
    else:
        on_ub[: max(down + initial, 0)] = 0.0
    return _UnitBlock(
        cost=np.r_[
            np.full(T, level[0]), np.full(T, cold), np.zeros(T),
            np.full(T, hot - cold), np.tile(slope, T),
        ],
        coupling=sparse.block_array([
            [p_min * eye, none, none, none, segment],
            [p_max * eye, None, None, None, None],
        ], format="csr"),
        rows=sparse.block_array(rows, format="csr"), lower=lower, upper=upper,
        binary=np.r_[np.ones(3 * T, dtype=bool), np.zeros(T + T * K, dtype=bool)],
        lb=np.r_[on_lb, np.zeros(3 * T + T * K)],
        ub=np.r_[on_ub, np.ones(3 * T), np.full(T * K, width)],
    )  # fmt: skip


def _chords(units: Units, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs (units, segments + 1) at which the chords of the piecewise cost meet, and the cost there."""
    point = units.p_min[:, None] + np.linspace(0, 1, segments + 1) * (units.p_max - units.p_min)[:, None]
    return point, units.a[:, None] + units.b[:, None] * point + units.c[:, None] * point**2


def _window(T: int, lo: int, hi: int) -> sparse.csr_array:
    """(T, T) ones where hour t looks back on hour t - k, k = lo .. hi - 1."""
    behind = np.arange(T)[:, None] - np.arange(T)
    return sparse.csr_array(((behind >= lo) & (behind < hi)).astype(float))
