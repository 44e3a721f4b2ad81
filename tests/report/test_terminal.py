from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence

import pytest
from report_toys import HOSTILE
from rich.cells import cell_len
from rich.console import Console

from upheld.report.results import MethodResults
from upheld.report.terminal import VerdictTable


def printed(results: Sequence[MethodResults], width: int, *, terminal: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None).print(
        VerdictTable(results)
    )
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_is_longer_than_the_terminal(results: Sequence[MethodResults], width: int) -> None:
    assert max(cell_len(line) for line in printed(results, width).splitlines()) <= width


@pytest.mark.parametrize("width", [80, 140])
def test_each_claim_stands_on_a_line_with_its_verdict_and_estimate(
    results: Sequence[MethodResults], width: int
) -> None:
    lines = printed(results, width).splitlines()
    (line,) = [line for line in lines if line.strip().startswith("✗ not upheld")]
    assert "everywhere" in line
    assert "[−0.0" in line
    assert "n=20" in line
    assert ("strongest competitor" in line) == (width == 140)


def test_columns_stand_below_each_other_from_method_to_method(results: Sequence[MethodResults]) -> None:
    lines = [line for line in printed(results, 140).splitlines() if " n=" in line]
    assert len({len(line.rstrip()) for line in lines}) == 1
    assert len({line.index(line.split()[2 if line.split()[1] != "not" else 3]) for line in lines}) == 1


def test_a_pipe_gets_plain_text(results: Sequence[MethodResults]) -> None:
    assert "\x1b" not in printed(results, 80)
    assert "\x1b" in printed(results, 80, terminal=True)


def test_what_must_not_be_missed_is_said(results: Sequence[MethodResults]) -> None:
    text = " ".join(printed(results, 200).split())
    assert "median: the rule was changed: until" in text
    assert f"toymethod.broken: 4 of 16 trials failed: 4 × MemoryError: cannot allocate {HOSTILE}" in text
    assert "private: needs the clinic's table" in text
    assert "paper-scale: measured from full scale on" in text
    assert text.count("timed out after 10 s") == 1  # once for the experiment, not once a claim
    assert "its authors' claims: 4 upheld, 1 not upheld" in text


def test_markup_in_a_statement_is_text(results: Sequence[MethodResults]) -> None:
    one = results[1]
    claim = dataclasses.replace(one.claims[0], statement="[bold red]not markup[/] [link=http://x]y")
    text = printed([dataclasses.replace(one, claims=[claim, *one.claims[1:]])], 140)
    assert "[bold red]not markup[/] [link=http://x]y" in text


def test_an_endless_statement_is_cut(results: Sequence[MethodResults]) -> None:
    one = results[1]
    claim = dataclasses.replace(one.claims[0], statement="word " * 500)
    text = printed([dataclasses.replace(one, claims=[claim, *one.claims[1:]])], 80)
    assert text.count("word") < 40
    assert "…" in text
