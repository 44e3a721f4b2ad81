"""Numbers of MPS files: what a solver would read as something else is told by its line; what the format allows is not."""

from __future__ import annotations

import gzip
from pathlib import Path

import highspy
import pytest

from upheld.lagrangian import CoupledMILP, data
from upheld.lagrangian.mps import check_numbers

TEXT = """\
* a comment with nan in it
NAME          nan
OBJSENSE
    MAX
ROWS
 N  COST
 L  LIM
 G  nan
COLUMNS
    MARKER    'MARKER'        'INTORG'
    x         COST             {cost}   LIM              1
    x         nan              -2
    MARKER    'MARKER'        'INTEND'
    y         nan              1d1
RHS
    RHS1      LIM              {side}   nan              1
RANGES
    RNG       LIM              {range}
BOUNDS
 UP BND1      x                {bound}
 MI BND1      y
 UP           y                {bound}
ENDATA
"""
GOOD = {"cost": "1.5e0", "side": "4", "range": "2.5", "bound": "1e30"}


def written(folder: Path, **changed: str) -> Path:
    path = folder / "x.mps"
    path.write_text(TEXT.format(**{**GOOD, **changed}))
    return path


@pytest.mark.parametrize("bound", ["1e30", "inf", "Infinity", "-3", "+4."])
def test_what_the_format_allows(tmp_path, bound):
    check_numbers(written(tmp_path, bound=bound))


@pytest.mark.parametrize(
    ("place", "line", "of"),
    [
        ("cost", 11, "section COLUMNS: {!r} for x in row COST"),
        ("side", 16, "section RHS: {!r} for row LIM"),
        ("range", 18, "section RANGES: {!r} for row LIM"),
        ("bound", 20, "section BOUNDS: {!r} for the bound of x"),
    ],
)
@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("nan", "is not finite"),
        ("NaN", "is not finite"),
        *((word, "is no number") for word in ("abc", "1,5", "1_0", "1.2.3")),
    ],
)
def test_the_line_is_told(tmp_path, place, line, of, word, wrong):
    path = written(tmp_path, **{place: word})
    with pytest.raises(ValueError) as told:
        CoupledMILP.from_mps(path, "LIM")
    assert str(told.value).startswith(f"{path}, line {line}, {of.format(word)} {wrong}; write a number there")


def test_an_infinite_coefficient(tmp_path):
    with pytest.raises(ValueError, match="line 11, section COLUMNS: 'inf' for x in row COST is not finite"):
        check_numbers(written(tmp_path, cost="inf"))


def test_the_solver_alone_would_have_read_something_else(tmp_path):
    """Why the check is there; if HiGHS refuses this one day, the check may go."""
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    assert h.readModel(str(written(tmp_path, side="1,5"))) == highspy.HighsStatus.kOk
    assert h.getLp().row_upper_[0] == 1.0


def test_packed_files_and_our_own(tmp_path):
    path = tmp_path / "x.mps.gz"
    path.write_bytes(gzip.compress(TEXT.format(**{**GOOD, "side": "nan"}).encode()))
    with pytest.raises(ValueError, match="line 16, section RHS: 'nan' for row LIM is not finite"):
        check_numbers(path)
    path.write_bytes(gzip.compress(TEXT.format(**GOOD).encode())[:60])
    with pytest.raises(ValueError, match=r"is no whole \.gz file"):
        check_numbers(path)
    for path in data.write_days(tmp_path / "days", past=1):
        check_numbers(path)
