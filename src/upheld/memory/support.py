"""Fixed points of cues by either backend: torch, which meets every pattern, or faiss, which meets those in the support."""

from __future__ import annotations

import importlib
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upheld.memory.geometry import FloatArray


class Fixed(NamedTuple):
    """`x` (B, N), `iterations` (B,), `empty` (B,) cues outside every support, `support` (B,) its patterns at the end (LSR)."""

    x: FloatArray
    iterations: NDArray[np.int64]
    empty: NDArray[np.bool_]
    support: NDArray[np.int64]


def fixed_points(
    cues: FloatArray, patterns: FloatArray, kernel: str, beta: float | FloatArray, *, sphere: bool, on_empty: str, backend: str,
    max_steps: int, tol: float, distances: FloatArray | None = None,
) -> Fixed:  # fmt: skip
    """See `upheld.memory.recall.recall`; faiss makes no use of `distances`.

    Raises
    ------
    ModuleNotFoundError
        If ``backend="faiss"`` and faiss-cpu is not installed.
    """
    if backend == "faiss":
        if not isinstance(beta, float):
            raise TypeError("backend='faiss' searches within one radius: give beta one number")
        return _by_faiss(cues, patterns, beta, sphere, on_empty, max_steps, tol)
    import torch

    from upheld.memory.recall import recall

    found = recall(
        torch.from_numpy(np.ascontiguousarray(cues)), torch.from_numpy(np.ascontiguousarray(patterns)), kernel,
        beta if isinstance(beta, float) else torch.from_numpy(beta),
        sphere=sphere, on_empty=on_empty, max_steps=max_steps, tol=tol,
        distances=None if distances is None else torch.from_numpy(distances),
    )  # fmt: skip
    return Fixed(*(one.numpy() for one in found))


def squared_distances(x: FloatArray, patterns: FloatArray) -> FloatArray:
    """|x - xi|^2, (B, M)."""
    import torch

    from upheld.memory import energies

    found = energies.squared_distances(*(torch.from_numpy(np.ascontiguousarray(one)) for one in (x, patterns)))
    return np.asarray(found.numpy())


def nearest(x: FloatArray, patterns: FloatArray) -> NDArray[np.int64]:
    """Index (B,) of the nearest pattern, chunk by chunk."""
    squares = (patterns**2).sum(1)
    rows = max(1, 2**24 // len(patterns))
    parts = [(squares - 2 * x[at : at + rows] @ patterns.T).argmin(1) for at in range(0, len(x), rows)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _by_faiss(
    cues: FloatArray, patterns: FloatArray, beta: float, sphere: bool, on_empty: str, max_steps: int, tol: float
) -> Fixed:
    faiss: Any = importlib.import_module("faiss")  # an extra

    N = patterns.shape[1]
    index = faiss.IndexFlatL2(N)
    index.add(np.ascontiguousarray(patterns, dtype=np.float32))
    x = cues.copy()
    iterations, support = np.zeros(len(x), dtype=np.int64), np.zeros(len(x), dtype=np.int64)
    empty, active = np.zeros(len(x), dtype=bool), np.arange(len(x))
    for step in range(max_steps):
        limits, _, members = index.range_search(np.ascontiguousarray(x[active], dtype=np.float32), 2 / beta)
        counts = np.diff(limits).astype(np.int64)
        support[active] = counts
        if step == 0:
            empty = counts == 0
        held = counts > 0
        owner = np.repeat(np.arange(int(held.sum())), counts[held])
        moved = np.zeros((int(held.sum()), N))
        np.add.at(moved, owner, patterns[members])
        active = active[held]
        moved /= counts[held][:, None]
        if sphere:
            moved *= math.sqrt(N) / np.linalg.norm(moved, axis=1, keepdims=True)
        distance = np.linalg.norm(moved - x[active], axis=1) / math.sqrt(N)
        x[active] = moved
        iterations[active] += 1
        active = active[distance > tol]
        if not len(active):
            break
    if empty.any() and on_empty == "nearest":
        x[empty] = patterns[index.search(np.ascontiguousarray(cues[empty], dtype=np.float32), 1)[1][:, 0]]
    if empty.any() and on_empty == "error":
        raise ValueError(
            f"{int(empty.sum())} of {len(cues)} cues lie outside every support (radius {math.sqrt(2 / beta):.3g}); lower beta, or take "
            'on_empty="abstain"'
        )
    return Fixed(x, iterations, empty, support)
