"""The user's own files: one table with a group column, or one file per group."""

from __future__ import annotations

import csv
import difflib
import lzma
import re
import zlib
from collections.abc import Iterable, Sequence
from gzip import open as open_gzip
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
COMPRESSED = (".gz", ".xz")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def load_table(
    path: str | Path, *, groups: str, index: str | None = None, layer: str | None = None
) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Variables (n, p) and group labels (n,) from one file.

    Parameters
    ----------
    path : ``.csv``, ``.tsv`` or ``.txt`` (also ``.gz``, ``.xz``), ``.parquet``, or ``.h5ad`` (AnnData)
    groups : name of the group column; for AnnData, of a column of ``obs``
    index : name of a column of sample names; a first column without a name is taken for one
    layer : AnnData layer to read instead of ``X``

    Raises
    ------
    ValueError
        If the file cannot be read as a table, bears a column name twice, lacks a column that was named, or a name holds a
        control character.
    FileNotFoundError
        If there is no such file.
    """
    if index == groups:
        raise ValueError(
            f"column {groups!r} of {path} cannot hold the groups and the sample names; leave out the index"
        )
    table, labels = _read(Path(path), groups, index, layer)
    _check_printable(path, "column", table.columns)
    if labels is None:
        labels = table.pop(_column(table, groups, path, "group"))
    if table.shape[1] == 0:
        raise ValueError(f"{path} holds no variables beside the group column {groups!r}")
    _check_printable(path, "group", labels.unique())
    return table, labels


def load_files(
    paths: Sequence[str | Path], *, index: str | None = None, layer: str | None = None
) -> dict[str, pd.DataFrame]:
    """One (n_k, p) table per file; the file's name without its ending is the group's label.

    Raises
    ------
    ValueError
        As `load_table`; or if two files would get the same label.
    """
    tables: dict[str, pd.DataFrame] = {}
    for path in map(Path, paths):
        label = path.name.removesuffix("".join(path.suffixes[-2:]) if path.suffix in COMPRESSED else path.suffix)
        if label in tables:
            raise ValueError(f"two files are named {label!r}; the file name labels the group, so rename one of them")
        tables[label] = _read(path, None, index, layer)[0]
        _check_printable(path, "column", tables[label].columns)
    return tables


def _read(
    path: Path, groups: str | None, index: str | None, layer: str | None
) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    """The table, and the group labels if the format keeps them apart from it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; check the path")
    suffix = Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
    if suffix == ".h5ad":
        if index is not None:
            raise ValueError(f"{path} has sample names of its own, as .h5ad files do; leave out index={index!r}")
        return _read_anndata(path, groups, layer)
    if layer is not None:
        raise ValueError(f"{path} has no layers, only .h5ad files do; leave out layer={layer!r}")
    if suffix in TEXT:
        table = _read_text(path, TEXT[suffix])
    elif suffix == ".parquet":
        table = pd.read_parquet(path)
    else:
        raise ValueError(
            f"cannot tell the format of {path} from its ending {suffix!r}; use .csv, .tsv, .txt, .parquet or .h5ad"
        )
    if index is not None:
        table = table.set_index(_column(table, index, path, "index"))
    elif len(table.columns) and str(table.columns[0]).startswith("Unnamed: 0"):
        table = table.set_index(table.columns[0])
    if table.empty:
        raise ValueError(f"{path} holds no rows; expected one sample a row below a header line")
    return table, None


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    try:
        with _open(path) as file:
            _check_header(next(csv.reader(file, delimiter=separator), []), path, separator)
        table = pd.read_csv(path, sep=separator)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty; expected a header line and one sample a row below it") from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise ValueError(f"{path} is not a table separated by {separator!r}: {error}") from error
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} is cut short or no {path.suffix} file ({error}); compress it again") from error
    if isinstance(table.index, pd.MultiIndex):  # pandas would take the surplus for names of the rows
        more = table.index.nlevels
        raise ValueError(f"row 1 of {path} has {more} cells more than the header; name every column, or mend the row")
    return table


def _check_header(header: Sequence[str], path: Path, separator: str) -> None:
    seen: set[str] = set()
    for name in header:
        if name in seen:
            raise ValueError(f"column {name!r} occurs more than once in {path}; rename or drop the duplicates")
        seen.add(name)
    other = next((sign for sign in "\t;," if len(header) == 1 and sign in header[0]), None)
    if other:
        raise ValueError(
            f"{path} is separated by {other!r}, but its ending says {separator!r}; "
            "save it as CSV with commas and decimal points, or with tabs as .tsv"
        )


def _check_printable(path: str | Path, what: str, names: Iterable[object]) -> None:
    """Refuse names that would command the terminal that shows them, and that no SVG can hold."""
    for name in names:
        if UNPRINTABLE.search(str(name)):
            raise ValueError(f"{what} {str(name)!r} of {path} holds a control character; rename it")


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return open_gzip(path, "rt", encoding="utf-8", newline="")
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _read_anndata(path: Path, groups: str | None, layer: str | None) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    try:
        import anndata
    except ImportError as error:
        raise ValueError(f'reading {path} needs anndata: pip install "upheld[anndata]"') from error
    adata = anndata.read_h5ad(path)
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"{path} has no layer {layer!r}; it has {', '.join(map(repr, adata.layers)) or 'none'}")
    labels = None if groups is None else adata.obs[_column(adata.obs, groups, path, "group")]
    return adata.to_df(layer=layer), labels


def _column(table: pd.DataFrame, name: str, path: str | Path, role: str) -> str:
    if name in table.columns:
        return name
    close = difflib.get_close_matches(name, map(str, table.columns), n=1)
    shown = ", ".join(repr(str(column)) for column in table.columns[:5])
    hint = f"did you mean {close[0]!r}?" if close else f"its first columns are {shown}"
    raise ValueError(f"{path} has no {role} column {name!r}; {hint}")
