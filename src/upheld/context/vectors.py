"""Unit vectors of texts, each embedded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""From n texts to (n, d) unit rows."""


class Embeds(Protocol):
    """What `Vectors` asks; every `upheld.llm.Embedder` is one."""

    @property
    def id(self) -> str: ...

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]: ...


class Vectors:
    """An embedder that is asked for a text once; an instance is an `Embed`.

    Parameters
    ----------
    embedder : asked for what is not known
    known : texts and their unit rows, where they were made before

    Examples
    --------
    >>> Vectors(embedder("minilm"))(["a", "b", "a"]).shape                     # doctest: +SKIP
    (3, 384)
    """

    def __init__(self, embedder: Embeds, known: tuple[Sequence[str], NDArray[np.float32]] | None = None) -> None:
        self.embedder = embedder
        self.id = embedder.id
        texts, rows = known or ((), np.empty((0, 0), dtype=np.float32))
        self._places = dict(zip(texts, range(len(texts)), strict=True))
        self._rows = rows

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._places]:
            self._add(missing)
        return self._rows[[self._places[text] for text in texts]]

    def _add(self, missing: Sequence[str]) -> None:
        rows = self.embedder.embed(missing)
        rows = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)
        n = len(self._places)
        if n + len(rows) > len(self._rows):  # doubled, so that adding is linear over all
            grown = np.empty((max(2 * n, n + len(rows)), rows.shape[1]), dtype=np.float32)
            if n:
                grown[:n] = self._rows[:n]
            self._rows = grown
        self._rows[n : n + len(rows)] = rows
        self._places.update(zip(missing, range(n, n + len(rows)), strict=True))


def minilm(file: Path | None = None) -> Vectors:
    """all-MiniLM-L6-v2; with a file, vectors outlive the process."""
    from upheld.llm import CachedEmbedder, embedder

    model = embedder("minilm")
    return Vectors(CachedEmbedder(model, file) if file else model)


def minilm_when_asked() -> Embed:
    """The same, read when it is asked for a text: a context that retrieves by words alone, or shows all, never waits for it."""
    model = cache(minilm)
    return lambda texts: model()(texts)
