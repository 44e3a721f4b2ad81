"""EigenScore: log-determinant of the centred Gram matrix of N answers.

With ē_i the unit embeddings in D dimensions, K_ij = ē_i . ē_j, and μ_i the mean of the D *features* of ē_i (as published: each vector
is centred by itself, not the answers by their mean)::

    Σ_ij = K_ij - D μ_i μ_j
    EigenScore = (1/N) log det(Σ + α I) = (1/N) sum_k log(λ_k + α),      α = 1e-3

High when the answers differ; between log α and log(1 + α). Source: C. Chen et al., "INSIDE: LLMs' Internal States Retain the Power of
Hallucination Detection" (ICLR 2024, arXiv 2402.03744). There the vectors are hidden states of the model that answers; here they are
those of the embedder that all embedding signals share, so that signals are compared and not embeddings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from upheld.isotropy.entropy import unit_vectors

ALPHA = 1e-3


def eigenscore(X: ArrayLike) -> float:
    """EigenScore of (N, D) vectors of any length but 0.

    >>> round(eigenscore([[1.0, -1.0], [1.0, -1.0]]), 6)       # eigenvalues 2 and 0: (log 2.001 + log 0.001) / 2
    -3.107054
    """
    E = unit_vectors(X)
    centred = E - E.mean(axis=1, keepdims=True)
    lam = np.linalg.eigvalsh(centred @ centred.T)
    return float(np.mean(np.log(np.clip(lam, 0.0, None) + ALPHA)))
