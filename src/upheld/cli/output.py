"""What the verbs say, and where: results on standard output, everything about the way there on standard error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def results() -> Console:
    """Standard output; a pipe gets plain text as wide as it needs."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=False)


def progress() -> Console:
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """Strict JSON on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def complain(sentence: str) -> None:
    """One sentence on standard error, as it is: a file name is no markup."""
    sys.stderr.write(f"upheld: {' '.join(sentence.split())}\n")
