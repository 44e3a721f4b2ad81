"""Columns to coordinates, fixed on the warm-up rows and never again (section 2).

Numeric columns: (value - median) / max(IQR / 1.349, sd / 2). The floor on the scale matters for columns most of whose values
are equal (a rare indicator, earnings with many zeros), where the interquartile range is 0; all of it moves with the unit.
Categorical columns: one 0/1 coordinate a level, and one for every level that the warm-up did not show ("other").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from upheld.effects.rows import Covariates, FloatArray

IQR_OF_NORMAL = 1.349
LEAST_SCALE = 0.5  # of the standard deviation
MAX_LEVELS = 50  # of a categorical column; rarer ones count as "other"


@dataclass
class Encoding:
    """From named columns to d coordinates.

    Attributes
    ----------
    names, categorical : the columns and their kinds
    kept : positions, among the numeric columns, of those that vary in the warm-up
    location, scale : of the kept columns
    levels : of each kept categorical column
    constant : dropped columns and their value in the warm-up
    n_other : rows that showed an unknown level, by column; n_moved : rows in which a dropped column was not constant
    """

    names: tuple[str, ...]
    categorical: tuple[bool, ...]
    kept: tuple[int, ...]
    location: FloatArray
    scale: FloatArray
    levels: dict[str, tuple[str, ...]]
    constant: dict[str, float | str]
    n_other: dict[str, int] = field(default_factory=dict)
    n_moved: dict[str, int] = field(default_factory=dict)

    @classmethod
    def fit(cls, rows: Covariates) -> Encoding:
        """From the warm-up rows.

        Raises
        ------
        ValueError
            If no column varies.
        """
        numbers = rows.numbers
        varies = (numbers != numbers[:1]).any(axis=0) if len(numbers) else np.zeros(numbers.shape[1], dtype=bool)
        constant: dict[str, float | str] = {
            name: float(numbers[0, j]) for j, name in enumerate(rows.numeric_names) if not varies[j]
        }
        kept = np.flatnonzero(varies)
        quartiles = np.quantile(numbers[:, kept], [0.25, 0.5, 0.75], axis=0)
        spread = (quartiles[2] - quartiles[0]) / IQR_OF_NORMAL
        scale = np.maximum(spread, LEAST_SCALE * numbers[:, kept].std(axis=0))
        levels: dict[str, tuple[str, ...]] = {}
        for j, name in enumerate(rows.word_names):
            counts = pd.Series(rows.words[:, j]).value_counts()
            if len(counts) == 1:
                constant[name] = str(counts.index[0])
            else:
                levels[name] = tuple(sorted(map(str, counts.index[:MAX_LEVELS])))
        if not len(kept) and not levels:
            raise ValueError(
                f"all {len(rows.names)} covariates are constant in the first {len(rows)} rows; there is nothing to balance"
            )
        return cls(rows.names, rows.categorical, tuple(map(int, kept)), quartiles[1], scale, levels, constant)

    @property
    def columns(self) -> list[str]:
        """Names of the coordinates."""
        numeric = [name for name, words in zip(self.names, self.categorical, strict=True) if not words]
        coded = [f"{name}={level}" for name, levels in self.levels.items() for level in (*levels, "(other)")]
        return [numeric[j] for j in self.kept] + coded

    @property
    def n_columns(self) -> int:
        return len(self.kept) + sum(len(levels) + 1 for levels in self.levels.values())

    def transform(self, rows: Covariates, count: bool = True) -> FloatArray:
        """(n, d) coordinates; `count` notes unknown levels and dropped columns that move."""
        scaled = (rows.numbers[:, self.kept] - self.location) / self.scale
        if count and self.constant:
            self._note_moved(rows)
        if not self.levels:
            return scaled
        parts = [scaled]
        for j, name in enumerate(rows.word_names):
            if name not in self.levels:
                continue
            levels = self.levels[name]
            code = pd.Index(levels).get_indexer(pd.Index(rows.words[:, j]))
            unknown = code < 0
            if count and unknown.any():
                self.n_other[name] = self.n_other.get(name, 0) + int(unknown.sum())
            coded = np.zeros((len(rows), len(levels) + 1))
            coded[np.arange(len(rows)), np.where(unknown, len(levels), code)] = 1
            parts.append(coded)
        return np.concatenate(parts, axis=1)

    def _note_moved(self, rows: Covariates) -> None:
        columns = dict(zip(rows.numeric_names, rows.numbers.T, strict=True)) | dict(
            zip(rows.word_names, rows.words.T, strict=True)
        )
        for name, value in self.constant.items():
            moved = int(np.sum(columns[name] != value))
            if moved:
                self.n_moved[name] = self.n_moved.get(name, 0) + moved

    def inverse(self, X: FloatArray) -> pd.DataFrame:
        """Coordinates (n, d) back to columns in their own units, constant columns left out."""
        n_numeric = len(self.kept)
        numeric = self.columns[:n_numeric]
        table = pd.DataFrame(X[:, :n_numeric] * self.scale + self.location, columns=numeric)
        at = n_numeric
        for name, levels in self.levels.items():
            code = X[:, at : at + len(levels) + 1].argmax(axis=1)
            table[name] = np.array([*levels, "(other)"], dtype=object)[code]
            at += len(levels) + 1
        return table[[name for name in self.names if name not in self.constant]]

    def merge_counts(self, other: Encoding) -> None:
        """Add up what was noted while encoding."""
        for mine, theirs in ((self.n_other, other.n_other), (self.n_moved, other.n_moved)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def state(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {
            "names": list(self.names), "categorical": list(self.categorical), "kept": list(self.kept),
            "location": self.location.tolist(), "scale": self.scale.tolist(),
            "levels": {name: list(levels) for name, levels in self.levels.items()}, "constant": self.constant,
            "n_other": self.n_other, "n_moved": self.n_moved,
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoding:
        return cls(
            tuple(state["names"]), tuple(state["categorical"]), tuple(state["kept"]),
            np.array(state["location"], dtype=float), np.array(state["scale"], dtype=float),
            {name: tuple(levels) for name, levels in state["levels"].items()}, dict(state["constant"]),
            dict(state["n_other"]), dict(state["n_moved"]),
        )  # fmt: skip
