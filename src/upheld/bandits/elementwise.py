"""Formulas written once: on one number, on an array, and inside a compiled kernel.

A policy is raced three ways: step by step in a user's program, vectorised over runs with NumPy, and compiled with
numba. So that there is one copy of each formula, it is an *elementwise* function: it uses arithmetic, comparisons,
``np.sqrt``, ``np.abs``, ``np.floor``, and the few functions below, never ``if`` on data. The kernel compiles the very
same function; `choose`, `branch`, `split` and `finished` are the only ones it replaces by their scalar form.

Arithmetic and square root are exactly rounded everywhere, the library logarithm is not: it differs in the last bit
between NumPy and the C library. `ln` is therefore arithmetic only, and all three ways give the same bits. A policy played
step by step has formulas of one number, for which an array of one element would cost fifty times as much: `choose`,
`branch` and `split` take numbers as they come.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

ELEMENTWISE: list[Callable[..., Any]] = []

SQRT_HALF = 0.7071067811865476
LN2_HIGH = 0.6931471803691238  # ln 2 rounded to 32 bits, so that exponent * LN2_HIGH is exact
LN2_LOW = 1.9082149292705877e-10


def elementwise(formula: F) -> F:
    """Mark `formula` as elementwise, so that the kernel can compile it."""
    ELEMENTWISE.append(formula)
    return formula


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where `condition` holds, else `no`; both are evaluated."""
    if isinstance(condition, (bool, np.bool_)):
        return yes if condition else no
    return np.where(condition, yes, no)


def branch(condition: Any, yes: Callable[[Any], Any], no: Callable[[Any], Any], x: Any) -> Any:
    """``yes(x)`` where `condition` holds, else ``no(x)``; on one number, and in the kernel, only the one needed is evaluated."""
    if isinstance(condition, (bool, np.bool_)):
        return yes(x) if condition else no(x)
    return np.where(condition, yes(x), no(x))


def split(x: Any) -> Any:
    """Mantissa in [1/2, 1) and exponent of `x`."""
    if isinstance(x, float):
        return math.frexp(x)
    return np.frexp(x)


def finished(done: Any) -> Any:
    """Whether an iteration may end: every element is done."""
    return np.all(done)


@elementwise
def larger(a: Any, b: Any) -> Any:
    return choose(a > b, a, b)


@elementwise
def smaller(a: Any, b: Any) -> Any:
    return choose(a < b, a, b)


@elementwise
def ln(x: Any) -> Any:
    """Natural logarithm of `x` > 0 to one unit in the last place.

    With x = 2^e m, m in [sqrt(1/2), sqrt 2) and s = (m - 1)/(m + 1): ln m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
    """
    m, e = split(x)
    low = m < SQRT_HALF
    m = choose(low, m + m, m)
    e = choose(low, e - 1.0, e + 0.0)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 2 / 15 + z * (2 / 17 + z * (2 / 19 + z * (2 / 21 + z * (2 / 23))))
    series = 2 / 3 + z * (2 / 5 + z * (2 / 7 + z * (2 / 9 + z * (2 / 11 + z * (2 / 13 + z * series)))))
    return e * LN2_HIGH + ((s + s) + (s * (z * series) + e * LN2_LOW))
