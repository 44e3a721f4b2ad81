"""Speed and memory of oracles, learners and starts, each beside what one would use without it, in one run.

python benchmarks/lagrangian.py [--part oracles|learner|memory|hard|race|workers]     all parts by default, about three minutes on one core

Seconds are processor seconds of this process, the least of a few repetitions, compilation excluded; those of two threads are of
the wall. Oracles: a call of ours, and HiGHS solving the same blocks one after the other, models built beforehand. Learner: what an
averaged-SGA pass costs beyond its oracle calls. Memory: peak of new allocations. Race: oracle calls and seconds until 1 % and .1 % of
the best Lagrangian bound by Polyak steps, from multipliers learned on past instances, from zero and from the instance's LP; beside
them what the LP relaxation, HiGHS' root node with cuts and, on assignment and if UPHELD_GCG_PYTHON names an interpreter that has it, GCG's
root node prove, and in which time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from measuring import Line
from upheld.lagrangian import Budget, ERMMultipliers, SGAMultipliers, data, maximise_dual
from upheld.lagrangian.families import CFLP, GAP, UnitCommitment
from upheld.lagrangian.hard_family import learn
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.rivals import aim, ascend, gcg_root, highs_root, largest_multiplier
from upheld.lagrangian.rivals.gcg import INTERPRETER

MOST_CALLS = 500
GCG = {"GCG root, our blocks": True, "GCG root": False}


def seconds(work: Callable[[], object], repeats: int = 3, number: int = 1) -> float:
    """Processor seconds of one call, the least of `repeats` after a first that does not count."""
    work()
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        for _ in range(number):
            work()
        taken.append((time.process_time() - begin) / number)
    return min(taken)


def oracles() -> Iterator[Line]:
    rng = np.random.default_rng(0)
    cases: list[tuple[str, Instance, float, float | None]] = [  # name, instance, size of multipliers, target in ms
        ("GAP-D 5 x 15", data.gap("D", 5, 15, rng), 120, 0.2),
        ("GAP-D 20 x 100", data.gap("D", 20, 100, rng), 120, 0.5),
        ("CFLP 35 x 35", data.cflp(35, 35, rng), 300, None),
        ("UC 10 units, piecewise", data.ten_unit_day(cost="piecewise"), 25, 0.2),
        ("UC 10 units, quadratic", data.ten_unit_day(), 25, 0.2),
        ("UC 1000 units, quadratic", data.ten_unit_day(100), 25, None),
        ("CVRP 12, elementary", data.cvrp(12, rng, route="elementary"), 60, None),
        ("CVRP 30, q-routes", data.cvrp(30, rng), 60, None),
    ]
    for name, P, size, target in cases:
        pi = rng.uniform(0, size, P.n_rows)
        ours = 1e3 * seconds(lambda P=P, pi=pi: P.oracle(pi), number=50)
        wanted = "" if target is None else f"at most {target:g} ms"
        yield Line(f"oracle, {name}", f"{ours:.3f} ms a call", wanted, None if target is None else ours <= target)
        if isinstance(P, (GAP, CFLP)) or (isinstance(P, UnitCommitment) and P.cost == "piecewise"):
            M = P.milp()
            theirs = 1e3 * seconds(lambda M=M, pi=pi: M.oracle(pi), repeats=2)
            yield Line(
                f"  HiGHS block after block ({theirs:,.1f} ms)",
                f"{theirs / ours:,.0f} times ours",
                "at least 5",
                theirs >= 5 * ours,
            )


def learner() -> Iterator[Line]:
    for name, past, end in (
        ("GAP-D 20 x 100", gap_days("20x100", 50), 300.0),
        ("UC 10 units", data.unit_commitment_days(50, np.random.default_rng(0)), 60.0),
        ("UC 100 units", data.unit_commitment_days(50, np.random.default_rng(0), copies=10), 60.0),
    ):
        sga = SGAMultipliers(pi_max=end, init="zero", step="theory", average="uniform")
        way = iterates(sga, past)
        whole, calls = in_turn(
            lambda past=past, sga=sga: sga.fit(past),
            lambda past=past, way=way: [P.oracle(pi) for P, pi in zip(past, way, strict=True)],
        )
        yield Line(
            f"averaged SGA beyond its oracle calls, {name}",
            f"{whole / calls - 1:+.1%} of {1e6 * calls / 50:.0f} us, {1e6 * (whole - calls) / 50:.1f} us an instance", "at most +5%",
            whole <= 1.05 * calls,
        )  # fmt: skip


def in_turn(*works: Callable[[], object], rounds: int = 200) -> list[float]:
    """Processor seconds of each, the least of many rounds, one after the other in each: what disturbs the machine disturbs all."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, times in zip(works, taken, strict=True):
            begin = time.process_time()
            work()
            times.append(time.process_time() - begin)
    return [min(times) for times in taken]


def iterates(sga: SGAMultipliers, past: Sequence[Instance]) -> list[np.ndarray]:
    """Where the oracle was asked: how long it takes depends on that."""
    way: list[np.ndarray] = []
    kind = type(past[0])
    with patch.object(kind, "oracle", autospec=True, side_effect=kind.oracle) as asked:
        sga.fit(past)
        way += [call.args[1].copy() for call in asked.call_args_list]
    return way


def gap_days(size: str, count: int) -> list[GAP]:
    m, n = (int(part) for part in size.split("x"))
    return list(itertools.islice(data.gap_stream("D", m, n, np.random.default_rng(0)), count))


def peak_bytes(work: Callable[[], object]) -> int:
    work()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def memory() -> Iterator[Line]:
    days = data.unit_commitment_days(4, np.random.default_rng(0))

    def stream(count: int) -> int:
        """Bytes that a learner holds after so many instances, the instances' own left out."""
        sga = SGAMultipliers(pi_max=60.0, init="zero")
        tracemalloc.start()
        for number in range(count):
            sga.partial_fit(days[number % 4])
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return held

    stream(4)
    short, long = stream(100), stream(2000)
    yield Line(
        "SGA streaming, bytes held after 2,000 days over after 100",
        f"{long:,} / {short:,}",
        "as many (O(s))",
        long <= 1.5 * short,
    )
    past = data.unit_commitment_days(8, np.random.default_rng(0))
    rows = past[0].n_rows
    ERMMultipliers(pi_max=60.0).fit(past).value_  # noqa: B018 - compiles
    peak = peak_bytes(lambda: ERMMultipliers(pi_max=60.0).fit(past).value_)
    most = 8 * 500 * rows * 20
    yield Line(
        "ERM on 8 days, peak over its 500 s cuts as floats",
        f"{peak / (8 * 500 * rows):.1f} times",
        "at most 20",
        peak <= most,
    )
    monolith = peak_bytes(lambda: past[0].milp().lp_relaxation())
    oracle = peak_bytes(lambda: past[0].oracle(np.full(rows, 20.0)))
    yield Line(
        "one bound: the LP's model over our oracle, peak of arrays", f"{monolith / oracle:,.0f} times ours", "reported"
    )


def hard() -> Iterator[Line]:
    v = np.random.default_rng(0).integers(0, 2, (100, 64))
    taken = seconds(lambda: learn(v, 2**14, 0.75 / 2**7, np.random.default_rng(1)), repeats=1)
    yield Line(
        "hard family, s = 64, N = 2^14, 100 repetitions, all learners", f"{taken:.1f} s", "at most 20 s", taken <= 20
    )


@dataclass(frozen=True)
class Reached:
    """Calls and seconds from one start until a share of the best bound."""

    calls: float
    seconds: float


def race() -> Iterator[Line]:
    streams: dict[str, tuple[Sequence[Instance], int]] = {
        "GAP-D 4 x 12": (gap_days("4x12", 36), 4),
        "GAP-D 10 x 40": (gap_days("10x40", 34), 2),
        "UC 10 units": (data.unit_commitment_days(14, np.random.default_rng(0)), 4),
    }
    for name, (instances, tests) in streams.items():
        yield from raced(name, instances[:-tests], instances[-tests:])


def raced(name: str, past: Sequence[Instance], today: Sequence[Instance]) -> Iterator[Line]:
    end = largest_multiplier(past)
    sga = SGAMultipliers(pi_max=end).fit(past)
    found: dict[tuple[str, float], list[Reached]] = {}
    below: dict[str, list[float]] = {"LP relaxation": [], "HiGHS root with cuts": []}
    took: dict[str, list[float]] = {rival: [] for rival in below}
    for P in today:
        best = maximise_dual(P, budget=Budget(1000)).u
        M = P.milp()
        begin = time.process_time()
        lp, dual = M.lp_relaxation()
        took["LP relaxation"].append(time.process_time() - begin)
        begin = time.process_time()
        root = highs_root(M, time_limit=10.0).bound
        took["HiGHS root with cuts"].append(time.process_time() - begin)
        for rival, bound in (("LP relaxation", lp), ("HiGHS root with cuts", root)):
            below[rival].append((best - bound) / abs(best))
        for rival, given in GCG.items() if isinstance(P, GAP) and os.environ.get(INTERPRETER) else ():
            found_by_gcg = gcg_root(M, given_blocks=given, time_limit=60.0)
            below.setdefault(rival, []).append((best - found_by_gcg.bound) / abs(best))
            took.setdefault(rival, []).append(found_by_gcg.seconds)
        starts = {"learned": sga.predict(P), "zero": np.zeros(P.n_rows), "own LP's": dual}
        for start, pi in starts.items():
            way = ascend(aim(P, end, lp), pi, "subgradient", MOST_CALLS)
            for share in (0.01, 0.001):
                there = np.flatnonzero(way.best_history >= best - share * abs(best))
                calls = int(there[0]) + 1 if there.size else MOST_CALLS
                spent = float(way.seconds_history[calls - 1]) + (
                    took["LP relaxation"][-1] if start == "own LP's" else 0.0
                )
                found.setdefault((start, share), []).append(Reached(calls, spent))
    for share in (0.01, 0.001):
        mean = {
            start: np.mean([[one.calls, one.seconds] for one in rows], axis=0)
            for (start, at), rows in found.items()
            if at == share
        }
        ours = mean["learned"]
        for start, (calls, spent) in mean.items():
            measured = f"{calls:.0f} calls, {1e3 * spent:.1f} ms"
            if start == "learned":
                yield Line(f"{name}: to {share:.1%} of the best bound, from learned multipliers", measured)
                continue
            wanted = (
                ("at least 3", bool(calls >= 3 * ours[0])) if start == "zero" and share == 0.01 else ("reported", None)
            )
            yield Line(f"  from {start}: {measured}", f"{calls / ours[0]:.1f} times the calls", *wanted)
    for rival, gaps in below.items():
        yield Line(
            f"  {rival}: {1e3 * np.mean(took[rival]):.1f} ms", f"{np.mean(gaps):+.2%} below our best", "reported"
        )


def workers() -> Iterator[Line]:
    M, day = data.ten_unit_day(2, cost="piecewise").milp(), data.ten_unit_day(100)
    pi = np.random.default_rng(0).uniform(0, 30, 48)
    for name, P in (("20 units by HiGHS", M), ("1000 units, compiled", day)):
        one, two = (wall(lambda P=P, n=n: P.oracle(pi, n_jobs=n)) for n in (1, 2))
        yield Line(f"two threads, {name} ({1e3 * one:.2f} ms with one)", f"{one / two:.2f} times faster", "reported")


def wall(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return min(taken)


PARTS = {"oracles": oracles, "learner": learner, "memory": memory, "hard": hard, "race": race, "workers": workers}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    chosen = parser.parse_args().part
    for part in [chosen] if chosen else PARTS:
        for line in PARTS[part]():
            print(line, flush=True)
