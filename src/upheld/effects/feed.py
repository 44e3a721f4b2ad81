"""What every rival gets, and what it answers with: the same finished stream, an effect and the bytes held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upheld.effects.encoding import Encoding
from upheld.effects.features import FeatureMap, draw_features
from upheld.effects.rows import FloatArray, checked_covariates

WARMUP = 500
N_FEATURES = 256

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Feed:
    """A finished stream, as all rivals get it.

    X (n, columns) covariates as they came; coordinates (n, d) standardised; w (n,) 0/1; y (n,); budget : bytes that memory-matched
    rivals may hold; items : rows that one of equal size may hold in each arm; settings : the tuned values of each rival
    """

    X: Any
    coordinates: FloatArray
    w: NDArray[np.int64]
    y: FloatArray
    features: FeatureMap
    seed: int
    budget: int
    items: int
    settings: Mapping[str, Settings]

    @classmethod
    def of(
        cls, X: Any, w: NDArray[np.int64], y: FloatArray, *, seed: int, budget: int, items: int,
        settings: Mapping[str, Settings],
    ) -> Feed:  # fmt: skip
        """Standardise on the first 500 rows and draw the kernel's features there."""
        table = checked_covariates(X)
        coordinates = Encoding.fit(table[:WARMUP]).transform(table)
        features = draw_features(coordinates[:WARMUP], N_FEATURES, np.random.default_rng(seed))
        return cls(X, coordinates, w, y, features, seed, budget, items, settings)

    @property
    def d(self) -> int:
        return int(self.coordinates.shape[1])

    def rows(self) -> Iterator[dict[str, float]]:
        """Rows as River takes them."""
        names = [f"x{j + 1}" for j in range(self.d)]
        for row in self.coordinates:
            yield dict(zip(names, row.tolist(), strict=True))

    def phi(self, rows: slice = slice(None)) -> FloatArray:
        """Our features, (rows, D)."""
        X = self.coordinates[rows]
        return self.features(X, np.zeros(len(X)))


@dataclass(frozen=True)
class Answer:
    """The effect, NaN where the rival refuses, the bytes held, and where the effect is a mean of them, its pseudo-outcomes."""

    effect: float
    nbytes: int
    pseudo: FloatArray | None = None

    def recent(self, half_life: float) -> float:
        """The mean of the pseudo-outcomes fading with a half-life in rows: what the packages call a forgetting factor."""
        if self.pseudo is None:
            raise ValueError("this rival has no effect of single rows, and so no recent one; ask for the whole effect")
        age = np.arange(len(self.pseudo))[::-1]
        return float(np.average(self.pseudo, weights=2.0 ** (-age / half_life)))
