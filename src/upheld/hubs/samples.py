"""Samples by group, checked: every error names the group and the variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d

FloatArray = NDArray[np.float64]

MIN_SAMPLES = 3
LEAST_VARIANCE = 1e-150  # below it, and above its inverse, products of two variances leave double precision


@dataclass(frozen=True)
class Samples:
    """K arrays (n_k, p) with the groups' labels, and the variables' names if known."""

    Xs: list[FloatArray]
    labels: list[Any]
    names: Sequence[str] | None = None

    @property
    def joint_rank(self) -> int:
        """sum (n_k - 1), equal samples counted once: more the joint rank of the groups' matrices cannot be."""
        return sum(len({row.tobytes() for row in X}) - 1 for X in self.Xs)

    def variable(self, j: int) -> str:
        return f"column {j}" if self.names is None else f"column {self.names[j]!r}"


def check_numeric(X: object) -> None:
    """Refuse a DataFrame with columns that are not numeric or bear the same name."""
    if not isinstance(X, pd.DataFrame):
        return
    repeated = X.columns[X.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"column {repeated[0]!r} occurs more than once; rename or drop the duplicates")
    for name, dtype in X.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            try:
                X[name].astype(float)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {name!r} is not numeric ({dtype}); drop it, or name it as the group or index column"
                ) from error


def split_by_group(X: FloatArray, groups: ArrayLike, names: Sequence[str] | None) -> Samples:
    """Rows of X (n, p) by the sorted labels of `groups` (n,)."""
    labels = pd.Series(column_or_1d(groups, warn=True))
    if len(labels) != len(X):
        raise ValueError(f"X has {len(X)} rows but there are {len(labels)} group labels; give one label for every row")
    if labels.isna().any():
        raise ValueError(
            f"{int(labels.isna().sum())} group labels are missing (NaN), the first in row {int(labels.isna().argmax())}; "
            "drop those rows or label them"
        )
    unique = sorted(labels.unique(), key=lambda label: (str(type(label)), label))
    return Samples([X[(labels == label).to_numpy()] for label in unique], unique, names)


def stack_groups(Xs: Sequence[ArrayLike | pd.DataFrame] | Mapping[Any, ArrayLike | pd.DataFrame]) -> Samples:
    """One matrix per group, all with the same columns; DataFrames are matched by column name."""
    labels, tables = _labelled(Xs)
    if not tables:
        raise ValueError("no groups were given; pass one (n_k, p) matrix for each group")
    for label, table in zip(labels, tables, strict=True):
        try:
            check_numeric(table)
        except ValueError as error:
            raise ValueError(f"group {label!r}: {error}") from error
    first = tables[0]
    if all(isinstance(table, pd.DataFrame) for table in tables):
        assert isinstance(first, pd.DataFrame)
        for label, table in zip(labels, tables, strict=True):
            _check_same_columns(first, table, labels[0], label)
        tables = [table[first.columns] for table in tables]
    arrays = [check_array(table, dtype=np.float64, ensure_all_finite=False) for table in tables]
    for label, array in zip(labels, arrays, strict=True):
        if array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"group {label!r} has {array.shape[1]} columns but group {labels[0]!r} has {arrays[0].shape[1]}; "
                "all groups must measure the same variables"
            )
    names = [str(name) for name in first.columns] if isinstance(first, pd.DataFrame) else None
    return Samples(arrays, labels, names)


def stack_matrices(
    S: Sequence[ArrayLike] | Mapping[Any, ArrayLike] | NDArray[Any],
) -> tuple[list[Any], list[ArrayLike], list[str] | None]:
    """Labels, matrices (p, p) and names of the variables; DataFrames are matched by column name."""
    labels, matrices = _labelled(S)
    if not matrices:
        raise ValueError("no matrices were given; pass one (p, p) matrix for each group")
    first = matrices[0]
    if not all(isinstance(matrix, pd.DataFrame) for matrix in matrices):
        return labels, matrices, None
    for label, matrix in zip(labels, matrices, strict=True):
        check_numeric(matrix)
        _check_same_columns(first, matrix, labels[0], label)
    orders = [matrix.columns.get_indexer(first.columns) for matrix in matrices]
    matched = [matrix.to_numpy(float)[np.ix_(order, order)] for matrix, order in zip(matrices, orders, strict=True)]
    return labels, matched, [str(name) for name in first.columns]


def _labelled(groups: Any) -> tuple[list[Any], list[Any]]:
    if isinstance(groups, Mapping):
        return list(groups), list(groups.values())
    return list(range(len(groups))), list(groups)


def _check_same_columns(first: pd.DataFrame, table: Any, first_label: object, label: object) -> None:
    missing = first.columns.difference(table.columns)
    extra = table.columns.difference(first.columns)
    if len(missing) or len(extra):
        what = f"lacks {missing[0]!r}" if len(missing) else f"has {extra[0]!r} in addition"
        raise ValueError(
            f"the columns differ across groups: group {label!r} {what}, compared with group {first_label!r} "
            f"({len(missing)} missing, {len(extra)} extra); keep the columns that all groups share"
        )


def check_samples(samples: Samples) -> None:
    """Refuse groups that are too small, values that are not finite, and constant columns."""
    for label, X in zip(samples.labels, samples.Xs, strict=True):
        where = "" if label is None else f" in group {label!r}"
        bad = ~np.isfinite(X)
        if bad.any():
            j = int(bad.any(axis=0).argmax())
            raise ValueError(
                f"{samples.variable(j)}{where} holds {int(bad[:, j].sum())} NaN or infinity values "
                f"({int(bad.any(axis=0).sum())} columns affected); impute or drop them first"
            )
        if len(X) < MIN_SAMPLES:
            raise ValueError(
                f"too few samples{where}: n_samples = {len(X)}, at least {MIN_SAMPLES} are needed; "
                "merge small groups or drop them"
            )
        largest = np.abs(X).max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            constant = np.ptp(X, axis=0) <= 1e-14 * largest
            variance = X.var(axis=0)
        if constant.any():
            j = int(constant.argmax())
            raise ValueError(
                f"{samples.variable(j)} is constant{where} ({len(X)} samples; {int(constant.sum())} such columns); "
                "drop it, as it has no correlations there"
            )
        extreme = ~((variance > LEAST_VARIANCE) & (variance < 1 / LEAST_VARIANCE))
        if extreme.any():
            j = int(extreme.argmax())
            raise ValueError(
                f"{samples.variable(j)}{where} has values up to {largest[j]:.3g}, too extreme for their squares to be "
                "computed; measure it in another unit"
            )
