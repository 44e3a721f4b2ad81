"""What one would use instead, each as (stored rows, cues, one number) -> index of a stored row, or -1 for "none of them".

The number is a radius, a sharpness or a bandwidth; all are tuned over as many values by the same five folds (`tuned`), recall minus
wrong recall. `sparsemax` and `entmax15` are the exact algorithms of Martins & Astudillo (2016) and Peters et al. (2019), tested against
the package entmax; `pairwise_recall` is the classical network with Hebb's rule, tested against hopfieldnetwork. scikit-learn's MeanShift
from a stored row ends where LSR recall does (tested), and faiss' range search answers as the nearest neighbour within a radius.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity, NearestNeighbors

from upheld.memory.estimator import CANDIDATES, beta_candidates, recall_less_wrong
from upheld.memory.geometry import FloatArray
from upheld.memory.support import fixed_points, nearest

Answer = NDArray[np.int64]
Way = Callable[[FloatArray, FloatArray, float], Answer]
CONFIDENT = 0.5  # weight of the first pattern under which attention is taken to refuse


def exact_neighbour(stored: FloatArray, cues: FloatArray, unused: float) -> Answer:
    """1-NN, always an answer."""
    return np.asarray(NearestNeighbors(n_neighbors=1).fit(stored).kneighbors(cues)[1][:, 0])


def neighbour_within(stored: FloatArray, cues: FloatArray, radius: float) -> Answer:
    """1-NN within a radius: the refusal a practitioner would build."""
    distance, index = (one[:, 0] for one in NearestNeighbors(n_neighbors=1).fit(stored).kneighbors(cues))
    return np.where(distance < radius, index, -1)


def density_support(stored: FloatArray, cues: FloatArray, bandwidth: float) -> Answer:
    """1-NN where scikit-learn's Epanechnikov density is above 0."""
    density = KernelDensity(kernel="epanechnikov", bandwidth=bandwidth).fit(stored).score_samples(cues)
    return np.where(np.isfinite(density), exact_neighbour(stored, cues, 0.0), -1)


def _attention(weigh: Callable[[Any], Any]) -> Way:
    """The first pattern of one attention step, if it has more than half the weight."""

    def answer(stored: FloatArray, cues: FloatArray, beta: float) -> Answer:
        import torch

        scores = torch.from_numpy(beta * cues @ stored.T - beta / 2 * (stored**2).sum(1))
        weight, index = weigh(scores).max(-1)
        return np.where(weight.numpy() > CONFIDENT, index.numpy(), -1)

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

    def answer(stored: FloatArray, cues: FloatArray, beta: float) -> Answer:
        found = fixed_points(
            cues, stored, kernel, beta, sphere=False, on_empty="abstain", backend="torch", max_steps=100, tol=1e-6
        )
        return np.where(found.empty, -1, nearest(found.x, stored))

    return answer


LSE, LSR, NEIGHBOUR, CUTOFF = "lse memory", "lsr memory", "nearest neighbour", "nearest neighbour, cut-off"
SPARSEMAX, ENTMAX, SOFTMAX, DENSITY = "sparsemax attention", "entmax attention", "softmax attention", "density support"
WAYS: dict[str, Way] = {
    LSR: _memory("lsr"), LSE: _memory("lse"), NEIGHBOUR: exact_neighbour, CUTOFF: neighbour_within, DENSITY: density_support,
    SOFTMAX: _attention(softmax), SPARSEMAX: _attention(sparsemax), ENTMAX: _attention(entmax15),
}  # fmt: skip
RADII = (CUTOFF, DENSITY)
SHARP = (LSE, SOFTMAX, SPARSEMAX, ENTMAX)


def candidates(name: str, rows: FloatArray) -> FloatArray:
    """Thirty values of a way's number."""
    if name == NEIGHBOUR:
        return np.zeros(1)
    if name in SHARP:
        return beta_candidates(rows, "lse", CANDIDATES)
    beta = beta_candidates(rows, "lsr", CANDIDATES)
    return np.sqrt(2 / beta) if name in RADII else beta


def tuned(
    name: str, rows: FloatArray, damage: Callable[[FloatArray], FloatArray], *, folds: int = 5
) -> float:  # fmt: skip
    """The value of the highest recall minus wrong recall: each fold's rows are cues that are not in store."""
    values = candidates(name, rows)
    scores = np.zeros(len(values))
    for fold in np.array_split(np.arange(len(rows)), folds):
        stored = np.delete(rows, fold, axis=0)
        known = np.linspace(0, len(stored) - 1, len(fold)).astype(int)
        cues = damage(np.vstack([stored[known], rows[fold]]))
        truth = np.concatenate([known, np.full(len(fold), -1)])
        for place, value in enumerate(values):
            scores[place] += recall_less_wrong(WAYS[name](stored, cues, float(value)), truth)
    return float(values[int(scores.argmax())])


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
