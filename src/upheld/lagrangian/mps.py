"""The numbers of an MPS file, looked at before a solver reads them.

HiGHS takes ``abc`` for 0 and ``1,5`` for 1 without a word, and of a NaN it says no more than that it cannot read the file. A bound
that was proven for another model than the one meant is none, so every number is checked, and the line told.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

SECTIONS = ("COLUMNS", "RHS", "RANGES", "BOUNDS")
WITHOUT_VALUE = ("FR", "MI", "PL", "BV")  # kinds of bounds


def check_numbers(path: str | Path) -> None:
    """Every number of an MPS file (also ``.gz``) is one, and none is a NaN; coefficients are finite.

    Lines whose names hold blanks cannot be told apart into fields and are left to the solver.

    Raises
    ------
    ValueError
        With the line, the section, the field and what it belongs to.
    """
    path = Path(path)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            _check(path, file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no whole .gz file: {error}") from None


def _check(path: Path, lines: TextIO) -> None:
    section = ""
    for number, line in enumerate(lines, 1):
        if line[0] not in " \t\r\n*":
            section = (line.split() or [""])[0].upper()
            continue
        if section not in SECTIONS or line[0] == "*":
            continue
        for of, word in _numbers(section, line.split()):
            wrong = _wrong(word, finite=section == "COLUMNS")
            if wrong:
                raise ValueError(
                    f"{path}, line {number}, section {section}: {word!r} for {of} {wrong}; write a number there, as 1.5 or 2e3"
                )


def _numbers(section: str, fields: list[str]) -> Iterator[tuple[str, str]]:
    """What a number belongs to, and the number as it is written."""
    if section == "BOUNDS":
        if len(fields) in (3, 4) and fields[0].upper() not in WITHOUT_VALUE:
            yield f"the bound of {fields[-2]}", fields[-1]
        return
    if len(fields) > 1 and fields[1].strip("'").upper() == "MARKER":
        return
    if len(fields) in (3, 5):
        of = f"{fields[0]} in row " if section == "COLUMNS" else "row "
        for k in range(1, len(fields), 2):
            yield of + fields[k], fields[k + 1]
    elif len(fields) in (2, 4) and section != "COLUMNS":  # without the name of a set
        for k in range(0, len(fields), 2):
            yield f"row {fields[k]}", fields[k + 1]


def _wrong(word: str, *, finite: bool) -> str:
    """What is wrong with a number; Fortran's D may stand for E."""
    if "_" in word:  # which Python reads over
        return "is no number"
    try:
        value = float(word.lower().replace("d", "e") if word[-1:].isdigit() else word)
    except ValueError:
        return "is no number"
    if math.isnan(value) or (finite and math.isinf(value)):
        return "is not finite"
    return ""
