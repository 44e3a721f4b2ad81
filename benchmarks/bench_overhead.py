"""What the bench costs: 10,000 trials that do nothing through plan, run and ledger, beside a plain loop over the same trials.

python benchmarks/bench_overhead.py [--trials 10000] [--workers 2]

The loop does what a script without a bench would do: call the function, keep the numbers in memory. It has no time limits, a
crash takes everything with it, and it starts from nothing the next time. Limits that the bench has to keep: 3 minutes in all, 20 ms
a trial, `upheld --help` in half a second.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from upheld.claims import AtMost, Claim, Experiment, Ledger, Mean, Scale, fingerprint, judge, plan, run
from upheld.compute import LocalPool

NOTHING = """
from upheld.claims import Measurement


def nothing(trial):
    yield Measurement("toy", "value", float(trial.seed))
"""
MIB = 2**20


def experiment(trials: int) -> Experiment:
    from noop.claims import nothing  # written below: workers import it too

    return Experiment("noop.nothing", nothing, {Scale.QUICK: [{}]}, {Scale.QUICK: trials}, {Scale.QUICK: 60.0})


def plain_loop(one: Experiment) -> float:
    begin = time.perf_counter()
    kept = [(trial.seed, measured.value) for trial in one.trials(Scale.QUICK) for measured in one.measure(trial)]
    seconds = time.perf_counter() - begin
    if [seed for seed, value in kept if seed != value]:
        raise RuntimeError("the loop measured something else")
    return seconds


def bench(one: Experiment, path: Path, workers: int) -> dict[str, float]:
    """Seconds of each step; workers start and stop within them."""
    times = {}
    with Ledger(path) as ledger:
        begin = time.perf_counter()
        for result in run(plan([one], Scale.QUICK, ledger), ledger, LocalPool(workers)):
            if result.status != "done":
                raise RuntimeError(f"{result.trial}: {result.reason}")
        times["measured and committed"] = time.perf_counter() - begin
        begin = time.perf_counter()
        if plan([one], Scale.QUICK, ledger).pending:
            raise RuntimeError("the ledger lost trials")
        times["planned again, nothing to do"] = time.perf_counter() - begin
        begin = time.perf_counter()
        verdict = judge(Claim("noop.small", "", None, one, AtMost(Mean("value", "toy"), 1e9)), Scale.QUICK, ledger)
        times["judged"] = time.perf_counter() - begin
        if verdict.trials.done != one.repeats[Scale.QUICK]:
            raise RuntimeError(f"the verdict is on {verdict.trials.done} trials")
        peak = ledger.costs(one.name, Scale.QUICK, fingerprint("noop"))["peak_memory"].max()
    print(f"  memory: main process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB:.0f} MiB, "
          f"a worker {peak / MIB:.0f} MiB; ledger {path.stat().st_size / MIB:.1f} MiB")  # fmt: skip
    return times


def median_seconds(*command: str, repeats: int = 7) -> float:
    def once() -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        return time.perf_counter() - begin

    return statistics.median(once() for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description="Overhead of a trial that does nothing, and of the command's help.")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "noop"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "claims.py").write_text(NOTHING)
        sys.path.insert(0, folder)
        one = experiment(options.trials)
        print(f"{options.trials:,} trials that do nothing, {options.workers} workers")
        loop = plain_loop(one)
        times = bench(one, Path(folder) / "ledger.sqlite", options.workers)
    for step, seconds in times.items():
        print(f"  {step:<30} {seconds:7.2f} s  {1000 * seconds / options.trials:7.3f} ms a trial")
    print(f"  {'plain loop, one process':<30} {loop:7.2f} s  {1000 * loop / options.trials:7.3f} ms a trial")
    total = times["measured and committed"]
    print(
        f"  overhead over the loop: {1000 * (total - loop) / options.trials:.2f} ms a trial (limit 20), {total:.0f} s (limit 180)"
    )
    shown, bare = median_seconds("-m", "upheld.cli", "--help"), median_seconds("-c", "import typer, rich.console")
    print(f"upheld --help: {shown:.2f} s (limit 0.5); an interpreter that imports typer and rich alone: {bare:.2f} s")


if __name__ == "__main__":
    main()
