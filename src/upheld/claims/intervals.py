"""Confidence intervals from few independent units, with separate one-sided levels and p-values dual to their ends.

Rows of `y` are units that were measured independently of one another (usually seeds), columns are cells (a method
under a condition), `m` are the cells' true means, and a claim is about `theta = h(m)`.

**Means.** With influence values `L_i = g'(y_i - m)`, `g` and `H` gradient and Hessian of `h` at the sample means, `V`
the estimated covariance of those means, and `k3` the estimated third cumulant of the mean of the `L_i`::

    T = (theta_hat - theta) / se,           se^2 = g' V g                                                         (1)
    a = skew + 3/2 kappa,                   skew = k3 / se^3,   kappa = g' V H V g / se^3                         (2)
    c = skew / 2 + kappa - bias - a / 3,    bias = tr(H V) / (2 se)                                               (3)

By the Edgeworth expansion of a studentised smooth function of means, `T + a T^2 / 3 + c` is normal up to terms of order
1/n (Johnson 1978 and Hall 1992, JRSS B 54, 221-228, for one mean, where `c = a/6`; `kappa` and `bias` carry it over to
curved `h`). Inverted to second order, with `q` Student's quantile::

    low  = theta_hat - se C(q; A, s),    A = max(0, delta - a),    s = max(0, delta/6 - c)                        (4)
    high = theta_hat + se C(q; A, s),    A = max(0, delta + a),    s = max(0, delta/6 + c)
    C(q; A, s) = r + A r^2 / 3 + 5 A^2 r^3 / 27,    r = q + s,    delta = 1.5 / n                                 (5)

So an end is never nearer than Student's, and `delta` allows for skewness that so small a sample cannot show.

**Why this one** (`benchmarks/error_rates.py`; tables in `docs/error-rates.md`). "Better" without any difference, target
2.5 %, where the long tail lies on the bad side; and power against 2 standard deviations in normal data:

==========================  =================  ===============  ===========
interval                    exponential n=5    exponential n=8  power n=8
==========================  =================  ===============  ===========
Student's t                 10.5 %             10.8 %           99.8 %
percentile bootstrap        18.4 %             14.5 %           100 %
BCa bootstrap               16.7 %             11.7 %           99.9 %
bootstrap-t                 5.5 %              5.5 %            96.5 %
Johnson's t                 5.7 %              5.1 %            90.5 %
sign flips                  cannot reject      9.5 %            99.8 %
(4)                         3.9 %              4.5 %            95.2 %
==========================  =================  ===============  ===========

(4) needs no draws, so it is exact at any level. Its price in normal data is width: 1.58 times Student's at n=5, 1.24 at
8, 1.07 at 20, 1.01 at 100.

**What nothing can do.** Without a bound on the values no interval of a mean holds its level for every law (Bahadur and
Savage 1956, Ann. Math. Stat. 27, 1115-1122): a loss that hides from the sample cannot be corrected for. Lognormal values
(sigma 1, bad side) err in 8.2 % at n=5 and 7.0 % at n=20 (Student's t: 18.4 and 13.9), under 5 % from n=50 on. Where one
unit in ten loses ten standard deviations, five units show none of it in 59 % of experiments, and "better" is said in
12.6 % at n=5, 22 % at n=12, 1.3 % at n=50. Units that all agree give a point, whatever n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from upheld.claims.functionals import Array, Functional


class Curve(Protocol):
    """All confidence statements about one number: `low(alpha) > null` exactly when `p_above(null) <= alpha`."""

    def low(self, alpha: float) -> float: ...
    def high(self, alpha: float) -> float: ...
    def p_above(self, null: float) -> float: ...
    def p_below(self, null: float) -> float: ...


@dataclass(frozen=True)
class Interval:
    """A confidence interval, and by `at`, `p_above` and `p_below` all the others from the same measurements.

    `low` exceeds the truth with probability `alpha_low`, `high` falls short of it with probability `alpha_high`.
    `note` says in words what is special about it; it is empty in the ordinary case.
    """

    estimate: float
    low: float
    high: float
    n_units: int
    method_name: str
    alpha_low: float
    alpha_high: float
    note: str = ""
    curve: Curve = field(repr=False, compare=False, kw_only=True)

    def p_above(self, null: float) -> float:
        """One-sided p-value of "the truth lies above `null`": at most `alpha` just when `at(alpha, ...).low > null`."""
        return self.curve.p_above(null)

    def p_below(self, null: float) -> float:
        """One-sided p-value of "the truth lies below `null`"."""
        return self.curve.p_below(null)

    def at(self, alpha_low: float, alpha_high: float) -> Interval:
        """The interval from the same measurements at other levels, as Holm's procedure asks for."""
        return _interval(self.curve, self.estimate, self.n_units, self.method_name, alpha_low, alpha_high, self.note)


def _interval(
    curve: Curve, estimate: float, n_units: int, method_name: str, alpha_low: float, alpha_high: float, note: str = ""
) -> Interval:
    for name, alpha in (("alpha_low", alpha_low), ("alpha_high", alpha_high)):
        if not 0 < alpha <= 0.5:
            raise ValueError(f"{name} must lie in (0, 0.5], got {alpha}")
    low, high = float(curve.low(alpha_low)), float(curve.high(alpha_high))
    return Interval(float(estimate), low, high, n_units, method_name, alpha_low, alpha_high, note, curve=curve)


# --- means ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Studentised:
    """Student's t with its ends moved outwards for skewness, (4) and (5); fields and methods broadcast over experiments."""

    estimate: Array
    se: Array
    df: Array
    skew: Array  # a of (2)
    shift: Array  # c of (3)

    def _towards(self, side: int) -> tuple[Array, Array]:
        """A and s of (4) for the lower end (side -1) or the upper one (side 1)."""
        delta = 1.5 / (self.df + 1)
        return np.maximum(0, delta + side * self.skew), np.maximum(0, delta / 6 + side * self.shift)

    def _reach(self, alpha: float, side: int) -> Array:
        a, s = self._towards(side)
        r = s - np.asarray(special.stdtrit(self.df, alpha))
        return np.where(self.se > 0, self.se * (r + a * r**2 / 3 + 5 * a**2 * r**3 / 27), 0.0)

    def low(self, alpha: float) -> Array:
        return self.estimate - self._reach(alpha, -1)

    def high(self, alpha: float) -> Array:
        return self.estimate + self._reach(alpha, 1)

    def _p(self, distance: Array, side: int) -> Array:
        """The alpha whose end lies `distance` from the estimate."""
        spread = self.se > 0
        a, s = self._towards(side)
        t = np.where(spread, distance / np.where(spread, self.se, 1.0), 0.0)
        return np.where(spread, special.stdtr(self.df, s - _root(t, a)), np.where(distance > 0, 0.0, 1.0))

    def p_above(self, null: float) -> Array:
        return self._p(self.estimate - null, -1)

    def p_below(self, null: float) -> Array:
        return self._p(null - self.estimate, 1)


def _root(t: Array, a: Array) -> Array:
    """The one real r with r + a r^2 / 3 + 5 a^2 r^3 / 27 = t, by Cardano's formula for y = a r / 3 + 1/5."""
    straight = a < 1e-6
    scale = np.where(straight, 1.0, a / 3)
    half = 0.052 + 0.3 * scale * t
    root = np.sqrt(half**2 + 0.16**3)
    return np.where(straight, t, (np.cbrt(half + root) + np.cbrt(half - root) - 0.2) / scale)


def _third_cumulant_of_mean(values: Array) -> Array:
    """Third cumulant of the mean of n values on the last axis: Fisher's unbiased k3 / n^2."""
    n = values.shape[-1]
    if n < 3:
        return np.zeros(values.shape[:-1])
    third = ((values - values.mean(-1, keepdims=True)) ** 3).sum(-1)
    return np.asarray(third / (n * (n - 1) * (n - 2)))


def _studentised(means: Array, functional: Functional, parts: Sequence[Array], df: Array, scale: Array) -> Studentised:
    """(1)-(3), where the error of the means is a sum of independent `parts`, each the mean of centred (..., n, C) units.

    The spread is summed from influence values, so that it is 0 to rounding where they are; below 1e-12 `scale` it counts
    as none.
    """
    g, hessian = functional.gradient(means), functional.hessian(means)
    variance = sum((_variance_of_mean(_influence(part, g)) for part in parts), np.zeros(()))
    k3 = sum((_third_cumulant_of_mean(_influence(part, g)) for part in parts), np.zeros(()))
    covariance = sum((_covariance_of_mean(part) for part in parts), np.zeros(()))
    se = np.sqrt(variance)
    se = np.where(se > 1e-12 * np.einsum("...c,...c->...", np.abs(g), scale), se, 0.0)
    safe = np.where(se > 0, se, 1.0)
    along = np.einsum("...cd,...d->...c", covariance, g)
    kappa = np.einsum("...c,...cd,...d->...", along, hessian, along) / safe**3
    bias = np.einsum("...cd,...dc->...", hessian, covariance) / (2 * safe)
    skew = k3 / safe**3
    a = skew + 1.5 * kappa
    return Studentised(functional.value(means), se, df, a, skew / 2 + kappa - bias - a / 3)


def _influence(centred: Array, g: Array) -> Array:
    return np.asarray(np.einsum("...nc,...c->...n", centred, g))


def _variance_of_mean(values: Array) -> Array:
    n = values.shape[-1]
    return np.asarray(values.var(-1, ddof=1) / n)


def _covariance_of_mean(centred: Array) -> Array:
    n = centred.shape[-2]
    return np.asarray(np.swapaxes(centred, -1, -2) @ centred / (n * (n - 1)))


def studentise(y: Array, functional: Functional) -> Studentised:
    """All confidence statements about h(m) from units y of shape (..., n, C), n >= 2, vectorised over leading axes."""
    means = y.mean(-2)
    centred = y - means[..., None, :]
    return _studentised(means, functional, [centred], np.asarray(y.shape[-2] - 1.0), np.abs(y).max(-2))


@dataclass(frozen=True)
class _Scalar:
    """A `Studentised` of one experiment, as plain numbers."""

    of: Studentised

    def low(self, alpha: float) -> float:
        return float(self.of.low(alpha))

    def high(self, alpha: float) -> float:
        return float(self.of.high(alpha))

    def p_above(self, null: float) -> float:
        return float(self.of.p_above(null))

    def p_below(self, null: float) -> float:
        return float(self.of.p_below(null))


@dataclass(frozen=True)
class _Unknown:
    """What one unit says about its population: nothing."""

    def low(self, alpha: float) -> float:
        return -np.inf

    def high(self, alpha: float) -> float:
        return np.inf

    def p_above(self, null: float) -> float:
        return 1.0

    def p_below(self, null: float) -> float:
        return 1.0


ONE_UNIT = "one unit says nothing about the spread between units"
NO_SPREAD = "all units agree to rounding, so the interval is a point; no confidence statement stands behind it"


def _finite(values: ArrayLike, name: str, ndim: int) -> Array:
    y = np.asarray(values, dtype=float)
    if y.ndim != ndim or 0 in y.shape:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)} and no empty one, got shape {y.shape}")
    bad = np.argwhere(~np.isfinite(y))
    if bad.size:
        where = ", ".join(str(i) for i in bad[0])
        raise ValueError(
            f"{name}[{where}] is {y[tuple(bad[0])]}: drop units with missing values, or record them as failed trials"
        )
    return y


def smooth_interval(
    y: ArrayLike, functional: Functional, alpha_low: float = 0.025, alpha_high: float = 0.025
) -> Interval:
    """Interval of a smooth function of cell means from independent units.

    Parameters
    ----------
    y : (n units, C cells), rows independent, cells of a row as dependent as they like (paired); (n,) is one cell
    functional : what to estimate, e.g. `contrast([1, -1])`
    alpha_low, alpha_high : one-sided error of each end, in (0, 0.5]

    Raises
    ------
    ValueError
        If a value is not finite, the number of cells is not the functional's, or a mean has no logarithm.

    Examples
    --------
    >>> ours, theirs = [0.81, 0.84, 0.79, 0.86, 0.83], [0.78, 0.80, 0.77, 0.80, 0.79]
    >>> i = smooth_interval(np.c_[ours, theirs], contrast([1, -1]))
    >>> round(i.estimate, 3), i.low > 0, i.p_above(0.0) < 0.025
    (0.038, True, True)
    """
    y = np.asarray(y, dtype=float)
    y = _finite(y[:, None] if y.ndim == 1 else y, "y", 2)
    estimate = float(functional.value(y.mean(0)))
    n = y.shape[0]
    name = f"skewness-corrected t, {functional.name}"
    if n == 1:
        return _interval(_Unknown(), estimate, n, name, alpha_low, alpha_high, ONE_UNIT)
    curve = studentise(y, functional)
    note = "" if curve.se > 0 else NO_SPREAD
    return _interval(_Scalar(curve), estimate, n, name, alpha_low, alpha_high, note)


# --- two-way crossed units --------------------------------------------------------------------------------------------


def studentise_crossed(y: Array, functional: Functional) -> Studentised:
    """As `studentise`, for y of shape (..., S, I, C) whose S rows and I columns are both drawn at random."""
    s, i = y.shape[-3], y.shape[-2]
    means = y.mean((-3, -2))
    rows, columns = y.mean(-2) - means[..., None, :], y.mean(-3) - means[..., None, :]
    g = functional.gradient(means)
    a, b = _variance_of_mean(_influence(rows, g)), _variance_of_mean(_influence(columns, g))
    below = a**2 / (s - 1) + b**2 / (i - 1)
    df = np.where(below > 0, (a + b) ** 2 / np.where(below > 0, below, 1.0), 1.0)
    return _studentised(means, functional, [rows, columns], df, np.abs(y).max((-3, -2)))


def crossed_interval(
    y: ArrayLike, functional: Functional, alpha_low: float = 0.025, alpha_high: float = 0.025
) -> Interval:
    """Interval of h(m) when each of S rows (seeds) met each of I columns (tasks), and both stand for more of their kind.

    Parameters
    ----------
    y : (S rows, I columns, C cells)
    functional, alpha_low, alpha_high : as in `smooth_interval`

    The variance of the grand mean is that of the row means over S plus that of the column means over I, with
    Satterthwaite's degrees of freedom. The noise of single entries is counted in both, so that the interval is never
    too short on average; where that noise is all there is, it is too long by a factor of about 1.4.
    Simulated at 2.5 %: 1.1 to 2.3 % for normal components at S = 5 (0 to 0.4 % where only entries vary), up to 7 % where
    the seeds' effects are exponential.
    `n_units` of the result is min(S, I).

    Examples
    --------
    >>> y = np.add.outer(np.arange(5.0), np.arange(8.0))[..., None]
    >>> round(crossed_interval(y, contrast([1])).estimate, 2)
    5.5
    """
    y = _finite(y, "y", 3)
    estimate = float(functional.value(y.mean((0, 1))))
    s, i = y.shape[:2]
    name = f"two-way skewness-corrected t, {functional.name}"
    if min(s, i) == 1:
        return _interval(_Unknown(), estimate, 1, name, alpha_low, alpha_high, ONE_UNIT)
    curve = studentise_crossed(y, functional)
    note = "" if curve.se > 0 else NO_SPREAD
    return _interval(_Scalar(curve), estimate, min(s, i), name, alpha_low, alpha_high, note)


# --- shares -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Binomial:
    k: int
    n: int

    def low(self, alpha: float) -> float:
        return float(special.betaincinv(self.k, self.n - self.k + 1, alpha)) if self.k else 0.0

    def high(self, alpha: float) -> float:
        return float(special.betainccinv(self.k + 1, self.n - self.k, alpha)) if self.k < self.n else 1.0

    def p_above(self, null: float) -> float:
        return float(special.bdtrc(self.k - 1, self.n, np.clip(null, 0, 1))) if null >= 0 else 0.0

    def p_below(self, null: float) -> float:
        return float(special.bdtr(self.k, self.n, np.clip(null, 0, 1))) if null <= 1 else 0.0


def share_interval(hits: ArrayLike, alpha_low: float = 0.025, alpha_high: float = 0.025) -> Interval:
    """Clopper and Pearson's interval of a share from n independent values that are 0 or 1.

    Its errors never exceed the levels. Wilson's shorter interval errs in up to 16 % on one side at a level of 2.5 %.

    Examples
    --------
    >>> i = share_interval([1, 1, 1, 1, 1])
    >>> round(i.low, 3), i.high
    (0.478, 1.0)
    """
    hits = _finite(hits, "hits", 1)
    bad = np.flatnonzero((hits != 0) & (hits != 1))
    if bad.size:
        raise ValueError(
            f"hits[{bad[0]}] is {hits[bad[0]]:.4g}: a share is taken over values that are 0 or 1, one a unit"
        )
    curve = _Binomial(int(hits.sum()), hits.size)
    return _interval(curve, float(hits.mean()), hits.size, "Clopper-Pearson", alpha_low, alpha_high)


# --- quantiles --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OrderStatistics:
    """The number of values up to the true q-quantile is binomial (n, q), or larger where values tie."""

    ordered: Array
    q: float

    def low(self, alpha: float) -> float:
        # x_(j) with the largest j for which P(Bin < j) <= alpha
        n = self.ordered.size
        j = int(np.searchsorted(special.bdtr(np.arange(n), n, self.q), alpha, side="right"))
        return float(self.ordered[j - 1]) if j else -np.inf

    def high(self, alpha: float) -> float:
        # x_(j) with the smallest j for which P(Bin >= j) <= alpha
        n = self.ordered.size
        enough = special.bdtrc(np.arange(n), n, self.q) <= alpha
        return float(self.ordered[np.argmax(enough)]) if enough.any() else np.inf

    def p_above(self, null: float) -> float:
        n = self.ordered.size
        return float(special.bdtr(np.searchsorted(self.ordered, null, side="right"), n, self.q))

    def p_below(self, null: float) -> float:
        n = self.ordered.size
        return float(special.bdtrc(np.searchsorted(self.ordered, null, side="left") - 1, n, self.q))


def quantile_interval(values: ArrayLike, q: float, alpha_low: float = 0.025, alpha_high: float = 0.025) -> Interval:
    """Distribution-free interval of the q-quantile of one value a unit, between two order statistics.

    An end beyond the most extreme value is infinite: the upper end of the 99 % quantile needs ln(alpha) / ln(0.99)
    values, 368 of them at alpha 0.025, and nothing does better without an assumption about the tail. Where a unit
    holds many values (latencies of one run), take the quantile within the unit and `smooth_interval` of its mean.

    Examples
    --------
    >>> i = quantile_interval(range(1, 101), 0.5)
    >>> i.low, i.high
    (40.0, 61.0)
    """
    ordered = np.sort(_finite(values, "values", 1))
    if not 0 < q < 1:
        raise ValueError(f"q must lie strictly between 0 and 1, got {q}")
    return _interval(
        _OrderStatistics(ordered, q),
        float(np.quantile(ordered, q)),
        ordered.size,
        "order statistics",
        alpha_low,
        alpha_high,
    )


# --- several claims at once -------------------------------------------------------------------------------------------


def holm(p_values: ArrayLike) -> Array:
    """Holm's adjusted p-values: rejecting those at most alpha keeps the chance of any false rejection at most alpha.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = _finite(p_values, "p_values", 1)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


def holm_levels(p_values: ArrayLike, alpha: float) -> Array:
    """The level at which Holm's procedure tests each hypothesis: an end at its level excludes the null if rejected.

    The j-th smallest of m p-values has alpha / (m - j + 1); from the first that is not rejected on the level stays.

    Examples
    --------
    >>> holm_levels([0.01, 0.04, 0.03], 0.05)
    array([0.01666667, 0.025     , 0.025     ])
    """
    p = _finite(p_values, "p_values", 1)
    order = np.argsort(p, kind="stable")
    step = np.arange(p.size)
    rejected = int(np.sum(holm(p) <= alpha))
    levels = np.empty_like(p)
    levels[order] = alpha / (p.size - np.minimum(step, rejected))
    return levels
