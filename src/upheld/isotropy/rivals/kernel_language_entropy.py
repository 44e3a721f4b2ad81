"""Kernel language entropy: von Neumann entropy of a kernel on the graph of what entails what.

With NLI'(i, j) the likeliest of entailment, neutral and contradiction of answer i as premise and j as hypothesis::

    W_ij = w(NLI'(i, j)) + w(NLI'(j, i)),   w = 1, 1/2, 0,   W_ii = 0         or, tested, W_ij = [that sum >= 3/2]
    L = diag(sum_j W_ij) - W
    K_heat = exp(-t L),        K_matern = (2 ν / κ² I + L)^(-ν)
    KLE = VNE( K_ij / sqrt(K_ii K_jj) / N ) / log N,       VNE(A) = - Tr A log A

in [0, 1], high when no answer follows from another. Source: A. Nikitin, J. Kossen, Y. Gal, P. Marttinen, "Kernel Language Entropy"
(NeurIPS 2024, arXiv 2405.20003); t = 0.3 and κ = ν = 1 are the defaults of the authors and of `lm-polygraph`, fitted to nothing here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from upheld.isotropy.rivals.entailment import CONTRADICTION, ENTAILMENT, NEUTRAL

FloatArray = NDArray[np.float64]
Kernel = Callable[[FloatArray], FloatArray]

EDGE = 1.5  # entailment one way, and no contradiction the other


def semantic_graph(log_p: FloatArray) -> FloatArray:
    """W, (N, N), of the log-probabilities (N, N, 3) of `answer_entailment`: 2 where both entail, 0 where both contradict."""
    worth = np.zeros(3)
    worth[[CONTRADICTION, NEUTRAL, ENTAILMENT]] = 0.0, 0.5, 1.0
    one_way = worth[np.argmax(log_p, axis=-1)]
    W: FloatArray = one_way + one_way.T
    np.fill_diagonal(W, 0.0)
    return W


def entailment_graph(log_p: FloatArray) -> FloatArray:
    """The same with edges of weight 1, where one entails the other and the other does not contradict it."""
    return (semantic_graph(log_p) >= EDGE).astype(np.float64)


def heat_kernel(L: FloatArray, t: float = 0.3) -> FloatArray:
    """exp(-t L) of a symmetric Laplacian."""
    return _of_spectrum(L, lambda lam: np.exp(-t * lam))


def matern_kernel(L: FloatArray, kappa: float = 1.0, nu: float = 1.0) -> FloatArray:
    """(2 ν / κ² I + L)^(-ν) of a symmetric Laplacian."""
    return _of_spectrum(L, lambda lam: (2 * nu / kappa**2 + lam) ** -nu)


def kernel_language_entropy(W: FloatArray, kernel: Kernel) -> float:
    """KLE of a graph with weights W, (N, N), symmetric with a diagonal of 0; in [0, 1].

    >>> round(kernel_language_entropy(np.zeros((3, 3)), heat_kernel), 6)      # no answer follows from another
    1.0
    """
    K = kernel(np.diag(W.sum(axis=1)) - W)
    root = np.sqrt(K.diagonal())
    lam = np.linalg.eigvalsh(K / np.outer(root, root) / len(K))
    return float(entr(np.clip(lam, 0.0, None)).sum() / np.log(len(K)))


def _of_spectrum(L: FloatArray, f: Callable[[FloatArray], FloatArray]) -> FloatArray:
    lam, V = np.linalg.eigh(L)
    # L is positive semidefinite; a rounding error below 0 must not meet the power of the Matérn kernel.
    K: FloatArray = (V * f(np.clip(lam, 0.0, None))) @ V.T
    return K
