"""Rows at the door: covariates, treatment, outcome and time, checked; every error names the column and the row."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Label = int | str

MAX_ARMS = 20
MAX_SIZE = 1e100  # of a number, so that sums of squares stay finite
MAX_LABEL = 2**53  # beyond, neighbouring whole numbers are one float
NO_ID = -1


class BadRowError(ValueError):
    """A row that cannot be used; `row` is its position in what was passed, from 0."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class Covariates:
    """n rows of named columns, numeric ones apart from categorical ones.

    numbers (n, columns not categorical) floats; words (n, categorical columns) strings.
    """

    names: tuple[str, ...]
    categorical: tuple[bool, ...]
    numbers: FloatArray
    words: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice | IntArray) -> Covariates:
        return Covariates(self.names, self.categorical, self.numbers[rows], self.words[rows])

    @property
    def numeric_names(self) -> list[str]:
        return [name for name, words in zip(self.names, self.categorical, strict=True) if not words]

    @property
    def word_names(self) -> list[str]:
        return [name for name, words in zip(self.names, self.categorical, strict=True) if words]


@dataclass(frozen=True)
class Rows:
    """n observed rows in the order of their arrival; `treatment` holds labels, `ident` 63-bit hashes of ids or NO_ID."""

    covariates: Covariates
    treatment: NDArray[np.object_]
    outcome: FloatArray
    time: FloatArray
    ident: IntArray

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, rows: slice | IntArray) -> Rows:
        return Rows(self.covariates[rows], self.treatment[rows], self.outcome[rows], self.time[rows], self.ident[rows])


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    first = parts[0].covariates
    return Rows(
        Covariates(
            first.names,
            first.categorical,
            np.concatenate([part.covariates.numbers for part in parts]),
            np.concatenate([part.covariates.words for part in parts]),
        ),
        np.concatenate([part.treatment for part in parts]),
        np.concatenate([part.outcome for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.ident for part in parts]),
    )


def checked_covariates(X: Any, like: tuple[tuple[str, ...], tuple[bool, ...]] | None = None) -> Covariates:
    """Columns of a table (n, d), matched by name to the names and kinds `like` of earlier rows.

    Raises
    ------
    ValueError
        Naming the column that is missing, unknown, repeated or of another kind than before.
    BadRowError
        Naming column and row of the first value that is missing or not finite.
    """
    table = X if isinstance(X, pd.DataFrame) else _frame(X, like)
    names = tuple(map(str, table.columns))
    if like is not None:
        table = _matched(table, names, like[0])
        names = like[0]
    elif len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"column {twice!r} occurs more than once; rename or drop the duplicates")
    if not names:
        raise ValueError("there are no covariates; give at least one column")
    kinds = tuple(_is_words(dtype) for dtype in table.dtypes) if like is None else like[1]
    numbers = np.empty((len(table), len(names) - sum(kinds)))
    words = np.empty((len(table), sum(kinds)), dtype=object)
    at = {False: 0, True: 0}
    for position, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        column = table.iloc[:, position]
        if kind:
            words[:, at[kind]] = _words(column, name)
        else:
            numbers[:, at[kind]] = _numbers(column, name)
        at[kind] += 1
    return Covariates(names, kinds, numbers, words)


def _frame(X: Any, like: tuple[tuple[str, ...], tuple[bool, ...]] | None) -> pd.DataFrame:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"covariates must be a table (n, d), got an array of {array.ndim} dimensions; use X.reshape")
    if like is not None and array.shape[1] != len(like[0]):
        raise ValueError(f"X has {array.shape[1]} columns, but earlier rows had {len(like[0])}; pass the same columns")
    names = [f"x{j + 1}" for j in range(array.shape[1])] if like is None else list(like[0])
    return pd.DataFrame(array, columns=names)


def _matched(table: pd.DataFrame, names: tuple[str, ...], expected: tuple[str, ...]) -> pd.DataFrame:
    if names == expected:
        return table
    missing = [name for name in expected if name not in names]
    if missing:
        raise ValueError(f"column {missing[0]!r} is missing ({len(missing)} in all); pass the columns of earlier rows")
    unknown = [name for name in names if name not in expected]
    if unknown:
        raise ValueError(f"column {unknown[0]!r} was not there in earlier rows ({len(unknown)} such); leave it out")
    table = table.set_axis(list(names), axis=1)
    return table[list(expected)]


def _is_words(dtype: Any) -> bool:
    return not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)) or isinstance(
        dtype, pd.CategoricalDtype
    )


def _numbers(column: pd.Series, name: str) -> FloatArray:
    try:
        values = column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} was numeric in earlier rows and now holds {column.iloc[0]!r}; keep its type"
        ) from error
    _check_size(f"column {name!r}", values)
    return values


def _words(column: pd.Series, name: str) -> NDArray[np.object_]:
    bad = column.isna().to_numpy()
    if bad.any():
        raise _bad(f"column {name!r}", bad)
    return column.astype(str).to_numpy(dtype=object)


def _check_size(what: str, values: FloatArray) -> None:
    """Refuse what is missing, infinite, or so large that its square is."""
    if not np.isfinite(values).all():
        raise _bad(what, ~np.isfinite(values))
    large = np.abs(values) > MAX_SIZE
    if large.any():
        row = int(large.argmax())
        raise BadRowError(f"{what} is {values[row]:.3g} in row {row}, beyond {MAX_SIZE:g}; take another unit", row)


def _bad(what: str, bad: NDArray[np.bool_]) -> BadRowError:
    row = int(bad.argmax())
    return BadRowError(
        f"{what} is missing or not finite in row {row} ({int(bad.sum())} such rows); drop or impute them first", row
    )


def checked_outcome(y: ArrayLike, n: int) -> FloatArray:
    """(n,) finite outcomes."""
    try:
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError("the outcome is not numeric; code it as numbers") from error
    _check_length("outcomes", values, n)
    _check_size("the outcome", values)
    return values


def checked_treatment(treatment: Any, n: int) -> NDArray[np.object_]:
    """(n,) labels of arms: whole numbers, truth values or words.

    Raises
    ------
    ValueError
        If it holds fractions or more than 20 levels.
    """
    column = pd.Series(np.asarray(treatment) if not isinstance(treatment, pd.Series) else treatment.to_numpy())
    _check_length("treatments", column, n)
    if column.isna().any():
        raise _bad("the treatment", column.isna().to_numpy())
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=float)
        fraction = values != np.round(values)
        if fraction.any():
            row = int(fraction.argmax())
            raise ValueError(
                f"the treatment is {values[row]:.6g} in row {row}, but a continuous treatment is not supported; "
                "code the arms as 0, 1, ..."
            )
        if len(values) and np.abs(values).max() > MAX_LABEL:
            raise ValueError(
                f"the treatment is {np.abs(values).max():.6g}, too large for the number of an arm; code the arms as 0, 1, ..."
            )
        values_as_int = values.astype(np.int64)
        levels, codes = np.unique(values_as_int, return_inverse=True)
        labels: list[Label] = [int(level) for level in levels]
    else:
        levels, codes = np.unique(column.astype(str).to_numpy(dtype=str), return_inverse=True)
        labels = [str(level) for level in levels]
    check_arm_count(len(labels))
    table = np.empty(len(labels), dtype=object)
    table[:] = labels
    return table[codes]


def check_arm_count(count: int) -> None:
    """Refuse what is no treatment but a measurement."""
    if count > MAX_ARMS:
        raise ValueError(
            f"the treatment has {count} levels, more than {MAX_ARMS}; a continuous treatment is not supported: group it into arms"
        )


def checked_time(timestamps: Any, n: int) -> FloatArray:
    """(n,) numbers as they are, dates as seconds since 1970 (UTC)."""
    column = pd.Series(timestamps)
    _check_length("timestamps", column, n)
    if not pd.api.types.is_numeric_dtype(column.dtype):
        try:
            column = pd.to_datetime(column, utc=True, format="ISO8601" if column.dtype == object else None)
        except (TypeError, ValueError) as error:
            raise ValueError("the timestamps are neither numbers nor dates in ISO 8601; convert them first") from error
        if column.isna().any():
            raise _bad("the timestamp", column.isna().to_numpy())
        return np.asarray((column - pd.Timestamp(0, tz="UTC")).dt.total_seconds(), dtype=np.float64)
    numbers: FloatArray = np.asarray(column.to_numpy(dtype=float, na_value=np.nan))
    if not np.isfinite(numbers).all():
        raise _bad("the timestamp", ~np.isfinite(numbers))
    return numbers


def checked_repeats(sample_weight: Any, n: int) -> IntArray:
    """(n,) whole numbers of copies."""
    weights: FloatArray = np.asarray(sample_weight, dtype=float)
    _check_length("sample weights", weights, n)
    whole = np.isfinite(weights) & (weights >= 0) & (weights == np.round(weights))
    if not whole.all():
        row = int((~whole).argmax())
        raise ValueError(
            f"the sample weight of row {row} is {weights[row]:.6g}, but only whole numbers are supported, as copies of a row; "
            "an item of the sketch stands for a whole number of rows"
        )
    return weights.astype(np.int64)


def _check_length(what: str, values: Any, n: int) -> None:
    if np.ndim(values) != 1:
        raise ValueError(f"{what} must be one column, got {np.ndim(values)} dimensions; pass one value a row")
    if len(values) != n:
        raise ValueError(f"X has {n} rows but there are {len(values)} {what}; give one for every row")


def hashed(identifier: object) -> int:
    """A row's id as 63 bits, the same in every process, so that ids of any length cost eight bytes."""
    digest = hashlib.blake2b(f"{type(identifier).__name__}:{identifier}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def checked_values(
    x: Mapping[str, Any], like: tuple[tuple[str, ...], tuple[bool, ...]] | None
) -> tuple[tuple[float | str, ...], tuple[tuple[str, ...], tuple[bool, ...]]]:
    """One row's values in the order of the columns, and the columns; a first row (`like` None) says which there are."""
    if like is None:
        like = tuple(map(str, x)), tuple(isinstance(value, str) for value in x.values())
    names, categorical = like
    if len(x) != len(names):
        extra = [name for name in x if name not in names]
        if extra:
            raise ValueError(f"column {extra[0]!r} was not there in earlier rows; leave it out")
    values: list[float | str] = []
    for name, words in zip(names, categorical, strict=True):
        if name not in x:
            raise ValueError(f"column {name!r} is missing; pass the columns of earlier rows")
        value = x[name]
        if words:
            values.append(str(value))
            continue
        try:
            values.append(checked_number(float(value), f"column {name!r}"))
        except (TypeError, ValueError) as error:
            if isinstance(error, BadRowError):
                raise
            raise ValueError(
                f"column {name!r} was numeric in earlier rows and is now {value!r}; keep its type"
            ) from error
    return tuple(values), like


def checked_number(value: float, what: str) -> float:
    """The number itself, unless it is not finite."""
    if value - value != 0:  # faster than isfinite, and true of NaN and infinities alone
        raise BadRowError(f"{what} is missing or not finite; drop or impute the row first", 0)
    if not -MAX_SIZE <= value <= MAX_SIZE:
        raise BadRowError(f"{what} is {value:.3g}, beyond {MAX_SIZE:g}; take another unit", 0)
    return value


def numbers_of(X: FloatArray, names: tuple[str, ...]) -> Covariates | None:
    """The quick way in for float arrays without gaps; None if it is not open."""
    if X.ndim != 2 or X.shape[1] != len(names) or not (np.abs(X) <= MAX_SIZE).all():
        return None
    return Covariates(names, (False,) * len(names), X, np.empty((len(X), 0), dtype=object))
