"""A uniform sample of a stream in bounded memory: algorithm R (Vitter 1985), with exact merging."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upheld.effects.rows import IntArray


@dataclass
class UniformSample:
    """At most `capacity` of the rows seen, each set of that size equally likely.

    columns : arrays by name, one of them "ident"; kinds : shape of a row and dtype of each; size rows are held, `seen` passed by.
    """

    capacity: int
    kinds: dict[str, tuple[tuple[int, ...], Any]]
    columns: dict[str, NDArray[Any]] = field(init=False)
    size: int = 0
    seen: int = 0

    def __post_init__(self) -> None:
        self.columns = {name: np.zeros((self.capacity, *shape), dtype) for name, (shape, dtype) in self.kinds.items()}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.columns.values())

    def held(self, name: str) -> NDArray[Any]:
        """One column of the rows held."""
        return self.columns[name][: self.size]

    def add(self, rng: np.random.Generator, **columns: NDArray[Any]) -> None:
        """Rows in order of arrival, by column."""
        n = len(columns["ident"])
        fill = min(self.capacity - self.size, n)
        self._put(np.arange(self.size, self.size + fill), {name: array[:fill] for name, array in columns.items()})
        place = np.floor(rng.random(n - fill) * (self.seen + np.arange(fill, n) + 1)).astype(np.int64)
        kept = np.flatnonzero(place < self.capacity)
        # Of two rows for one place the later one stays, as if they had come one by one.
        self._put(place[kept], {name: array[fill + kept] for name, array in columns.items()})
        self.size += fill
        self.seen += n

    def remove(self, ident: int) -> dict[str, NDArray[Any]] | None:
        """Forget a row; its values if it was held."""
        found = np.flatnonzero(self.held("ident") == ident)
        self.seen -= 1
        if not len(found):
            return None
        values = {name: array[found[0]].copy() for name, array in self.columns.items()}
        self.size -= 1
        for array in self.columns.values():
            array[found[0]] = array[self.size]
        return values

    def merge(self, other: UniformSample, rng: np.random.Generator) -> None:
        """A uniform sample of both streams together: how many rows come from which is hypergeometric."""
        size = min(self.size + other.size, self.capacity)
        mine = int(rng.hypergeometric(self.seen, other.seen, size)) if size else 0
        mine = min(max(mine, size - other.size), self.size)  # a row that was removed can be missing
        ours, theirs = rng.permutation(self.size)[:mine], rng.permutation(other.size)[: size - mine]
        for name, array in self.columns.items():
            array[:size] = np.concatenate([self.held(name)[ours], other.held(name)[theirs]])
        self.size, self.seen = size, self.seen + other.seen

    def _put(self, place: IntArray, columns: dict[str, NDArray[Any]]) -> None:
        for name, array in columns.items():
            self.columns[name][place] = array
