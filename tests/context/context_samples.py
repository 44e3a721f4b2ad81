"""An embedder that needs no model, and samples that can be learned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.context import Sample

WORDS = {
    "heart": ["pulse", "chest", "beat", "artery"],
    "skin": ["rash", "itch", "blister", "mole"],
    "bone": ["fracture", "joint", "cast", "knee"],
}


def hashed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of word counts in 256 buckets."""
    rows = np.zeros((len(texts), 256), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "big") % 256] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def drawn(n: int, seed: int, prefix: str = "s") -> list[Sample]:
    """Texts of four words, two of which belong to the label."""
    rng = np.random.default_rng(seed)
    filler = [f"word{i}" for i in range(40)]
    made = []
    for place in range(n):
        label = list(WORDS)[place % 3]
        text = [*rng.choice(WORDS[label], 2, replace=False), *rng.choice(filler, 3)]
        made.append(Sample(f"{prefix}{place}", " ".join(rng.permutation(text)), label))
    return made
