"""The answers side by side as one HTML file: which is the odd one, which passage differs, how the answers lie to each other.

The file loads nothing; whatever stands in prompts, answers and ids is text in it and never markup.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from upheld.isotropy.command.survey import Scored
from upheld.isotropy.passages import Passage

FloatArray = NDArray[np.float64]

BESIDE = 6  # answers shown at once; more are folded away
MARKED = 3  # passages marked a prompt
SHARED = 0.98  # a passage of this support is said by all others
LABELLED_CELLS = 8  # a larger heat map has no room for numbers
CLOSE = 0.05  # points of the map nearer than this share a label
SIZE = 240  # of the map, in the units of its picture
SIGN = 9  # width of a sign of its labels, at most
NUMBERS = 9  # in a label of the map


@dataclass(frozen=True)
class Piece:
    """A part of an answer; `mark` is "" for plain text, "differs" for a passage that the others do not support, and "first" for the
    passage of the odd answer that they support least."""

    text: str
    mark: str = ""
    support: float = math.nan


@dataclass(frozen=True)
class Shown:
    """One answer as it is shown; `number` counts from 1 in the order of the file."""

    number: int
    pieces: list[Piece]
    influence: float
    odd: bool
    medoid: bool


def page(
    document: Mapping[str, Any],
    worst: Sequence[Scored],
    passages: Mapping[str, Sequence[Passage]],
    *,
    pictures: Mapping[str, bytes] = {},
    command: str = "",
) -> str:
    """The page's text.

    Parameters
    ----------
    document : what the command prints as JSON
    worst : the prompts shown, in this order
    passages : of the answers used of each prompt, by its id; `Passage.answer` counts among those used
    pictures : SVG by what it shows
    command : to repeat the run
    """
    sections = [
        {
            "one": one,
            "answers": shown(one, passages.get(one.item.id, ())),
            "map": Markup(map_svg(one)),
            "kept": float(np.sum(one.result.plane() ** 2) / one.result.n),
            "cosines": Markup(cosines_svg(one)),
        }
        for one in worst
    ]
    return (
        _environment()
        .get_template("page.html")
        .render(
            document=document,
            sections=sections,
            pictures={what: _embedded(svg) for what, svg in pictures.items()},
            command=command,
            beside=BESIDE,
        )
    )


def shown(one: Scored, passages: Sequence[Passage]) -> list[Shown]:
    """The medoid, then the odd answer, then the others in the order of the file."""
    result = one.result
    used = [int(i) for i in result.answers]
    marks = _marks(one, passages)
    found = [
        Shown(
            i + 1,
            _pieces(one.item.responses[i], marks.get(place, {})),
            float(result.influence[place]),
            odd=i == one.odd,
            medoid=i == result.medoid,
        )
        for place, i in enumerate(used)
    ]
    return sorted(found, key=lambda answer: (not answer.medoid, not answer.odd, answer.number))


def _marks(one: Scored, passages: Sequence[Passage]) -> dict[int, dict[tuple[int, int], tuple[str, float]]]:
    """By answer among those used: spans with what marks them."""
    differing = [passage for passage in passages if passage.support < SHARED]
    odd = None if one.odd is None else list(one.result.answers).index(one.odd)
    first = next((passage for passage in differing if passage.answer == odd), None)
    chosen = [first] if first is not None else []
    chosen += [passage for passage in differing if passage is not first][: MARKED - len(chosen)]
    marks: dict[int, dict[tuple[int, int], tuple[str, float]]] = {}
    for passage in chosen:
        kind = "first" if passage is first else "differs"
        marks.setdefault(passage.answer, {})[passage.start, passage.end] = (kind, passage.support)
    return marks


def _pieces(text: str, marks: Mapping[tuple[int, int], tuple[str, float]]) -> list[Piece]:
    pieces, position = [], 0
    for (start, end), (kind, support) in sorted(marks.items()):
        pieces += [Piece(text[position:start]), Piece(text[start:end], kind, support)]
        position = end
    return [piece for piece in [*pieces, Piece(text[position:])] if piece.text]


def map_svg(one: Scored) -> str:
    """The answers from the top two eigenvectors of K, as arrows of length at most 1 from the origin."""
    at = one.result.plane()
    left, right = min(0.0, at[:, 0].min()) - 0.06, 1.16
    up = max(0.5, float(np.abs(at[:, 1]).max()) + 0.1)
    scale = SIZE / (2 * up)
    labels = map_labels(at, [int(i) + 1 for i in one.result.answers])
    ends = [(a - left) * scale + 11 + SIGN * len(label) for (a, _), label in labels]
    width = max((right - left) * scale, *ends)

    def x(value: float) -> str:
        return f"{(value - left) * scale:.1f}"

    def y(value: float) -> str:
        return f"{(up - value) * scale:.1f}"

    end = math.asin(min(up, 1.0))
    arc = [(math.cos(t), math.sin(t)) for t in np.linspace(-end, end, 40)]
    lines = [
        f'<polyline class="edge" points="{" ".join(f"{x(a)},{y(b)}" for a, b in arc)}"/>',
        f'<path class="axis" d="M{x(left)} {y(0)}H{x(1.0)}"/>',
        *(f'<path class="ray" d="M{x(0)} {y(0)}L{x(a)} {y(b)}"/>' for a, b in at),
    ]
    for (a, b), i in zip(at, one.result.answers, strict=True):
        if i == one.odd:
            lines.append(
                f'<rect class="odd" x="{x(a - 6 / scale)}" y="{y(b + 6 / scale)}" width="12" height="12" rx="1"/>'
            )
        elif i == one.result.medoid:
            lines.append(f'<circle class="medoid" cx="{x(a)}" cy="{y(b)}" r="6"/>')
        else:
            lines.append(f'<circle class="dot" cx="{x(a)}" cy="{y(b)}" r="4.5"/>')
    for (a, b), label in labels:
        lines.append(f'<text x="{x(a + 11 / scale)}" y="{y(b - 4.5 / scale)}">{label}</text>')
    numbers = f"Map of the {one.result.n} answers of a prompt; the table of cosines beside it holds the same."
    return f'<svg class="map" viewBox="0 0 {width:.0f} {SIZE}" role="img" aria-label="{numbers}">{"".join(lines)}</svg>'


def map_labels(at: FloatArray, numbers: Sequence[int]) -> list[tuple[tuple[float, float], str]]:
    """Labels that do not cover each other: points close to each other share one, at the right of them all."""
    groups: list[list[int]] = []
    for place in np.argsort(-at[:, 1], kind="stable"):
        near = next(
            (
                group
                for group in groups
                if any(abs(at[place, 1] - at[k, 1]) < CLOSE and abs(at[place, 0] - at[k, 0]) < 4 * CLOSE for k in group)
            ),
            None,
        )
        if near is None:
            groups.append([int(place)])
        else:
            near.append(int(place))
    return [
        (
            (float(at[group, 0].max()), float(at[group, 1].mean())),
            ", ".join([str(numbers[place]) for place in sorted(group)[:NUMBERS]] + ["…"] * (len(group) > NUMBERS)),
        )
        for group in groups
    ]


def cosines_svg(one: Scored) -> str:
    """K as a heat map, from no shade at the lowest cosine to full shade at 1."""
    K, n = one.result.cosines, one.result.n
    cell = 34 if n <= LABELLED_CELLS else max(12, 272 // n)
    edge = 22
    lowest = float(K.min())
    lines = []
    for i in range(n):
        number = int(one.result.answers[i]) + 1
        middle = edge + (i + 0.5) * cell
        lines += [f'<text class="number" x="{middle:.1f}" y="15">{number}</text>',
                  f'<text class="number" x="10" y="{middle + 4:.1f}">{number}</text>']  # fmt: skip
        for j in range(n):
            shade = 0.04 + 0.66 * (K[i, j] - lowest) / max(1 - lowest, 1e-9)
            lines.append(
                f'<rect class="cell" x="{edge + j * cell}" y="{edge + i * cell}" width="{cell - 1}" height="{cell - 1}" '
                f'fill-opacity="{shade:.2f}"/>'
            )
            if n <= LABELLED_CELLS and i != j:
                lines.append(
                    f'<text class="cosine" x="{edge + (j + 0.5) * cell:.1f}" y="{middle + 4:.1f}">{cosine(K[i, j])}</text>'
                )
    side = edge + n * cell
    between = f"Cosines between the {n} answers, from {cosine(lowest)} to {cosine(float(_off_diagonal(K).max()))}."
    head = (
        f'<svg class="heat" style="max-width:{side}px" viewBox="0 0 {side} {side}" role="img" aria-label="{between}">'
    )
    return f"{head}{''.join(lines)}</svg>"


def _off_diagonal(K: FloatArray) -> FloatArray:
    return K[~np.eye(len(K), dtype=bool)]


def cosine(value: float) -> str:
    """
    >>> cosine(0.834), cosine(-0.1), cosine(1.0), cosine(-0.001)
    ('.83', '−.10', '1.0', '.00')
    """
    text = f"{abs(value):.2f}"
    text = "1.0" if text == "1.00" else text[1:]
    return f"−{text}" if value < 0 and text != ".00" else text


def strip_svg(score: float, se: float) -> Markup:
    """A score with its 95 % interval on a line from 0 to 1."""
    low, high = (min(max(score + sign * 1.96 * se, 0.0), 1.0) for sign in (-1, 1))
    bar = "" if math.isnan(se) else f'<path class="bar" d="M{100 * low:.1f} 8H{100 * high:.1f}"/>'
    return Markup(
        f'<svg class="gauge" viewBox="-3 0 106 16" aria-hidden="true"><path class="base" d="M0 8H100M0 5V11M100 5V11"/>{bar}'
        f'<circle cx="{100 * score:.1f}" cy="8" r="4"/></svg>'
    )


def two(value: float | None) -> str:
    """
    >>> two(0.123), two(float("nan")), two(-0.04)
    ('0.12', 'n/a', '−0.04')
    """
    if value is None or math.isnan(value):
        return "n/a"
    text = f"{value:.2f}".replace("-", "−")
    return "0.00" if text == "−0.00" else text


def signed(value: float) -> str:
    """
    >>> signed(0.123), signed(-0.04)
    ('+0.12', '−0.04')
    """
    return two(value) if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


def _embedded(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("upheld.isotropy.command", ""), PackageLoader("upheld.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        style=Markup(environment.get_template("style.css").render()),
        signed=signed,
        strip=strip_svg,
        two=two,
        isnan=math.isnan,
        nan=math.nan,
    )
    return environment
