"""What goes into the files that a method's command writes: tables and documents as strict JSON, figures as bytes."""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def plain(value: Any) -> Any:
    """As JSON knows it: no scalar of NumPy, null for what is not finite."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table's rows, ready for JSON."""
    return [{str(key): plain(value) for key, value in row.items()} for row in table.to_dict("records")]


def json_text(document: Mapping[str, Any]) -> str:
    """Strict JSON for people and programs."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def drawn(figure: Figure, ending: str) -> bytes:
    """A figure as the bytes of a file that ends in `ending`, the same every time.

    Letters of a user's names that the font lacks are drawn as boxes, without a word a letter.
    """
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "upheld"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        metadata = {"Date": None} if ending == "svg" else {}
        figure.savefig(content, format=ending, dpi=200, bbox_inches="tight", metadata=metadata)
    return content.getvalue()
