"""Speed of oracles, learners and dual methods beside what one would use without them, in one run, compilation excluded.

python benchmarks/lagrangian.py [--part oracles|learner|hard|race|workers]     all parts by default, about three minutes on one core

Oracles: a call of ours, and HiGHS solving the same blocks as mixed-integer programs, one after the other, models built
beforehand. Learner: what an averaged-SGA pass costs beyond its oracle calls. Race: oracle calls and seconds to 1 % of the
best bound, from multipliers learned on past instances and from zero, beside the LP's multipliers and HiGHS' root node with
cuts. Seconds are of the wall, best of a few repetitions.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable

import numpy as np

from upheld.lagrangian import Budget, SGAMultipliers, data, maximise_dual
from upheld.lagrangian.families import CFLP, GAP, UnitCommitment
from upheld.lagrangian.hard_family import learn
from upheld.lagrangian.highs import solver
from upheld.lagrangian.oracles import Instance


def best_seconds(work: Callable[[], object], repeat: int = 5, number: int = 1) -> float:
    work()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        for _ in range(number):
            work()
        times.append((time.perf_counter() - begin) / number)
    return min(times)


def oracles() -> None:
    rng = np.random.default_rng(0)
    cases: list[tuple[str, Instance, float]] = [
        ("GAP-D 5 x 15", data.gap("D", 5, 15, rng), 120),
        ("GAP-D 20 x 100", data.gap("D", 20, 100, rng), 120),
        ("CFLP 35 x 35", data.cflp(35, 35, rng), 300),
        ("UC 10 units, piecewise", data.ten_unit_day(cost="piecewise"), 25),
        ("UC 10 units, quadratic", data.ten_unit_day(), 25),
        ("UC 100 units, quadratic", data.ten_unit_day(10), 25),
        ("UC 1000 units, quadratic", data.ten_unit_day(100), 25),
        ("CVRP 12, elementary", data.cvrp(12, rng, route="elementary"), 60),
        ("CVRP 30, q-routes", data.cvrp(30, rng), 60),
    ]
    print(f"{'oracle':28}{'ms a call':>12}{'HiGHS a block, ms':>20}{'times':>9}")
    for name, P, scale in cases:
        pi = rng.uniform(0, scale, P.n_rows)
        ours = best_seconds(lambda P=P, pi=pi: P.oracle(pi), number=20)
        line = f"{name:28}{1e3 * ours:12.3f}"
        small = isinstance(P, (GAP, CFLP)) or (isinstance(P, UnitCommitment) and P.cost == "piecewise")
        if small:
            M = P.milp()
            theirs = best_seconds(lambda M=M, pi=pi: M.oracle(pi), repeat=3)
            line += f"{1e3 * theirs:20.1f}{theirs / ours:9.0f}"
        print(line)


def learner() -> None:
    print("\naveraged SGA, published: what a pass costs beyond its oracle calls")
    for name, past, end in (
        ("GAP-D 20 x 100", list(itertools.islice(data.gap_stream("D", 20, 100, np.random.default_rng(0)), 50)), 300.0),
        ("UC 10 units", data.unit_commitment_days(50, np.random.default_rng(0)), 60.0),
        ("UC 100 units", data.unit_commitment_days(50, np.random.default_rng(0), copies=10), 60.0),
    ):
        sga = SGAMultipliers(pi_max=end, init="zero", step="theory", average="uniform")
        at = sga.fit(past).multipliers_
        whole = best_seconds(lambda past=past, sga=sga: sga.fit(past))
        calls = best_seconds(lambda past=past, at=at: [P.oracle(at) for P in past])
        print(
            f"  {name:18}{1e3 * whole / 50:8.3f} ms an instance, oracle {1e3 * calls / 50:8.3f} ms: {whole / calls - 1:+.0%}"
        )


def hard() -> None:
    v = np.random.default_rng(0).integers(0, 2, (100, 64))
    begin = time.perf_counter()
    learn(v, 2**14, 0.75 / 2**7, np.random.default_rng(1))
    print(f"\nhard family, s = 64, N = 2^14, 100 repetitions, all learners: {time.perf_counter() - begin:.1f} s")


def reach(P: Instance, start: np.ndarray, goal: float, upper: float | None) -> tuple[int, float]:
    """Oracle calls and seconds of the subgradient method until `goal`."""
    found = maximise_dual(P, start, "subgradient", Budget(500), upper_bound=upper)
    there = np.flatnonzero(found.best_history >= goal)
    return (int(there[0]) + 1, found.seconds_history[there[0]]) if there.size else (500, found.seconds_history[-1])


def race() -> None:
    print(
        "\nto 1 % of the best bound: mean oracle calls and ms, start by start (Polyak steps, the optimum or HiGHS' incumbent as target)"
    )
    streams = {
        "GAP-D 4 x 12": (list(itertools.islice(data.gap_stream("D", 4, 12, np.random.default_rng(0)), 36)), 4),
        "GAP-D 10 x 40": (list(itertools.islice(data.gap_stream("D", 10, 40, np.random.default_rng(0)), 36)), 4),
        "UC 10 units": (data.unit_commitment_days(12, np.random.default_rng(0)), 4),
    }
    for name, (instances, tests) in streams.items():
        past, today = instances[:-tests], instances[-tests:]
        sga = SGAMultipliers().fit(past)
        rows: dict[str, list[tuple[float, float]]] = {
            "zero": [],
            "learned (SGA)": [],
            "own LP dual": [],
            "HiGHS root with cuts": [],
        }
        for P in today:
            best = maximise_dual(P, budget=Budget(1000))
            goal = best.u - 0.01 * abs(best.u)
            M = P.milp()
            upper = M.optimum(10.0, gap=1e-3).value
            begin = time.perf_counter()
            dual = M.lp_relaxation()[1]
            lp_seconds = time.perf_counter() - begin
            rows["zero"].append(reach(P, np.zeros(P.n_rows), goal, upper))
            rows["learned (SGA)"].append(reach(P, sga.predict(P), goal, upper))
            calls, seconds = reach(P, dual, goal, upper)
            rows["own LP dual"].append((calls, seconds + lp_seconds))
            h = solver(M._minimisation(integer=True), mip_max_nodes=1)
            begin = time.perf_counter()
            h.run()
            gap = (best.u - h.getInfo().mip_dual_bound) / abs(best.u)
            rows["HiGHS root with cuts"].append((float("nan"), time.perf_counter() - begin))
            rows.setdefault("its bound below ours", []).append((float("nan"), gap))
        print(f"  {name}")
        for start, found in rows.items():
            calls, value = np.mean(found, axis=0)
            shown = f"{value:10.2%}" if start.startswith("its") else f"{1e3 * value:10.2f} ms"
            print(f"    {start:24}" + (f"{calls:8.1f} calls" if np.isfinite(calls) else 14 * " ") + shown)


def workers() -> None:
    print("\ntwo threads instead of one")
    M, day = data.ten_unit_day(2, cost="piecewise").milp(), data.ten_unit_day(100)
    pi = np.random.default_rng(0).uniform(0, 30, 48)
    for name, P in (("20 units by HiGHS", M), ("1000 units, compiled", day)):
        one, two = (best_seconds(lambda P=P, n=n: P.oracle(pi, n_jobs=n)) for n in (1, 2))
        print(f"  {name:24}{1e3 * one:8.2f} ms -> {1e3 * two:8.2f} ms: {one / two:.2f} times")


PARTS = {"oracles": oracles, "learner": learner, "hard": hard, "race": race, "workers": workers}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS)
    chosen = parser.parse_args().part
    for part in [chosen] if chosen else PARTS:
        PARTS[part]()
