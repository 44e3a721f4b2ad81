from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.report.digits import bracketed, duration, memory, number, shortened, spans, together, with_interval

finite = st.floats(-1e6, 1e6, allow_nan=False)


def read(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf").replace(",", ""))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-0.25, "−0.25"),
        (12345.678, "12,346"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (3.2e-9, "3.2e−9"),
        (4.56e11, "4.56e11"),
        (math.nan, "not a number"),
    ],
)
def test_numbers_for_readers(value: float, text: str) -> None:
    assert number(value) == text


@given(finite)
def test_a_number_reads_back_to_four_digits(value: float) -> None:
    assert read(number(value)) == pytest.approx(value, rel=6e-4, abs=1e-300)


def test_decimals_follow_the_interval() -> None:
    assert bracketed(0.21344, 0.1, 0.3299) == "0.21 [0.10, 0.33]"
    assert bracketed(1234.5, 1100.0, 1400.0) == "1,234 [1,100, 1,400]"
    assert bracketed(0.5, -math.inf, 0.61) == "0.50 [−∞, 0.61]"
    assert bracketed(2.0e-5, 1.5e-5, 2.5e-5) == "2e−5 [1.5e−5, 2.5e−5]"


def test_a_point_interval_does_not_ask_for_endless_digits() -> None:
    assert bracketed(1 / 3, 1 / 3, 1 / 3) == "0.3333 [0.3333, 0.3333]"
    assert bracketed(1000.0, 1000.0 - 1e-9, 1000.0 + 1e-9) == "1,000.00 [1,000.00, 1,000.00]"


def test_no_interval_is_written_without_inventing_one() -> None:
    assert bracketed(0.5, -math.inf, math.inf) == "0.5 [−∞, ∞]"


@given(finite, st.floats(1e-9, 1e3), finite)
def test_an_end_short_of_the_border_is_never_written_like_it(estimate: float, half: float, border: float) -> None:
    ends = (estimate, estimate - half, estimate + half)
    for value, text in zip(ends, with_interval(*ends, region=(border, math.inf)), strict=True):
        # beyond four significant digits there is nothing to tell apart
        if abs(value - border) > 1e-3 * max(abs(value), abs(border)):
            assert read(text) != border


def test_a_column_can_have_one_notation() -> None:
    assert together([0.0004, 0.0003, 0.0005], 2e-4, scientific=False) == ["0.00040", "0.00030", "0.00050"]
    assert together([0.04, 0.03, 0.05], 2e-2, scientific=True) == ["4e−2", "3e−2", "5e−2"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "0.012 s"), (3.21, "3.2 s"), (59.6, "60 s"), (75, "1 min 15 s"), (7300, "2 h 1 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_memory() -> None:
    assert (memory(231_000_000), memory(3.21e9)) == ("231 MB", "3.2 GB")


@given(st.sets(st.integers(0, 60)))
def test_spans_name_every_seed_once(seeds: set[int]) -> None:
    named: list[int] = []
    for part in filter(None, spans(sorted(seeds)).split(", ")):
        first, _, last = part.partition("–")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(seeds)


@given(st.text(), st.integers(2, 50))
def test_shortened_text_fits_on_one_line(text: str, length: int) -> None:
    short = shortened(text, length)
    assert len(short) <= length
    assert "\n" not in short
    assert short == " ".join(text.split()) or short.endswith("…")
