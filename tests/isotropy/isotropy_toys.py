"""An embedder without a model: a text's vector is the sum of its words' fixed random vectors, so shared words mean nearness."""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np

from upheld.llm.model import Embedder


class WordEmbedder(Embedder):
    """Reads the first `limit` less 2 words and, as real ones do, ignores the rest; counts what it was asked."""

    def __init__(self, limit: int | None = None, D: int = 512) -> None:
        self.id, self.limit, self.D = "words", limit, D
        self.extra_tokens = 2
        self.calls = 0
        self.read: Counter[str] = Counter()

    def embed(self, texts, told=None):
        self.calls += 1
        self.read.update(texts)
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def _vector(self, text):
        words = text.split()[: None if self.limit is None else self.limit - self.extra_tokens]
        return sum(np.random.default_rng(zlib.crc32(word.encode())).normal(size=self.D) for word in words)
