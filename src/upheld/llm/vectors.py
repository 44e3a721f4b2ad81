"""What an embedder takes and what it gives, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upheld.llm.model import ModelError


def listed(texts: Sequence[str]) -> list[str]:
    """The texts as a list; one text alone would be taken letter by letter.

    Raises
    ------
    TypeError
        If it is a single text, or holds something that is none.
    """
    if isinstance(texts, str):
        raise TypeError("texts must be a list of texts, got a single one; put it into a list")
    texts = list(texts)  # once: of an iterator a second look would find nothing
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts must be a list of str, but entry {number} is a {type(text).__name__}")
    return texts


def proper(vectors: ArrayLike, n: int, embedder: str) -> NDArray[np.float32]:
    """The vectors of n texts as an (n, D) array.

    Raises
    ------
    ModelError
        If they have another shape, or are not finite.
    """
    try:
        found = np.asarray(vectors)
        if np.iscomplexobj(found):
            raise TypeError("they are complex")
        found = found.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{embedder} gave no array of numbers for {n} texts: {error}") from error
    if found.ndim != 2 or len(found) != n or (n and not found.shape[1]):
        raise ModelError(f"{embedder} gave an array of shape {found.shape} for {n} texts; it must be ({n}, D)")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if bad.size:
        raise ModelError(f"{embedder} gave a vector that is not finite for text {bad[0]} ({bad.size} of {n} in all)")
    return found
