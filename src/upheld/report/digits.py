"""Numbers for readers: as many digits as the interval supports, and no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS, INFINITY = "−", "∞"
SMALL = 1e-3
FAR = 1e9


def number(value: float, decimals: int | None = None) -> str:
    """One number; without `decimals`, four significant digits.

    >>> number(-0.25), number(12345.678), number(float("inf")), number(3.2e-9)
    ('−0.25', '12,346', '∞', '3.2e−9')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return INFINITY if value > 0 else MINUS + INFINITY
    if decimals is not None:
        text = f"{value:,.{decimals}f}"
        text = text.lstrip("-") if float(text.replace(",", "")) == 0 else text
    elif value and not 1e-4 <= abs(value) < 1e7:
        text = _scientific(value, 4)
    elif abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value + 0.0:.4g}"
    return text.replace("-", MINUS)


def together(
    values: Sequence[float], width: float, apart_from: Sequence[float] = (), *, scientific: bool | None = None
) -> list[str]:
    """Several numbers on one scale, with the same number of decimals: two significant digits of half of `width`.

    A number that is not one of `apart_from` is never written like one of them: it gets more digits. `scientific` decides the
    notation for a whole column; by default it is used when all numbers are below a thousandth.

    >>> together([0.21344, 0.1, 0.3299], 0.2299), together([0.0004, 0.9], 0.9, apart_from=[0.0])
    (['0.21', '0.10', '0.33'], ['0.0004', '0.9000'])
    """
    sizes = [abs(value) for value in values if math.isfinite(value) and value]
    if not sizes or not math.isfinite(width) or width <= 0 or max(sizes) >= 1e7:
        return [number(value) for value in values]
    if max(sizes) < SMALL if scientific is None else scientific:
        return [_scientific(value, 3) if math.isfinite(value) and value else number(value) for value in values]
    decimals = max(0, 1 - math.floor(math.log10(width / 2)))
    # An interval much narrower than the number itself would ask for digits that nobody reads.
    decimals = min(decimals, max(0, 5 - math.floor(math.log10(max(sizes)))))
    for more in range(4):
        if not any(_alike(value, other, decimals + more) for value in values for other in apart_from):
            return [number(value, decimals + more) for value in values]
    return [
        number(value) if any(_alike(value, other, decimals) for other in apart_from) else number(value, decimals)
        for value in values
    ]


def _alike(value: float, other: float, decimals: int) -> bool:
    return value != other and math.isfinite(other) and number(value, decimals) == number(other, decimals)


def with_interval(estimate: float, low: float, high: float, region: Sequence[float] = ()) -> tuple[str, str, str]:
    """Estimate and the ends of its interval, none of them written like a border of `region` that it does not reach.

    An interval that is open on one side is written with the digits of the other; an end that lies further out than anybody reads, as
    those of two units on a scale of ratios do, is written as open.

    >>> with_interval(1.21, 0.9, 1.6), with_interval(1.21, 0.0, 1e304)
    (('1.21', '0.90', '1.60'), ('1.2', '0.0', '∞'))
    """
    low, high = (
        math.copysign(math.inf, end) if math.isfinite(end) and abs(end) > FAR * max(abs(estimate), 1.0) else end
        for end in (low, high)
    )
    finite = [end for end in (low, high) if math.isfinite(end)]
    width = high - low if len(finite) == 2 else 2 * abs(finite[0] - estimate) if finite else math.nan
    first, second, third = together([estimate, low, high], width, region)
    return first, second, third


def bracketed(estimate: float, low: float, high: float, region: Sequence[float] = ()) -> str:
    """``0.21 [0.10, 0.33]``"""
    first, second, third = with_interval(estimate, low, high, region)
    return f"{first} [{second}, {third}]"


def duration(seconds: float) -> str:
    """
    >>> duration(0.0123), duration(75), duration(7300)
    ('0.012 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 0.1:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def memory(n_bytes: float) -> str:
    """
    >>> memory(231_000_000), memory(3.21e9)
    ('231 MB', '3.2 GB')
    """
    return f"{n_bytes / 1e6:,.0f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.1f} GB"


def spans(seeds: Sequence[int]) -> str:
    """
    >>> spans([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7, 8'
    """
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    parts = [[f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(seed) for seed in run] for run in runs]
    return ", ".join(part for run in parts for part in run)


def shortened(text: str, length: int) -> str:
    """At most `length` characters, cut between words where that is possible."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    cut = text[: max(length - 1, 1)]
    at_word = cut.rsplit(" ", 1)[0]
    return (at_word if len(at_word) > length // 2 else cut).rstrip(" ,;:") + "…"


def _scientific(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
