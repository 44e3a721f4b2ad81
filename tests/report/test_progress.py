from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from upheld.report import progress
from upheld.report.progress import Progress


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, error = capsys.readouterr()
    assert out == ""
    return error.splitlines()


def test_what_is_short_says_nothing_where_there_is_no_terminal(clock, capsys):
    with Progress() as shown, shown.part("scoring", 3) as part:
        for _ in range(3):
            clock.now += 9.9
            part.advance()
    assert said(capsys) == []


def test_a_line_every_half_minute_with_the_time_left(clock, capsys):
    with Progress() as shown, shown.part("scoring", 4_000, "prompts") as part:
        for done in range(100, 1_001, 100):
            clock.now += 10
            part.reach(done)
    assert said(capsys) == [
        "scoring: 300 of 4,000 prompts, about 6 min 10 s left",
        "scoring: 600 of 4,000 prompts, about 5 min 40 s left",
        "scoring: 900 of 4,000 prompts, about 5 min 10 s left",
    ]


def test_how_long_nobody_knows_without_a_total_or_before_the_first_piece(clock, capsys):
    with Progress() as shown:
        with shown.part("looking", unit="prompts") as part:
            clock.now += 31
            part.reach(1_234)
        with shown.part("learning", 5) as part:
            clock.now += 31
            part.reach(0)
            clock.now += 31
            part.reach(5)  # the end is not worth a line
    assert said(capsys) == ["looking: 1,234 prompts", "learning: 0 of 5"]


def test_each_part_is_announced_where_that_is_wanted_and_names_are_no_markup(clock, capsys):
    with Progress(announce=True) as shown:
        for label in ("reading [red]a.csv[/]", "x" * 300):
            with shown.part(label, 1) as part:
                part.advance()
    assert said(capsys) == ["reading [red]a.csv[/]", "x" * 300]


def test_own_words_instead_of_the_count(clock, capsys):
    with Progress() as shown, shown.part("stream.csv", 1.0) as part:
        clock.now += 30
        part.reach(0.5, "12,000 rows")
    assert said(capsys) == ["stream.csv: 12,000 rows, about 30 s left"]


ON_A_TERMINAL = """
from upheld.report.progress import Progress
with Progress(announce=True) as shown, shown.part("[i]counting[/]", 2, "sheep") as part:
    part.advance()
    shown.bar.refresh()
    print("the result")
"""


def test_on_a_terminal_a_bar_and_what_is_piped_stays_in_the_pipe():
    terminal, end = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
        "TERM": "xterm",
        "COLUMNS": "100",
    }
    try:
        program = subprocess.Popen(
            [sys.executable, "-c", ON_A_TERMINAL], env=variables, stdout=subprocess.PIPE, stderr=end, text=True
        )
        printed, _ = program.communicate(timeout=60)
        shown = os.read(terminal, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(end)
    assert (program.returncode, printed) == (0, "the result\n")
    assert "[i]counting[/]" in shown
    assert "1 of 2 sheep" in shown
    assert "━" in shown
    assert "left" in shown
