"""Companions of the score, all from the cosines K of N answers: second-order spread, its unbiased form, concentration.

    purity = tr ρ² = sum_ij K_ij² / N²                        1/N (orthogonal) ... 1 (identical)
    purity_unbiased = sum_{i≠j} K_ij² / (N (N - 1))           estimates E (ē . ē')²
    mean_cosine_distance = 1 - mean_{i<j} K_ij
    κ ≈ R̄ (D - R̄²) / (1 - R̄²),   R̄ = ||sum_i ē_i|| / N      (von Mises-Fisher concentration)

The entropy is bounded by log N and biased, so it does not compare between different N, and neither does -log of the purity
(Jensen's gap depends on N). `purity_unbiased` has the same expectation at every N >= 2: its *mean over prompts* compares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upheld.isotropy.entropy import NEGLIGIBLE, unit_vectors

FloatArray = NDArray[np.float64]


def cosine_matrix(X: ArrayLike) -> FloatArray:
    """K, (N, N) or (P, N, N), of vectors (N, D) or (P, N, D) of any length but 0."""
    return unit_cosines(unit_vectors(X))


def unit_cosines(E: FloatArray) -> FloatArray:
    """K of unit vectors, with a diagonal of exactly 1."""
    K = np.clip(E @ np.swapaxes(E, -1, -2), -1.0, 1.0)
    diagonal = np.arange(E.shape[-2])
    K[..., diagonal, diagonal] = 1.0
    return K


def purity(K: FloatArray) -> FloatArray:
    """tr ρ²; exp(-log purity) is the order-2 count of distinct answers, at most exp(S).

    Parameters
    ----------
    K : (..., N, N) cosines, see `cosine_matrix`; so for every function here
    """
    return np.asarray(np.mean(K**2, axis=(-2, -1)))


def purity_unbiased(K: FloatArray) -> FloatArray:
    """E (ē . ē')² of two independent answers, without bias at any N >= 2; low = spread out. Take means of it, not logarithms."""
    N = K.shape[-1]
    return np.asarray((np.sum(K**2, axis=(-2, -1)) - N) / (N * (N - 1)))


def mean_cosine_distance(K: FloatArray) -> FloatArray:
    """1 - mean cosine over the pairs: the rival that isolates what the spectrum adds."""
    N = K.shape[-1]
    return np.asarray(1 - (np.sum(K, axis=(-2, -1)) - N) / (N * (N - 1)))


def vmf_kappa(K: FloatArray, D: int) -> FloatArray:
    """Concentration κ of a von Mises-Fisher law on the sphere in D dimensions; 0 = no common direction.

    Infinite where the answers are identical (1 - R̄² below 1e-12).
    """
    # 1 - R̄² as the mean of 1 - K_ij: no cancellation when R̄ is near 1.
    remainder = np.mean(1 - K, axis=(-2, -1))
    square = np.clip(1 - remainder, 0.0, 1.0)
    kappa = np.sqrt(square) * (D - square) / np.maximum(remainder, NEGLIGIBLE)
    return np.where(remainder < NEGLIGIBLE, np.inf, kappa)


def medoid(K: FloatArray) -> NDArray[np.intp]:
    """argmax_i sum_j K_ij: the answer nearest to all, the one to show; the first of equals."""
    return np.asarray(np.argmax(K.sum(axis=-1), axis=-1))
