"""Vectors from a user's file, checked, and back into one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from upheld.memory.geometry import FloatArray

ENDINGS = (".npy", ".npz", ".csv", ".parquet", ".safetensors")


def read_vectors(
    path: Path, *, without: str | None = None, names: str | None = None
) -> tuple[FloatArray, pd.Series | None]:
    """Rows of a file as (M, N) floats, and the column `without` apart from them; a column `names`, if it is there, is no number.

    Raises
    ------
    ValueError
        If the file cannot be read, holds no table of numbers, lacks the column, or holds a gap; the message names file, row, column.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}; name one that ends in {', '.join(ENDINGS)}")
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path} ends in {ending or 'nothing'}; vectors are read from {', '.join(ENDINGS)}")
    try:
        table = _table(path, ending)
    except Exception as error:  # damaged files fail in as many ways as there are formats
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(
            f"{path} cannot be read as {ending} ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        ) from error
    apart = None
    if without is not None:
        if without not in table.columns:
            raise ValueError(f"{path} has no column {without!r}; it has {_some(table.columns)}")
        apart = table.pop(without)
    if names is not None and names != without and names in table.columns:
        table = table.drop(columns=names)
    return _numbers(table, path), apart


def _table(path: Path, ending: str) -> pd.DataFrame:
    if ending == ".csv":
        table = pd.read_csv(path)
        unnamed = [name for name in table.columns if str(name).startswith("Unnamed: 0")]
        return table.drop(columns=unnamed)
    if ending == ".parquet":
        return pd.read_parquet(path)
    if ending == ".npy":
        with path.open("rb") as file:
            return _frame(np.lib.format.read_array(file, allow_pickle=False), path)
    tensors: dict[str, Any]
    if ending == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            tensors = {name: archive[name] for name in archive.files}
    else:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            tensors = dict(load_file(path))
        except SafetensorError as error:  # no ValueError
            raise ValueError(str(error)) from error
    if len(tensors) != 1:
        raise ValueError(f"{path} holds {len(tensors)} arrays ({_some(tensors)}); keep the one with the vectors")
    return _frame(next(iter(tensors.values())), path)


def _frame(array: Any, path: Path) -> pd.DataFrame:
    if array.ndim != 2:
        raise ValueError(f"{path} holds an array of shape {array.shape}; vectors are a table, a row each")
    return pd.DataFrame(array)


def _numbers(table: pd.DataFrame, path: Path) -> FloatArray:
    if not len(table) or not len(table.columns):
        raise ValueError(f"{path} holds no vectors; expected a row each")
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ValueError(f"column {name!r} of {path} is not numeric; drop it, or name it with --id or --truth")
    values = table.to_numpy(dtype=float)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"row {row} of {path} has {values[row, column]} in column {table.columns[column]!r} ({len(bad)} such "
            "cells); drop or mend these rows"
        )
    return values


def _some(names: Any, most: int = 6) -> str:
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def write_vectors(out: Path, X: FloatArray) -> None:
    """In the format that the ending names."""
    ending = out.suffix.lower()
    if ending == ".npy":
        np.save(out, X)
    elif ending == ".npz":
        np.savez_compressed(out, vectors=X)
    elif ending == ".csv":
        pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).to_csv(out, index=False)
    elif ending == ".parquet":
        pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).to_parquet(out, index=False)
    else:
        raise ValueError(
            f"{out.name.removeprefix('.unfinished.')} ends in no known format; name a file in .npy, .npz, .csv or .parquet"
        )
