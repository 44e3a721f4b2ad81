"""Rewrite the README's table of verdicts from verdicts/quick.json: ``python scripts/readme_table.py``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from upheld.report.export import markdown_table

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- verdicts: make verdicts writes what follows -->", "<!-- end of verdicts -->"


def with_table(readme: str, table: str) -> str:
    """The README's text with `table` between its marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"README.md has no place for the table: put {BEGIN!r} and {END!r} where it belongs")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{table.strip()}\n\n{END}", readme)


if __name__ == "__main__":
    table = markdown_table(json.loads((ROOT / "verdicts/quick.json").read_text()))
    (ROOT / "README.md").write_text(with_table((ROOT / "README.md").read_text(), table))
