"""The score: von Neumann entropy of the cosine kernel of N answers (steps 2 to 5).

With e_i the embedding of answer i in D dimensions::

    ē_i = e_i / ||e_i||_2                                                                   (2)
    K_ij = ē_i . ē_j,          ρ = K / N        (unit trace, positive semidefinite)         (3)
    S = - sum_k λ_k log λ_k    over the eigenvalues λ of ρ, in nats, with 0 log 0 = 0       (4)
    score = S / log N          in [0, 1]: 0 if all answers say the same, 1 if orthogonal    (5)

Source: D. Bhardwaj, J. Kempe, T. G. J. Rudner, "Embedding Trust: Semantic Isotropy Predicts Nonfactuality in Long-Form Text
Generation", ICML 2026 (arXiv 2510.21891); (5) and the jitter are those of its repository.

Everything after (2) is done in float64, and K is never formed: λ_k = σ_k² / N with σ the singular values of the N x D matrix
of the ē_i, whose condition number is the root of K's. An eigenvalue below 1e-12 (answers nearer than a millionth of a
radian) counts as 0, so the answer given N times scores exactly 0.

With more answers than dimensions, N > D, the rank is at most D: S <= log D, and the score stays below log D / log N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

FloatArray = NDArray[np.float64]

NEGLIGIBLE = 1e-12
STACK_ELEMENTS = 2**22  # 32 MB of float64 at a time


def unit_vectors(X: ArrayLike, *, what: str = "vector", of: str = "", numbers: ArrayLike | None = None) -> FloatArray:
    """ē_i, equation (2), in float64.

    Parameters
    ----------
    X : (N, D) vectors of the answers to one prompt, or (P, N, D) for P prompts
    what, of, numbers : what a row is called in an error, what it belongs to (" of group 3"), and the rows' numbers there

    Raises
    ------
    ValueError
        Naming the row: a zero vector or one that is not finite, fewer than 2 rows, another rank.
    """
    array = np.asarray(X, dtype=np.float64)
    if array.ndim not in (2, 3):
        raise ValueError(
            f"vectors must be of shape (answers, dimensions), or (prompts, answers, dimensions), got {array.shape}{of}"
        )
    if array.shape[-2] < 2:
        raise ValueError(f"{array.shape[-2]} {what}{of}: a spread needs at least 2; sample more answers")
    if array.shape[-1] < 1:
        raise ValueError(f"the vectors{of} have no dimensions: shape {array.shape}")
    # The largest component first: the square of a huge or tiny one would leave float64's range.
    peak: FloatArray = np.max(np.abs(array), axis=-1, keepdims=True)
    bad = np.argwhere(~(np.isfinite(peak) & (peak > 0)))
    if len(bad):
        *group, row, _ = (int(index) for index in bad[0])
        number = row if numbers is None else int(np.asarray(numbers)[row])
        place = f"{what} {number}{f' of group {group[0]}' if group else of}"
        if peak[tuple(bad[0])] == 0:
            raise ValueError(f"{place} is zero and has no direction; leave that answer out, or use another embedder")
        raise ValueError(f"{place} is not finite; mend the embedder, or leave that answer out")
    scaled = array / peak
    length: FloatArray = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / length


def span_coordinates(E: FloatArray) -> FloatArray:
    """(..., N, min(N, D)) the same vectors in an orthonormal basis of their span: K and its spectrum are unchanged."""
    N, D = E.shape[-2:]
    if D <= N:
        return E
    R = np.linalg.qr(np.swapaxes(E, -1, -2), mode="r")
    return np.swapaxes(R, -1, -2)


def unit_spectrum(E: FloatArray, jitter: float = 0.0) -> FloatArray:
    """As `spectrum`, of unit vectors."""
    if not (np.isfinite(jitter) and jitter >= 0):
        raise ValueError(f"jitter must be a number of at least 0, got {jitter}")
    N = E.shape[-2]
    squares: FloatArray = np.zeros(E.shape[:-1])
    sigma = np.linalg.svd(span_coordinates(E), compute_uv=False)
    squares[..., : sigma.shape[-1]] = sigma**2
    if jitter > 0:
        lifted: FloatArray = (squares + jitter) / N
        return lifted
    lam: FloatArray = squares / N
    lam[lam < NEGLIGIBLE] = 0.0
    trace: FloatArray = lam.sum(axis=-1, keepdims=True)
    return lam / trace


def spectrum(X: ArrayLike, jitter: float = 0.0) -> FloatArray:
    """Eigenvalues λ of ρ, equation (3), largest first.

    Parameters
    ----------
    X : (N, D) vectors, or (P, N, D); of any length but 0
    jitter : added to the diagonal of K *without* giving ρ its unit trace back, as the paper's repository does: then
        λ_k = (σ_k² + jitter) / N at all N places, those beyond the rank too

    Returns
    -------
    (N,) or (P, N) eigenvalues; without jitter they sum to 1, and those below 1e-12 are 0
    """
    return unit_spectrum(unit_vectors(X), jitter)


def entropy(lam: FloatArray) -> FloatArray:
    """S, equation (4), over the last axis, in nats."""
    S: FloatArray = -xlogy(lam, lam).sum(axis=-1)
    return S + 0.0  # no negative zero


def unit_entropy(E: FloatArray, jitter: float = 0.0) -> FloatArray:
    """(...) S of unit vectors (..., N, D)."""
    S = entropy(unit_spectrum(E, jitter))
    # Rounding may carry orthogonal answers past log N by an ulp; jitter does so by right.
    return S if jitter > 0 else np.minimum(S, np.log(E.shape[-2]))


def von_neumann_entropy(X: ArrayLike, *, jitter: float = 0.0, normalize: bool = False) -> float:
    """S of the answers to one prompt, equation (4), or the score S / log N, equation (5).

    Parameters
    ----------
    X : (N, D) embeddings of N >= 2 answers, of any length but 0
    jitter : see `spectrum`; 1e-3 for parity with the paper's repository. It lifts the floor: five identical answers then
        give S = 0.0066 instead of 0, and orthogonal ones a score a little above 1
    normalize : whether to divide by log N

    Raises
    ------
    ValueError
        Naming the row: a zero vector or one that is not finite; fewer than 2 rows; another rank; a negative jitter.

    Examples
    --------
    >>> round(von_neumann_entropy([[1, 0], [0, 1], [1, 1]]), 4)      # spectrum 2/3, 1/3, 0
    0.6365
    >>> round(von_neumann_entropy([[1, 0], [0, 2]], normalize=True), 4)
    1.0
    """
    array = np.asarray(X, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"vectors must be of shape (answers, dimensions), got {array.shape}")
    S = unit_entropy(unit_vectors(array), jitter)
    return float(S / np.log(len(array)) if normalize else S)


def von_neumann_entropies(X: ArrayLike, *, jitter: float = 0.0, normalize: bool = False) -> FloatArray:
    """As `von_neumann_entropy` for P prompts at once: (P, N, D) -> (P,).

    Beside its input it needs some 100 MB, whatever P.

    Examples
    --------
    >>> von_neumann_entropies([[[1, 0], [0, 2]], [[1, 0], [3, 0]]], normalize=True).round(4)
    array([1., 0.])
    """
    array = np.asarray(X)
    if array.ndim != 3:
        raise ValueError(f"vectors must be of shape (prompts, answers, dimensions), got {array.shape}")
    P, N, D = array.shape
    step = max(1, STACK_ELEMENTS // max(1, N * D))
    S = np.empty(P)
    for start in range(0, P, step):
        part = slice(start, start + step)
        S[part] = unit_entropy(unit_vectors(array[part]), jitter)
    return S / np.log(N) if normalize else S
