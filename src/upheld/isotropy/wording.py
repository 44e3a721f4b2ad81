"""Instructions to a model as versioned text, so that a figure can name the words that it was measured under."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """An instruction.

    Attributes
    ----------
    name, version : a change of the text needs a new version
    text : what the model reads
    """

    name: str
    version: int
    text: str

    @property
    def id(self) -> str:
        """Name, version and the first 12 digits of the text's SHA-256: two texts never share it."""
        return f"{self.name}/{self.version}#{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"


def enclosed(tag: str, text: str) -> str:
    """`text` between a tag's opening and closing, each on a line of its own."""
    return f"<{tag}>\n{text}\n</{tag}>"
