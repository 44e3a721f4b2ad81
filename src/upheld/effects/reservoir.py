"""Baseline: a uniform sample of each arm's rows in the place of the coreset, with the same balancing on top."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from upheld.effects.arms import Sums
from upheld.effects.blocks import Arm
from upheld.effects.estimate import LEAST_ROWS, Sample
from upheld.effects.features import FeatureMap
from upheld.effects.merging import MergeableStream
from upheld.effects.rows import FloatArray, IntArray
from upheld.effects.uniform import UniformSample


@dataclass
class ReservoirArm:
    """Exact sums over an arm, and `capacity` of its rows drawn uniformly."""

    features: FeatureMap
    capacity: int
    sums: Sums = field(init=False)
    rows: UniformSample = field(init=False)

    def __post_init__(self) -> None:
        self.sums = Sums.zero(self.features)
        kinds: dict[str, Any] = {
            "X": ((self.features.n_coordinates,), float), "y": ((), float), "t": ((), float), "ident": ((), np.int64),
        }  # fmt: skip
        self.rows = UniformSample(self.capacity, kinds)

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes + self.rows.nbytes

    @property
    def n_items(self) -> int:
        return self.rows.size

    def add(
        self, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, phi: FloatArray, rng: np.random.Generator
    ) -> None:
        """Rows of this arm in order."""
        self.sums.add(X, y, phi)
        self.rows.add(rng, X=X, y=y, t=t, ident=ident)

    def evidence(self, gamma: float = 1.0, now: float = 0.0) -> Sample:
        """Each row held stands for n / (rows held) rows."""
        X, y, t = (self.rows.held(name).copy() for name in ("X", "y", "t"))
        n, size = max(self.sums.n, 1), max(len(y), 1)
        mass = np.full(len(y), n / size)
        if gamma < 1:
            mass = mass * gamma ** (now - t)
        return Sample(
            self.sums.n, self.sums.y / n, self.sums.x / n, self.sums.phi / n, X, self.features(X, t), y, mass,
            np.ones(len(y)), None, np.zeros(len(y), dtype=np.intp), 0.0,
        )  # fmt: skip

    def remove(self, ident: int) -> tuple[FloatArray, float, float] | None:
        """Take back a row if it is held."""
        if not np.any(self.rows.held("ident") == ident):
            return None
        values = self.rows.remove(ident)
        assert values is not None
        X, y, t = values["X"], float(values["y"]), float(values["t"])
        self.sums.add(X[None], np.array([y]), self.features(X[None], np.array([t])), sign=-1)
        return X, y, t

    def merge(self, other: ReservoirArm, rng: np.random.Generator) -> None:
        """A uniform sample of both arms."""
        self.sums.merge(other.sums)
        self.rows.merge(other.rows, rng)


class ReservoirBalancer(MergeableStream):
    """Balancing on a uniform sample of `rows_per_arm` rows of each arm; all else as in `StreamingBalancer`, whose parameters these are.

    1,088 rows are what an arm of a coreset with k = 256 may hold at most.

    Examples
    --------
    >>> from upheld.effects import ReservoirBalancer
    >>> from upheld.effects.data import DriftStream
    >>> stream = DriftStream(4000, 6, "none", seed=0)
    >>> balancer = ReservoirBalancer(rows_per_arm=300, random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    >>> abs(balancer.estimate().ate - stream.effect) < 0.5
    True
    """

    def __init__(
        self,
        rows_per_arm: int = 1088,
        n_features: int = 256,
        kernel: Any = "gaussian",
        linear_features: bool = True,
        bandwidth: float | str = "median",
        loss: str = "entropy",
        constraints: str = "simplex",
        lam: float | str = 0.1,
        augment: bool = True,
        time: str | None = None,
        time_scale: float | None = None,
        block_size: int | str | None = 2048,
        half_life: float | None = None,
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
        self.rows_per_arm = rows_per_arm
        self.n_features = n_features
        self.kernel = kernel
        self.linear_features = linear_features
        self.bandwidth = bandwidth
        self.loss = loss
        self.constraints = constraints
        self.lam = lam
        self.augment = augment
        self.time = time
        self.time_scale = time_scale
        self.block_size = block_size
        self.half_life = half_life
        self.warmup = warmup
        self.estimand = estimand
        self.inference = inference
        self.ci = ci
        self.alpha = alpha
        self.tightest_at = tightest_at
        self.pending_limit = pending_limit
        self.pending_timeout = pending_timeout
        self.random_state = random_state

    def _check_own_parameters(self) -> None:
        if self.rows_per_arm < LEAST_ROWS:
            raise ValueError(f"rows_per_arm must be at least {LEAST_ROWS}, got {self.rows_per_arm}")

    def _new_arm(self) -> Arm:
        assert self.feature_map_ is not None
        return ReservoirArm(self.feature_map_, self.rows_per_arm)
