"""The layers of the package as a drawing that needs no script: a row a layer, from what imports to what is imported."""

from __future__ import annotations

import html
from collections.abc import Sequence

WIDTH, ROW, GAP = 760, 34, 16
PER_ROW = 5


def layers(rows: Sequence[Sequence[str]]) -> str:
    """An SVG in a block that Markdown leaves alone; a layer of many parts takes several lines."""
    parts: list[str] = []
    top = 2
    for names in rows:
        lines = [names[i : i + PER_ROW] for i in range(0, len(names), PER_ROW)]
        height = ROW * len(lines) + 8
        parts.append(f'<rect x="1" y="{top}" width="{WIDTH - 2}" height="{height}" rx="6" class="layer"/>')
        for number, line in enumerate(lines):
            for place, name in enumerate(line):
                x = WIDTH * (place + 0.5) / len(line)
                y = top + 4 + ROW * (number + 0.65)
                parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle">{html.escape(name)}</text>')
        top += height
        if names is not rows[-1]:
            middle, tip = WIDTH / 2, top + GAP - 1
            parts.append(f'<path d="M{middle:.0f} {top}V{tip}m-5-6 5 6 5-6" class="arrow"/>')
            top += GAP
    says = "; ".join(", ".join(names) for names in rows)
    return (
        f'<div><svg class="layers" viewBox="0 0 {WIDTH} {top + 2}" role="img" '
        f'aria-label="Layers, each imports those below it alone: {html.escape(says)}">{"".join(parts)}</svg></div>\n'
    )
