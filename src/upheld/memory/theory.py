"""Phase boundaries of a thermal dense associative memory in closed form: the paper's, the exact ones, and ours.

M = e^(alpha N) patterns, states at bath temperature T under exp(-H/T), alignment phi to the target::

    LSE    H = -(1/beta_net) ln sum_mu exp(-beta_net N (1 - phi_mu)),     u(phi) = 1 - phi                       (1)
    LSR    H = -(N/b) ln sum_mu ReLU(1 - b (1 - phi_mu)),                 u(phi) = -(1/b) ln(1 - b (1 - phi))    (2)
    retrieval branch     f_ret(T) = min_phi [u(phi) - T s(phi)],          s = 1/2 ln(1 - phi^2)                  (3)
    LSE    phi(T) = (sqrt(T^2 + 4) - T) / 2                                                                      (4)
    LSR    y = 1 - phi solves (bT + 1) y^2 - (2 + T + bT) y + T = 0                                              (5)

Retrieval is stable while f_ret(T) does not exceed the floor of the noise. Where that floor lies depends on the density of the
alignments (``density="spherical"``, exact, or ``"gaussian"``, the paper's approximation) and, for LSR, on how the noise is read:

``"collective"``  ours: the kernel enters (2) to the first power, so beyond alpha_th the patterns inside the support are exponentially
                  many and their energy is super-extensive. The line is vertical at alpha_th(b), at every T.
``"single"``      ours: the paper's inequality taken literally, the best single pattern against the target.
``"paper"``       the paper's line, which puts the LSE floor in place of the LSR one.

The zero-temperature capacity 1/2 and the threshold (1 - 1/b)^2 / 2 are properties of the Gaussian approximation: they hold for
Gaussian patterns, not for spherical ones.

Everything is vectorised over alpha and T. Source: arXiv 2604.07401; exact density, spinodal and escape: the same authors' later
manuscripts; collective and single lines, freezing of the spherical floor: ours.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from upheld.memory.geometry import (
    SMALLEST_N,
    SPHERICAL,
    FloatArray,
    density_named,
    gauss_legendre,
    geometric_entropy,
    log_mean_exponential,
)

Kernel = Literal["lse", "lsr"]
KERNELS = ("lse", "lsr")
B = 2 + math.sqrt(2)  # phi_c = 1/sqrt(2)
CRITERIA = {"lse": ("equal-depth", "spinodal"), "lsr": ("collective", "single", "paper")}
NEWTON_STEPS = 6


def phi_c(b: float = B) -> float:
    """Alignment at which the support of LSR ends."""
    _check_b(b)
    return 1 - 1 / b


def energy_density(phi: ArrayLike, kernel: str, b: float = B) -> FloatArray:
    """u(phi) of one pattern, equations (1) and (2); +inf outside the support of LSR.

    Examples
    --------
    >>> energy_density([1.0, 0.9, 0.5], "lsr").round(4)
    array([-0.    ,  0.1223,     inf])
    """
    _check(kernel, b)
    y = 1 - np.asarray(phi, dtype=float)
    if kernel == "lse":
        return y
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.maximum(1 - b * y, 0.0)) / b)


# -- retrieval branch


def phi_eq(T: ArrayLike, kernel: str, b: float = B, N: int | None = None) -> FloatArray:
    """Alignment to the target at equilibrium inside its basin, (4) and (5); with `N`, its mean at that dimension.

    Parameters
    ----------
    T : temperatures, at least 0; any shape
    kernel : "lse" or "lsr"
    b : LSR's kernel; ignored by LSE
    N : dimension of the finite-size curve, int phi h e^(-Nu/T) / int h e^(-Nu/T)

    Raises
    ------
    ValueError
        If a temperature is negative or no number, b <= 0, N < 3, or the kernel unknown.

    Examples
    --------
    >>> phi_eq([0.1, 1.0], "lse").round(6), float(phi_eq(0.1, "lse", N=50).round(5))
    (array([0.951249, 0.618034]), 0.95215)
    """
    _check(kernel, b)
    T = _temperature(T)
    if N is not None:
        return _finite_phi(T, kernel, b, N)
    if kernel == "lse":
        return np.asarray(2 / (np.sqrt(T**2 + 4) + T))
    middle = 2 + T + b * T
    return np.asarray(1 - 2 * T / (middle + np.sqrt(middle**2 - 4 * T * (b * T + 1))))  # no cancellation at small T


def _finite_phi(T: FloatArray, kernel: str, b: float, N: int) -> FloatArray:
    """By quadrature in theta = arccos(phi), where the density is sin^(N-2), smooth at every N; window by window round the peak."""
    if N < SMALLEST_N:
        raise ValueError(f"N must be at least {SMALLEST_N}, got {N}")
    end = math.pi if kernel == "lse" else math.acos(max(phi_c(b), -1.0))
    nodes, weights = gauss_legendre()
    out = np.ones_like(T)
    for place in np.ndindex(T.shape):
        if T[place] == 0:
            continue

        def log_weight(theta: FloatArray, t: float = float(T[place])) -> FloatArray:
            with np.errstate(divide="ignore"):
                return (N - 2) * np.log(np.sin(theta)) - N * energy_density(np.cos(theta), kernel, b) / t

        coarse = np.concatenate([np.geomspace(1e-9, end, 4000), np.linspace(0, end, 4002)[1:-1]])
        coarse.sort()
        height = log_weight(coarse)
        inside = coarse[height > height.max() - 50]
        low, high = inside[0], inside[-1]
        theta = low + (high - low) * nodes
        logs = log_weight(theta)
        weight = weights * np.exp(logs - logs.max())
        out[place] = weight @ np.cos(theta) / weight.sum()
    return out


def free_energy(T: ArrayLike, kernel: str, b: float = B) -> FloatArray:
    """f_ret(T) of (3), per component.

    Examples
    --------
    >>> free_energy([0.1, 0.5], "lse").round(6)
    array([0.166379, 0.454377])
    """
    T = _temperature(T)
    phi = phi_eq(T, kernel, b)
    entropy = np.where(T > 0, geometric_entropy(np.where(T > 0, phi, 0.0)), 0.0)
    return np.asarray(energy_density(phi, kernel, b) - T * entropy)


# -- noise


def alpha_th(b: ArrayLike = B, density: str = "spherical") -> FloatArray:
    """Load below which no other pattern reaches the support of LSR: 1/2 phi_c^2 (Gaussian), -1/2 ln(1 - phi_c^2) (exact).

    For b <= 1 the support holds half the sphere or more, and the threshold is 0, with a warning.

    Examples
    --------
    >>> float(alpha_th().round(5)), float(alpha_th(density="gaussian").round(5))
    (0.34657, 0.25)
    """
    b = np.asarray(b, dtype=float)
    if not np.all(b > 0):
        raise ValueError(f"b must be above 0, got {b[~(b > 0)].ravel()[0]:g}")
    if np.any(b <= 1):
        warnings.warn("b <= 1: the support of LSR reaches patterns at right angles, so alpha_th is 0", stacklevel=2)
    return np.asarray(density_named(density).load(np.maximum(1 - 1 / b, 0.0)))


def noise_floor(
    alpha: ArrayLike, kernel: str, beta_net: float = 1.0, b: float = B, density: str = "spherical"
) -> FloatArray:
    """Energy density of the other e^(alpha N) patterns, +inf where none reaches the target (LSR below alpha_th).

    The alignments that carry the noise are the saddle of entropy and kernel, or the largest ones that occur where the saddle lies
    beyond them (load-limited, "frozen"). LSR is read as the paper reads it, with r^N; see ``criterion="collective"`` for what that
    leaves out.

    Examples
    --------
    >>> noise_floor([0.1, 0.2], "lse", density="gaussian").round(4)       # 1 - sqrt(2 alpha)
    array([0.5528, 0.3675])
    """
    _check(kernel, b)
    if not beta_net > 0:
        raise ValueError(f"beta_net must be above 0, got {beta_net:g}")
    alpha = _load(alpha)
    law = density_named(density)
    strength = beta_net if kernel == "lse" else b
    saddle = law.saddle(np.asarray(float(beta_net))) if kernel == "lse" else law.saddle_lsr(np.asarray(float(b)))
    edge = law.edge(alpha)
    top = np.minimum(edge, saddle)
    surplus = np.where(edge > saddle, alpha + law.entropy(np.where(edge > saddle, saddle, 0.0)), 0.0)
    with np.errstate(divide="ignore"):
        floor = energy_density(top, kernel, b) - surplus / strength
    if kernel == "lsr":
        floor = np.where(edge > phi_c(b), floor, np.inf)
    return np.asarray(floor)


def log_noise_sum(N: int, alpha: ArrayLike, beta_net: ArrayLike = 1.0) -> FloatArray:
    """ln of the expected noise sum S = sum_mu exp(-beta_net N (1 - phi_mu)) of e^(alpha N) uniform patterns on the sphere.

    Examples
    --------
    >>> float(log_noise_sum(50, 0.0).round(6))
    -31.049876
    """
    if N < SMALLEST_N:
        raise ValueError(f"N must be at least {SMALLEST_N}, got {N}")
    beta_net = np.asarray(beta_net, dtype=float)
    if not np.all(beta_net > 0):
        raise ValueError(f"beta_net must be above 0, got {beta_net[~(beta_net > 0)].ravel()[0]:g}")
    return np.asarray(N * _load(alpha) + log_mean_exponential(beta_net, N))


# -- boundaries


def alpha_c(
    T: ArrayLike,
    kernel: str = "lse",
    beta_net: float = 1.0,
    b: float = B,
    density: str = "spherical",
    criterion: str | None = None,
) -> FloatArray:
    """Largest load at which retrieval is stable at temperature `T`.

    Parameters
    ----------
    T : temperatures, at least 0; any shape
    kernel : "lse" or "lsr"
    beta_net : inverse variance of the LSE kernel
    b : LSR's kernel, N times its inverse variance
    density : "spherical" (exact) or "gaussian" (the paper's)
    criterion : LSE "equal-depth" (default: f_ret meets the floor) or "spinodal" (the noise takes over at phi(T)); LSR "collective"
        (default), "single" or "paper"

    Examples
    --------
    >>> alpha_c([0.1, 0.5, 1], density="gaussian").round(5), float(alpha_c(0).round(5))
    (array([0.34746, 0.14885, 0.07123]), 0.62257)
    >>> alpha_c([0.1, 1], "lsr", density="gaussian", criterion="single").round(5)
    array([0.37923, 0.26202])
    """
    criterion = _criterion(kernel, criterion, b)
    T = _temperature(T)
    law = density_named(density)
    if kernel == "lse":
        reach = phi_eq(T, "lse") if criterion == "spinodal" else _depth(T)
        return _lse_load(reach, beta_net, density)
    threshold = alpha_th(b, density)
    if criterion == "collective":
        return np.full_like(T, threshold)
    f = free_energy(T, "lsr", b)
    reach = 1 - f if criterion == "paper" else 1 + np.expm1(-b * f) / b
    return np.asarray(np.maximum(law.load(np.maximum(reach, 0.0)), threshold))


def _depth(T: FloatArray) -> FloatArray:
    """1 - f_ret(T) of LSE, phi + T s, without cancellation at large T."""
    phi = phi_eq(T, "lse")
    return np.asarray(phi + T * np.where(T > 0, geometric_entropy(np.where(T > 0, phi, 0.0)), 0.0))


def _lse_load(reach: FloatArray, beta_net: float, density: str) -> FloatArray:
    """Load at which the floor of LSE is 1 - `reach`: frozen, S(reach) = -alpha, up to the saddle; beyond, beta reach - g_max."""
    if not beta_net > 0:
        raise ValueError(f"beta_net must be above 0, got {beta_net:g}")
    law = density_named(density)
    saddle = law.saddle(np.asarray(float(beta_net)))
    frozen = reach <= saddle
    return np.where(frozen, law.load(np.where(frozen, reach, 0.0)), beta_net * reach - law.g_max(beta_net))


def capacity_zero_t(beta_net: ArrayLike = 1.0, density: str = "spherical") -> FloatArray:
    """alpha_c(T=0) of LSE: beta - g_max(beta) on the sphere (no universal 1/2), 1/2 for Gaussian patterns and beta_net >= 1.

    Examples
    --------
    >>> capacity_zero_t([0.5, 1, 2]).round(5), capacity_zero_t([0.5, 1, 2], "gaussian")
    (array([0.38701, 0.62257, 0.90875]), array([0.375, 0.5  , 0.5  ]))
    """
    beta_net = np.asarray(beta_net, dtype=float)
    if not np.all(beta_net > 0):
        raise ValueError(f"beta_net must be above 0, got {beta_net[~(beta_net > 0)].ravel()[0]:g}")
    law = density_named(density)
    return np.asarray(np.where(law.saddle(beta_net) >= 1, law.load(np.ones(())), beta_net - law.g_max(beta_net)))


def t_c(
    alpha: ArrayLike,
    kernel: str = "lse",
    beta_net: float = 1.0,
    b: float = B,
    density: str = "spherical",
    criterion: str | None = None,
) -> FloatArray:
    """Highest temperature at which retrieval is stable at load `alpha`; 0 where it never is, inf where it always is.

    Examples
    --------
    >>> t_c([0.1, 0.3, 0.7], density="gaussian").round(4)
    array([0.7512, 0.1554, 0.    ])
    >>> t_c([0.3, 0.4], "lsr")
    array([inf,  0.])
    """
    criterion = _criterion(kernel, criterion, b)
    alpha = _load(alpha)
    if criterion == "collective":
        return np.where(alpha <= alpha_th(b, density), np.inf, 0.0)
    if criterion == "spinodal":
        return _spinodal_temperature(alpha, beta_net, density)
    if kernel == "lse":
        return _temperature_at(noise_floor(alpha, "lse", beta_net, density=density), "lse", b)
    below = alpha <= alpha_th(b, density)
    edge = np.where(below, 1.0, density_named(density).edge(alpha))
    floor = 1 - edge if criterion == "paper" else energy_density(np.maximum(edge, phi_c(b) + 1e-15), "lsr", b)
    return np.where(below, np.inf, _temperature_at(floor, "lsr", b))


def _temperature_at(floor: FloatArray, kernel: str, b: float) -> FloatArray:
    """T with f_ret(T) = floor: Newton's method in ln T, from a table; df_ret/dT = -s(phi(T)).

    The left side is the logit of f for LSE, where f stays below 1, and its logarithm for LSR.
    """

    def transformed(T: FloatArray) -> FloatArray:
        if kernel == "lse":
            return np.log(free_energy(T, kernel)) - np.log(_depth(T))
        return np.log(free_energy(T, kernel, b))

    table = np.geomspace(1e-13, 1e9, 4096)
    possible = (floor > 0) & (floor < (1 if kernel == "lse" else np.inf))
    inside = np.where(possible, floor, 0.5)
    wanted = np.log(inside) - (np.log1p(-inside) if kernel == "lse" else 0.0)
    log_T = np.interp(wanted, transformed(table), np.log(table))
    for _ in range(NEWTON_STEPS):
        T = np.exp(log_T)
        f = free_energy(T, kernel, b)
        slope = -T * geometric_entropy(phi_eq(T, kernel, b)) / (f * (_depth(T) if kernel == "lse" else 1.0))
        log_T = log_T - (transformed(T) - wanted) / slope
    return np.where(possible, np.exp(log_T), np.where(floor <= 0, 0.0, np.inf))


# -- spinodal


def spinodal(
    alpha: ArrayLike | None = None, T: ArrayLike | None = None, beta_net: float = 1.0, density: str = "spherical"
) -> FloatArray:
    """Where the target's basin of LSE vanishes: its load at `T`, or its temperature at `alpha`.

    alpha_sp(T) = beta phi(T) - g_max;  T_sp = (beta^2 - (alpha + g_max)^2) / (beta (alpha + g_max)), up to freezing.

    Raises
    ------
    ValueError
        Unless just one of `alpha` and `T` is given.

    Examples
    --------
    >>> spinodal(T=[0.1, 0.2, 0.3]).round(6), float(spinodal(alpha=0.5).round(3))
    (array([0.573821, 0.527559, 0.483759]), 0.262)
    """
    if (alpha is None) == (T is None):
        raise ValueError("give either alpha (for the temperature) or T (for the load)")
    if T is not None:
        return alpha_c(T, "lse", beta_net, density=density, criterion="spinodal")
    return _spinodal_temperature(_load(alpha if alpha is not None else 0.0), beta_net, density)


def _spinodal_temperature(alpha: FloatArray, beta_net: float, density: str) -> FloatArray:
    phi = cusp(alpha, beta_net, density)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(phi < 1, np.maximum(1 - phi**2, 0.0) / phi, 0.0))


def cusp(alpha: ArrayLike, beta_net: float = 1.0, density: str = "spherical") -> FloatArray:
    """Alignment below which the noise outweighs the target: (alpha + g_max)/beta, or the largest that occurs when frozen.

    Examples
    --------
    >>> float(cusp(0.5).round(5))
    0.87743
    """
    return np.asarray(1 - noise_floor(alpha, "lse", beta_net, density=density))


def ramsauer_bound(beta_net: float = 1.0) -> float:
    """Load alpha with sqrt(1 - e^(-2 alpha)) = 1 - alpha/beta: the separation that Ramsauer et al. (2021) ask of spherical patterns.

    Examples
    --------
    >>> round(ramsauer_bound(), 4)
    0.3157
    """
    from scipy.optimize import brentq

    if not beta_net > 0:
        raise ValueError(f"beta_net must be above 0, got {beta_net:g}")
    root = brentq(lambda a: float(SPHERICAL.edge(np.asarray(a))) - 1 + a / beta_net, 0.0, beta_net, xtol=1e-14)
    return float(root)


# -- what is asked


def _check_b(b: float) -> None:
    if not b > 0:
        raise ValueError(f"b must be above 0, got {b:g}; phi_c = 1 - 1/b is the edge of the support")


def _check(kernel: str, b: float) -> None:
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be 'lse' or 'lsr', got {kernel!r}")
    if kernel == "lsr":
        _check_b(b)


def _criterion(kernel: str, criterion: str | None, b: float) -> str:
    _check(kernel, b)
    criterion = criterion or CRITERIA[kernel][0]
    if criterion not in CRITERIA[kernel]:
        raise ValueError(f"criterion of {kernel} must be {' or '.join(CRITERIA[kernel])}, got {criterion!r}")
    return criterion


def _temperature(T: ArrayLike) -> FloatArray:
    T = np.asarray(T, dtype=float)
    if not np.all(T >= 0):
        raise ValueError(f"T must be at least 0, got {T[~(T >= 0)].ravel()[0]:g}")
    return T


def _load(alpha: ArrayLike) -> FloatArray:
    alpha = np.asarray(alpha, dtype=float)
    if not np.all(alpha >= 0):
        raise ValueError(f"alpha must be at least 0, got {alpha[~(alpha >= 0)].ravel()[0]:g}")
    return alpha
