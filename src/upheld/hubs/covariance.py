"""The symmetric matrix S_k of one group that enters (1).

"correlation"   sample correlation, the authors' default
"covariance"    sample covariance (divisor n - 1); a group of much larger scale then binds alone
"threshold"     correlation with every entry below the 0.7 quantile of the off-diagonal magnitudes set to 0. The result may
                be indefinite, which (3) allows. (In the version of the authors' loop that was read, the thresholded
                matrices are computed but the plain ones are handed to the optimiser; here they are used.)
"ledoit-wolf"   Ledoit-Wolf shrinkage of the standardised data
"spearman"      2 sin(pi rho / 6) of the rank correlation rho: the correlation of the latent normals in a nonparanormal
a callable      any function from (n, p) samples to a symmetric (p, p) matrix
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

FloatArray = NDArray[np.float64]
CovarianceFunction = Callable[[FloatArray], FloatArray]

THRESHOLD_QUANTILE = 0.7


def standardised(X: FloatArray) -> FloatArray:
    """Z with Z'Z the sample correlation of X."""
    Z = X - X.mean(axis=0)
    norms: FloatArray = np.sqrt(np.sum(Z**2, axis=0))
    scaled: FloatArray = Z / norms
    return scaled


def centred(X: FloatArray) -> FloatArray:
    """Z with Z'Z the sample covariance of X, divisor n - 1."""
    deviations: FloatArray = X - X.mean(axis=0)
    scaled: FloatArray = deviations / np.sqrt(len(X) - 1)
    return scaled


def correlation(X: FloatArray) -> FloatArray:
    Z = standardised(X)
    return Z.T @ Z


def covariance(X: FloatArray) -> FloatArray:
    Z = centred(X)
    return Z.T @ Z


def thresholded_correlation(X: FloatArray) -> FloatArray:
    R = correlation(X)
    magnitude = np.abs(R)
    cut = np.quantile(magnitude[np.triu_indices(len(R), 1)], THRESHOLD_QUANTILE)
    kept = magnitude >= cut
    np.fill_diagonal(kept, True)
    return np.where(kept, R, 0.0)


def shrunk_correlation(X: FloatArray) -> FloatArray:
    from sklearn.covariance import ledoit_wolf

    shrunk, _ = ledoit_wolf(standardised(X) * np.sqrt(len(X)), assume_centered=True)
    return np.asarray(shrunk, dtype=float)


def ranks(X: FloatArray) -> FloatArray:
    return np.asarray(rankdata(X, axis=0), dtype=float)


def latent_correlation(rho: FloatArray) -> FloatArray:
    """Correlation of the underlying normals from Spearman's rho."""
    return 2 * np.sin(np.pi * rho / 6)


def spearman_correlation(X: FloatArray) -> FloatArray:
    return latent_correlation(correlation(ranks(X)))


COVARIANCES: dict[str, CovarianceFunction] = {
    "correlation": correlation,
    "covariance": covariance,
    "threshold": thresholded_correlation,
    "ledoit-wolf": shrunk_correlation,
    "spearman": spearman_correlation,
}

# S_k = Z'Z with these factors: (1) can be solved in the row space of the samples.
FACTORS: dict[str, Callable[[FloatArray], FloatArray]] = {"correlation": standardised, "covariance": centred}

# The lower end of these spectra is dictated by the rank of the samples.
RANK_LIMITED = ("correlation", "covariance", "ledoit-wolf", "spearman")


def covariance_function(kind: str | CovarianceFunction) -> CovarianceFunction:
    if callable(kind):
        return kind
    if kind not in COVARIANCES:
        raise ValueError(f"covariance must be one of {', '.join(map(repr, COVARIANCES))} or a callable, got {kind!r}")
    return COVARIANCES[kind]
