"""Speed and memory of the isotropy score, each beside a rival or a law, in one run; no model is needed.

python benchmarks/isotropy.py [--prompts 10000] [--answers 20] [--dimensions 384] [--stream 50000]

Ratios are of processor time on one thread, measured back to back, so a busy machine slows both sides.
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.linalg import eigvalsh
from threadpoolctl import threadpool_limits

from measuring import Line, seconds
from upheld.isotropy import SemanticIsotropy, von_neumann_entropies


def scipy_loop(X: np.ndarray) -> np.ndarray:
    """What one would write: K in float64, its eigenvalues, prompt after prompt."""
    scores = np.empty(len(X))
    for p, vectors in enumerate(X):
        unit = vectors.astype(np.float64)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        lam = eigvalsh(unit @ unit.T / len(unit), check_finite=False)
        lam = lam[lam > 1e-12]
        scores[p] = -np.sum(lam * np.log(lam)) / np.log(len(unit))
    return scores


def answers(P: int, N: int, D: int, seed: int = 0) -> np.ndarray:
    """Vectors in float32 around one direction a prompt, as an embedder gives them."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((P, 1, D), dtype=np.float32) + 0.5 * rng.standard_normal((P, N, D), dtype=np.float32)


def algebra(P: int, N: int, D: int) -> Iterator[Line]:
    X = answers(P, N, D)
    shape = f"{P} prompts x {N} answers x {D} dimensions"
    ours, loop = seconds(lambda: von_neumann_entropies(X, normalize=True), 3), seconds(lambda: scipy_loop(X), 3)
    yield Line(f"scores of {shape}", f"{ours:.2f} s", "below 10 s", ours < 10)
    yield Line("  a loop with scipy's eigvalsh on K, over ours", f"{loop / ours:.2f} x")
    apart = np.abs(von_neumann_entropies(X, normalize=True) - scipy_loop(X)).max()
    yield Line("  largest difference between the two", f"{apart:.1e}", "at most 1e-9", bool(apart <= 1e-9))
    half = seconds(lambda: von_neumann_entropies(X[: P // 2], normalize=True), 3)
    yield Line(
        "  seconds at all prompts over those at half", f"{ours / half:.2f}", "linear: below 2.4", ours / half < 2.4
    )
    results = seconds(lambda: sum(1 for _ in SemanticIsotropy().explain_all(X)))
    yield Line(
        f"all of each result: leave-one-out, influence, companions; {shape}", f"{1e3 * results / P:.2f} ms a prompt"
    )


def floor(N: int, D: int) -> Iterator[Line]:
    """One answer N times, its vectors apart by the rounding of float32 and no more."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((200, 1, D)), N, axis=1)
    X = (X * (1 + rng.uniform(-6e-8, 6e-8, X.shape))).astype(np.float32)
    score = float(von_neumann_entropies(X, normalize=True).max())
    unit = X / np.linalg.norm(X, axis=2, keepdims=True)
    lam = np.clip(np.linalg.eigvalsh(unit @ unit.transpose(0, 2, 1) / np.float32(N)), 1e-30, None)
    single = float((-np.sum(lam * np.log(lam), axis=1) / np.log(N)).max())
    yield Line("score of one answer N times, as float32 rounds it", f"{score:.1e}", "at most 1e-9", score <= 1e-9)
    yield Line("  the same with K in float32", f"{single:.1e}")


def streaming(P: int, N: int, D: int) -> Iterator[Line]:
    """Peak of what Python and NumPy hold while results are taken one by one, at P prompts and at a tenth; vectors come from disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(P, N, D))
        for start in range(0, P, 1000):
            stored[start : start + 1000] = answers(min(1000, P - start), N, D, seed=start)
        stored.flush()
        peaks = []
        for share in (10, 1):
            read = np.load(path, mmap_mode="r")
            tracemalloc.start()
            for _ in SemanticIsotropy().explain_all(read[p] for p in range(P // share)):
                pass
            peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
            tracemalloc.stop()
    yield Line(f"memory of {P * N} answers, streamed", f"{peaks[1]:.0f} MB", "below 1024 MB", peaks[1] < 1024)
    yield Line(
        "  over that of a tenth of them", f"{peaks[1] / peaks[0]:.2f} x", "below 1.2 x", peaks[1] < 1.2 * peaks[0]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--answers", type=int, default=20)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--stream", type=int, default=50_000, help="prompts that are streamed")
    chosen = parser.parse_args()
    with threadpool_limits(1):
        for line in algebra(chosen.prompts, chosen.answers, chosen.dimensions):
            print(line, flush=True)
        for line in floor(chosen.answers, chosen.dimensions):
            print(line, flush=True)
        for line in streaming(chosen.stream, 5, 64):
            print(line, flush=True)


if __name__ == "__main__":
    main()
