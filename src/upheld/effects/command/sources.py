"""Where rows come from: CSV, Parquet by row group, JSON lines, standard input; a chunk at a time, whatever the length of the file."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

CHUNK_ROWS = 8192
HEAD_BYTES = 4096
STDIN = "-"
PARQUET, LINES = (".parquet", ".pq"), (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a file; `first` is the number of the first of them there, from 1."""

    table: pd.DataFrame
    source: str
    first: int

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: slice) -> Chunk:
        return Chunk(self.table.iloc[rows], self.source, self.first + (rows.start or 0))


@dataclass
class Source:
    """A file, or standard input.

    Parameters
    ----------
    name : path, or "-"
    lenient : whether a JSON line that cannot be read is a row with nothing in it (to be skipped), and no error
    """

    name: str
    lenient: bool = False
    share: float = field(default=0.0, init=False)  # read so far, as far as can be known

    @property
    def label(self) -> str:
        return "standard input" if self.name == STDIN else self.name

    @property
    def kind(self) -> str:
        endings = [ending.lower() for ending in Path(self.name).suffixes if ending.lower() != ".gz"]
        ending = endings[-1] if endings else ""
        return "parquet" if ending in PARQUET else "lines" if ending in LINES else "csv"

    @property
    def nbytes(self) -> int:
        return 0 if self.name == STDIN else Path(self.name).stat().st_size

    def head(self, length: int = HEAD_BYTES) -> tuple[int, str]:
        """How many bytes, at most `length`, and the digest of these first bytes: what tells a file that was replaced."""
        if self.name == STDIN:
            return 0, ""
        with open(self.name, "rb") as file:
            start = file.read(length)
        return len(start), hashlib.sha256(start).hexdigest()

    def chunks(self, skip: int = 0, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Rows after the first `skip`; of Parquet only `columns`, where these are named.

        Raises
        ------
        ValueError
            If the file cannot be read, is empty, or has fewer rows than are to be skipped.
        """
        rows = 0
        try:
            for chunk in self._all(skip, columns):
                last = chunk.first + len(chunk) - 1
                rows = last
                if last > skip:
                    yield chunk[max(skip + 1 - chunk.first, 0) :]
        except pd.errors.EmptyDataError as error:
            raise ValueError(f"{self.label} is empty; it needs a line of column names and a line a row") from error
        except (pd.errors.ParserError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{self.label} cannot be read as {self._format} ({reason}); mend that line") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{self.label} is not a whole gzip file ({error}); restore it from a copy") from error
        if rows < skip:
            raise ValueError(
                f"{self.label} has {rows:,} rows, fewer than the {skip:,} read before; is it the same file?"
            )
        if rows == 0:
            raise ValueError(f"{self.label} has no rows; name a file with at least one")
        self.share = 1.0

    @property
    def _format(self) -> str:
        return {"parquet": "Parquet", "lines": "JSON lines", "csv": "CSV in UTF-8"}[self.kind]

    def _all(self, skip: int, columns: Sequence[str] | None) -> Iterator[Chunk]:
        if self.name == STDIN:
            yield from self._typed(sys.stdin.buffer)
        elif self.kind == "parquet":
            yield from self._row_groups(skip, columns)
        else:
            with open(self.name, "rb") as raw:
                packed = self.name.lower().endswith(".gz")
                with gzip.open(raw) if packed else raw as file:
                    for chunk in self._lines(file) if self.kind == "lines" else self._csv(file):
                        self.share = raw.tell() / max(self.nbytes, 1)
                        yield chunk

    def _typed(self, stream: Any) -> Iterator[Chunk]:
        """Standard input is JSON lines if it begins with a brace, else CSV."""
        start = stream.peek(1)[:1] if hasattr(stream, "peek") else b""
        yield from self._lines(stream) if start == b"{" else self._csv(stream)

    def _csv(self, file: Any) -> Iterator[Chunk]:
        first = 1
        separator = "\t" if ".tsv" in Path(self.name).suffixes else ","
        with pd.read_csv(file, chunksize=CHUNK_ROWS, sep=separator, skipinitialspace=True) as reader:
            for table in reader:
                yield Chunk(table, self.label, first)
                first += len(table)

    def _lines(self, file: Any) -> Iterator[Chunk]:
        rows: list[dict[str, Any]] = []
        first = 1
        for number, line in enumerate(file, start=1):
            if line.strip():
                rows.append(self._record(line, number))
            if len(rows) == CHUNK_ROWS:
                yield Chunk(pd.DataFrame.from_records(rows), self.label, first)
                first, rows = first + len(rows), []
        if rows:
            yield Chunk(pd.DataFrame.from_records(rows), self.label, first)

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line, parse_int=_whole)
        except (ValueError, RecursionError):  # no JSON, not in UTF-8, or lists in lists without end
            record = None
        nested = (
            [name for name, value in record.items() if isinstance(value, list | dict)]
            if isinstance(record, dict)
            else []
        )
        if isinstance(record, dict) and not nested:
            return record
        if self.lenient:
            return {}
        what = f"holds more than one value under {nested[0]!r}" if nested else "is no JSON object"
        raise ValueError(f"line {number} of {self.label} {what}; mend it, or pass --on-bad-rows skip to leave it out")

    def _row_groups(self, skip: int, columns: Sequence[str] | None) -> Iterator[Chunk]:
        """Whole row groups before `skip` are not read at all."""
        with parquet_file(self.name) as file:
            there = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
            total, first = max(file.metadata.num_rows, 1), 1
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if first + rows - 1 <= skip:
                    first += rows
                    continue
                for batch in file.iter_batches(CHUNK_ROWS, row_groups=[group], columns=there):
                    yield Chunk(batch.to_pandas(), self.label, first)
                    first += batch.num_rows
                    self.share = (first - 1) / total
            if skip and first - 1 <= skip:  # all of it was read before
                yield Chunk(pd.DataFrame(index=range(0)), self.label, first)


def _whole(digits: str) -> int | float:
    """A whole number of any length, as a float where it is too long for 64 bits."""
    return int(digits) if len(digits) < 19 else float(digits)


def parquet_file(name: str) -> Any:
    """Opened, or one sentence why not."""
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(name)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{name} cannot be read as Parquet ({error}); restore it from a copy") from error
