"""Show verdicts/quick.json where people read: the README's table and verdicts/quick.md: ``python scripts/show_verdicts.py``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from upheld.report.export import markdown_claims, markdown_table

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- verdicts: make verdicts writes what follows -->", "<!-- end of verdicts -->"
HEAD = """# The verdicts, claim by claim

At quick scale: two cores, a few minutes a method. Written by `make verdicts` from [quick.json](quick.json), which also holds
every rule, interval and condition; `upheld check` measures them again, and `upheld report` draws them.
"""


def with_table(readme: str, table: str) -> str:
    """The README's text with `table` between its marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"README.md has no place for the table: put {BEGIN!r} and {END!r} where it belongs")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{table.strip()}\n\n{END}", readme)


def page(claims: str) -> str:
    """``verdicts/quick.md``."""
    return f"{HEAD}\n{claims}"


if __name__ == "__main__":
    verdicts = json.loads((ROOT / "verdicts/quick.json").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (ROOT / "README.md").write_text(with_table(readme, markdown_table(verdicts)), encoding="utf-8")
    (ROOT / "verdicts/quick.md").write_text(page(markdown_claims(verdicts)), encoding="utf-8")
