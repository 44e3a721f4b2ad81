"""A function of the user's as an embedder."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upheld.llm.model import Embedder, ModelError, Told
from upheld.llm.vectors import listed, proper


class CallableEmbedder(Embedder):
    """Around a function from a list of n texts to an (n, D) array.

    Parameters
    ----------
    function : called with at most `batch_size` texts at a time
    name : stands in `id`, so give one only if it changes whenever the vectors would; without one the id is this object's own, and
        nothing that was cached under another is ever taken for its vectors
    batch_size : texts a call

    Raises
    ------
    ValueError
        If `batch_size` is below 1.

    Examples
    --------
    >>> CallableEmbedder(lambda texts: [[len(text), text.count("e")] for text in texts]).embed(["one", "eleven"])
    array([[3., 1.],
           [6., 3.]], dtype=float32)
    """

    def __init__(
        self, function: Callable[[list[str]], ArrayLike], *, name: str | None = None, batch_size: int = 32
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        own = getattr(function, "__qualname__", type(function).__qualname__)
        self.id = f"callable:{name}" if name else f"callable:{own}#{uuid.uuid4().hex[:12]}"
        self._function = function
        self._batch_size = batch_size

    def embed(self, texts: Sequence[str], told: Told | None = None) -> NDArray[np.float32]:
        texts = listed(texts)
        parts: list[NDArray[np.float32]] = []
        for begin in range(0, len(texts), self._batch_size):
            batch = texts[begin : begin + self._batch_size]
            parts.append(proper(self._function(batch), len(batch), self.id))
            if told:
                told(begin + len(batch), len(texts))
        widths = sorted({part.shape[1] for part in parts})
        if len(widths) > 1:
            raise ModelError(
                f"{self.id} gave vectors of {' and '.join(map(str, widths))} numbers for texts of one call"
            )
        return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)
