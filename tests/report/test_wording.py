from __future__ import annotations

import doctest

import pytest

from upheld.report import wording
from upheld.report.wording import in_options, options_of, told_as_options

OPTIONS = options_of(["time", "n_max", "n_samples"], {"n_samples": "--n"})


def test_examples() -> None:
    failed, attempted = doctest.testmod(wording)
    assert attempted
    assert not failed


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("it took a long time; a must be 3", "it took a long time; a must be 3"),
        ("time must be kernel, got time='block'", "--time must be kernel, got --time block"),
        ("raise n_max or n_samples, not in_n_max or x-time=2", "raise --n-max or --n, not in_n_max or x-time=2"),
    ],
)  # fmt: skip
def test_words_of_prose_are_left(sentence: str, told: str) -> None:
    assert in_options(sentence, OPTIONS) == told
    assert in_options(sentence, {}) == sentence


def test_the_kind_of_error_is_kept() -> None:
    with pytest.raises(OSError, match=r"^--n must be 2$"), told_as_options(OPTIONS, OSError, ValueError):
        raise FileNotFoundError("n_samples must be 2")
    with pytest.raises(ValueError, match=r"^--n-max 3$"), told_as_options(OPTIONS):
        raise ValueError("n_max=3")
    with pytest.raises(TypeError, match=r"^n_max=3$"), told_as_options(OPTIONS):
        raise TypeError("n_max=3")
