"""Baseline: no rows at all but the exact second moments of the features, O(D^2) memory; the strongest honest rival.

With the arm's features centred at their mean, G = sum z z', b = sum z y, A = (G + lambda I)^{-1}, and the target at distance
d = mu - mean phi, quadratic balancing with weights of any sign that sum to one is

    alpha_i = 1/n + d' A z_i,      sum alpha_i y_i = mean y + theta . d,      theta = A b        (ridge regression at mu)
    sum alpha_i phi_i - mu = -lambda A d,        sum alpha_i^2 = 1/n + d' A G A d

and augmentation adds theta . (mu - sum alpha_i phi_i). The noise variance is that of homoscedastic residuals, RSS / (n - df).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from upheld.effects.arms import Sums
from upheld.effects.blocks import Arm
from upheld.effects.estimate import LEAST_ROWS, ArmMean, Recipe, refused
from upheld.effects.features import FeatureMap
from upheld.effects.merging import MergeableStream
from upheld.effects.pooling import GRID, GcvTerms
from upheld.effects.rows import FloatArray, IntArray


@dataclass(frozen=True)
class Moments:
    """Moments of an arm of n rows, ready for a query; G and b are centred, `values`, `vectors` the eigendecomposition of G."""

    n: int
    y_mean: float
    x_mean: FloatArray
    phi_mean: FloatArray
    G: FloatArray
    b: FloatArray
    yy: float
    values: FloatArray
    vectors: FloatArray

    def _inverse(self, lam: float, v: FloatArray) -> FloatArray:
        return self.vectors @ ((self.vectors.T @ v) / (self.values + lam))

    def _noise(self, theta: FloatArray, lam: float) -> float:
        df = 1 + float(np.sum(self.values / (self.values + lam)))
        rss = self.yy - 2 * float(theta @ self.b) + float(theta @ self.G @ theta)
        return max(rss, 0.0) / max(self.n - df, 1.0)

    def mean_at(self, target: FloatArray, recipe: Recipe, lam: float) -> ArmMean:
        """Mean outcome at the target by exact balancing."""
        if self.n < LEAST_ROWS:
            return refused(self.n, "overlap")
        distance = target - self.phi_mean
        theta = self._inverse(lam, self.b)
        reach = self._inverse(lam, distance)
        reached = self.phi_mean + self.G @ reach
        squares = 1 / self.n + float(reach @ self.G @ reach)
        if 1 / squares < LEAST_ROWS:
            return refused(self.n, "overlap")
        mean = self.y_mean + float(theta @ distance)
        if recipe.augment:
            mean += float(theta @ (target - reached))
        return ArmMean(
            mean, squares * self._noise(theta, lam), 1 / squares, float(np.linalg.norm(target - reached)), 0.0, self.n,
            intercept=self.y_mean - float(theta @ self.phi_mean), coef=theta, x_mean=np.full_like(self.x_mean, np.nan),
            phi_mean=reached,
        )  # fmt: skip

    def own_mean(self, lam: float) -> ArmMean:
        """Mean outcome of the arm itself."""
        if self.n < LEAST_ROWS:
            return refused(self.n, "overlap")
        theta = self._inverse(lam, self.b)
        return ArmMean(
            self.y_mean, self._noise(theta, lam) / self.n, float(self.n), 0.0, 0.0, self.n,
            intercept=self.y_mean - float(theta @ self.phi_mean), coef=theta, x_mean=self.x_mean, phi_mean=self.phi_mean,
        )  # fmt: skip

    def gcv_terms(self) -> GcvTerms:
        along = self.vectors.T @ self.b
        kept = self.values[None, :] + GRID[:, None]
        rss = self.yy - 2 * (along**2 / kept).sum(1) + (self.values * along**2 / kept**2).sum(1)
        return GcvTerms(np.maximum(rss, 0.0), 1 + (self.values / kept).sum(axis=1), self.n)

    def second_moment(self) -> FloatArray:
        return self.G / self.n + np.outer(self.phi_mean, self.phi_mean)


@dataclass
class MomentArm:
    """Exact sums of an arm, with sum phi phi' (D, D) and sum phi y (D,)."""

    features: FeatureMap
    sums: Sums = field(init=False)
    G: FloatArray = field(init=False)
    b: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.sums = Sums.zero(self.features)
        D = self.features.n_features
        self.G, self.b = np.zeros((D, D)), np.zeros(D)

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes + self.G.nbytes + self.b.nbytes

    def add(
        self, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, phi: FloatArray, rng: np.random.Generator
    ) -> None:
        """Rows of this arm."""
        self.sums.add(X, y, phi)
        self.G += phi.T @ phi
        self.b += y @ phi

    def evidence(self, gamma: float = 1.0, now: float = 0.0) -> Moments:
        """Centred moments; discounting them would need moments of their own, so there is no half-life here."""
        n = max(self.sums.n, 1)
        phi_mean, y_mean = self.sums.phi / n, self.sums.y / n
        G = self.G - n * np.outer(phi_mean, phi_mean)
        values, vectors = np.linalg.eigh(G)
        return Moments(
            self.sums.n, y_mean, self.sums.x / n, phi_mean, G, self.b - n * y_mean * phi_mean,
            self.sums.yy - n * y_mean**2, np.maximum(values, 0.0), vectors,
        )  # fmt: skip

    def remove(self, ident: int) -> None:
        """No row is stored, so none can be taken back."""
        return

    def merge(self, other: MomentArm, rng: np.random.Generator) -> None:
        """Moments of both arms."""
        self.sums.merge(other.sums)
        self.G += other.G
        self.b += other.b


class ExactMomentBalancer(MergeableStream):
    """Quadratic balancing from exact moments of the features: nothing is lost but the choice of features and of time.

    Parameters as in `StreamingBalancer`. Memory is 8 D^2 bytes an arm (0.5 MB at D = 256); weights may be negative; there are no items,
    so no export and no half-life within a block, and the kernel cannot be changed later.

    Examples
    --------
    >>> from upheld.effects import ExactMomentBalancer
    >>> from upheld.effects.data import DriftStream
    >>> stream = DriftStream(4000, 6, "none", seed=0)
    >>> balancer = ExactMomentBalancer(random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    >>> abs(balancer.estimate().ate - stream.effect) < 0.2
    True
    """

    loss, constraints, half_life = "quadratic", "none", None

    def __init__(
        self,
        n_features: int = 256,
        kernel: Any = "gaussian",
        linear_features: bool = True,
        bandwidth: float | str = "median",
        lam: float | str = 0.1,
        augment: bool = True,
        time: str | None = None,
        time_scale: float | None = None,
        block_size: int | str | None = 2048,
        warmup: int = 500,
        estimand: str = "ate",
        inference: str = "sample",
        ci: str = "fixed",
        alpha: float = 0.05,
        tightest_at: float = 10_000,
        pending_limit: int = 10_000,
        pending_timeout: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.kernel = kernel
        self.linear_features = linear_features
        self.bandwidth = bandwidth
        self.lam = lam
        self.augment = augment
        self.time = time
        self.time_scale = time_scale
        self.block_size = block_size
        self.warmup = warmup
        self.estimand = estimand
        self.inference = inference
        self.ci = ci
        self.alpha = alpha
        self.tightest_at = tightest_at
        self.pending_limit = pending_limit
        self.pending_timeout = pending_timeout
        self.random_state = random_state

    def _new_arm(self) -> Arm:
        assert self.feature_map_ is not None
        return MomentArm(self.feature_map_)
