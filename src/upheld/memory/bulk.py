"""No patterns at all: the target and the mean of the noise, in the alignment alone, for N up to 10^4 and beyond.

The energy is a sum of two terms, e^(beta N phi) and the noise's mean (LSR: its ramp and the noise's mean ramp), so a Metropolis
step depends on the state through phi only and costs O(1). The step::

    sigma^2 = 2.8 (1 - phi_eq^2) / (N phi_eq^2)              for LSE: 2.8 T / (N phi_eq)                          (1)

has acceptance 0.40 at every N. (A step chosen without phi_eq freezes at large N, and a frozen chain scores as retrieved.)
"""

from __future__ import annotations

import math

import numpy as np

from upheld.memory.geometry import gauss_legendre, log_alignment_density
from upheld.memory.theory import energy_density, log_noise_sum, phi_c, phi_eq

WANTED = 2.8


def step(T: float, N: int, kernel: str, b: float) -> float:
    """sigma of (1)."""
    phi = float(phi_eq(T, kernel, b))
    return math.sqrt(WANTED * (1 - phi**2) / (N * phi**2))


def rest(alpha: float, N: int, kernel: str, beta_net: float, b: float) -> float:
    """The noise's mean: ln of the sum of exponentials (LSE), the sum of ramps (LSR)."""
    if kernel == "lse":
        return float(log_noise_sum(N, alpha, beta_net))
    return math.exp(min(alpha * N + _log_mean_ramp(N, b), 709.0))


def _log_mean_ramp(N: int, b: float) -> float:
    """ln of the mean of max(0, 1 - b (1 - phi)) over the density of alignments."""
    wall = max(phi_c(b), -1.0)
    nodes, weights = gauss_legendre()
    # Beyond the wall the density falls off within about (1 - wall^2) / (N wall).
    width = min(1 - wall, 50 * (1 - wall**2) / (N * wall)) if wall > 0 else 1 - wall
    phi = wall + width * nodes
    logs = log_alignment_density(phi, N) - b * energy_density(phi, "lsr", b) + np.log(weights * width)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
