"""Laws with mean 0 and variance 1, and the loader of a user's column of numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n)


def pareto(rng: np.random.Generator, n: int, tail: float = 2.1) -> np.ndarray:
    """Pareto with tail index just above 2, so that the variance is finite and the fourth moment is not."""
    mean, variance = tail / (tail - 1), tail / ((tail - 1) ** 2 * (tail - 2))
    return (1 + rng.pareto(tail, n) - mean) / np.sqrt(variance)


LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {"normal": normal, "pareto": pareto}


def load_column(path: Path, column: str) -> np.ndarray:
    """One column of a CSV file.

    Raises
    ------
    ValueError
        If the file is no table, has no such column, or the column is empty or holds something that is no number.
    """
    try:
        table = pd.read_csv(path)
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no CSV file ({error}); save it as comma-separated text in UTF-8") from error
    if column not in table:
        raise ValueError(f"{path} has no column {column!r}; it has {', '.join(map(str, table.columns))}")
    if table.empty:
        raise ValueError(f"{path}, column {column!r} holds no values; name a file that has some")
    values = pd.to_numeric(table[column], errors="coerce")
    if values.isna().any():
        raise ValueError(
            f"{path}, column {column!r}: line {int(values.isna().idxmax()) + 2} is no number; mend or drop it"
        )
    return values.to_numpy(float)
