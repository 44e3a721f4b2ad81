"""Compiled Markov chains on the sphere: pair rotations, Metropolis steps, and the reduction of a step to the alignment alone.

A state is kept with its overlaps to all patterns, phi = xi x / N. Patterns stand transposed, (N, M), so that the rows of two
coordinates are contiguous. Both kernels are one logarithm of a sum::

    LSE   H = -(1/beta) L,   L = ln[sum exp(beta N (phi - 1)) + exp(rest)]
    LSR   H = -(N/b) L,      L = ln[sum max(0, 1 - b (1 - phi)) + rest]           -inf outside every support

so that a proposal is taken with probability min(1, exp((L' - L) scale / T)), scale = 1/beta or N/b.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

LSE, LSR = 0, 1
NEGLIGIBLE = 37.0  # exp(-37) vanishes beside 1 in double precision
TUNED_EVERY, WANTED_ACCEPTANCE = 20, 0.4
OVERLAPS_ANEW_EVERY = 200  # sweeps; keeps their drift below 1e-10
FAST = {"nnan", "nsz", "reassoc", "contract"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _largest(phi: Any) -> float:
    top: float = phi[0]
    for m in range(1, phi.size):
        top = max(top, phi[m])
    return top


@numba.njit(cache=True, nogil=True)
def log_sum(kernel: int, strength: float, N: int, phi: Any, rest: float) -> float:
    """L of the module's first lines."""
    if kernel == LSR:
        return _log_ramp(strength, phi, rest)
    scale = strength * N
    top = max(scale * (_largest(phi) - 1.0), rest)
    total = math.exp(rest - top)
    least = 1.0 + (top - NEGLIGIBLE) / scale
    for m in range(phi.size):
        if phi[m] > least:
            total += math.exp(scale * (phi[m] - 1.0) - top)
    return top + math.log(total)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _ramp(strength: float, phi: Any) -> float:
    total = 0.0
    for m in range(phi.size):
        total += max(0.0, 1.0 - strength * (1.0 - phi[m]))
    return total


@numba.njit(cache=True, nogil=True)
def _log_ramp(strength: float, phi: Any, rest: float) -> float:
    total = _ramp(strength, phi) + rest
    return math.log(total) if total > 0.0 else -math.inf


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _moved(phi: Any, out: Any, first: Any, second: Any, d_first: float, d_second: float) -> None:
    for m in range(phi.size):
        out[m] = phi[m] + first[m] * d_first + second[m] * d_second


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def overlaps(x: Any, patterns: Any, out: Any) -> None:
    """phi = xi x / N from scratch."""
    N = x.size
    out[:] = 0.0
    for i in range(N):
        share = x[i] / N
        row = patterns[i]
        for m in range(out.size):
            out[m] += row[m] * share


@numba.njit(cache=True, nogil=True)
def _accepted(gain: float, rng: Any) -> bool:
    return gain >= 0.0 or rng.random() < math.exp(gain)


@numba.njit(cache=True, nogil=True)
def pair_sweep(kernel, strength, N, rest, beta_T, x, phi, buffer, patterns, delta, L, rng, wall):  # type: ignore[no-untyped-def]
    """N/2 rotations of a random pair of coordinates; returns L, accepted moves, and whether the target's overlap fell to `wall`."""
    accepted, left = 0, False
    for _ in range(max(N // 2, 1)):
        i = int(rng.random() * N)
        j = int(rng.random() * (N - 1))
        j += j >= i
        angle = delta * (2.0 * rng.random() - 1.0)
        cosine, sine = math.cos(angle), math.sin(angle)
        x_i, x_j = cosine * x[i] - sine * x[j], sine * x[i] + cosine * x[j]
        _moved(phi, buffer, patterns[i], patterns[j], (x_i - x[i]) / N, (x_j - x[j]) / N)
        proposed = log_sum(kernel, strength, N, buffer, rest)
        if _accepted((proposed - L) * beta_T, rng):
            x[i], x[j], L = x_i, x_j, proposed
            phi[:] = buffer
            accepted += 1
            left = left or phi[0] <= wall
    return L, accepted, left


@numba.njit(cache=True, nogil=True)
def metropolis_step(kernel, strength, N, rest, beta_T, x, phi, buffer, moved, patterns, sigma, L, rng, wall):  # type: ignore[no-untyped-def]
    """x' = sqrt(N) (x + sigma g)/|x + sigma g|."""
    norm = 0.0
    for i in range(N):
        moved[i] = x[i] + sigma * rng.standard_normal()
        norm += moved[i] ** 2
    moved *= math.sqrt(N / norm)
    overlaps(moved, patterns, buffer)
    proposed = log_sum(kernel, strength, N, buffer, rest)
    if _accepted((proposed - L) * beta_T, rng):
        x[:] = moved
        phi[:] = buffer
        return proposed, 1, phi[0] <= wall
    return L, 0, False


@numba.njit(cache=True, nogil=True)
def chain(  # type: ignore[no-untyped-def]
    kernel, strength, rest, T, x, patterns, by_pairs, step, burn_in, sweeps, rng, wall, stop, target, other, energy, q12
):
    """R replicas on the same patterns, sweep by sweep in turn.

    Parameters
    ----------
    x : (R, N), moved in place
    step : delta of a pair, sigma of a Metropolis step; tuned in the burn-in only (pairs), frozen then
    wall : alignment of the target at which it counts as left; with `stop` the run ends there
    target, other, energy : (R, sweeps), filled; NaN after a stop
    q12 : (sweeps,), overlap of the first two replicas

    Returns
    -------
    step, acceptance after the burn-in, and the first sweep (burn-in counted) at which a replica's target was left, or -1
    """
    replicas, N = x.shape
    M = patterns.shape[1]
    scale = 1.0 / strength if kernel == LSE else N / strength
    phi, buffer, moved = np.empty((replicas, M)), np.empty(M), np.empty(N)
    L = np.empty(replicas)
    proposals = max(N // 2, 1) if by_pairs else 1
    taken, tuned, first_left = 0, 0, -1
    target[:], other[:], energy[:], q12[:] = math.nan, math.nan, math.nan, math.nan
    for t in range(burn_in + sweeps):
        for r in range(replicas):
            if t % OVERLAPS_ANEW_EVERY == 0:
                overlaps(x[r], patterns, phi[r])
                L[r] = log_sum(kernel, strength, N, phi[r], rest)
            if by_pairs:
                L[r], accepted, left = pair_sweep(
                    kernel, strength, N, rest, scale / T, x[r], phi[r], buffer, patterns, step, L[r], rng, wall
                )
            else:
                L[r], accepted, left = metropolis_step(
                    kernel, strength, N, rest, scale / T, x[r], phi[r], buffer, moved, patterns, step, L[r], rng, wall
                )
            if left and first_left < 0:
                first_left = t
            if t < burn_in:
                tuned += accepted
            else:
                taken += accepted
                s = t - burn_in
                target[r, s] = phi[r, 0]
                other[r, s] = _largest(phi[r, 1:]) if M > 1 else -1.0
                energy[r, s] = -scale * L[r]
        if t >= burn_in and replicas > 1:
            q12[t - burn_in] = np.dot(x[0], x[1]) / N
        if by_pairs and t < burn_in and (t + 1) % TUNED_EVERY == 0:
            rate = tuned / (TUNED_EVERY * proposals * replicas)
            step = min(step * math.exp(2.0 * (rate - WANTED_ACCEPTANCE)), math.pi)
            tuned = 0
        if stop and first_left >= 0:
            sweeps = max(t + 1 - burn_in, 0)
            break
    return step, taken / max(sweeps * proposals * replicas, 1), first_left


@numba.njit(cache=True, nogil=True)
def alignment_chain(kernel, strength, N, rest, T, phi, s, burn_in, sweeps, rng, wall, target, energy):  # type: ignore[no-untyped-def]
    """Metropolis steps of a state that meets one pattern and a constant `rest`, in its alignment alone, exactly.

    phi' = (phi + s g1) / sqrt((phi + s g1)^2 + (sqrt(1-phi^2) + s g2)^2 + s^2 chi2_(N-2)),  s = sigma/sqrt(N).
    Returns phi, acceptance, first step at which phi <= `wall` or -1.
    """
    scale = 1.0 / strength if kernel == LSE else N / strength
    one = np.empty(1)
    one[0] = phi
    L = log_sum(kernel, strength, N, one, rest)
    taken, first_left = 0, -1
    for t in range(burn_in + sweeps):
        along = phi + s * rng.standard_normal()
        across = math.sqrt(max(1.0 - phi * phi, 0.0)) + s * rng.standard_normal()
        others = 2.0 * s * s * rng.standard_gamma((N - 2) / 2.0)
        one[0] = along / math.sqrt(along * along + across * across + others)
        proposed = log_sum(kernel, strength, N, one, rest)
        if _accepted((proposed - L) * scale / T, rng):
            phi, L = one[0], proposed
            taken += t >= burn_in
        if phi <= wall and first_left < 0:
            first_left = t
        if t >= burn_in:
            target[t - burn_in] = phi
            energy[t - burn_in] = -scale * L
    return phi, taken / sweeps, first_left
