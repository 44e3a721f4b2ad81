"""Patterns near the target drawn one by one, the others as a constant: loads whose e^(alpha N) patterns fit no memory.

While the state stays near the target, only patterns with an alignment above phi_keep to it differ from their mean::

    K ~ Poisson(M P(phi >= phi_keep)),   phi by inverting the tail of h,   xi = phi xi_1 + sqrt(1-phi^2) (uniform, at right angles)
    ln C_bulk = alpha N + ln int_(-1)^(phi_keep) h(phi) e^(beta N phi) dphi                                      (1)

For LSE alone; the scheme is the authors' (their repository), the tail by its logarithm so that N may be large.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from upheld.memory.data import on_sphere
from upheld.memory.geometry import alignment_of_log_tail, gauss_legendre, log_alignment_density, log_tail

PHI_KEEP = 0.40


def draw_cone(alpha: float, N: int, *, rng: np.random.Generator, phi_keep: float = PHI_KEEP) -> NDArray[np.float32]:
    """A target and the patterns with an alignment of at least `phi_keep` to it, of e^(alpha N) uniform ones.

    Returns
    -------
    (1 + K, N) float32, the target first, all of squared norm N

    Examples
    --------
    >>> xi = draw_cone(0.5, 24, rng=np.random.default_rng(0)).astype(float)       # of 162,754 patterns
    >>> 3000 < len(xi) < 5000, bool((xi[1:] @ xi[0] / 24).min() > 0.4 - 1e-6)
    (True, True)
    """
    log_share = float(log_tail(phi_keep, N))
    target = on_sphere(rng.standard_normal(N))
    K = int(rng.poisson(math.exp(alpha * N + log_share)))
    phi = alignment_of_log_tail(log_share + np.log1p(-rng.random(K)), N)[:, None]
    aside = rng.standard_normal((K, N))
    aside -= (aside @ target / N)[:, None] * target
    near = phi * target + np.sqrt(1 - phi**2) * (on_sphere(aside) if K else aside)
    return np.vstack([target, near]).astype(np.float32)


def expected_in_cone(alpha: float, N: int, phi_keep: float = PHI_KEEP) -> float:
    """Mean of K; inf where it overflows."""
    return math.exp(min(alpha * N + float(log_tail(phi_keep, N)), 709.0))


def log_bulk(alpha: float, N: int, beta_net: float, phi_keep: float = PHI_KEEP) -> float:
    """ln of the sum of exp(-beta N (1 - phi)) over the patterns outside the cone, at the target: (1) less beta N."""
    nodes, weights = gauss_legendre()
    phi = -1 + (phi_keep + 1) * nodes
    logs = log_alignment_density(phi, N) - beta_net * N * (1 - phi) + np.log(weights * (phi_keep + 1))
    top = float(logs.max())
    return alpha * N + top + math.log(float(np.exp(logs - top).sum()))
