"""Instances to learn on: standard generators, the ten-unit power system, the users' own files.

A stream of instances keeps a structure and changes costs (by factors U[.8, 1.2]) or demands (daily profiles whose level is an
AR(1) process in days). The ten units and their demand are those of Kazarlis, Bakirtzis & Petridis (1996), as used since in
most of the unit commitment literature; transcriptions with misprints circulate (c_7 = .0079, b_4 = 16.60, a_5 = 350, hour 16 =
1150), so the sums are pinned by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from upheld.lagrangian.cflp import CFLP
from upheld.lagrangian.covering import SetCovering
from upheld.lagrangian.gap import GAP
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.repair import assignment
from upheld.lagrangian.routing import CVRP
from upheld.lagrangian.unit_commitment import UnitCommitment, Units

# p_max, p_min, a, b, c, min_up, min_down, hot, cold, cold_hours, initial
_TEN_UNITS = (
    (455, 150, 1000, 16.19, 0.00048, 8, 8, 4500, 9000, 5, 8),
    (455, 150, 970, 17.26, 0.00031, 8, 8, 5000, 10000, 5, 8),
    (130, 20, 700, 16.60, 0.00200, 5, 5, 550, 1100, 4, -5),
    (130, 20, 680, 16.50, 0.00211, 5, 5, 560, 1120, 4, -5),
    (162, 25, 450, 19.70, 0.00398, 6, 6, 900, 1800, 4, -6),
    (80, 20, 370, 22.26, 0.00712, 3, 3, 170, 340, 2, -3),
    (85, 25, 480, 27.74, 0.00079, 3, 3, 260, 520, 2, -3),
    (55, 10, 660, 25.92, 0.00413, 1, 1, 30, 60, 0, -1),
    (55, 10, 665, 27.27, 0.00222, 1, 1, 30, 60, 0, -1),
    (55, 10, 670, 27.79, 0.00173, 1, 1, 30, 60, 0, -1),
)
TEN_UNIT_DEMAND = np.array(
    [700, 750, 850, 950, 1000, 1100, 1150, 1200, 1300, 1400, 1450, 1500,
     1400, 1300, 1200, 1050, 1000, 1100, 1200, 1400, 1300, 1100, 900, 800], dtype=float,
)  # fmt: skip
RESERVE = 0.1
FULLEST = 0.99  # share of capacity that demand and reserve may take in a drawn day


def ten_units(copies: int = 1) -> Units:
    """The ten-unit system, replicated."""
    return Units(*(np.array(column) for column in zip(*_TEN_UNITS, strict=True))).repeat(copies)


def ten_unit_day(copies: int = 1, cost: str = "quadratic") -> UnitCommitment:
    """The published day: ten units (or copies of them), its 24 demands scaled alike, 10 % reserve.

    >>> day = ten_unit_day()
    >>> float(day.units.p_max.sum()), float(day.demand.sum())
    (1662.0, 27100.0)
    """
    return UnitCommitment(ten_units(copies), copies * TEN_UNIT_DEMAND, RESERVE, cost)


def daily_profiles(days: int, rng: np.random.Generator, *, drift: float = 0.0) -> np.ndarray:
    """(days, 24) MW for one ten-unit system: the published shape at a level that is an AR(1) process in days.

    Parameters
    ----------
    drift : change of the level a day, as a share of it
    """
    level, profiles = 0.0, np.empty((days, 24))
    for day in range(days):
        level = 0.7 * level + 0.03 * rng.standard_normal()
        hours = np.convolve(rng.standard_normal(26), np.full(3, 1 / 3), mode="valid")
        profiles[day] = TEN_UNIT_DEMAND * (0.92 + level) * (1 + drift) ** day * (1 + 0.02 * hours)
    capacity = float(ten_units().p_max.sum())
    return np.minimum(profiles, FULLEST * capacity / (1 + RESERVE))


def unit_commitment_days(
    days: int, rng: np.random.Generator, *, copies: int = 1, cost: str = "piecewise", drift: float = 0.0
) -> list[UnitCommitment]:
    """Consecutive days of the (replicated) ten-unit system."""
    units = ten_units(copies)
    return [UnitCommitment(units, copies * demand, RESERVE, cost) for demand in daily_profiles(days, rng, drift=drift)]


def gap(kind: str, m: int, n: int, rng: np.random.Generator) -> GAP:
    """Generalised assignment of type C or D (Chu & Beasley 1997) or E (Laguna et al. 1995); drawn again if it has no solution.

    Raises
    ------
    ValueError
        If the type is unknown.
    """
    if kind == "C":
        weight, cost = rng.integers(5, 26, (m, n)), rng.integers(10, 51, (m, n))
    elif kind == "D":
        weight = rng.integers(1, 101, (m, n))
        cost = 111 - weight + rng.integers(-10, 11, (m, n))
    elif kind == "E":
        weight = np.ceil(1 - 10 * np.log(rng.uniform(size=(m, n)))).astype(int)
        cost = np.round(1000 / weight - 10 * rng.uniform(size=(m, n))).astype(int)
    else:
        raise ValueError(f"there is no GAP type {kind!r}; choose C, D or E")
    P = GAP(cost, weight, np.floor(0.8 * weight.sum(axis=1) / m))
    solvable = assignment(P, np.zeros(m * n)).x is not None or P.milp().optimum(5.0, gap=np.inf).x is not None
    return P if solvable else gap(kind, m, n, rng)


def gap_stream(kind: str, m: int, n: int, rng: np.random.Generator) -> Iterator[GAP]:
    """Endless instances: weights and capacities of one, costs times U[.8, 1.2], rounded."""
    base = gap(kind, m, n, rng)
    while True:
        yield GAP(np.round(base.cost * rng.uniform(0.8, 1.2, (m, n))), base.weight, base.capacity)


def cflp(m: int, n: int, rng: np.random.Generator, *, ratio: float = 3.0) -> CFLP:
    """Facility location of Cornuejols, Sridharan & Thizy (1991): total capacity is `ratio` times total demand."""
    sites, customers = rng.uniform(size=(m, 2)), rng.uniform(size=(n, 2))
    demand, capacity = rng.uniform(5, 35, n), rng.uniform(10, 160, m)
    capacity *= ratio * demand.sum() / capacity.sum()
    fixed_cost = rng.uniform(0, 90, m) + rng.uniform(100, 110, m) * np.sqrt(capacity)
    distance = np.linalg.norm(sites[:, None] - customers[None], axis=2)
    return CFLP(10 * distance * demand, fixed_cost, demand, capacity)


def cflp_stream(m: int, n: int, rng: np.random.Generator) -> Iterator[CFLP]:
    """Endless instances: one map, transport costs times U[.8, 1.2]."""
    base = cflp(m, n, rng)
    while True:
        factor = rng.uniform(0.8, 1.2, (m, n))
        yield CFLP(base.transport * factor, base.fixed_cost, base.demand, base.capacity)


def set_covering(rows: int, columns: int, rng: np.random.Generator, *, density: float = 0.05) -> SetCovering:
    """Costs 1..100; every row is covered by two columns at least, every column covers a row."""
    A = rng.uniform(size=(rows, columns)) < density
    for k in range(rows):
        A[k, rng.choice(columns, 2, replace=False)] = True
    for j in np.flatnonzero(~A.any(axis=0)):
        A[rng.integers(rows), j] = True
    return SetCovering(rng.integers(1, 101, columns), A)


def set_covering_stream(rows: int, columns: int, rng: np.random.Generator) -> Iterator[SetCovering]:
    """Endless instances: one matrix, costs times U[.8, 1.2]."""
    base = set_covering(rows, columns, rng)
    while True:
        yield SetCovering(base.c * rng.uniform(0.8, 1.2, columns), base.A)


def cvrp(n: int, rng: np.random.Generator, *, vehicles: int = 2, route: str = "q") -> CVRP:
    """Customers on the unit square times 100, demands 1..9, capacity for 1.2 times the demand."""
    points = 100 * rng.uniform(size=(n + 1, 2))
    demand = rng.integers(1, 10, n)
    capacity = int(max(np.ceil(1.2 * demand.sum() / vehicles), demand.max()))
    return CVRP(np.linalg.norm(points[:, None] - points[None], axis=2), demand, capacity, vehicles, route)


# the users' own files


def read_gap(path: str | Path, *, maximise: bool = False) -> list[GAP] | list[CoupledMILP]:
    """An OR-Library ``gap`` file: minimisation problems (a to e), or with `maximise` those that ask for the most (1 to 12).

    A problem to be maximised becomes a `CoupledMILP` that assigns every task exactly once; HiGHS solves its knapsacks.

    Raises
    ------
    ValueError
        If the numbers end early or are left over.
    """
    take, done = _numbers(path)
    problems = []
    for _ in range(int(take(1)[0])):
        m, n = (int(v) for v in take(2))
        problems.append((take(m * n).reshape(m, n), take(m * n).reshape(m, n), take(m)))
    done()
    if not maximise:
        return [GAP(*numbers) for numbers in problems]
    return [_most(profit, GAP(np.zeros_like(profit), weight, capacity)) for profit, weight, capacity in problems]


def _most(profit: np.ndarray, P: GAP) -> CoupledMILP:
    M = P.milp()
    return CoupledMILP(
        profit.ravel(), M.A, M.b, M.C, M.d, True, 0, 1, sense="max", equality=True, row_names=M.row_names,
        column_names=M.column_names,
    )  # fmt: skip


def read_cap(path: str | Path, capacity: float | None = None) -> CFLP:
    """An OR-Library ``cap`` file; the files capa, capb and capc leave the capacity open, and it must be given.

    Raises
    ------
    ValueError
        If the numbers end early or are left over, or a capacity is missing.
    """
    take, done = _numbers(path, "capacity")
    m, n = (int(v) for v in take(2))
    sites = take(2 * m).reshape(m, 2)
    customers = take(n * (m + 1)).reshape(n, m + 1)
    done()
    capacities = sites[:, 0].copy()
    if np.isnan(capacities).any():
        if capacity is None:
            raise ValueError(f"{path} leaves the capacity of its sites open; give capacity=")
        capacities[np.isnan(capacities)] = capacity
    return CFLP(customers[:, 1:].T, sites[:, 1], customers[:, 0], capacities)


def lacks_capacity(path: str | Path) -> bool:
    """Whether an OR-Library ``cap`` file leaves the capacity of its sites open."""
    return "capacity" in _words(path)


def orlib_kind(path: str | Path) -> str:
    """``"gap"`` or ``"cap"``: an OR-Library file is told by how many numbers its first ones announce.

    Raises
    ------
    ValueError
        If it is neither.
    """
    words = _words(path)

    def whole(k: int) -> int:
        return int(words[k]) if k < len(words) and words[k].isdigit() else 0

    position = 1
    for _ in range(min(whole(0), len(words))):
        m, n = whole(position), whole(position + 1)
        position += 2 + 2 * m * n + m
    if whole(0) and position == len(words):
        return "gap"
    m, n = whole(0), whole(1)
    if m and n and len(words) == 2 + 2 * m + n * (m + 1):
        return "cap"
    raise ValueError(
        f"{path} is neither an OR-Library gap nor a cap file: its {len(words)} words are not as many numbers as its first ones announce"
    )


def read_cvrp(path: str | Path, vehicles: int, route: str = "q") -> CVRP:
    """A CVRPLIB file, by the package vrplib.

    Raises
    ------
    ValueError
        If the file lacks demands, a capacity or distances.
    """
    import vrplib

    try:
        found = vrplib.read_instance(str(path))
    except (ValueError, KeyError, IndexError, TypeError, RuntimeError) as error:  # its parser checks little
        raise ValueError(f"{path} is no CVRPLIB file that vrplib can read: {error}") from error
    lacking = [name for name in ("edge_weight", "demand", "capacity") if name not in found]
    if lacking:
        raise ValueError(f"{path} lacks {', '.join(lacking)}; a capacitated routing instance needs them")
    depot = int(found["depot"][0]) if "depot" in found else 0
    order = np.r_[depot, np.setdiff1d(np.arange(len(found["demand"])), [depot])]
    distance = np.asarray(found["edge_weight"])[np.ix_(order, order)]
    return CVRP(distance, np.asarray(found["demand"])[order[1:]], int(found["capacity"]), vehicles, route)


def _numbers(path: str | Path, blank: str = "") -> tuple[Callable[[int], np.ndarray], Callable[[], None]]:
    """`take(k)`: the next k numbers of a file of numbers; `done()`: complains about what is left. `blank` reads as NaN."""
    words = _words(path)
    position = 0

    def take(k: int) -> np.ndarray:
        nonlocal position
        if position + k > len(words):
            raise ValueError(f"{path} ends after {len(words)} numbers, where {position + k} are needed")
        found = words[position : position + k]
        position += k
        try:
            return np.array([np.nan if blank and word == blank else float(word) for word in found])
        except ValueError:
            raise ValueError(f"{path} holds a word that is no number after the first {position - k} numbers") from None

    def done() -> None:
        if position < len(words):
            raise ValueError(f"{path} holds {len(words) - position} numbers more than its header announces")

    return take, done


def _words(path: str | Path) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").split()


def write_instances(folder: str | Path, instances: list[Instance], names: list[str]) -> list[Path]:
    """Each instance's monolith as ``<name>.mps`` in `folder`, which is made if need be."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.mps" for name in names]
    for path, instance in zip(paths, instances, strict=True):
        instance.milp().write(path)
    return paths


def write_days(folder: str | Path, *, past: int = 20, seed: int = 0) -> list[Path]:
    """The embedded example: `past` days of the ten-unit system in ``past/``, and ``today.mps``.

    Coupling rows are ``demand_1`` .. ``demand_24`` and ``reserve_1`` .. ``reserve_24``.
    """
    days = unit_commitment_days(past + 1, np.random.default_rng(seed))
    written = write_instances(
        Path(folder) / "past", list(days[:-1]), [f"day_{k + 1:03d}" for k in range(past)]
    )  # fmt: skip
    return written + write_instances(folder, [days[-1]], ["today"])
