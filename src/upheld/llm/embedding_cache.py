"""A cache around any embedder: a text is embedded once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.llm.cache_file import CacheError, CacheFile, portions
from upheld.llm.model import Embedder, Told
from upheld.llm.vectors import listed, proper

BLOCK = 256
"""Texts that are embedded, then committed together: what a killed run may lose."""


class CachedEmbedder(Embedder):
    """An embedder whose vectors are kept in a file, the same that `CachedModel` uses if you like.

    The key is the embedder's id, the template's name, and the SHA-256 of the text. Vectors are kept as float32, little endian.

    Parameters
    ----------
    embedder : asked for what the cache does not hold
    path : of the cache, created when it is not there
    template : name of what the caller wraps texts in before they come here; vectors under different names are never mixed

    Raises
    ------
    CacheError
        If the file is no cache, is damaged, or cannot be written.

    Examples
    --------
    >>> embedder = CachedEmbedder(Encoder(minilm()), "vectors.sqlite")         # doctest: +SKIP
    >>> embedder.embed(["a planet", "a moon", "a planet"]).shape               # doctest: +SKIP
    (3, 384)
    """

    def __init__(self, embedder: Embedder, path: str | os.PathLike[str], *, template: str = "") -> None:
        self.embedder = embedder
        self.id = embedder.id
        self.limit = embedder.limit
        self.extra_tokens = embedder.extra_tokens
        self.template = template
        self._file = CacheFile(path)

    def embed(self, texts: Sequence[str], told: Told | None = None) -> NDArray[np.float32]:
        texts = listed(texts)
        names = [hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest() for text in texts]
        wanted = dict(zip(names, texts, strict=True))
        found = self._kept(list(wanted))
        missing = [name for name in wanted if name not in found]
        for start in range(0, len(missing), BLOCK):
            if told is not None:
                told(sum(name in found for name in names), len(texts))
            block = missing[start : start + BLOCK]
            vectors = proper(self.embedder.embed([wanted[name] for name in block]), len(block), self.id)
            self._keep(block, vectors)
            found.update(zip(block, vectors, strict=True))
        if told is not None and texts:
            told(len(texts), len(texts))
        return self._stacked([found[name] for name in names])

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self.embedder.count_tokens(texts)

    def count_unknown(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self.embedder.count_unknown(texts)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        return self.embedder.token_spans(text)

    def close(self) -> None:
        self._file.close()

    def _kept(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        found = {}
        for portion in portions(names):
            marks = ", ".join("?" * len(portion))
            for name, blob in self._file.rows(
                f"SELECT text, vector FROM vector WHERE embedder = ? AND template = ? AND text IN ({marks})",
                [self.id, self.template, *portion],
            ):
                found[str(name)] = self._vector(blob)
        return found

    def _keep(self, names: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._file.many(
            "INSERT OR IGNORE INTO vector VALUES (?, ?, ?, ?)",
            [
                (self.id, self.template, name, np.ascontiguousarray(vector, dtype="<f4").tobytes())
                for name, vector in zip(names, vectors, strict=True)
            ],
        )

    def _vector(self, blob: object) -> NDArray[np.float32]:
        if not isinstance(blob, bytes) or not blob or len(blob) % 4:
            raise self._damaged("a vector that is none")
        vector = np.frombuffer(blob, dtype="<f4").astype(np.float32)
        if not np.isfinite(vector).all():
            raise self._damaged("a vector that is not finite")
        return vector

    def _stacked(self, vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        if len({len(vector) for vector in vectors}) > 1:
            raise self._damaged("vectors of different lengths")
        return np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)

    def _damaged(self, how: str) -> CacheError:
        return CacheError(
            f"the cache {self._file.path} holds {how} for {self.id}; it is damaged, or the embedder changed under the same id: move it away"
        )
