"""What is kept of one arm: exact running sums, and a coreset of its rows (sections 2 to 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from upheld.effects.coreset import ArmCoreset, Items, Policy, concatenated
from upheld.effects.estimate import Sample
from upheld.effects.features import FeatureMap
from upheld.effects.pooling import PoolingModel, constant_model, fit_pooling_model
from upheld.effects.rows import FloatArray, IntArray

FIRST_FIT = 200  # rows of an arm before it has an outcome model
REFIT_ROWS = 250
REFIT_SHARE = 0.5


@dataclass
class Sums:
    """Exact sums over n rows: features, coordinates and their squares, outcomes and their squares."""

    n: int
    phi: FloatArray
    x: FloatArray
    xx: FloatArray
    y: float = 0.0
    yy: float = 0.0

    @classmethod
    def zero(cls, features: FeatureMap) -> Sums:
        d = features.n_coordinates
        return cls(0, np.zeros(features.n_features), np.zeros(d), np.zeros(d))

    def add(self, X: FloatArray, y: FloatArray, phi: FloatArray, sign: int = 1) -> None:
        """Count rows, or with sign -1 take them back."""
        self.n += sign * len(y)
        self.phi += sign * phi.sum(axis=0)
        self.x += sign * X.sum(axis=0)
        self.xx += sign * (X**2).sum(axis=0)
        self.y += sign * float(y.sum())
        self.yy += sign * float(y @ y)

    def merge(self, other: Sums) -> None:
        self.n += other.n
        self.phi += other.phi
        self.x += other.x
        self.xx += other.xx
        self.y += other.y
        self.yy += other.yy

    @property
    def nbytes(self) -> int:
        return self.phi.nbytes + self.x.nbytes + self.xx.nbytes


@dataclass
class CoresetArm:
    """An arm of the streaming balancer: one coreset, or with cross-fitting two from alternating rows.

    The outcome model of a coreset is fitted on its own items, with two of them on the other's; where rows fade (gamma < 1 a unit of
    time), it forgets as they do, so that the residuals that are pooled are small where it counts.
    """

    features: FeatureMap
    policy: Policy
    ridge: float | str
    n_halves: int = 1
    gamma: float = 1.0
    sums: Sums = field(init=False)
    halves: list[ArmCoreset] = field(init=False)
    models: list[PoolingModel | None] = field(init=False)
    fitted_at: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.sums = Sums.zero(self.features)
        self.halves = [ArmCoreset(self.policy, self.features.n_coordinates) for _ in range(self.n_halves)]
        self.models = [None] * self.n_halves
        self.fitted_at = [0] * self.n_halves

    @property
    def nbytes(self) -> int:
        models = sum(model.regression.coef.nbytes for model in self.models if model is not None)
        return self.sums.nbytes + models + sum(half.nbytes for half in self.halves)

    @property
    def n_items(self) -> int:
        return sum(half.size + (half.run.rows > 0) for half in self.halves)

    @property
    def discrepancy_sq(self) -> float:
        return sum(half.discrepancy_sq for half in self.halves)

    def add(
        self, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, phi: FloatArray, rng: np.random.Generator
    ) -> None:
        """Rows of this arm in order; phi (n, D) are their features."""
        turn = self.sums.n
        self.sums.add(X, y, phi)
        for number, half in enumerate(self.halves):
            rows = slice((number - turn) % self.n_halves, None, self.n_halves)
            half.add(X[rows], y[rows], t[rows], ident[rows], self.features, partial(self.model, number), rng)

    def model(self, number: int) -> PoolingModel:
        """f_hat for a coreset's rows, refitted when the rows it is fitted on grew by 250 or by half; before 200 rows, their mean."""
        source = self.halves[(number + 1) % self.n_halves]
        if source.n_rows < FIRST_FIT and self.models[number] is None:
            items = source.items()
            return constant_model(self.features.n_features, self.features.n_coordinates, items.y, items.m)
        grown = source.n_rows - self.fitted_at[number]
        if source.n_rows >= FIRST_FIT and grown >= min(REFIT_ROWS, REFIT_SHARE * self.fitted_at[number]):
            self._refit(number, source)
        model = self.models[number]
        assert model is not None
        return model

    def _refit(self, number: int, source: ArmCoreset) -> None:
        items = source.items()
        mass = items.m * self.gamma ** (items.t.max() - items.t)
        self.models[number] = fit_pooling_model(
            self.features(items.X, items.t), items.X, items.t, items.y, mass, self.ridge
        )
        self.fitted_at[number] = source.n_rows

    def items(self) -> tuple[Items, NDArray[np.intp]]:
        """All items, and which half each is in."""
        parts = [half.items() for half in self.halves]
        return concatenated(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    def evidence(self, gamma: float = 1.0, now: float = 0.0) -> Sample:
        """The items ready for weighting, their multiplicities discounted by gamma^(now - t)."""
        items, half = self.items()
        phi = self.features(items.X, items.t)
        mass = items.m * gamma ** (now - items.t) if gamma < 1 else items.m
        pooled = self.policy.outcomes == "pooled"
        n = max(self.sums.n, 1)
        return Sample(
            self.sums.n, self.sums.y / n, self.sums.x / n, self.sums.phi / n, items.X, phi, items.y, mass,
            items.m if pooled else np.ones(len(items)), self._squares(items, phi, half) if pooled else None, half,
            self.discrepancy_sq,
        )  # fmt: skip

    def _squares(self, items: Items, phi: FloatArray, half: NDArray[np.intp]) -> FloatArray:
        """q (N,), that of rows never merged under an outcome model of this moment; a query leaves no trace in the arm."""
        q = items.q.copy()
        for number in range(self.n_halves):
            fresh = items.raw & (half == number)
            source = half == (number + 1) % self.n_halves
            if items.m[source].sum() >= FIRST_FIT:
                model = fit_pooling_model(
                    phi[source], items.X[source], items.t[source], items.y[source], items.m[source], self.ridge
                )
                guess = model(phi[fresh], items.X[fresh], items.t[fresh])
            else:
                guess = items.m @ items.y / items.m.sum()
            q[fresh] = (items.y[fresh] - guess) ** 2
        return q

    def merge(self, other: CoresetArm, rng: np.random.Generator) -> None:
        self.sums.merge(other.sums)
        for number, (half, theirs) in enumerate(zip(self.halves, other.halves, strict=True)):
            half.absorb(theirs, self.features, partial(self.model, number), rng)

    def remove(self, ident: int) -> tuple[FloatArray, float, float] | None:
        """Take back the row of that id while it is stored by itself: its x, y and t."""
        for half in self.halves:
            taken = half.remove(ident)
            if taken is not None:
                X, y, t = taken[0][None], np.array([taken[1]]), np.array([taken[2]])
                self.sums.add(X, y, self.features(X, t), sign=-1)
                return taken
        return None
