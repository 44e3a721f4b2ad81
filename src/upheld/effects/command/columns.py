"""Which columns are what, fixed by the first chunk; and which rows can be used."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from upheld.effects.command.sources import Chunk
from upheld.effects.rows import MAX_SIZE, FloatArray

NUMERIC_SHARE = 0.9  # of the words of a column that are numbers; then the others are mistakes
# A column of words that mostly differ, in at least so many rows, may be a name of rows.
NAME_SHARE, NAME_ROWS = 0.5, 100
COMMA_NUMBER = re.compile(r"\s*[+-]?(\d+(,\d+)+|\d*,\d+)(\.\d*)?\s*")  # 0,126 or 1,234.5
DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*")


@dataclass(frozen=True)
class Batch:
    """Rows that can be used, as `partial_fit` takes them."""

    X: pd.DataFrame
    y: FloatArray
    treatment: pd.Series
    timestamps: pd.Series | None

    def __len__(self) -> int:
        return len(self.y)


@dataclass
class Columns:
    """The user's columns.

    Parameters
    ----------
    treatment, outcome, time : names; time may be None
    covariates : names, or None for all other columns, until the first chunk shows which these are
    words, dated : of each covariate, whether it holds words; whether the times are dates; None before the first chunk
    skip : whether rows that cannot be used are left out; else they are errors
    skipped : rows left out, by the first column that was the reason
    """

    treatment: str
    outcome: str
    time: str | None
    covariates: tuple[str, ...] | None
    skip: bool
    words: tuple[bool, ...] | None = None
    dated: bool | None = None
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def wanted(self) -> list[str] | None:
        """All that is read, None for every column."""
        if self.covariates is None:
            return None
        return [*self.covariates, self.treatment, self.outcome, *([self.time] if self.time else [])]

    def usable(self, chunk: Chunk) -> Batch:
        """The rows of a chunk that can be used.

        Raises
        ------
        ValueError
            Naming the column that is missing; or, unless bad rows are skipped, column and row of the first value that is missing,
            not finite or no number; or of a fraction among the treatments.
        """
        self._fix(chunk)
        assert self.covariates is not None
        assert self.words is not None
        table = chunk.table
        bad: dict[str, NDArray[np.bool_]] = {}
        X: dict[str, Any] = {}
        for name, words in zip(self.covariates, self.words, strict=True):
            X[name] = table[name] if words else _numbers(table[name])
            bad[name] = _gaps(X[name])
        y = _numbers(table[self.outcome])
        bad[self.outcome] = _gaps(y)
        bad[self.treatment] = _gaps(table[self.treatment])
        when = self._times(chunk) if self.time else None
        if self.time and when is not None:
            bad[self.time] = _gaps(when)
        good = self._good(chunk, bad)
        treatment = table[self.treatment][good]
        self._refuse_fractions(chunk, treatment, good)
        return Batch(
            pd.DataFrame(X, columns=list(self.covariates))[good], y.to_numpy(float)[good], treatment,
            None if when is None else when[good],
        )  # fmt: skip

    def _good(self, chunk: Chunk, bad: dict[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        good = np.ones(len(chunk), dtype=bool)
        for name, rows in bad.items():
            reason = good & rows
            if not reason.any():
                continue
            if not self.skip:
                first = int(reason.argmax())
                if chunk.table[name].isna().all() and len(chunk) >= NAME_ROWS:
                    raise ValueError(
                        f"column {name!r} of {chunk.source} is empty in rows {chunk.first:,} to "
                        f"{chunk.first + len(chunk) - 1:,}; leave it out: list the columns to balance with --covariates"
                    )
                kind = "date" if name == self.time and self.dated else "number"
                raise ValueError(
                    f"column {name!r} is {_shown(chunk.table[name].iloc[first], kind)} in row {chunk.first + first:,} of {chunk.source}"
                    f" ({int(rows.sum()):,} such rows up to row {chunk.first + len(chunk) - 1:,}); mend or drop them, or pass "
                    "--on-bad-rows skip"
                )
            self.skipped[name] = self.skipped.get(name, 0) + int(reason.sum())
            good &= ~rows
        return good

    def _refuse_fractions(self, chunk: Chunk, treatment: pd.Series, good: NDArray[np.bool_]) -> None:
        if not pd.api.types.is_float_dtype(treatment.dtype):
            return
        values = treatment.to_numpy(float)
        fraction = values != np.round(values)
        if fraction.any():
            at = int(fraction.argmax())
            row = chunk.first + int(np.flatnonzero(good)[at])
            raise ValueError(
                f"column {self.treatment!r} is {values[at]:.6g} in row {row:,} of {chunk.source}, but a continuous treatment is not "
                "supported; code the arms as 0, 1, ... or as words"
            )

    def _times(self, chunk: Chunk) -> pd.Series:
        """Numbers or dates, as in the first chunk; gaps for what is neither."""
        column = chunk.table[self.time]
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            dated, times = True, column
        else:
            numbers, dates = (
                _numbers(column),
                pd.to_datetime(column.astype(str), errors="coerce", utc=True, format="ISO8601"),
            )
            dated = not pd.api.types.is_numeric_dtype(column.dtype) and bool(
                dates.notna().sum() > numbers.notna().sum()
            )
            times = dates if dated else numbers
        if self.dated is None:
            self.dated = dated
        elif self.dated != dated:
            kinds = ("numbers", "dates") if dated else ("dates", "numbers")
            raise ValueError(
                f"column {self.time!r} held {kinds[0]} in earlier rows and holds {kinds[1]} in {chunk.source}; write it one way"
            )
        if times.isna().all():
            raise ValueError(
                f"column {self.time!r} of {chunk.source} is {column.iloc[0]!r} in row {chunk.first:,}, neither a number nor a date in "
                "ISO 8601 such as 2026-01-31; rewrite it"
            )
        return times

    def _fix(self, chunk: Chunk) -> None:
        there = list(map(str, chunk.table.columns))
        if self.covariates is None:
            self._check_there([self.treatment, self.outcome, *([self.time] if self.time else [])], there, chunk.source)
            taken = {self.treatment, self.outcome, self.time}
            self.covariates = tuple(name for name in there if name not in taken)
            if not self.covariates:
                raise ValueError(
                    f"{chunk.source} has no column besides treatment and outcome; there is nothing to balance"
                )
        self._check_there(self.wanted or [], there, chunk.source)
        if self.words is None:
            self.words = tuple(self._is_words(chunk.table[name], chunk.source) for name in self.covariates)
            self._point_out(chunk.table)

    def _point_out(self, table: pd.DataFrame) -> None:
        """Covariates that can hardly be meant: copies of the treatment or the outcome, and columns that bear one name."""
        assert self.covariates is not None
        for name in self.covariates:
            for role in (self.treatment, self.outcome):
                if len(table) >= NAME_ROWS and table[name].astype(str).equals(table[role].astype(str).rename(name)):
                    warnings.warn(
                        f"column {name!r} is the same as {role!r}; leave it out with --covariates", stacklevel=2
                    )
            base, _, number = name.rpartition(".")
            if number.isdecimal() and base in map(str, table.columns):
                warnings.warn(
                    f"column {name!r} may be a second column of the name {base!r}, numbered in reading; rename it, or list the columns to "
                    "balance with --covariates",
                    stacklevel=2,
                )

    def _check_there(self, wanted: list[str], there: list[str], source: str) -> None:
        missing = [name for name in wanted if name not in there]
        if missing:
            raise ValueError(f"{source} has no column {missing[0]!r}; there are {_listed(there)}")

    def _is_words(self, column: pd.Series, source: str) -> bool:
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
            return False
        known = column.dropna()
        if known.map(lambda value: isinstance(value, list | dict | tuple | np.ndarray)).any():
            raise ValueError(
                f"column {column.name!r} of {source} holds lists, which are no covariate; list the columns to balance with --covariates"
            )
        words = known.astype(str)
        if pd.api.types.is_datetime64_any_dtype(column.dtype) or _mostly(words, DATE):
            raise ValueError(
                f"column {column.name!r} of {source} holds dates, which are no covariate; name it with --time, or list the "
                "columns to balance with --covariates"
            )
        if _mostly(words, COMMA_NUMBER):
            raise ValueError(
                f"column {column.name!r} of {source} holds numbers with commas, such as {words.iloc[0][:40]!r}; write them with a point "
                "and without separators, or list the columns to balance with --covariates"
            )
        if len(known) and pd.to_numeric(words, errors="coerce").notna().mean() >= NUMERIC_SHARE:
            return False
        if len(known) >= NAME_ROWS and known.nunique() > NAME_SHARE * len(known):
            warnings.warn(
                f"column {column.name!r} holds {known.nunique():,} different words in the first {len(column):,} rows; if it names "
                "rows, or tells when they came, leave it out with --covariates",
                stacklevel=2,
            )
        return True


def _mostly(words: pd.Series, pattern: re.Pattern[str]) -> bool:
    return len(words) > 0 and bool(words.str.fullmatch(pattern).mean() >= NUMERIC_SHARE)


def _numbers(column: pd.Series) -> pd.Series:
    """Floats; NaN for what is no number."""
    return pd.to_numeric(column, errors="coerce").astype(float)


def _gaps(column: pd.Series) -> NDArray[np.bool_]:
    """What is missing, not finite, or too large."""
    gaps = column.isna().to_numpy(dtype=bool)
    if pd.api.types.is_float_dtype(column.dtype):
        gaps = gaps | ~(np.abs(column.to_numpy(dtype=float, na_value=np.nan)) <= MAX_SIZE)
    return gaps


def _shown(value: Any, kind: str = "number") -> str:
    if isinstance(value, str):
        return f"{value[:40]!r}, no {kind},"
    if pd.isna(value):
        return "missing"
    return f"beyond {MAX_SIZE:g} ({value:.4g})" if np.isfinite(value) else f"not finite ({value})"


def _listed(names: list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
