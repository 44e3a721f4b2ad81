"""How outcomes look: a shape, a word and a colour each, so that none is needed alone."""

from __future__ import annotations

from dataclasses import dataclass

from upheld.claims import Outcome


@dataclass(frozen=True)
class Mark:
    """An outcome's sign.

    Parameters
    ----------
    glyph : in text
    name : of its shape in the pages' drawings and of its class in the style sheet
    style : on the terminal
    """

    glyph: str
    name: str
    style: str


MARKS = {
    Outcome.UPHELD: Mark("✓", "upheld", "green"),
    Outcome.NOT_UPHELD: Mark("✗", "refuted", "red"),
    Outcome.INCONCLUSIVE: Mark("◇", "open", "yellow"),
    Outcome.REPORTED: Mark("○", "reported", "blue"),
    Outcome.NOT_RUN: Mark("–", "absent", "dim"),
}
