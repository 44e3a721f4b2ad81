"""Speed and memory of the joint hubs, each beside a rival or a law, in one run, compilation excluded.

python benchmarks/hubs.py [--draws 5] [--sizes 400 500 1000 2000] [--groups 2 4 8 16] [--wide 10000]

Ratios are medians over draws of times measured back to back, so a busy machine slows both sides. The rivals are tuned as in the
claims: eight penalties, three folds. Threads are the environment's, except where the library limits them itself.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from measuring import Line
from upheld.hubs import JointHubs, joint_eigenspace
from upheld.hubs.data import HubNetworks, make_hub_networks
from upheld.hubs.dual import worst_mean
from upheld.hubs.rivals import race, warm_up
from upheld.hubs.stiefel import stiefel_minimise

S_FIXED = 10


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Median of `repeats`."""
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken))


def draw(p: int, n: int, seed: int, K: int = 3) -> HubNetworks:
    return make_hub_networks(p, n, n_groups=K, random_state=seed)


def correlations(p: int, K: int, seed: int) -> np.ndarray:
    """K sample correlation matrices of 2 p samples with a hub-like common part; no network has to be inverted for them."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((p, S_FIXED))
    S = np.empty((K, p, p))
    for S_k in S:
        own = rng.standard_normal((2 * p, p))
        own -= 0.5 * (own @ common) @ np.linalg.pinv(common)
        S_k[:] = np.corrcoef(own, rowvar=False)
    return S


def small(draws: int) -> Iterator[Line]:
    """p = 100, K = 3, n = 100: the fit, the authors' optimiser, the tuned joint graphical lassos."""
    networks = [draw(100, 100, seed) for seed in range(draws)]
    JointHubs().fit_many(networks[0].Xs)
    ours = [seconds(lambda Xs=one.Xs: JointHubs().fit_many(Xs), 5) for one in networks]  # type: ignore[misc]
    yield Line(
        "one fit, p = 100, K = 3, n = 100", f"{1000 * np.median(ours):.1f} ms", "below 30 ms", np.median(ours) < 0.03
    )
    yield from against_stiefel(networks)
    warm_up()
    for name in ("group-lasso", "fused-lasso"):
        tuned = [
            race(one.Xs, rivals=[name], tunings=("cv",), rng=np.random.default_rng(0))[0].seconds for one in networks
        ]
        ratio = float(np.median(np.array(tuned) / ours))
        yield Line(
            f"  tuned {name}, {np.median(tuned):.2f} s, over ours", f"{ratio:.0f} x", "at least 30 x", ratio >= 30
        )


def against_stiefel(networks: list[HubNetworks]) -> Iterator[Line]:
    """10 starts, 500 steps; the same matrices."""
    ratios, higher, excess = [], 0, []
    for seed, one in enumerate(networks):
        S = np.array([np.corrcoef(X, rowvar=False) for X in one.Xs])
        ours = seconds(lambda S=S: joint_eigenspace(S, S_FIXED), 5)  # type: ignore[misc]
        begin = time.perf_counter()
        V = stiefel_minimise(S, S_FIXED, rng=np.random.default_rng(seed))
        ratios.append((time.perf_counter() - begin) / ours)
        theirs = worst_mean(np.sum(V * (S @ V), axis=(1, 2)), 1)
        optimum = joint_eigenspace(S, S_FIXED).upper
        higher += optimum > theirs
        excess.append(theirs / optimum - 1)
    ratio = float(np.median(ratios))
    yield Line("  authors' optimiser (10 starts, 500 steps) over ours", f"{ratio:.0f} x", "at least 10 x", ratio >= 10)
    yield Line("  our objective higher than theirs", f"{higher} of {len(networks)} draws", "never", not higher)
    yield Line("  their objective above ours", f"{100 * np.median(excess):.1f} %")


def growth_in_p(sizes: list[int]) -> Iterator[Line]:
    """K = 3, s = 10: seconds, their exponent, and peak memory."""
    limits = {400: 0.5, 2000: 30.0}
    taken = []
    for p in sizes:
        S = correlations(p, 3, seed=0)
        found = joint_eigenspace(S, S_FIXED)
        taken.append(seconds(lambda S=S: joint_eigenspace(S, S_FIXED), 3 if p <= 1000 else 1))  # type: ignore[misc]
        share = memory_of_eigenspace(S) / (6 * 8 * p**2)
        target = f"below {limits[p]:g} s" if p in limits else ""
        yield Line(
            f"eigenspace, p = {p:,}, K = 3, s = {S_FIXED}: {found.n_evaluations} decompositions",
            f"{taken[-1]:.3f} s", target, taken[-1] < limits[p] if p in limits else None,
        )  # fmt: skip
        yield Line("  peak memory over (K + 3) 8 p^2 bytes", f"{share:.2f}", "at most 1", share <= 1)
    large = [(p, t) for p, t in zip(sizes, taken, strict=True) if p >= 500]
    if len(large) > 1:
        x, y = np.log(np.array(large)).T
        exponent = float(np.polyfit(x, y, 1)[0])
        yield Line(f"exponent in p, {large[0][0]:,} to {large[-1][0]:,}", f"{exponent:.2f}", "at most 2", exponent <= 2)


def growth_in_groups(groups: list[int]) -> Iterator[Line]:
    """p = 200, s = 10."""
    taken, each = [], []
    for K in groups:
        S = correlations(200, K, seed=1)
        found = joint_eigenspace(S, S_FIXED)
        taken.append(seconds(lambda S=S: joint_eigenspace(S, S_FIXED), 3))  # type: ignore[misc]
        each.append(taken[-1] / found.n_evaluations)
        yield Line(f"eigenspace, p = 200, K = {K}: {found.n_evaluations} decompositions", f"{1000 * taken[-1]:.1f} ms")
    if len(groups) > 1:
        whole, one = (float(np.polyfit(np.log(groups), np.log(t), 1)[0]) for t in (taken, each))
        yield Line("exponent in K", f"{whole:.2f}", "at most 1", whole <= 1)
        yield Line("  of one decomposition", f"{one:.2f}")


def wide(p: int) -> Iterator[Line]:
    """Far more variables than samples, screened: nothing of size p x p is formed."""
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((50, p)) for _ in range(3)]
    peak, taken = in_process(_fit_screened, Xs)
    yield Line(f"fit, p = {p:,}, n = 3 x 50, screened", f"{taken:.1f} s, {peak / 1e6:.0f} MB", f"p x p would be {8 * p**2 / 1e6:,.0f} MB",
               peak < 8 * p**2)  # fmt: skip


# -- memory, in a process of its own, as Linux accounts for it


def memory_of_eigenspace(S: np.ndarray) -> float:
    """Bytes: the matrices, and what the solver adds to them at its peak."""
    return S.nbytes + in_process(_solve, list(S))[0]


def in_process(work: Callable[[list[np.ndarray]], float], arrays: list[np.ndarray]) -> tuple[float, float]:
    """Bytes that `work` adds to a fresh process which holds the arrays, and what it returns."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arrays.npy"
        np.save(file, np.array(arrays))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(_peak, (work, file))


def _peak(work: Callable[[np.ndarray], float], file: Path) -> tuple[float, float]:
    work(np.array([np.corrcoef(np.random.default_rng(k).standard_normal((60, 30)), rowvar=False) for k in range(3)]))
    arrays = np.load(file)
    # Not ru_maxrss: a process inherits that from its parent. This sets the high-water mark back to what is held now.
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    returned = work(arrays)
    return _status("VmHWM") - before, returned


def _status(name: str) -> float:
    """Bytes, from Linux."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024.0 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status does not tell {name}; memory is measured on Linux alone")


def _solve(S: np.ndarray) -> float:
    return joint_eigenspace(S, min(S_FIXED, S.shape[1] // 3)).upper


def _fit_screened(Xs: np.ndarray) -> float:
    return seconds(lambda: JointHubs(screen="auto").fit_many(list(Xs)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of the joint hubs.")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[400, 500, 1000, 2000])
    parser.add_argument("--groups", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--wide", type=int, default=10_000)
    options = parser.parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    print(f"OMP_NUM_THREADS {threads}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    begin = time.perf_counter()
    for part in (
        small(options.draws),
        growth_in_p(options.sizes),
        growth_in_groups(options.groups),
        wide(options.wide),
    ):
        for line in part:
            print(line, flush=True)
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
