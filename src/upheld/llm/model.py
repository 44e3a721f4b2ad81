"""The interface of every language model and every embedder here."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.llm.answer import Answer, Message, Request, Sampling, conversation

Told = Callable[[int, int], None]
"""Hears how many of how many are done."""


class LanguageModel(ABC):
    """A model that chats and completes text.

    A backend defines `answers` and `stream`; what it can do at once (batches on the own machine, connections to an
    endpoint) is its own affair.

    Attributes
    ----------
    id : says which model answers, down to its weights where they are known; a part of every cache key. Holds no secret.
    """

    id: str
    at_once: int = 64
    """How many requests `each` hands over together, where the backend has no better way."""

    @abstractmethod
    def answers(self, requests: Sequence[Request], told: Told | None = None) -> list[Answer]:
        """One answer a request, in their order.

        Raises
        ------
        ModelError
            If an answer cannot be had; what was answered before is lost unless the model is cached.
        """

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        """Answers as they come, each with the place of its request, so that a caller can keep what was answered before a failure.

        Raises
        ------
        ModelError
            After what was answered has been handed out, if an answer cannot be had.
        """
        for start in range(0, len(requests), self.at_once):
            yield from enumerate(self.answers(requests[start : start + self.at_once]), start)

    @abstractmethod
    def stream(self, request: Request) -> Iterator[str]:
        """The answer piece by piece, as it is written."""

    def chat(
        self, user: str | Sequence[Message], *, system: str | None = None, sampling: Sampling | None = None
    ) -> Answer:
        """Answer to a user's line, or to turns of a conversation."""
        return self.answers([Request(conversation(user, system), sampling=sampling or Sampling())])[0]

    def complete(self, prompt: str, sampling: Sampling | None = None) -> Answer:
        """How a text goes on."""
        return self.answers([Request(prompt=prompt, sampling=sampling or Sampling())])[0]


def gathered(each: Iterator[tuple[int, Answer]], n: int, told: Told | None) -> list[Answer]:
    """The `n` answers of `LanguageModel.each` in the order of their requests."""
    found: dict[int, Answer] = {}
    for place, answer in each:
        found[place] = answer
        if told is not None:
            told(len(found), n)
    return [found[place] for place in range(n)]


class Embedder(ABC):
    """A model that turns texts into vectors.

    Attributes
    ----------
    id : says which model, weights and pooling; a part of every cache key and of every score. Holds no secret.
    limit : longest text in tokens, special tokens included; longer ones are cut (None: not known, nothing is cut here)
    extra_tokens : special tokens that are added to every text; of `limit` they leave ``limit - extra_tokens`` to the text
    """

    id: str
    limit: int | None = None
    extra_tokens: int = 0

    @abstractmethod
    def embed(self, texts: Sequence[str], told: Told | None = None) -> NDArray[np.float32]:
        """(n, D) vectors, one a text, not normalised. A vector does not depend on which texts are embedded beside it.

        Raises
        ------
        ModelError
            If the model cannot be reached or gives something else than finite vectors.
        """

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """(n,) length of every text in this model's tokens, special tokens not counted; words where it has no tokenizer."""
        return np.array([len(self.token_spans(text)) for text in texts], dtype=np.int64)

    def count_unknown(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """(n,) how many tokens of every text this model's vocabulary lacks; 0 where it has no tokenizer."""
        return np.zeros(len(texts), dtype=np.int64)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Where every token of a text begins and ends in it, in characters; words where this model has no tokenizer."""
        return [word.span() for word in re.finditer(r"\S+", text)]


class ModelError(OSError):
    """A model that gives no answer: what was asked of whom, what came instead, and what to do. Never holds a key."""
