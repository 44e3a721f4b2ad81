"""Speed of memory's samplers, theory and recall, each beside a rival, in one run.

python benchmarks/memory.py [--part theory|energy|moves|linear|recall]      all parts by default, about a minute on one core

Seconds are CPU seconds of this process with one thread. faiss is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np

from measuring import seconds
from upheld.memory.montecarlo import SphereSampler
from upheld.memory.theory import alpha_c, free_energy, phi_eq, t_c


def theory() -> None:
    x = np.random.default_rng(0).uniform(0.01, 0.6, 10**6)
    print("a million points, seconds (wanted: below 1)")
    for name, work in {
        "phi_eq lse": lambda: phi_eq(x, "lse"), "phi_eq lsr": lambda: phi_eq(x, "lsr"), "free_energy": lambda: free_energy(x, "lsr"),
        "alpha_c": lambda: alpha_c(x), "t_c lse": lambda: t_c(x), "t_c lsr, single": lambda: t_c(x, "lsr", criterion="single"),
    }.items():  # fmt: skip
        print(f"  {name:20}{seconds(work, 3):>8.3f}")


def energy() -> None:
    """Energy of a batch against the product of matrices that it cannot do without."""
    import torch

    from upheld.memory.energies import LSEEnergy, LSREnergy

    torch.set_num_threads(1)
    x, patterns = torch.randn(512, 256), torch.randn(10_000, 256)
    product = seconds(lambda: x @ patterns.T, 3)
    print(
        f"energy of 512 states, 10,000 x 256 patterns, float32; the product alone {product:.3f} s; share of its rate (wanted: 0.7)"
    )
    for name, one in {"lse": LSEEnergy(0.01), "lsr": LSREnergy(beta=0.001)}.items():
        print(f"  {name:20}{product / seconds(lambda one=one: one(x, patterns), 3):>8.2f}")


def moves() -> None:
    """Effective samples a second of pair rotations over Metropolis steps, single chain, N = 50, M = 148."""
    print("effective samples a second, pair over metropolis (wanted: lse 1.5, lsr 3)")
    for kernel in ("lse", "lsr"):
        SphereSampler(kernel, 0.1, 50, 0.1, trials=1, burn_in=2, sweeps=4).run()
        for T in (0.1, 0.3, 0.5):
            rate = {}
            for move, sweeps in (("pair", 20_000), ("metropolis", 100_000)):
                sampler = SphereSampler(kernel, 0.1, 50, T, trials=2, move=move, burn_in=500, sweeps=sweeps)
                begin = time.process_time()
                found = sampler.run()
                rate[move] = 2 * sweeps / float(found.iat.mean()) / (time.process_time() - begin)
            print(f"  {kernel}, T={T:g}{'':12}{rate['pair'] / rate['metropolis']:>8.2f}   {rate['pair']:,.0f} a second")


def linear() -> None:
    """Exponents of the seconds in M, N, trials and sweeps, with the standard error of the slope (wanted: 1)."""
    usual = {"M": 400, "N": 60, "trials": 4, "sweeps": 400}
    print("log-log slope of the seconds")
    for name, values in {
        "M": [400, 1600, 6400],
        "N": [40, 80, 160],
        "trials": [2, 4, 8],
        "sweeps": [400, 800, 1600],
    }.items():
        times = []
        for value in values:
            at = usual | {name: value}
            sampler = SphereSampler(
                "lsr",
                np.log(at["M"]) / at["N"],
                at["N"],
                0.1,
                trials=at["trials"],
                burn_in=0,
                sweeps=at["sweeps"],
                step=1.0,
            )
            times.append(seconds(lambda sampler=sampler: sampler.run(), 3))
        logs = np.log(np.array(values, dtype=float))
        slope, intercept = np.polyfit(logs, np.log(times), 1)
        error = np.std(np.log(times) - slope * logs - intercept) / np.std(logs)
        print(f"  {name:20}{slope:>8.2f} ± {error:.2f}")


def recall() -> None:
    """A thousand cues against 100,000 x 384 patterns, one step; faiss' exact search beside it (wanted: below 1.5 times)."""
    import torch

    from upheld.memory.recall import recall as fixed

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    patterns = rng.standard_normal((100_000, 384), dtype=np.float32)
    patterns *= np.sqrt(384) / np.linalg.norm(patterns, axis=1, keepdims=True)
    cues = patterns[:1000] + 0.3 * rng.standard_normal((1000, 384), dtype=np.float32)
    ours = seconds(lambda: fixed(torch.from_numpy(cues), torch.from_numpy(patterns), "lsr", 2 / 15.0**2, max_steps=1))
    print(f"recall of 1,000 cues among 100,000 x 384: {ours:.2f} s")
    if importlib.util.find_spec("faiss"):
        import faiss

        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatIP(384)
        index.add(patterns)
        theirs = seconds(lambda: index.search(cues, 1))
        print(f"  faiss IndexFlatIP    {theirs:>8.2f} s, ratio {ours / theirs:.2f}")


PARTS = {"theory": theory, "energy": energy, "moves": moves, "linear": linear, "recall": recall}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    chosen = parser.parse_args().part
    for name, part in PARTS.items():
        if chosen in (None, name):
            part()
