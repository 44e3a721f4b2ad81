from __future__ import annotations

import pytest

from upheld.report.printing import Terminal, cell, clean

HOSTILE = "[bold]a\x1b[31m\x07[/]"


def test_signs_that_a_terminal_obeys_become_spaces():
    assert clean("a\x1b[2Jb\nc\td") == "a [2Jb\nc d"
    assert cell("two\nlines").plain == "two lines"


def test_what_the_user_named_is_neither_markup_nor_a_command(capsys):
    terminal = Terminal()
    terminal.say(HOSTILE)
    terminal.table(("name", "n"), [[HOSTILE, 3]])
    said = capsys.readouterr().out
    assert said.count("[bold]a [31m [/]") == 2
    assert "\x1b" not in said
    assert "\x07" not in said


@pytest.mark.parametrize(("headings", "lines"), [(("a", "b"), 2), (("", ""), 1)])
def test_a_table_without_headings_has_no_empty_line(capsys, headings, lines):
    Terminal().table(headings, [["x", "1"]])
    assert len(capsys.readouterr().out.splitlines()) == lines


def test_a_sentence_is_not_broken_in_a_pipe(capsys):
    Terminal().say("word " * 100)
    assert len(capsys.readouterr().out.splitlines()) == 1
