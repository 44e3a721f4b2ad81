"""Answers longer than the embedder reads: windows without overlap, on the boundaries of sentences.

An embedder cuts a text at its limit (MiniLM: 256 word pieces) and says nothing. Here each window w of an answer is embedded
on its own, and the answer is::

    e = sum_w tokens_w ē_w / ||...||                with ē_w the unit vector of window w

A sentence longer than the limit is cut between words, and a word longer than it between characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.isotropy.sentences import sentence_spans
from upheld.llm.model import Embedder

Span = tuple[int, int]
Count = Callable[[Sequence[str]], NDArray[np.int64]]


def room(embedder: Embedder, around: str = "") -> int | None:
    """Tokens of an answer that one window holds, beside the words `around` it; None: the embedder has no limit.

    Raises
    ------
    ValueError
        If nothing is left of the limit.
    """
    if embedder.limit is None:
        return None
    left = embedder.limit - embedder.extra_tokens - (int(embedder.count_tokens([around])[0]) if around else 0)
    if left < 1:
        raise ValueError(
            f"the embedder {embedder.id} reads {embedder.limit} tokens, and the template with its prompt fills them: "
            f"{around[:80]!r}; shorten the prompt, or take template=None"
        )
    return left


def window_spans(text: str, room: int, count: Count) -> list[Span]:
    """Character offsets of the windows of at most `room` tokens that cover `text`, white space between them left out.

    Parameters
    ----------
    count : tokens of each of several texts

    Examples
    --------
    >>> words = lambda texts: np.array([len(text.split()) for text in texts])
    >>> text = "One two. Three four five. Six."
    >>> [text[start:end] for start, end in window_spans(text, 4, words)]
    ['One two.', 'Three four five. Six.']
    """
    packed: list[list[Span]] = []
    filled = room
    for piece, size in _pieces(text, sentence_spans(text), room, count):
        if filled + size > room:
            packed.append([])
            filled = 0
        packed[-1].append(piece)
        filled += size
    return [span for group in packed for span in _fitting(text, group, room, count)]


def _pieces(text: str, spans: list[Span], room: int, count: Count) -> Iterator[tuple[Span, int]]:
    """The spans with their sizes; those that are too long by themselves in words, and such words in halves."""
    sizes = count([text[start:end] for start, end in spans])
    for span, size in zip(spans, sizes, strict=True):
        parts = _parts(text, span) if size > room else []
        if len(parts) > 1:
            yield from _pieces(text, parts, room, count)
        else:
            yield span, int(size)


def _parts(text: str, span: Span) -> list[Span]:
    words = _words(text, span)
    if len(words) > 1 or span[1] - span[0] == 1:
        return words
    middle = sum(span) // 2
    return [(span[0], middle), (middle, span[1])]


def _words(text: str, span: Span) -> list[Span]:
    words, position = [], span[0]
    for word in text[span[0] : span[1]].split():
        begin = text.index(word, position)
        position = begin + len(word)
        words.append((begin, position))
    return words


def _fitting(text: str, group: list[Span], room: int, count: Count) -> list[Span]:
    """One window of consecutive pieces; two where the pieces together are more tokens than their sum."""
    joined = (group[0][0], group[-1][1])
    if len(group) == 1 or count([text[joined[0] : joined[1]]])[0] <= room:
        return [joined]
    middle = len(group) // 2
    return _fitting(text, group[:middle], room, count) + _fitting(text, group[middle:], room, count)
