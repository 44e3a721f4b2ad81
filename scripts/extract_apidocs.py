"""Write src/upheld/context/data/apidocs.csv.xz: the first paragraph of SciPy's public functions, and the sub-package of each.

    python scripts/extract_apidocs.py

Only the installed SciPy is read; another release gives other texts, so the table is shipped and never extracted at run time.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import lzma
import re
from pathlib import Path

import scipy

PACKAGES = (
    "stats", "signal", "linalg", "optimize", "ndimage", "special", "interpolate", "spatial", "integrate", "fft", "sparse",
)  # fmt: skip
LONGEST, SHORTEST = 160, 20
TARGET = Path(__file__).parents[1] / "src" / "upheld" / "context" / "data" / "apidocs.csv.xz"


def first_paragraph(doc: str, name: str) -> str:
    """The first paragraph that is prose, the function's own name masked as "it"."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        text = " ".join(paragraph.split())
        if not re.match(rf"{re.escape(name)}\s*\(", text) and len(text) >= SHORTEST:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "it", text)
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0]
    return ""


def rows() -> list[tuple[str, str, str]]:
    found: dict[str, tuple[str, str, str]] = {}
    for package in PACKAGES:
        module = importlib.import_module(f"scipy.{package}")
        for name in sorted(module.__all__):
            thing = getattr(module, name, None)
            if name.startswith("_") or not callable(thing) or not (doc := getattr(thing, "__doc__", None)):
                continue
            text = first_paragraph(doc, name)
            if text and "deprecated" not in text.lower():
                found.setdefault(text.lower(), (package, name, text))
    return sorted(found.values())


def main() -> None:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("label", "name", "text"))
    writer.writerows(found := rows())
    TARGET.write_bytes(lzma.compress(table.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"scipy {scipy.__version__}: {len(found)} texts, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
