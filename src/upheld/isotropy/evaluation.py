"""How well a signal foretells factuality, when somebody has checked the answers.

The unit is a prompt: one score s_i, oriented so that high means less trustworthy, and one factuality f_i in [0, 1].

- `spearman`: rank correlation of s and f; a signal that works is negative.
- `r_squared`: squared Pearson correlation, the R² of the line f = a + b s. It hides the sign, so it is never shown alone, and with n
  prompts it is about 1/n too high for every signal alike.
- `screening_lift`: of the prompts that are less factual than the median, the share among the worst q by score, over q. Chance gives 1.

A signal that is the same for all prompts tells nothing: its correlation is 0 here, not NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def spearman(scores: ArrayLike, factuality: ArrayLike) -> float:
    """Rank correlation of (n,) scores and (n,) factualities; ties share their rank.

    >>> spearman([0.1, 0.5, 0.9], [1.0, 0.6, 0.2])
    -1.0
    """
    return float(_spearman(*_paired(scores, factuality))[0])


def r_squared(scores: ArrayLike, factuality: ArrayLike) -> float:
    """Squared Pearson correlation of (n,) scores and (n,) factualities.

    >>> r_squared([0.1, 0.5, 0.9], [1.0, 0.6, 0.2])
    1.0
    """
    return float(_r_squared(*_paired(scores, factuality))[0])


def screening_lift(scores: ArrayLike, factuality: ArrayLike, share: float = 0.3) -> float:
    """How many times more of the less factual half lies among the worst `share` of the scores than chance puts there.

    The worst are round(share n) prompts; chance is that number over n. NaN if no prompt lies below the median.

    >>> screening_lift([4, 3, 2, 1], [0.0, 0.1, 0.8, 0.9], share=0.5)
    2.0
    """
    s, f = (row[0] for row in _paired(scores, factuality))
    if not 0 < share < 1:
        raise ValueError(f"share must lie strictly between 0 and 1, got {share}")
    bad = f < np.median(f)
    worst = max(1, round(share * len(s)))
    if not bad.any():
        return float("nan")
    # Prompts with the same score as the last one that is sent on are sent on in equal parts, whatever their order in the file.
    last = np.sort(s)[-worst]
    above, tied = s > last, s == last
    found = bad[above].sum() + bad[tied].mean() * (worst - above.sum())
    return float(found / bad.sum() / (worst / len(s)))


@dataclass(frozen=True)
class Foretold:
    """What a signal foretells on a user's labelled prompts, with percentile bootstrap intervals over prompts.

    `ahead` is R² of the method minus R² of this signal, drawn from the same resamples: above 0, the method is ahead.
    """

    n: int
    spearman: tuple[float, float, float]
    r_squared: tuple[float, float, float]
    ahead: tuple[float, float, float] | None


def foretold(
    signals: Mapping[str, ArrayLike],
    factuality: ArrayLike,
    *,
    ours: str,
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Foretold]:
    """Estimate and interval (estimate, low, high) of every figure, for every signal on the same resamples of the prompts.

    Raises
    ------
    ValueError
        If there are fewer than 5 prompts, or lengths differ.
    """
    f = np.asarray(factuality, dtype=float)
    if len(f) < 5:
        raise ValueError(f"{len(f)} labelled prompts tell nothing about a signal; label at least 5")
    rows = np.random.default_rng(seed).integers(len(f), size=(draws, len(f)))
    drawn = {name: _paired(s, f) for name, s in signals.items()}
    squared = {name: _r_squared(s[0][rows], f[rows]) for name, (s, _) in drawn.items()}
    found = {}
    for name, (s, _) in drawn.items():
        ahead = None
        if name != ours:
            estimate = r_squared(signals[ours], f) - r_squared(s[0], f)
            ahead = _interval(estimate, squared[ours] - squared[name], level)
        found[name] = Foretold(
            len(f),
            _interval(spearman(s[0], f), _spearman(s[0][rows], f[rows]), level),
            _interval(r_squared(s[0], f), squared[name], level),
            ahead,
        )
    return found


def _interval(estimate: float, draws: Floats, level: float) -> tuple[float, float, float]:
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(estimate), float(low), float(high)


def _paired(scores: ArrayLike, factuality: ArrayLike) -> tuple[Floats, Floats]:
    """Both as (1, n) rows of finite numbers."""
    s, f = np.asarray(scores, dtype=float), np.asarray(factuality, dtype=float)
    if s.ndim != 1 or s.shape != f.shape:
        raise ValueError(
            f"scores and factuality must be two lists of the same length, got shapes {s.shape} and {f.shape}"
        )
    if len(s) < 2:
        raise ValueError("one prompt has no correlation; give at least two")
    for name, values in (("scores", s), ("factuality", f)):
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            raise ValueError(f"{name}[{wrong[0]}] is {values[wrong[0]]}; leave prompts without a finite value out")
    return s[None], f[None]


def _pearson(x: Floats, y: Floats) -> Floats:
    """Correlation along the last axis; 0 where one side does not vary."""
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    scale = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    # What is left of a constant after its mean is taken off is rounding.
    varies = scale > 1e-12
    return np.where(varies, (x * y).sum(axis=-1) / np.where(varies, scale, 1.0), 0.0)


def _spearman(s: Floats, f: Floats) -> Floats:
    return _pearson(rankdata(s, axis=-1), rankdata(f, axis=-1))


def _r_squared(s: Floats, f: Floats) -> Floats:
    return _pearson(s, f) ** 2
