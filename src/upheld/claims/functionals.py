"""Smooth functions of cell means, with their derivatives: what a claim compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Functional:
    """A smooth function of C cell means; each part takes means of shape (..., C).

    value : to shape (...)
    gradient : to shape (..., C)
    hessian : to shape (..., C, C)
    """

    name: str
    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    hessian: Callable[[Array], Array]


def contrast(weights: Sequence[float] | Array) -> Functional:
    """`sum_c w_c m_c`: a mean `[1]`, a difference `[1, -1]`, a slope (`slope_weights`), a difference of slopes.

    Examples
    --------
    >>> float(contrast([1, -1]).value(np.array([3.0, 1.0])))
    2.0
    """
    w = np.asarray(weights, dtype=float)
    return Functional(
        "contrast",
        lambda m: _weighed(m, w) @ w,
        lambda m: np.broadcast_to(w, m.shape),
        lambda m: np.zeros((*m.shape, w.size)),
    )


def log_contrast(weights: Sequence[float] | Array) -> Functional:
    """`sum_c w_c log m_c`: a log ratio of means `[1, -1]`, a log-log slope, a difference of log-log slopes.

    Examples
    --------
    >>> float(np.exp(log_contrast([1, -1]).value(np.array([3.0, 1.5]))))
    2.0
    """
    w = np.asarray(weights, dtype=float)

    def value(m: Array) -> Array:
        bad = np.argwhere((_weighed(m, w) <= 0) & (w != 0))
        if bad.size:
            raise ValueError(
                f"the mean of cell {bad[0][-1]} is {m[tuple(bad[0])]:.4g} and has no logarithm; "
                "take differences instead of ratios, or a metric that is positive"
            )
        return np.asarray(np.log(used(m)) @ w)

    def used(m: Array) -> Array:
        return np.where(w != 0, m, 1.0)

    return Functional(
        "log contrast",
        value,
        lambda m: w / used(m),
        lambda m: np.eye(w.size) * (-w / used(m) ** 2)[..., None, :],
    )


def _weighed(m: Array, w: Array) -> Array:
    if m.shape[-1] != w.size:
        raise ValueError(f"{m.shape[-1]} cells (columns of y) meet {w.size} weights; give unused cells the weight 0")
    return m


def ratio(numerator: Functional, denominator: Functional) -> Functional:
    """`numerator / denominator` of two estimands over the same cells, such as a ratio of means or of slopes.

    The denominator must lie several standard errors from zero, or the interval means little; for positive means
    the exponential of `log_contrast([1, -1])` is the better choice.

    Examples
    --------
    >>> float(ratio(contrast([1, 0]), contrast([0, 1])).value(np.array([3.0, 1.5])))
    2.0
    """

    def value(m: Array) -> Array:
        below = denominator.value(m)
        if np.any(below == 0):
            raise ValueError("the denominator of a ratio is exactly 0; compare differences instead of ratios")
        return numerator.value(m) / below

    def gradient(m: Array) -> Array:
        return (numerator.gradient(m) - value(m)[..., None] * denominator.gradient(m)) / denominator.value(m)[..., None]

    def hessian(m: Array) -> Array:
        # r d = n, differentiated twice: r'' d + r' d'^T + d' r'^T + r d'' = n''
        crossed = gradient(m)[..., :, None] * denominator.gradient(m)[..., None, :]
        rest = numerator.hessian(m) - value(m)[..., None, None] * denominator.hessian(m) - crossed
        return (rest - np.swapaxes(crossed, -1, -2)) / denominator.value(m)[..., None, None]

    return Functional(f"{numerator.name} / {denominator.name}", value, gradient, hessian)


def slope_weights(x: ArrayLike) -> Array:
    """Least-squares weights: `slope_weights(x) @ y` is the slope of y on x; for a log-log slope give `log(x)`.

    Examples
    --------
    >>> slope_weights([0.0, 1.0, 2.0])
    array([-0.5,  0. ,  0.5])
    """
    x = np.asarray(x, dtype=float)
    centred = x - x.mean()
    if x.ndim != 1 or not np.any(centred):
        raise ValueError(f"a slope needs a vector with at least two different values of x, got {x.tolist()}")
    return np.asarray(centred / (centred @ centred))


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
