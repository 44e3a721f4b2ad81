"""What rivals give as the paper's repository computes them, faults included: shown beside the race, never judged.

- Kernel language entropy: its graph has an edge between every two answers, whatever entails what, so the value depends on N alone::

      L = N I - 1,   K = exp(-t L): K_ii = (1 + (N-1) q) / N, K_ij = (1 - q) / N,   q = exp(-t N)

- Eccentricity: the first N/2 *rows* of the matrix that holds the eigenvectors in its columns, from the solver for unsymmetric
  matrices, which sorts nothing; each row centred over its own entries. The value changes with the order of the answers.
- SelfCheckGPT-NLI: probabilities are taken for logits and exponentiated again, then "uncertainty" is one minus the mean contradiction::

      1 - mean_ij exp(P_contradiction) / (exp(P_contradiction) + exp(P_entailment))

  which lies between 0.27 and 0.73 and is *low* when the answers contradict each other.

Its max pooling has no value to show: it returns a pair (maxima, places) where a vector is wanted, and stops there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from upheld.isotropy.rivals import Rival
from upheld.isotropy.rivals.entailment import CONTRADICTION, ENTAILMENT, entailment_similarity
from upheld.isotropy.rivals.evidence import Evidence, Need
from upheld.isotropy.rivals.graphs import normalized_laplacian
from upheld.isotropy.rivals.kernel_language_entropy import heat_kernel, kernel_language_entropy

FloatArray = NDArray[np.float64]


def kle_of_every_pair(N: int) -> float:
    """Kernel language entropy, heat kernel, of the graph in which all N answers are linked."""
    return kernel_language_entropy(np.ones((N, N)) - np.eye(N), heat_kernel)


def eccentricity_of_rows(W: FloatArray) -> float:
    """Norm of the first N/2 rows of the eigenvector matrix of the Laplacian of (N, N) similarities, each centred."""
    rows = np.linalg.eig(normalized_laplacian(W))[1][: len(W) // 2]
    return float(np.linalg.norm(rows - rows.mean(axis=1, keepdims=True)))


def selfcheck_twice_exponentiated(log_p: FloatArray) -> float:
    """SelfCheckGPT-NLI on whole answers, (N, N, 3) of `answer_entailment`, the answer against itself included."""
    P = np.exp(log_p)
    return float(1 - np.mean(expit(P[..., CONTRADICTION] - P[..., ENTAILMENT])))


def _kle(evidence: Evidence) -> float:
    return kle_of_every_pair(len(evidence.texts))


def _eccentricity(evidence: Evidence) -> float:
    return eccentricity_of_rows(entailment_similarity(evidence.entailment))


def _selfcheck(evidence: Evidence) -> float:
    return selfcheck_twice_exponentiated(evidence.entailment)


AS_PUBLISHED: tuple[Rival, ...] = (
    Rival("published-kle", "Kernel language entropy, as published by the repository", _kle),
    Rival("published-eccentricity", "Eccentricity, NLI, as published by the repository", _eccentricity, (Need.NLI,)),
    Rival("published-selfcheck", "SelfCheckGPT-NLI, as published by the repository", _selfcheck, (Need.NLI,)),
)
