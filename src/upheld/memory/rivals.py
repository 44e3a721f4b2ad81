"""What one would use instead: from stored rows, cues and one number to the index of a stored row, or -1 for "none of them".

The number is a radius, a sharpness or a bandwidth; all are tuned over as many values by the same five folds (`tuned`), recall minus
wrong recall. A way gets all values at once, so that what does not depend on the number (distances, neighbours, an index) is reckoned
once a fold, and what several ways need, once for all.

`sparsemax` and `entmax15` are the exact algorithms of Martins & Astudillo (2016) and Peters et al. (2019), tested against the package
entmax; `mean_shift` is scikit-learn's with all seeds at a time, `pairwise_recall` the classical network with Hebb's rule, tested against
hopfieldnetwork. faiss' range search answers as the nearest neighbour within a radius.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity, NearestNeighbors

from upheld.memory.estimator import CANDIDATES, beta_candidates, recall_less_wrong
from upheld.memory.geometry import FloatArray
from upheld.memory.support import fixed_points, nearest, squared_distances

Answer = NDArray[np.int64]
CONFIDENT = 0.5  # weight of the first pattern under which attention is taken to refuse
BATCH = 2**18  # distances at a time
HNSW_LINKS, HNSW_BREADTH = 32, 64  # faiss searches with a breadth of 16 by default


@dataclass(frozen=True)
class Task:
    """Rows in store (M, N), and cues (B, N) with the row each was made from, -1 for none of them."""

    stored: FloatArray
    cues: FloatArray
    truth: Answer

    @cached_property
    def distances(self) -> FloatArray:
        """Squared, (B, M)."""
        return squared_distances(self.cues, self.stored)

    @cached_property
    def neighbour(self) -> tuple[FloatArray, Answer]:
        """Distance and index of the nearest stored row, (B,) each."""
        distance, index = NearestNeighbors(n_neighbors=1).fit(self.stored).kneighbors(self.cues)
        return distance[:, 0], index[:, 0]

    @cached_property
    def scores(self) -> FloatArray:
        """Of attention at beta = 1, |xi|^2 kept: x.xi - |xi|^2/2, (B, M)."""
        return np.asarray(self.cues @ self.stored.T - (self.stored**2).sum(1) / 2)


Way = Callable[[Task, FloatArray], Answer]  # values (V,) -> (V, B)


def exact_neighbour(task: Task, unused: FloatArray) -> Answer:
    """1-NN, always an answer."""
    return np.broadcast_to(task.neighbour[1], (len(unused), len(task.cues)))


def neighbour_within(task: Task, radius: FloatArray) -> Answer:
    """1-NN within a radius: the refusal a practitioner would build."""
    distance, index = task.neighbour
    return np.where(distance < radius[:, None], index, -1)


def density_support(task: Task, bandwidth: FloatArray) -> Answer:
    """1-NN where scikit-learn's Epanechnikov density is above 0; the rounding of its tree leaves traces of it beyond the bandwidth."""
    answers = []
    for h in bandwidth:
        density = KernelDensity(kernel="epanechnikov", bandwidth=float(h)).fit(task.stored).score_samples(task.cues)
        answers.append(np.where(np.isfinite(density), task.neighbour[1], -1))
    return np.stack(answers)


def mean_shift(task: Task, bandwidth: FloatArray) -> Answer:
    """The row nearest to the centre of the cue's cluster; clusters are those of the stored rows, and refuse cues beyond the bandwidth.

    Comaniciu & Meer's algorithm as scikit-learn has it (``MeanShift(bandwidth, cluster_all=False)``).
    """
    answers = []
    for h in bandwidth:
        centres = mean_shift_centres(task.stored, float(h))
        distance, own = NearestNeighbors(n_neighbors=1).fit(centres).kneighbors(task.cues)
        answers.append(np.where(distance[:, 0] <= h, nearest(centres, task.stored)[own[:, 0]], -1))
    return np.stack(answers)


def mean_shift_centres(rows: FloatArray, bandwidth: float, *, most_steps: int = 300) -> FloatArray:
    """Where the rows end under the flat kernel, of each two that lie within the bandwidth the one of more members."""
    state, members = rows.copy(), np.zeros(len(rows), dtype=int)
    active = np.arange(len(rows))
    for _ in range(most_steps + 1):
        inside = squared_distances(state[active], rows) <= bandwidth**2
        members[active] = inside.sum(1)
        moved = inside.astype(float) @ rows / members[active][:, None]
        step = np.linalg.norm(moved - state[active], axis=1)
        state[active] = moved
        active = active[step > 1e-3 * bandwidth]
        if not len(active):
            break
    order = np.lexsort((*state.T[::-1], members))[
        ::-1
    ]  # members first, then the coordinates, as scikit-learn breaks ties
    centres = state[order]
    near = squared_distances(centres, centres) <= bandwidth**2
    kept = np.ones(len(centres), dtype=bool)
    for i in range(len(centres)):
        if kept[i]:
            kept[near[i]] = False
            kept[i] = True
    return np.asarray(centres[kept])


def hnsw_within(task: Task, radius: FloatArray) -> Answer:
    """faiss' approximate neighbour in a navigable graph, within a radius."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    faiss: Any = importlib.import_module("faiss")  # an extra
    with threadpool_limits(1):  # rows are linked in the order of the threads that add them: one thread, one graph
        index = faiss.IndexHNSWFlat(task.stored.shape[1], HNSW_LINKS)
        index.hnsw.efSearch = HNSW_BREADTH
        index.add(np.ascontiguousarray(task.stored, dtype=np.float32))
        squared, found = index.search(np.ascontiguousarray(task.cues, dtype=np.float32), 1)
    return np.where(squared[:, 0] < radius[:, None] ** 2, found[:, 0], -1)


def _attention(weigh: Callable[[Any], Any]) -> Way:
    """The first pattern of one attention step, if it has more than half the weight."""

    def answer(task: Task, values: FloatArray) -> Answer:
        import torch

        order, answers = torch.from_numpy(task.scores).sort(-1, descending=True), []
        first = order.indices[:, 0].numpy()
        for beta in values:
            weight = weigh(float(beta) * order.values)[:, 0]
            answers.append(np.where(weight.numpy() > CONFIDENT, first, -1))
        return np.stack(answers)

    return answer


def softmax(scores: Any) -> Any:
    return scores.softmax(-1)


def sparsemax(scores: Any) -> Any:
    """Euclidean projection of scores (..., M) onto the simplex."""
    import torch

    z = scores.sort(-1, descending=True).values
    rank = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    total = z.cumsum(-1)
    size = (1 + rank * z > total).sum(-1, keepdim=True)
    tau = (total.gather(-1, size - 1) - 1) / size
    return (scores - tau).clamp_min(0)


def entmax15(scores: Any) -> Any:
    """Tsallis entropy of order 1.5 in place of Shannon's: [(z/2 - tau)_+]^2."""
    import torch

    half = (scores - scores.amax(-1, keepdim=True)) / 2
    z = half.sort(-1, descending=True).values
    rank = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    mean, square = z.cumsum(-1) / rank, (z * z).cumsum(-1) / rank
    spread = rank * (square - mean**2)
    tau = mean - ((1 - spread) / rank).clamp_min(0).sqrt()
    size = (tau <= z).sum(-1, keepdim=True)
    return (half - tau.gather(-1, size - 1)).clamp_min(0) ** 2


def _memory(kernel: str) -> Way:
    """Ours, in Euclidean geometry, without the estimator round it."""

    def answer(task: Task, values: FloatArray) -> Answer:
        together = max(1, BATCH // task.distances.size)  # small tasks cost more in calls than in arithmetic
        parts = []
        for betas in np.array_split(values, math.ceil(len(values) / together)):
            found = fixed_points(
                np.tile(task.cues, (len(betas), 1)), task.stored, kernel, np.repeat(betas, len(task.cues)), sphere=False,
                on_empty="abstain", backend="torch", max_steps=100, tol=1e-6,
                distances=np.tile(task.distances, (len(betas), 1)),
            )  # fmt: skip
            parts.append(np.where(found.empty, -1, nearest(found.x, task.stored)).reshape(len(betas), -1))
        return np.concatenate(parts)

    return answer


LSE, LSR, NEIGHBOUR, CUTOFF = "lse memory", "lsr memory", "nearest neighbour", "nearest neighbour, cut-off"
SPARSEMAX, ENTMAX, SOFTMAX, DENSITY = "sparsemax attention", "entmax attention", "softmax attention", "density support"
SHIFT, HNSW = "mean shift", "HNSW, cut-off"
WAYS: dict[str, Way] = {
    LSR: _memory("lsr"), LSE: _memory("lse"), NEIGHBOUR: exact_neighbour, CUTOFF: neighbour_within, DENSITY: density_support,
    SOFTMAX: _attention(softmax), SPARSEMAX: _attention(sparsemax), ENTMAX: _attention(entmax15),
}  # fmt: skip
BESIDE: dict[str, Way] = {SHIFT: mean_shift, HNSW: hnsw_within}  # raced on a user's vectors, not in the claims
RADII = (CUTOFF, DENSITY, SHIFT, HNSW)
SHARP = (LSE, SOFTMAX, SPARSEMAX, ENTMAX)


def raced() -> dict[str, Way]:
    """Every way but the memory's own; HNSW where faiss is installed."""
    others = {name: way for name, way in (WAYS | BESIDE).items() if name not in (LSR, LSE)}
    if importlib.util.find_spec("faiss") is None:
        del others[HNSW]
    return others


def candidates(name: str, rows: FloatArray) -> FloatArray:
    """Thirty values of a way's number."""
    if name == NEIGHBOUR:
        return np.zeros(1)
    if name in SHARP:
        return beta_candidates(rows, "lse", CANDIDATES)
    beta = beta_candidates(rows, "lsr", CANDIDATES)
    return np.sqrt(2 / beta) if name in RADII else beta


def folds(rows: FloatArray, damage: Callable[[FloatArray], FloatArray], *, count: int = 5) -> list[Task]:
    """Each fold's rows are cues that are not in store, beside as many that are."""
    tasks = []
    for fold in np.array_split(np.arange(len(rows)), count):
        stored = np.delete(rows, fold, axis=0)
        known = np.linspace(0, len(stored) - 1, len(fold)).astype(int)
        cues = damage(np.vstack([stored[known], rows[fold]]))
        tasks.append(Task(stored, cues, np.concatenate([known, np.full(len(fold), -1)])))
    return tasks


def tuned(name: str, rows: FloatArray, tasks: Sequence[Task]) -> float:
    """The value of the highest recall minus wrong recall over `tasks`, which are `folds` of `rows`."""
    values = candidates(name, rows)
    scores = np.zeros(len(values))
    for task in tasks:
        scores += [recall_less_wrong(found, task.truth) for found in (WAYS | BESIDE)[name](task, values)]
    return float(values[int(scores.argmax())])


def answered(name: str, task: Task, value: float) -> Answer:
    """Index (B,) of the stored row that a way gives for each cue, -1 where it refuses."""
    return np.asarray((WAYS | BESIDE)[name](task, np.array([value]))[0])


def pairwise_recall(
    signs: NDArray[np.int8], cues: NDArray[np.int8], *, rng: np.random.Generator, sweeps: int = 50
) -> Any:
    """The classical Hopfield network: Hebb's rule with zero diagonal, asynchronous updates until nothing changes.

    Parameters
    ----------
    signs : (M, N) of -1 and 1; cues : (B, N)
    """
    J = signs.astype(float).T @ signs / signs.shape[1]
    np.fill_diagonal(J, 0.0)
    state = cues.astype(float)
    for _ in range(sweeps):
        before = state.copy()
        for i in rng.permutation(signs.shape[1]):
            state[:, i] = np.where(state @ J[i] >= -1e-15, 1.0, -1.0)
        if np.array_equal(before, state):
            break
    return state
