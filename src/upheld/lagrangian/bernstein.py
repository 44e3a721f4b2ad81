"""How long supergradients are expected to be, from those seen: an empirical Bernstein bound for martingales, valid at all times.

The theorem of averaged SGA counts every supergradient as long as it could be, L = 2 B sqrt(s). What its proof needs is their second
moment G^2 = (1/N) sum_t E_t ||g_t||^2, E_t the expectation given the instances before t. With X_t = ||g_t||^2 / L^2 in [0, 1],
m_t the mean of X before t and psi(lam) = -ln(1 - lam) - lam, Fan, Grama & Liu (2015) and Howard et al. (2021, theorem 4) give that

    exp( lam sum_t (E_t X_t - X_t) - psi(lam) sum_t (X_t - m_t)^2 )        is a supermartingale for every lam in [0, 1)      (1)

so that by Ville's inequality, lam = 2^-j weighted by 1 / (j (j + 1)), with probability at least 1 - delta for all N at once

    (1/N) sum_t E_t X_t <= mean X + min_j ( ln(j (j + 1) / delta) + psi(2^-j) V_N ) / (2^-j N),   V_N = sum_t (X_t - m_t)^2  (2)

The bound is for this run: m_t and E_t are its own, and of another run on other instances they may differ.
"""

from __future__ import annotations

import numpy as np

MOST = 40  # j in (2): lam down to 1e-12
_J = np.arange(1, MOST + 1)
_LAM = 0.5**_J
_PSI = -np.log1p(-_LAM) - _LAM


class SecondMoment:
    """Sees one supergradient after the other; two sums are all it keeps.

    Examples
    --------
    Gradients of length 1 that might have been 10 long: certainly below 2.5 after a thousand of them.

    >>> seen = SecondMoment()
    >>> for _ in range(1000):
    ...     seen.add(1.0)
    >>> bool(1.0 < seen.root(longest=10.0, delta=0.05) < 2.5)
    True
    """

    def __init__(self) -> None:
        self.n, self.total, self._spread = 0, 0.0, 0.0

    def add(self, square: float) -> None:
        """||g_t||^2."""
        away = square - (self.total / self.n if self.n else 0.0)
        self._spread += away * away
        self.total += square
        self.n += 1

    def root(self, longest: float, delta: float = 0.05) -> float:
        """G of (2): with probability 1 - delta, never above `longest`, L.

        Raises
        ------
        ValueError
            If nothing was seen, `delta` is not between 0 and 1, or the mean is longer than `longest` allows.
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
        if self.n == 0:
            raise ValueError("no supergradient was seen yet; learn from an instance first")
        mean = self.total / self.n / longest**2
        if mean > 1 + 1e-9:
            raise ValueError(
                f"supergradients are {np.sqrt(mean) * longest:g} long, but {longest:g} at most by B; B is too small"
            )
        above = (np.log(_J * (_J + 1) / delta) + _PSI * self._spread / longest**4) / (_LAM * self.n)
        return float(longest * np.sqrt(min(mean + above.min(), 1.0)))
