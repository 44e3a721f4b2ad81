"""The library's errors name its parameters; whoever typed options should read options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager


def option(parameter: str) -> str:
    """
    >>> option("half_life")
    '--half-life'
    """
    return f"--{parameter.replace('_', '-')}"


def options_of(parameters: Iterable[str], others: Mapping[str, str] | None = None) -> dict[str, str]:
    """Each parameter's option: of the same name, but for `others`.

    >>> options_of(["alpha", "n_samples"], {"n_samples": "--n"})
    {'alpha': '--alpha', 'n_samples': '--n'}
    """
    return {name: option(name) for name in parameters} | dict(others or {})


def in_options(sentence: str, options: Mapping[str, str]) -> str:
    """A sentence with every parameter that is given a value, must be something, or is no word of prose, as its option.

    >>> in_options('use screen=36 or n_max="5"; time must be one of a, b', options_of(["screen", "n_max", "time"]))
    'use --screen 36 or --n-max 5; --time must be one of a, b'
    >>> in_options("raise n_max, or take time=None", options_of(["n_max", "time"]))
    'raise --n-max, or leave out --time'
    """
    if not options:
        return sentence
    every = "|".join(options)
    sentence = re.sub(rf"\btake ({every})=None\b", lambda found: f"leave out {options[found[1]]}", sentence)
    sentence = re.sub(
        rf"""(?<![\w-])({every})=["']?([\w-]+)["']?""", lambda found: f"{options[found[1]]} {found[2]}", sentence
    )
    plain = "|".join(name for name in options if "_" in name) or "(?!)"
    spoken = rf"(?<![\w-])(?:({plain})\b|({every})(?= must ))"
    return re.sub(spoken, lambda found: options[found[1] or found[2]], sentence)


@contextmanager
def told_as_options(options: Mapping[str, str], *kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds (by default `ValueError`) are raised again, with options in place of parameters."""
    kinds = kinds or (ValueError,)
    try:
        yield
    except kinds as error:
        kind = next(kind for kind in kinds if isinstance(error, kind))
        raise kind(in_options(str(error), options)) from error
