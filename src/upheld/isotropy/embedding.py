"""Step 1: what the embedder is given of each answer, and one unit vector an answer."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from upheld.isotropy.entropy import unit_vectors
from upheld.isotropy.groups import Answers
from upheld.isotropy.templates import Template, Wrap, wrapper
from upheld.isotropy.windows import room, window_spans
from upheld.llm.model import Embedder

FloatArray = NDArray[np.float64]
LongText = Literal["window", "truncate", "error"]
Pooling = Literal["mean", "cls", "max", "last", "unmasked_mean"]

LONG_TEXTS: tuple[LongText, ...] = ("window", "truncate", "error")


@dataclass(frozen=True)
class Embedded:
    """(n, D) unit vectors of the answers, and the shares of their tokens that the embedder did not read, and did not know."""

    vectors: FloatArray
    truncated_share: float
    unknown_share: float


@dataclass(frozen=True)
class _Parts:
    """What the embedder is given of one answer, with its weights, and the tokens that are cut of how many."""

    texts: list[str]
    weights: NDArray[np.int64]
    cut: int = 0
    tokens: int = 0


def chosen(name: Any, pooling: Pooling | None = None, device: str | None = None, batch_size: int = 32) -> Embedder:
    """The embedder of that name, loaded once a process: a scorer keeps no state, and a function has one id at every call."""
    key: Any = name if isinstance(name, str | os.PathLike) else _Same(name)
    return _loaded(key, pooling, device, batch_size)


@dataclass(frozen=True, eq=False)
class _Same:
    """A function or an embedder as it is, which need not have a hash."""

    itself: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.itself is self.itself

    def __hash__(self) -> int:
        return id(self.itself)


@lru_cache(maxsize=4)
def _loaded(name: Hashable, pooling: Pooling | None, device: str | None, batch_size: int) -> Embedder:
    from upheld.llm.choose import embedder

    given: Any = name.itself if isinstance(name, _Same) else name
    return embedder(given, pooling=pooling, device=device, batch_size=batch_size)


def embed(groups: Sequence[Answers], embedder: Embedder, template: Template, long_text: LongText) -> list[Embedded]:
    """Unit vectors of the answers of several prompts, from one call of the embedder; a text that occurs twice is read once.

    Raises
    ------
    ValueError
        Naming the group and the answer: a zero vector or one that is not finite; too long an answer with
        ``long_text="error"``; a template without a prompt; an embedder that returns another number of vectors than of texts.
    """
    parts = [_parts_of(group, embedder, template, long_text) for group in groups]
    places: dict[str, int] = {}
    for part in (part for group in parts for part in group):
        for text in part.texts:
            places.setdefault(text, len(places))
    vectors = np.asarray(embedder.embed(list(places)))
    if vectors.ndim != 2 or len(vectors) != len(places):
        raise ValueError(
            f"the embedder {embedder.id} returned an array of shape {vectors.shape} for {len(places)} texts; "
            f"it must be ({len(places)}, D)"
        )
    return [
        _embedded(group, answers, vectors, places, _unknown_share(group, embedder))
        for group, answers in zip(groups, parts, strict=True)
    ]


def _parts_of(group: Answers, embedder: Embedder, template: Template, long_text: LongText) -> list[_Parts]:
    wrap = wrapper(template, group.prompt, embedder.id)
    limit = room(embedder, wrap(""))
    if limit is None:
        return [_whole(wrap(answer)) for answer in group.texts]
    sizes = embedder.count_tokens(list(group.texts))
    if long_text == "error" and sizes.max() > limit:
        worst = int(sizes.argmax())
        raise ValueError(
            f"answer {group.used[worst]} of {group.name} is {sizes[worst]} tokens long and the embedder {embedder.id} reads "
            f"{limit}; take long_text='window', or an embedder with a higher limit"
        )
    return [
        _windowed(answer, limit, embedder, wrap)
        if long_text == "window" and size > limit
        else _whole(wrap(answer), max(0, int(size) - limit), int(size))
        for answer, size in zip(group.texts, sizes, strict=True)
    ]


def _whole(text: str, cut: int = 0, tokens: int = 0) -> _Parts:
    return _Parts([text], np.ones(1, dtype=np.int64), cut, tokens)


def _windowed(answer: str, limit: int, embedder: Embedder, wrap: Wrap) -> _Parts:
    windows = [answer[start:end] for start, end in window_spans(answer, limit, embedder.count_tokens)]
    sizes = embedder.count_tokens(windows)
    return _Parts([wrap(window) for window in windows], sizes, 0, int(sizes.sum()))


def _unknown_share(group: Answers, embedder: Embedder) -> float:
    texts = list(group.texts)
    unknown = embedder.count_unknown(texts).sum()
    return float(unknown / embedder.count_tokens(texts).sum()) if unknown else 0.0


def _embedded(
    group: Answers, answers: list[_Parts], vectors: NDArray[np.floating], places: dict[str, int], unknown: float
) -> Embedded:
    rows = []
    for number, part in zip(group.used, answers, strict=True):
        own = vectors[[places[text] for text in part.texts]]
        if len(own) > 1:
            own = part.weights @ unit_vectors(own, what="window", of=f" of answer {number} of {group.name}")
        rows.append(own.reshape(-1))
    tokens = sum(part.tokens for part in answers)
    share = sum(part.cut for part in answers) / tokens if tokens else 0.0
    return Embedded(
        unit_vectors(np.stack(rows), what="answer", of=f" of {group.name}", numbers=group.used), share, unknown
    )
