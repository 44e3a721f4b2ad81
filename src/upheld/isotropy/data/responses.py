"""What is scored: the answers that a model gave to one prompt, with what is known of their truth."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category

UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp", "Zs"))  # control, format and separating characters
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
NOT_TEXT = re.compile(r"[\x00\ud800-\udfff]")  # NUL, and halves of characters, which no UTF-8 holds
ROUNDING = 1e-3  # of log-probabilities: a float16 softmax gives a shade more than probability 1


@dataclass(frozen=True)
class Responses:
    """The answers to one prompt.

    Parameters
    ----------
    id : names the prompt; printable, at most once a file
    prompt : what the model was asked; may be empty where it is not known
    responses : at least 2 answers, none of them empty or white space alone
    factuality : in [0, 1], the share of the prompt's answers that is true; taken as the mean of `factualities` where only those
        are given; None: not known
    factualities : the same for each answer; None in the place of an answer without label
    logprobs : for each answer, the natural log-probabilities of its tokens

    Raises
    ------
    TypeError
        If a field is of another type.
    ValueError
        On fewer than 2 answers, an empty answer, text that is no text, a factuality outside [0, 1], a log-probability above 0,
        or lists of another length than the answers; names the answer (the first is answer 1).

    Examples
    --------
    >>> Responses("q1", "Where is Lima?", ["In Peru.", "In Chile."], factualities=[1, 0]).factuality
    0.5
    """

    id: str
    prompt: str
    responses: tuple[str, ...]
    factuality: float | None = None
    factualities: tuple[float | None, ...] | None = None
    logprobs: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        _check_text(self.id, "the id")
        if not self.id.strip():
            raise ValueError("the id is empty; name the prompt")
        if UNPRINTABLE.search(self.id):
            raise ValueError(f"the id {self.id!r} holds a control character; rename it")
        _check_text(self.prompt, f"the prompt of {self.id!r}")
        object.__setattr__(self, "responses", self._checked_answers())
        object.__setattr__(self, "factualities", self._checked_factualities())
        object.__setattr__(self, "factuality", self._checked_factuality())
        object.__setattr__(self, "logprobs", self._checked_logprobs())

    def _checked_answers(self) -> tuple[str, ...]:
        answers = _tuple(self.responses, f"the responses of {self.id!r}")
        if len(answers) < 2:
            raise ValueError(f"{self.id!r} has {len(answers)} answer(s); their spread needs at least 2")
        for i, answer in enumerate(answers, start=1):
            _check_text(answer, f"answer {i} of {self.id!r}")
            if not is_visible(answer):
                raise ValueError(f"answer {i} of {self.id!r} is empty; drop it or sample it again")
        return answers

    def _checked_factualities(self) -> tuple[float | None, ...] | None:
        if self.factualities is None:
            return None
        labels = self._one_an_answer(self.factualities, "factuality")
        checked = tuple(
            None if label is None else _share(label, f"the factuality of answer {i} of {self.id!r}")
            for i, label in enumerate(labels, start=1)
        )
        return None if all(label is None for label in checked) else checked

    def _checked_factuality(self) -> float | None:
        if self.factuality is not None:
            return _share(self.factuality, f"the factuality of {self.id!r}")
        known = [label for label in self.factualities or () if label is not None]
        return math.fsum(known) / len(known) if known else None

    def _checked_logprobs(self) -> tuple[tuple[float, ...], ...] | None:
        if self.logprobs is None:
            return None
        checked = []
        for i, tokens in enumerate(self._one_an_answer(self.logprobs, "list of logprobs"), start=1):
            what = f"the logprobs of answer {i} of {self.id!r}"
            numbers = tuple(_number(value, f"each of {what}") for value in _tuple(tokens, what))
            if not numbers:
                raise ValueError(f"{what} are empty; give one a token, or leave logprobs out")
            if max(numbers) > ROUNDING:
                raise ValueError(f"{what} hold {max(numbers):g}; the logarithm of a probability is at most 0")
            checked.append(numbers)
        return tuple(checked)

    def _one_an_answer(self, values: Iterable[object], what: str) -> tuple[object, ...]:
        values = _tuple(values, f"each {what} of {self.id!r}")
        if len(values) != len(self.responses):
            raise ValueError(
                f"{self.id!r} has {len(self.responses)} answers, but {len(values)} times a {what}; give one an answer"
            )
        return values


def _tuple(values: object, what: str) -> tuple[Any, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{what} must be a list, got {type(values).__name__}")
    return tuple(values)


def is_visible(text: str) -> bool:
    """Whether there is anything to read: white space, control characters and joiners of no width alone are nothing."""
    return any(category(sign) not in UNSEEN for sign in text)


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, got {type(value).__name__}")
    if sign := NOT_TEXT.search(value):
        raise ValueError(
            f"{what} holds {sign.group()!r} at character {sign.start() + 1}, which is no text; take it out"
        )


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what} must be a number, got {type(value).__name__}")
    if not abs(value) <= 1e300:  # also NaN, and integers that no float holds
        raise ValueError(f"{what} must be a finite number")
    return float(value)


def _share(value: object, what: str) -> float:
    share = _number(value, what)
    if not 0 <= share <= 1:
        raise ValueError(f"{what} is {share:g}; it is a share, between 0 and 1")
    return share
