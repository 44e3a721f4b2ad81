"""Has something moved? Tests between consecutive blocks (section 6).

MMD^2 = |mean phi of this block - mean phi of the one before|^2 tells whether the covariates moved; with the features of each arm kept
apart, psi(x, w) = e_w (x) phi(x), whether covariates or assignment did. Without a shift MMD^2 is about a sum of independent chi-squares
weighted by the eigenvalues of (1/n + 1/n') C, C the covariance of the features; two moments are matched by a scaled chi-square
(Satterthwaite). The effects of blocks go through a two-sided CUSUM:

    z_b = (tau_b - mean of earlier) / sqrt(V_b + V of that mean),      S+ <- max(0, S+ + z_b - 1/2),   S- <- max(0, S- - z_b - 1/2)

An alarm is raised at a p-value below 0.001, and when S+ or S- exceeds 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from upheld.effects.rows import FloatArray, Label

ALARM_P = 0.001
CUSUM_SLACK = 0.5
CUSUM_ALARM = 5.0


@dataclass(frozen=True)
class Profile:
    """Feature means of a block: of all n rows (D,), and of each arm times its share; with trace and squared norm of both covariances."""

    n: int
    mean: FloatArray
    by_arm: dict[Label, FloatArray]
    trace: float
    square: float
    trace_by_arm: float
    square_by_arm: float

    @property
    def nbytes(self) -> int:
        return self.mean.nbytes + sum(mean.nbytes for mean in self.by_arm.values())


def profile(moments: dict[Label, FloatArray], sums: dict[Label, tuple[int, FloatArray]]) -> Profile:
    """From each arm's mean of phi phi' (D, D), and its exact count and sum of features."""
    n = sum(count for count, _ in sums.values())
    mean = sum((total for _, total in sums.values()), np.zeros(len(next(iter(sums.values()))[1]))) / n
    by_arm = {arm: total / n for arm, (_, total) in sums.items()}
    second = {arm: moment * (sums[arm][0] / n) for arm, moment in moments.items()}
    together = sum(second.values(), np.zeros((len(mean), len(mean)))) - np.outer(mean, mean)
    trace_by_arm = sum(float(K.trace() - by_arm[arm] @ by_arm[arm]) for arm, K in second.items())
    long = sum(float(by_arm[arm] @ by_arm[arm]) for arm in second)
    square_by_arm = (
        sum(float(np.sum(K**2)) - 2 * float(by_arm[arm] @ K @ by_arm[arm]) for arm, K in second.items()) + long**2
    )
    return Profile(
        n, mean, by_arm, float(together.trace()), float(np.sum(together**2)), trace_by_arm, square_by_arm
    )  # fmt: skip


def shift_p_values(before: Profile, now: Profile) -> tuple[float, float]:
    """p-values of no shift in the covariates, and of none in covariates and assignment together."""
    gap = now.mean - before.mean
    zero = np.zeros_like(now.mean)
    arms = sorted(before.by_arm.keys() | now.by_arm.keys())
    gaps = [now.by_arm.get(arm, zero) - before.by_arm.get(arm, zero) for arm in arms]
    scale = 1 / before.n + 1 / now.n
    return (
        _upper_tail(float(gap @ gap), scale, (before.trace + now.trace) / 2, (before.square + now.square) / 2),
        _upper_tail(
            sum(float(one @ one) for one in gaps),
            scale,
            (before.trace_by_arm + now.trace_by_arm) / 2,
            (before.square_by_arm + now.square_by_arm) / 2,
        ),
    )


def _upper_tail(value: float, scale: float, trace: float, square: float) -> float:
    """P(sum of lambda_i chi^2_1 >= value) for eigenvalues of sum scale * trace and sum of squares scale^2 * square."""
    if trace <= 0 or square <= 0:
        return 1.0
    return float(chi2.sf(value * trace / (scale * square), trace**2 / square))


@dataclass
class Cusum:
    """Drift of one contrast over blocks."""

    up: float = 0.0
    down: float = 0.0
    weight: float = 0.0
    mean: float = 0.0
    variance: float = 0.0

    def step(self, tau: float, variance: float, weight: float) -> bool:
        """Take in a block; True if the effect has moved, and then start anew from this block."""
        if self.weight:
            z = (tau - self.mean) / np.sqrt(max(variance + self.variance, np.finfo(float).tiny))
            self.up = max(0.0, self.up + z - CUSUM_SLACK)
            self.down = max(0.0, self.down - z - CUSUM_SLACK)
            if max(self.up, self.down) > CUSUM_ALARM:
                self.up = self.down = 0.0
                self.weight, self.mean, self.variance = weight, tau, variance
                return True
        total = self.weight + weight
        share = weight / total
        self.mean += share * (tau - self.mean)
        self.variance = (1 - share) ** 2 * self.variance + share**2 * variance
        self.weight = total
        return False
