"""Intervals: of one look, or valid at every look at once (section 7).

Asymptotic confidence sequence (Waudby-Smith et al. 2021) after t rows, with se_t the standard error at that time:

    estimate +- se_t sqrt( 2 (t rho^2 + 1) / (t rho^2) log( sqrt(t rho^2 + 1) / alpha ) )
    rho = sqrt( (-2 log alpha + log(1 - 2 log alpha)) / n* )

tightest at n* rows. However often one looks, and whenever one stops, the true effect is outside at any time with probability about
alpha at most; the price at n* = t is a factor of 1.5 to 1.6 on the usual width.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def fixed_factor(alpha: float) -> float:
    """Standard errors to either side for one look."""
    return float(norm.ppf(1 - alpha / 2))


def sequence_factor(t: float, alpha: float, tightest_at: float = 10_000) -> float:
    """Standard errors to either side after t rows for all looks together.

    Examples
    --------
    >>> round(sequence_factor(10_000, 0.05), 2), round(fixed_factor(0.05), 2)
    (3.04, 1.96)
    """
    if t < 1:
        return np.inf
    rho_sq = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / tightest_at
    grown = t * rho_sq + 1
    return float(np.sqrt(2 * grown / (t * rho_sq) * np.log(np.sqrt(grown) / alpha)))
