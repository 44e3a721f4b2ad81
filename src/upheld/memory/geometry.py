"""Alignments on the sphere: their densities, their extremes, and the entropy they leave to a state.

A state x and a pattern xi in R^N, both of squared norm N, have the alignment phi = x.xi/N. For a uniform x its density is::

    h(phi) = C_N (1 - phi^2)^((N-3)/2),       C_N = Gamma(N/2) / (sqrt(pi) Gamma((N-1)/2))                        (1)

The paper replaces ln h / N by the Gaussian -phi^2/2; at leading order the sphere has 1/2 ln(1 - phi^2). Both are kept here side
by side, as a `Density`: what the numbers of the paper owe to the approximation is seen by switching it.

Petrova, Polyachenko, State: Geometric Entropy and Retrieval Phase Transitions in Continuous Dense Associative Memory, ICML 2026
(arXiv 2604.07401). The exact density is the authors' later manuscript; Lucibello & Mezard, PRL 132, 077301 (2024) for T = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray = NDArray[np.float64]
SMALLEST_N = 3
UNDERFLOWS, FAR_TERMS, NEWTON_STEPS = -600.0, 25, 40
UNIFORM_FROM = 200  # dimension from which I_nu is taken from its uniform expansion: `ive` underflows at large ones


def geometric_entropy(phi: ArrayLike, q: ArrayLike | None = None) -> FloatArray:
    """Entropy per component of the states at alignment `phi`, whatever the kernel.

    With the overlap q of two replicas, s(phi, q) = 1/2 ln(1-q) + (q-phi^2) / (2(1-q)); its stationary point in q, a minimum, is
    q = phi^2, where s(phi) = 1/2 ln(1-phi^2).

    Parameters
    ----------
    phi : alignments in (-1, 1); at +-1 the entropy is -inf
    q : replica overlaps in [0, 1), of a shape that broadcasts; None for the stationary one

    Raises
    ------
    ValueError
        If an alignment lies outside [-1, 1], or an overlap outside [0, 1).

    Examples
    --------
    >>> float(geometric_entropy(0.6).round(6)), float(geometric_entropy(0.6, q=0.36).round(6))
    (-0.223144, -0.223144)
    """
    phi = np.asarray(phi, dtype=float)
    if np.any(np.abs(phi) > 1) or np.isnan(phi).any():
        raise ValueError(f"phi must lie in [-1, 1], got {phi[~(np.abs(phi) <= 1)].ravel()[0]:g}")
    if q is None:
        with np.errstate(divide="ignore"):
            return np.asarray(0.5 * np.log1p(-(phi**2)))
    q = np.asarray(q, dtype=float)
    if not np.all((q >= 0) & (q < 1)):
        raise ValueError(f"q must lie in [0, 1), got {q[~((q >= 0) & (q < 1))].ravel()[0]:g}")
    return np.asarray(0.5 * np.log1p(-q) + (q - phi**2) / (2 * (1 - q)))


def joint_entropy(overlaps: ArrayLike, gram: ArrayLike, N: int) -> FloatArray:
    """Entropy at leading order of states with given overlaps to k < N patterns: ((N-k)/2) ln(1 - phi' G^-1 phi).

    Parameters
    ----------
    overlaps : (..., k)
    gram : (k, k) overlaps of the patterns with each other, unit diagonal
    """
    phi, G = np.asarray(overlaps, dtype=float), np.asarray(gram, dtype=float)
    if phi.shape[-1] >= N:
        raise ValueError(f"{phi.shape[-1]} overlaps need a dimension above them, got N={N}")
    explained = np.einsum("...i,...i", phi, np.linalg.solve(G, phi[..., None])[..., 0])
    if np.any(explained > 1):
        raise ValueError("no state has these overlaps: phi' G^-1 phi exceeds 1")
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * (N - phi.shape[-1]) * np.log1p(-explained))


# -- the two densities, at leading order in N


@dataclass(frozen=True)
class Density:
    """Large-deviation function of the alignments of random patterns: ln(density)/N = S(phi).

    `edge` is the largest alignment among e^(alpha N) patterns, S(edge) = -alpha; `load` is its inverse; `saddle` maximises
    S(phi) + beta phi (the alignments that carry the noise of an exponential kernel), and `saddle_lsr` S(phi) + ln(1 - b(1-phi)).
    """

    name: str
    entropy: Callable[[FloatArray], FloatArray]
    edge: Callable[[FloatArray], FloatArray]
    load: Callable[[FloatArray], FloatArray]
    saddle: Callable[[FloatArray], FloatArray]
    saddle_lsr: Callable[[FloatArray], FloatArray]

    def g_max(self, beta: ArrayLike) -> FloatArray:
        """max over phi of S(phi) + beta phi."""
        beta = np.asarray(beta, dtype=float)
        phi = self.saddle(beta)
        return np.asarray(self.entropy(phi) + beta * phi)


def _log_slope(phi: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(phi < 1, -0.5 * np.log1p(-(np.minimum(phi, 1.0) ** 2)), np.inf)


GAUSSIAN = Density(
    "gaussian",
    entropy=lambda phi: -(phi**2) / 2,
    edge=lambda alpha: np.sqrt(2 * alpha),
    load=lambda phi: phi**2 / 2,
    saddle=lambda beta: beta,
    # -phi (1 - b + b phi) + b = 0
    saddle_lsr=lambda b: (b - 1 + np.sqrt((b - 1) ** 2 + 4 * b**2)) / (2 * b),
)
SPHERICAL = Density(
    "spherical",
    entropy=lambda phi: 0.5 * np.log1p(-(phi**2)),
    edge=lambda alpha: np.sqrt(-np.expm1(-2 * alpha)),
    load=_log_slope,
    saddle=lambda beta: 2 * beta / (np.sqrt(1 + 4 * beta**2) + 1),
    # 2 b phi^2 + (1 - b) phi - b = 0
    saddle_lsr=lambda b: (b - 1 + np.sqrt((b - 1) ** 2 + 8 * b**2)) / (4 * b),
)
DENSITIES = {density.name: density for density in (SPHERICAL, GAUSSIAN)}


def density_named(name: str) -> Density:
    """
    Raises
    ------
    ValueError
        If it is neither "spherical" nor "gaussian".
    """
    if name not in DENSITIES:
        raise ValueError(f"density must be 'spherical' (exact) or 'gaussian' (the paper's), got {name!r}")
    return DENSITIES[name]


# -- the exact density at finite N


@cache
def gauss_legendre(n: int = 400) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the quadrature on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2


def log_normaliser(N: int) -> float:
    """ln C_N of (1)."""
    return float(special.gammaln(N / 2) - special.gammaln((N - 1) / 2) - 0.5 * np.log(np.pi))


def log_alignment_density(phi: ArrayLike, N: int) -> FloatArray:
    """ln h(phi), equation (1)."""
    phi = np.asarray(phi, dtype=float)
    with np.errstate(divide="ignore"):
        return np.asarray(log_normaliser(N) + (N - 3) / 2 * np.log1p(-(phi**2)))


def log_tail(phi: ArrayLike, N: int) -> FloatArray:
    """ln P(alignment > phi) of two uniform vectors on the sphere in N dimensions, also where the probability underflows.

    Examples
    --------
    >>> float(log_tail(0.0, 50).round(6)), float(log_tail(0.9, 5000).round(3))
    (-0.693147, -4156.07)
    """
    phi = np.asarray(phi, dtype=float)
    a = (N - 1) / 2
    with np.errstate(divide="ignore"):
        direct = np.asarray(np.log(special.betainc(a, a, (1 - phi) / 2)))
    far = direct < UNDERFLOWS
    if far.any():
        direct[far] = log_normaliser(N) + _log_far_tail(phi[far], a)
    return direct


def _log_far_tail(phi: FloatArray, a: float) -> FloatArray:
    """ln int_phi^1 (1-t^2)^(a-1) dt where it underflows.

    With y = 1 - t^2 it is (1/2) int_0^Y y^(a-1) (1-y)^(-1/2) dy = Y^a F(a, 1/2; a+1; Y) / (2a), Y = 1 - phi^2. By Pfaff's
    transformation F = F(1, 1/2; a+1; -Y/phi^2) / phi, whose terms fall off like (k / (a phi^2))^k; a phi^2 is in the hundreds here.
    """
    Y = 1 - phi**2
    term, total = np.ones_like(Y), np.ones_like(Y)
    for k in range(FAR_TERMS):
        term = term * (k + 0.5) / (a + 1 + k) * (-Y / phi**2)
        total = total + term
    with np.errstate(divide="ignore"):
        return np.asarray(a * np.log(Y) - np.log(2 * a * phi) + np.log(total))


def alignment_of_log_tail(log_p: ArrayLike, N: int) -> FloatArray:
    """Inverse of `log_tail`: the alignment that a share exp(log_p) of the sphere exceeds.

    Examples
    --------
    >>> float(alignment_of_log_tail(log_tail(0.9, 5000), 5000).round(9))
    0.9
    """
    log_p = np.asarray(log_p, dtype=float)
    if np.any(log_p > 0):
        raise ValueError("the logarithm of a probability must not exceed 0")
    a = (N - 1) / 2
    phi = np.asarray(1 - 2 * special.betaincinv(a, a, np.exp(log_p)))
    far = log_p < UNDERFLOWS
    if far.any():
        phi[far] = _far_inverse(log_p[far], N)
    return phi


def _far_inverse(log_p: FloatArray, N: int) -> FloatArray:
    """Newton's method in ln(1 - phi^2), in which the logarithm of the tail is almost linear, of slope a."""
    a = (N - 1) / 2
    log_Y = np.minimum(log_p / a, -1e-12)
    for _ in range(NEWTON_STEPS):
        phi = np.sqrt(-np.expm1(log_Y))
        log_Y = np.minimum(log_Y - (log_tail(phi, N) - log_p) / a, -1e-12)
    return np.asarray(np.sqrt(-np.expm1(log_Y)))


def log_iv(nu: float, z: ArrayLike) -> FloatArray:
    """ln I_nu(z), modified Bessel function of the first kind, without underflow.

    The uniform expansion for large order: with t = (1 + (z/nu)^2)^(-1/2) and eta = 1/t + ln[(z/nu) / (1 + 1/t)],
    ln I = nu eta - 1/2 ln(2 pi nu) - 1/4 ln(1 + (z/nu)^2) + ln(1 + (3t - 5t^3)/(24 nu)).
    """
    z = np.asarray(z, dtype=float)
    if nu < UNIFORM_FROM / 2 - 1:
        return np.asarray(np.log(special.ive(nu, z)) + z)
    ratio = z / nu
    t = 1 / np.sqrt(1 + ratio**2)
    eta = 1 / t + np.log(ratio / (1 + 1 / t))
    first = np.log1p((3 * t - 5 * t**3) / (24 * nu))
    return np.asarray(nu * eta - 0.5 * np.log(2 * np.pi * nu) - 0.25 * np.log1p(ratio**2) + first)


def log_mean_exponential(beta: ArrayLike, N: int) -> FloatArray:
    """ln of the mean of exp(-beta N (1 - phi)) over (1): Gamma(N/2) (2/(beta N))^(N/2-1) e^(-beta N) I_(N/2-1)(beta N)."""
    z = np.asarray(beta, dtype=float) * N
    return np.asarray(special.gammaln(N / 2) + (N / 2 - 1) * np.log(2 / z) - z + log_iv(N / 2 - 1, z))
