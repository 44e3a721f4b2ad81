"""LaTeX in a page as pictures in the page itself: matplotlib sets it, every glyph is kept once, nothing is fetched.

Formulas stand between ``$`` or ``$$``, as GitHub reads them; code is left alone.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

CODE = r"(?P<code>^ *```.*?^ *```|`[^`\n]+`)"
MATHS = re.compile(rf"{CODE}|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^\s$](?:[^$]*[^\s$])?)\$", re.DOTALL | re.MULTILINE)
EM = TextToPath.FONT_SCALE  # units of matplotlib's outlines
FONT = FontProperties(family="serif", math_fontfamily="stix", size=EM)
SPELT = (  # what matplotlib writes otherwise, or does not know
    (r"\\displaystyle|\\square|\\[bB]igg?[lr]?(?![a-z])", ""),
    (r"\\tag\{(.*?)\}", r"\\qquad (\1)"),
    (r"\\text\{(.*?)\}", lambda found: rf"\mathrm{{{found[1].replace(' ', chr(92) + ' ')}}}"),
    (r"\\mathbb ([A-Z])", r"\\mathbb{\1}"),
    (r"\\underbrace\{(.*?)\}_\{([^{}]*)\}", r"\\underset{\2}{\1}"),
    (r"\\t?frac(\d)(\w)", r"\\frac{\1}{\2}"),
    (r"\\(g|l)e(?![a-z])", r"\\\1eq "),
)


@dataclass
class Formulas:
    """The formulas of one page."""

    found: list[str] = field(default_factory=list)
    outlines: dict[str, str] = field(default_factory=dict)

    def taken_out(self, markdown: str) -> str:
        """The page with a mark in the place of every formula, so that Markdown leaves it alone."""

        def mark(match: re.Match[str]) -> str:
            if match["code"]:
                return match[0]
            block = match["block"] is not None
            self.found.append(self._drawn(" ".join((match["block"] or match["inline"]).split()), block))
            name = f"formula-{len(self.found) - 1}-here"
            return f"\n\n{name}\n\n" if block and match[0].startswith("$$") and _alone(match) else name

        return MATHS.sub(mark, markdown)

    def put_back(self, page: str) -> str:
        if not self.found:
            return page
        page = re.sub(r"formula-(\d+)-here", lambda match: self.found[int(match[1])], page)
        glyphs = "".join(f'<path id="{name}" d="{outline}"/>' for name, outline in self.outlines.items())
        return (
            f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{glyphs}</defs></svg>{page}'
        )

    def _drawn(self, latex: str, block: bool) -> str:
        spelt = latex
        for pattern, replacement in SPELT:
            spelt = re.sub(pattern, replacement, spelt)
        if not spelt.strip():
            return ""
        text = f"${spelt}$"
        box = MathTextParser("path").parse(text, dpi=72, prop=FONT)
        placed, known, bars = TextToPath().get_glyphs_mathtext(FONT, text)
        for name, (vertices, codes) in known.items():
            self.outlines.setdefault(_id(name), outline(vertices, codes))
        parts = [
            f'<use href="#{_id(name)}" transform="translate({x:.0f} {-y:.0f}) scale({size:.3g} {-size:.3g})"/>'
            for name, x, y, size in placed
        ]
        parts += [f'<path d="{outline(np.asarray(vertices) * [1, -1], codes)}"/>' for vertices, codes in bars]
        width, height, depth = box.width, box.height, box.depth
        style = f"width:{width / EM:.2f}em;height:{height / EM:.2f}em;vertical-align:{-depth / EM:.2f}em"
        return (
            f'<svg class="formula{" block" if block else ""}" role="img" aria-label="{html.escape(latex)}" '
            f'viewBox="0 {depth - height:.0f} {width:.0f} {height:.0f}" style="{style}" fill="currentColor">'
            f"{''.join(parts)}</svg>"
        )


def outline(vertices: np.ndarray, codes: np.ndarray) -> str:
    """A path of matplotlib in the words of SVG."""
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}
    parts = []
    for points, code in Path(vertices, codes).iter_segments(simplify=False, curves=True):
        parts.append(letters[code] + ("" if code == Path.CLOSEPOLY else " ".join(f"{value:.1f}" for value in points)))
    return "".join(parts)


def _alone(match: re.Match[str]) -> bool:
    """Whether a formula is a paragraph of its own, not part of a list item or a sentence."""
    before = match.string[: match.start()].rsplit("\n", 1)[-1]
    return before == ""


def _id(name: str) -> str:
    return "g-" + re.sub(r"\W", "-", name)
