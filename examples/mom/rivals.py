"""The alternatives, each under the signature (x, rng) -> float. Who adds a rival adds a line to `RIVALS`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

Estimator = Callable[[np.ndarray, np.random.Generator], float]


def mean(x: np.ndarray, rng: np.random.Generator) -> float:
    return float(np.mean(x))


def trimmed_mean(x: np.ndarray, rng: np.random.Generator) -> float:
    return float(stats.trim_mean(x, 0.05))


RIVALS: dict[str, Estimator] = {"mean": mean, "trimmed mean": trimmed_mean}
