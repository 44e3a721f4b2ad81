"""How strong would a confounder that nobody measured have to be? (ours; both measures are the literature's)

Marginal sensitivity (Tan 2006; Zhao, Small & Bhattacharya 2019): the true weight of a row lies within a factor Lambda of ours, either way.
The mean of an arm then lies between the least and the largest value of

    mu_a(l) = theta_hat . mu + sum_j alpha_j l_j (y_j - theta_hat . phi_j) / sum_j alpha_j l_j,          1/Lambda <= l_j <= Lambda

(without the terms in theta_hat where there is no augmentation). At the optimum l is Lambda for the rows above a cut and 1/Lambda for those
below, so that one sort finds it. An item that stands for several rows has kept the mean square q_j of their residuals: they are taken as
normal about the item's outcome with the variance that q_j leaves. The mean of an arm over its own rows is observed, and bounds nothing.

E-value (VanderWeele & Ding 2017): the risk ratio that the confounder would need with both treatment and outcome, where s is the standard
deviation of the outcome within arms,

    RR = exp(0.91 |tau| / s),        E = RR + sqrt(RR (RR - 1))

for tau, and for the limit of its interval that is nearer to 0 (1 where the interval holds 0).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm

from upheld.effects.blocks import Block, BlockEstimate
from upheld.effects.estimate import ArmMean, Contrast, Sample
from upheld.effects.rows import FloatArray, Label

FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
LOG_RISK_RATIO = 0.91  # of a standardised difference of 1
POINTS = 8  # by which the residuals within an item are represented


def _spread_points() -> FloatArray:
    """Points of equal probability with mean 0 and variance 1, normal but for that."""
    z = norm.ppf((np.arange(POINTS) + 0.5) / POINTS)
    points: FloatArray = z / np.sqrt(np.mean(z**2))
    return points


def mean_bounds(mean: ArmMean, sample: Sample, augment: bool) -> FloatArray:
    """(len(FACTORS), 2): least and largest mean of an arm for each Lambda of `FACTORS`; NaN where weights are negative."""
    if mean.observed or (mean.weights < 0).any():
        return np.full((len(FACTORS), 2), mean.mean if mean.observed else np.nan)
    fitted = mean.intercept + sample.phi @ mean.coef
    residual = sample.y - fitted
    centre = residual if augment else sample.y
    base = mean.mean - float(mean.weights @ centre)
    square = residual**2 if sample.q is None else sample.q
    within = np.where(sample.averaged > 1, np.sqrt(np.maximum(square - residual**2, 0.0)), 0.0)
    values = (centre[:, None] + within[:, None] * _spread_points()).ravel()
    weights = np.repeat(mean.weights / POINTS, POINTS)
    order = values.argsort()
    return base + np.array([_extremes_of_sorted(values[order], weights[order], factor) for factor in FACTORS])


def extreme_means(values: FloatArray, weights: FloatArray, factor: float) -> tuple[float, float]:
    """Least and largest weighted mean of values (N,) when each weight (N,), not negative, may change by `factor` either way.

    Examples
    --------
    >>> low, high = extreme_means(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 2.0)
    >>> round(low, 3), round(high, 3)
    (0.2, 0.8)
    """
    order = values.argsort()
    return _extremes_of_sorted(values[order], weights[order], factor)


def _extremes_of_sorted(v: FloatArray, w: FloatArray, factor: float) -> tuple[float, float]:
    mass, moment = (np.append(0.0, np.cumsum(one)) for one in (w, w * v))
    below, above = (mass, moment), (mass[-1] - mass, moment[-1] - moment)
    with np.errstate(invalid="ignore"):
        low = (below[1] * factor + above[1] / factor) / (below[0] * factor + above[0] / factor)
        high = (below[1] / factor + above[1] * factor) / (below[0] / factor + above[0] * factor)
    return float(low.min()), float(high.max())


@dataclass
class Bounds:
    """Bounds of each arm's effect, averaged over blocks by the rows of their target population, and the outcome's spread within arms.

    low, high : (len(FACTORS),) of each arm; rows : their weight; squares, degrees : sum of squares about the means of arms within blocks
    """

    low: dict[Label, FloatArray] = field(default_factory=dict)
    high: dict[Label, FloatArray] = field(default_factory=dict)
    rows: dict[Label, float] = field(default_factory=dict)
    squares: float = 0.0
    degrees: int = 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.low.values(), *self.high.values()))

    def plus(self, block: Block, estimate: BlockEstimate, reference: Label, augment: bool) -> Bounds:
        """With one more block."""
        new = Bounds()
        for arm in block.arms.values():
            if arm.sums.n:
                new.squares += max(arm.sums.yy - arm.sums.y**2 / arm.sums.n, 0.0)
                new.degrees += arm.sums.n - 1
        base = estimate.evidence.get(reference)
        for label, one in estimate.contrasts.items():
            mine = estimate.evidence[label]
            if one.reason or not isinstance(mine, Sample) or not isinstance(base, Sample):
                continue
            treated, control = mean_bounds(one.treated, mine, augment), mean_bounds(one.base, base, augment)
            new.low[label], new.high[label] = treated[:, 0] - control[:, 1], treated[:, 1] - control[:, 0]
            new.rows[label] = float(one.weight)
        return self.merge(new)

    def merge(self, other: Bounds) -> Bounds:
        """Blocks of both."""
        answer = Bounds(
            dict(self.low), dict(self.high), dict(self.rows), self.squares + other.squares, self.degrees + other.degrees
        )
        for label, rows in other.rows.items():
            total = answer.rows.get(label, 0.0) + rows
            share = rows / total
            for kept, now in ((answer.low, other.low[label]), (answer.high, other.high[label])):
                kept[label] = (1 - share) * kept.get(label, np.zeros_like(now)) + share * now
            answer.rows[label] = total
        return answer

    def sensitivity(self, contrast: Contrast) -> Sensitivity:
        """What is known of one effect; `contrast` is its estimate."""
        spread = float(np.sqrt(self.squares / self.degrees)) if self.degrees else np.nan
        nearest = 0.0
        if contrast.ci_low > 0 or contrast.ci_high < 0:
            nearest = min(abs(contrast.ci_low), abs(contrast.ci_high))
        nothing = np.full(len(FACTORS), np.nan)
        known = not contrast.reason
        low, high = ((one.get(contrast.arm, nothing) if known else nothing) for one in (self.low, self.high))
        return Sensitivity(
            contrast.arm, contrast.reference, e_value(contrast.ate, spread),
            e_value(nearest, spread) if known else np.nan, tuple(low.tolist()), tuple(high.tolist()),
        )  # fmt: skip


@dataclass(frozen=True)
class Sensitivity:
    """How strong a confounder that was not measured would have to be to change one effect.

    e_value, e_value_interval : of the effect, and of the limit of its interval nearer to 0; low, high : the effect's bounds for each Lambda
    of `factors`. NaN where there is no effect, or no rows to bound it (exact moments).
    """

    arm: Label
    reference: Label
    e_value: float
    e_value_interval: float
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def factors(self) -> tuple[float, ...]:
        """Lambda: by how much the true weights may differ from ours."""
        return FACTORS

    @property
    def tipping(self) -> float:
        """The least Lambda whose bounds hold 0, between two factors by their logarithms; infinity if the largest one's do not."""
        if np.isnan(self.low[0]):
            return np.nan
        toward = np.array(self.low) if self.low[0] > 0 else -np.array(self.high)  # positive as long as 0 is outside
        if toward[0] <= 0:
            return 1.0
        if toward[-1] > 0:
            return np.inf
        at = int(np.argmax(toward <= 0))
        share = toward[at - 1] / (toward[at - 1] - toward[at])
        return float(np.exp((1 - share) * np.log(FACTORS[at - 1]) + share * np.log(FACTORS[at])))

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "arm": self.arm, "reference": self.reference, "e_value": self.e_value,
            "e_value_interval": self.e_value_interval, "tipping": self.tipping,
            "bounds": [
                {"factor": factor, "low": low, "high": high}
                for factor, low, high in zip(FACTORS, self.low, self.high, strict=True)
            ],
        }  # fmt: skip


def e_value(effect: float, spread: float) -> float:
    """The E-value of a difference in means.

    Parameters
    ----------
    effect : difference, in the outcome's unit
    spread : standard deviation of the outcome within arms, same unit

    Examples
    --------
    >>> round(e_value(0.5, 1.0), 2)
    2.53
    """
    if not spread > 0 or not np.isfinite(effect):
        return np.nan
    ratio = np.exp(LOG_RISK_RATIO * abs(effect) / spread)
    return float(ratio + np.sqrt(ratio * (ratio - 1)))
