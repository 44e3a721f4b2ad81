"""How a memory is lost in finite time at finite N.

LSR below alpha_th: through other patterns' supports that touch the target's.

The state sits at alignment phi = phi(T). A pattern at alignment psi to the target opens a channel when its support can be entered
without leaving the target's, and the entry costs the entropy of one coordinate of the state given phi::

    psi_min = phi_c phi - sqrt((1 - phi_c^2)(1 - phi^2))                                                         (1)
    v(psi) = (phi_c - phi psi) / sqrt(1 - psi^2),      Delta F / T = -((N-4)/2) ln(1 - v^2 / (1 - phi^2))         (2)
    K = M P(psi > psi_min)                                                                                       (3)
    1 / tau = sum over channels of exp(-Delta F / T) = M int_(psi_min)^(psi_max) h(psi) exp(-Delta F / T) dpsi    (4)

psi_max is the alignment of the nearest pattern of a typical draw, M P(psi > psi_max) = 1. tau counts relaxation times of the chain
(`RELAXATION_SWEEPS`: about ten sweeps of N/2 pair moves, or a hundred Metropolis steps).

(1) to (3): the authors' later manuscript on LSR; the exact exponent in (2) and (4): ours.

LSE: over the wall of its basin, (5) at `basin_lifetime`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from upheld.memory.geometry import FloatArray, alignment_of_log_tail, gauss_legendre, log_alignment_density, log_tail
from upheld.memory.theory import B, cusp, phi_c, phi_eq

SMALLEST_N = 5
RELAXATION_SWEEPS = {"pair": 10.0, "metropolis": 100.0}
NODES = 200


class Channels(NamedTuple):
    """Fields broadcast over alpha and T. `K`: expected channels; `barrier`: Delta F/T of the channel that carries most of (4), inf
    where there is none; `tau`: relaxation times until the target is lost."""

    K: FloatArray
    barrier: FloatArray
    tau: FloatArray


def escape_channels(alpha: ArrayLike, T: ArrayLike, N: int, b: float = B) -> Channels:
    """Channels out of an LSR memory, (1) to (4).

    Parameters
    ----------
    alpha, T : loads and temperatures, shapes that broadcast
    N : dimension, at least 5
    b : kernel, above 1

    Raises
    ------
    ValueError
        If N < 5, b <= 1 or T is negative.

    Examples
    --------
    >>> few, many = escape_channels([0.1, 0.24], 1.0, 30)[2]
    >>> bool(few > 100 * many)
    True
    """
    if N < SMALLEST_N:
        raise ValueError(f"N must be at least {SMALLEST_N}, got {N}")
    wall = phi_c(b)
    if wall <= 0:
        raise ValueError(f"b must be above 1, got {b:g}: below, the support holds half the sphere and needs no channel")
    alpha, T = np.broadcast_arrays(np.asarray(alpha, dtype=float), np.asarray(T, dtype=float))
    phi = phi_eq(T, "lsr", b)
    lowest = wall * phi - np.sqrt((1 - wall**2) * (1 - phi**2))
    K = np.exp(np.minimum(alpha * N + log_tail(lowest, N), 700.0))
    highest = alignment_of_log_tail(-alpha * N, N)
    nodes, weights = gauss_legendre(NODES)
    psi = lowest[..., None] + np.maximum(highest - lowest, 0.0)[..., None] * nodes
    entry = np.maximum(wall - phi[..., None] * psi, 0.0) / np.sqrt(1 - psi**2)  # 0: the state is inside already
    with np.errstate(divide="ignore", invalid="ignore"):
        barrier = -(N - 4) / 2 * np.log1p(-np.minimum(entry**2 / (1 - phi**2)[..., None], 1.0))
        logs = alpha[..., None] * N + log_alignment_density(psi, N) - barrier
        width = np.log(np.maximum(highest - lowest, 0.0))
        log_rate = width + _log_sum(logs + np.log(weights))
        carried = np.take_along_axis(barrier, logs.argmax(-1)[..., None], -1)[..., 0]
        return Channels(K, np.where(highest > lowest, carried, np.inf), np.asarray(np.exp(-log_rate)))


def basin_lifetime(alpha: ArrayLike, T: ArrayLike, N: int, beta_net: float = 1.0) -> FloatArray:
    """Relaxation times until an LSE memory is lost over the wall of its basin (Kramers, prefactor 1; ours).

    The wall is the alignment below which the noise outweighs the target (`theory.cusp`), and its height is what the sphere and the
    energy make of the way there::

        Delta F / T = N (phi - cusp) / T + ((N-3)/2) ln((1 - phi^2) / (1 - cusp^2)),      tau = exp(Delta F / T)       (5)

    1 where phi(T) lies below the cusp: there is no basin.

    Parameters
    ----------
    alpha, T : loads and temperatures above 0, shapes that broadcast
    N : dimension, at least 5
    beta_net : inverse variance of the kernel

    Raises
    ------
    ValueError
        If N < 5, or a temperature is not above 0.

    Examples
    --------
    >>> cold, hot = basin_lifetime(0.1, [0.3, 1.0], 50)
    >>> bool(cold > 1e4 * hot)
    True
    """
    if N < SMALLEST_N:
        raise ValueError(f"N must be at least {SMALLEST_N}, got {N}")
    alpha, T = np.broadcast_arrays(np.asarray(alpha, dtype=float), np.asarray(T, dtype=float))
    if not np.all(T > 0):
        raise ValueError("a lifetime needs temperatures above 0; at 0 nothing moves")
    phi = phi_eq(T, "lse")
    wall = np.minimum(cusp(alpha, beta_net), phi)
    barrier = N * (phi - wall) / T + (N - 3) / 2 * (np.log1p(-(phi**2)) - np.log1p(-(wall**2)))
    return np.asarray(np.exp(np.minimum(barrier, 700.0)))


def _log_sum(logs: FloatArray) -> FloatArray:
    top = logs.max(-1)
    safe = np.where(np.isfinite(top), top, 0.0)
    return np.asarray(safe + np.log(np.exp(logs - safe[..., None]).sum(-1)))
