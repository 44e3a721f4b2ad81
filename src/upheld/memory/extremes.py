"""The noise of e^(alpha N) random patterns without drawing them: the largest alignments one by one, the others by their mean.

The k-th largest of M alignments is the inverse survival function at Gamma_k / M, Gamma_k = E_1 + ... + E_k of standard exponentials
(Renyi's representation at M -> infinity). What lies below the last one kept enters the sum as its truncated mean. Works in logarithms,
at any N and alpha; ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from upheld.memory.data import LAWS
from upheld.memory.geometry import FloatArray, alignment_of_log_tail, gauss_legendre, log_alignment_density

TERMS = 1024


def arrivals(draws: int, *, rng: np.random.Generator, terms: int = TERMS) -> FloatArray:
    """ln Gamma_k of independent draws, (draws, terms)."""
    return np.asarray(np.log(np.cumsum(rng.standard_exponential((draws, terms)), axis=1)))


def top_alignments(log_gamma: FloatArray, log_M: ArrayLike, N: int, law: str = "spherical") -> FloatArray:
    """The largest alignments of e^log_M patterns to a fixed state, of the shape of `log_gamma`; NaN beyond the M-th."""
    if law not in LAWS:
        raise ValueError(f"law must be 'spherical' or 'gaussian', got {law!r}")
    log_p = log_gamma - np.asarray(log_M, dtype=float)
    inside = np.minimum(log_p, 0.0)
    phi = -special.ndtri_exp(inside) / np.sqrt(N) if law == "gaussian" else alignment_of_log_tail(inside, N)
    return np.where(log_p < 0, phi, np.nan)


def log_noise(log_gamma: FloatArray, alpha: ArrayLike, N: int, beta: float, law: str = "spherical") -> FloatArray:
    """ln of the noise sum of each draw, sum over patterns of exp(-beta N (1 - phi)), (draws,).

    Examples
    --------
    >>> log_gamma = arrivals(400, rng=np.random.default_rng(0))
    >>> u = -log_noise(log_gamma, 0.2, 2000, 2.0, "gaussian") / 4000
    >>> bool(abs(np.median(u) - (1 - 0.4**0.5)) < 0.01)
    True
    """
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), log_gamma.shape[:1])
    phi = top_alignments(log_gamma, (alpha * N)[:, None], N, law)
    with np.errstate(invalid="ignore"):
        top = np.where(np.isnan(phi), -np.inf, -beta * N * (1 - phi))
    lowest = phi[:, -1]
    rest = np.full(len(phi), -np.inf)
    more = ~np.isnan(lowest)
    if more.any():
        mean = _gaussian_rest if law == "gaussian" else _spherical_rest
        rest[more] = alpha[more] * N + mean(lowest[more], N, beta)
    return np.asarray(special.logsumexp(np.column_stack([top, rest]), axis=1))


def _gaussian_rest(below: FloatArray, N: int, beta: float) -> FloatArray:
    """ln of the mean of exp(-beta N (1 - phi)) over phi ~ N(0, 1/N) below a value."""
    return np.asarray(N * (beta**2 / 2 - beta) + special.log_ndtr((below - beta) * np.sqrt(N)))


def _spherical_rest(below: FloatArray, N: int, beta: float) -> FloatArray:
    nodes, weights = gauss_legendre()
    # The integrand peaks within a few 1/sqrt(N) of the saddle or of the end.
    low = np.maximum(np.minimum(below, 2 * beta / (np.sqrt(1 + 4 * beta**2) + 1)) - 14 / np.sqrt(N), -1.0)
    phi = low[:, None] + (below - low)[:, None] * nodes
    logs = log_alignment_density(phi, N) - beta * N * (1 - phi) + np.log(weights)
    return np.asarray(special.logsumexp(logs, axis=1) + np.log(below - low))


def critical_load(log_gamma: FloatArray, N: int, beta: float, law: str, *, steps: int = 8) -> FloatArray:
    """Load at which each draw's noise sum reaches the target's 1, (draws,): secant steps on ln S, which is almost linear in alpha."""
    previous, alpha = np.full(len(log_gamma), 0.3), np.full(len(log_gamma), 0.5)
    value_before, value = (log_noise(log_gamma, a, N, beta, law) for a in (previous, alpha))
    for _ in range(steps):
        slope = (value - value_before) / np.where(alpha == previous, 1.0, alpha - previous)
        step = np.where(np.abs(value) < 1e-10, 0.0, -value / np.where(slope > 0, slope, N))
        previous, value_before = alpha, value
        alpha = np.maximum(alpha + step, 1e-4)
        value = log_noise(log_gamma, alpha, N, beta, law)
    return alpha


def limit(N: ArrayLike, values: ArrayLike) -> float:
    """Value at infinite N of a + c/N + d ln(N)/N, by least squares.

    Examples
    --------
    >>> N = np.array([20, 50, 100, 400])
    >>> round(limit(N, 0.5 + 3 / N - 0.2 * np.log(N) / N), 12)
    0.5
    """
    N = np.asarray(N, dtype=float)
    design = np.column_stack([np.ones_like(N), 1 / N, np.log(N) / N])
    return float(np.linalg.lstsq(design, np.asarray(values, dtype=float), rcond=None)[0][0])
