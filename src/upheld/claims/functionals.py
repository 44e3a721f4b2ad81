"""Composition of smooth functions of cell means."""

from __future__ import annotations

import numpy as np

from upheld.claims.intervals import Array, contrast, log_contrast, ratio, slope_weights
from upheld.claims.intervals import Estimand as Functional

__all__ = ["Functional", "contrast", "difference", "log_contrast", "of_cells", "ratio", "slope_weights"]


def difference(first: Functional, second: Functional) -> Functional:
    """`first - second` of two functions of the same cells."""
    return Functional(
        f"difference of {first.name}s",
        lambda m: first.value(m) - second.value(m),
        lambda m: first.gradient(m) - second.gradient(m),
        lambda m: first.hessian(m) - second.hessian(m),
    )


def of_cells(of: Functional, start: int, stop: int, size: int) -> Functional:
    """The same function, read from cells `start` to `stop` of `size`: its derivatives by the others are zero."""

    def gradient(m: Array) -> Array:
        whole = np.zeros((*m.shape[:-1], size))
        whole[..., start:stop] = of.gradient(m[..., start:stop])
        return whole

    def hessian(m: Array) -> Array:
        whole = np.zeros((*m.shape[:-1], size, size))
        whole[..., start:stop, start:stop] = of.hessian(m[..., start:stop])
        return whole

    return Functional(of.name, lambda m: of.value(m[..., start:stop]), gradient, hessian)
