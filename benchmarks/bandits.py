"""Speed of the simulator beside what one would use without it, in one run, compilation excluded.

python benchmarks/bandits.py [--part rates|million|memory|linear]     all parts by default, about two minutes on one core

A decision weighs K arms; rates are arm-decisions a second, K = 10. The rivals: a loop over rounds with NumPy operations on the K arms,
run by run, as research scripts have it, and MABWiser's own predict and partial_fit. Seconds are CPU seconds of one thread. Nobody stops
early here, except where it says so.
"""

from __future__ import annotations

import argparse
import tracemalloc

import numpy as np

from measuring import seconds
from upheld.bandits import data, simulate
from upheld.bandits.environments import GaussianBandit
from upheld.bandits.policies import make

POLICIES = ("ucb", "sat-ucb", "uncertain-ucb")
BANDIT = data.unrealisable(0.1)  # nothing is ever certified: no policy has an easy time


def compiled(policy: str, bandit: GaussianBandit, horizon: int, runs: int, **options: bool) -> float:
    """Seconds of the compiled engine, after it was compiled."""
    simulate([policy], bandit, 20, 1, engine="numba")
    return seconds(
        lambda: simulate([policy], bandit, horizon, runs, engine="numba", **{"early_stop": False, **options})
    )


def plain_loop(policy: str, horizon: int, runs: int) -> float:
    """UCB, SAT-UCB and uncertain-UCB as one writes them: a loop over rounds, a vector of K arms."""
    return seconds(lambda: [plain_run(policy, horizon, np.random.default_rng(run)) for run in range(runs)])


def plain_run(policy: str, horizon: int, rng: np.random.Generator) -> float:
    means, threshold, sigma, k = BANDIT.means, BANDIT.threshold, BANDIT.sigma, BANDIT.n_arms
    n, total, clock, regret = np.zeros(k), np.zeros(k), float(k), 0.0
    for t in range(1, horizon + 1):
        if t <= k:
            arm = t - 1
        else:
            mean, w = total / n, clock + 1 if policy == "uncertain-ucb" else t
            radius = sigma * np.sqrt(2 * np.log(1 + w * np.log(w) ** 2) / n)
            upper = mean + radius
            arm = int(np.argmax(upper))
            if policy == "uncertain-ucb":
                lower = mean - sigma * np.sqrt(2 * np.log(k * n * n) / n)
                certified = lower >= threshold
                clock += not certified.any()
                if certified.any():
                    arm = int(np.argmax(np.where(certified, lower, -np.inf)))
            elif policy == "sat-ucb" and upper[arm] >= threshold:
                if (mean >= threshold).any():
                    arm = int(np.argmax((upper - np.maximum(mean - radius, threshold)) / radius))
                else:
                    hopeful = np.flatnonzero(upper >= threshold)
                    arm = int(hopeful[rng.integers(hopeful.size)])
        n[arm] += 1
        total[arm] += means[arm] + sigma * rng.standard_normal()
        regret += means.max() - means[arm]
    return regret


def mabwiser(steps: int) -> float:
    policy = make("mabwiser-ucb1", BANDIT.n_arms, BANDIT.threshold, sigma=0.5, random_state=0)
    table = BANDIT.table_of_run(0)
    for arm in range(BANDIT.n_arms):  # its own start, not counted
        policy.update(arm, table.pull(arm))

    def play() -> None:
        for _ in range(steps):
            arm = policy.select()
            policy.update(arm, table.pull(int(str(arm))))

    return seconds(play)


def rates() -> None:
    k = BANDIT.n_arms
    other = 300 * k / mabwiser(300)
    print(f"arm-decisions a second, K = {k} (in brackets: times MABWiser's {other:,.0f})")
    print(f"{'policy':16}{'compiled':>26}{'NumPy, 500 runs':>26}{'loop, run by run':>26}")
    for policy in POLICIES:
        fast = 40 * 20_000 * k / compiled(policy, BANDIT, 20_000, 40)
        vector = (
            500
            * 1000
            * k
            / seconds(lambda p=policy: simulate([p], BANDIT, 1000, 500, engine="numpy", early_stop=False))
        )
        loop = 4000 * k / plain_loop(policy, 4000, 1)
        shown = "".join(f"{rate:>16,.0f} {f'({rate / other:,.0f} x)':>9}" for rate in (fast, vector, loop))
        print(f"{policy:16}{shown}    compiled / loop {fast / loop:,.0f} x, NumPy / loop {vector / loop:.1f} x")


def million() -> None:
    print("\none million rounds x 100 runs, K = 10, compiled, one core")
    print(f"  uncertain-ucb, nothing to certify {compiled('uncertain-ucb', BANDIT, 1_000_000, 100):8.1f} s")
    realisable = data.small_excess(0.1)
    played, stopped = (
        compiled("uncertain-ucb", realisable, 1_000_000, 100, early_stop=early) for early in (False, True)
    )
    print(f"  uncertain-ucb, excess 0.1         {played:8.1f} s; stopped once the future is certain {stopped:.2f} s")


def memory() -> None:
    print("\nmemory of a simulation, 100 runs x 2 policies, 20 marks a decade")
    simulate(["ucb", "uncertain-ucb"], BANDIT, 20, 1, engine="numba")
    for horizon in (1000, 10_000, 100_000):
        tracemalloc.start()
        found = simulate(["ucb", "uncertain-ucb"], BANDIT, horizon, 100, engine="numba", early_stop=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kept = sum(value.nbytes for value in vars(found).values() if isinstance(value, np.ndarray))
        cells = found.regret.size
        print(f"  T = {horizon:>7,}: {found.marks.size:3} marks, results {kept / 1e6:6.2f} MB ({kept / cells:.0f} bytes a run, mark and "
              f"policy), peak {peak / 1e6:6.2f} MB")  # fmt: skip


def linear() -> None:
    print("\nexponents of the time in T, K and runs (1 is linear), compiled ucb")
    wide = {k: data.unrealisable(0.1, n_arms=k) for k in (5, 10, 20, 40)}
    series = {
        "T": [(t, compiled("ucb", BANDIT, t, 20)) for t in (10_000, 20_000, 40_000, 80_000)],
        "K": [(k, compiled("ucb", wide[k], 20_000, 20)) for k in wide],
        "runs": [(r, compiled("ucb", BANDIT, 10_000, r)) for r in (20, 40, 80, 160)],
    }
    for name, points in series.items():
        x, y = np.log(np.array(points, dtype=float)).T
        shown = ", ".join(f"{size:,}: {took:.2f} s" for size, took in points)
        print(f"  {name:5}{np.polyfit(x, y, 1)[0]:6.2f}   ({shown})")


PARTS = {"rates": rates, "million": million, "memory": memory, "linear": linear}


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the bandit simulator beside its rivals.")
    parser.add_argument("--part", choices=PARTS, action="append", help="all of them by default")
    for part in parser.parse_args().part or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
