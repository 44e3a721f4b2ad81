"""The picture of a claim: a forest plot of its findings, and the method's own figure beside it.

A row is an estimate with its interval; the values on the claim's side are shaded. Positions are percentages of the picture's
width, so that lines and text keep their size on a phone and on paper.
"""

from __future__ import annotations

import io
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upheld.claims import Finding
from upheld.report.digits import number, with_interval
from upheld.report.marks import MARKS, Mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_PIXELS = 0.7  # a figure may shrink to this share of its own size, then it scrolls


@dataclass(frozen=True)
class Row:
    """One finding, placed; positions in percent of the axis, None where there is nothing to draw.

    `label` is the finding's without what the panel's `shared` says of all of them.
    """

    finding: Finding
    label: str
    mark: Mark
    at: float | None
    low: float | None
    high: float | None
    goes_on_left: bool
    goes_on_right: bool

    @property
    def figures(self) -> tuple[str, str, str]:
        return with_interval(self.finding.estimate, self.finding.low, self.finding.high, self.finding.region)


@dataclass(frozen=True)
class Panel:
    """Findings that share an axis.

    Parameters
    ----------
    rows : in the order of the findings
    side : the shaded values on the claim's side, from and to in percent; None when every value would do
    borders : of the region, in percent
    ticks : position in percent and text
    logarithmic : whether the axis is
    wanted : the region in words
    shared : conditions under which all of them were measured
    """

    rows: tuple[Row, ...]
    side: tuple[float, float] | None
    borders: tuple[float, ...]
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool
    wanted: str
    shared: str


def panels(findings: Sequence[Finding]) -> list[Panel]:
    """Findings of the same quantity against the same region share an axis; others get their own."""
    groups: dict[tuple[str, tuple[float, float]], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.quantity, finding.region), []).append(finding)
    return [_panel(group) for group in groups.values()]


def in_words(region: tuple[float, float]) -> str:
    """
    >>> in_words((0.0, math.inf)), in_words((-0.05, 0.05))
    ('above 0', 'between −0.05 and 0.05')
    """
    low, high = region
    if math.isfinite(low) and math.isfinite(high):
        return f"between {number(low)} and {number(high)}"
    if math.isfinite(low):
        return f"above {number(low)}"
    return f"below {number(high)}" if math.isfinite(high) else ""


# -- the axis


@dataclass(frozen=True)
class Axis:
    """From values to percent of the width."""

    start: float
    stop: float
    logarithmic: bool

    def percent(self, value: float) -> float:
        scale = math.log if self.logarithmic else float
        share = (scale(value) - scale(self.start)) / (scale(self.stop) - scale(self.start))
        return round(100 * share, 2)

    def place(self, value: float) -> float:
        """The same, with what lies beyond an end put on that end."""
        if self.logarithmic and value <= 0:
            return 0.0
        return 100.0 if value >= self.stop else 0.0 if value <= self.start else self.percent(value)


def _panel(findings: Sequence[Finding]) -> Panel:
    region = findings[0].region
    axis = _axis(findings)
    shared = _shared(findings)
    rows = tuple(_row(finding, _without(finding, shared), axis) for finding in findings)
    wanted, conditions = in_words(region), ", ".join(shared)
    if axis is None:
        return Panel(rows, None, (), (), False, wanted, conditions)
    borders = [bound for bound in region if math.isfinite(bound) and axis.start <= bound <= axis.stop]
    side = (axis.place(region[0]), axis.place(region[1])) if wanted else None
    return Panel(
        rows,
        side,
        tuple(map(axis.percent, borders)),
        tuple(_ticks(axis, borders)),
        axis.logarithmic,
        wanted,
        conditions,
    )


def _shared(findings: Sequence[Finding]) -> list[str]:
    """Conditions under which all of them were measured; a single one keeps its own."""
    if len(findings) < 2:
        return []
    return [one for one in findings[0].conditions if all(one in other.conditions for other in findings)]


def _without(finding: Finding, shared: Sequence[str]) -> str:
    """The label without these conditions, which are at its end."""
    said = "".join(f", {condition}" for condition in finding.conditions)
    kept = "".join(f", {condition}" for condition in finding.conditions if condition not in shared)
    return finding.label.removesuffix(said) + kept


def _row(finding: Finding, label: str, axis: Axis | None) -> Row:
    mark = MARKS[finding.outcome]
    if axis is None or not math.isfinite(finding.estimate):
        return Row(finding, label, mark, None, None, None, False, False)
    return Row(
        finding, label, mark, axis.place(finding.estimate), axis.place(finding.low), axis.place(finding.high),
        finding.low < axis.start, finding.high > axis.stop,
    )  # fmt: skip


def _axis(findings: Sequence[Finding]) -> Axis | None:
    """All estimates and borders, and of the intervals what does not dwarf them: longer ones run off the axis, with an arrow."""
    borders = [bound for bound in findings[0].region if math.isfinite(bound)]
    core = [finding.estimate for finding in findings if math.isfinite(finding.estimate)]
    if not core:
        return None
    core += borders
    ends = [end for finding in findings for end in (finding.low, finding.high) if math.isfinite(end)]
    logarithmic = min([*core, *ends]) > 0 and max([*core, *ends]) > 20 * min([*core, *ends])
    if logarithmic:
        return _padded(min([*core, *ends]), max([*core, *ends]), True)
    widths = [finding.high - finding.low for finding in findings if math.isfinite(finding.high - finding.low)]
    reach = max(core) - min(core) + (2 * statistics.median(widths) if widths else 0.0)
    start = max(min([*core, *ends]), min(core) - reach)
    stop = min(max([*core, *ends]), max(core) + reach)
    return _padded(start, stop, False)


def _padded(start: float, stop: float, logarithmic: bool) -> Axis:
    if logarithmic:
        room = (stop / start) ** 0.06
        return Axis(start / room, stop * room, True)
    room = 0.06 * (stop - start) or 0.5 * abs(start) or 1.0
    return Axis(start - room, stop + room, False)


def _ticks(axis: Axis, borders: Sequence[float]) -> Iterator[tuple[float, str]]:
    """The borders of the region, then round values that do not touch them."""
    taken: list[float] = []
    for value in [*borders, *(_decades(axis) if axis.logarithmic else _steps(axis))]:
        at = axis.percent(value)
        if all(abs(at - other) >= 14 for other in taken) and 0 <= at <= 100:
            taken.append(at)
            yield at, number(float(f"{value:.10g}"))


def _steps(axis: Axis) -> list[float]:
    rough = (axis.stop - axis.start) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(axis.start / step - 1e-9), math.floor(axis.stop / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _decades(axis: Axis) -> list[float]:
    powers = range(math.floor(math.log10(axis.start)), math.ceil(math.log10(axis.stop)) + 1)
    every = max(1, math.ceil(len(powers) / 5))
    values = [10.0**power for power in powers if power % every == 0]
    values += [factor * 10.0**power for factor in (3, 2, 5) for power in powers] if every == 1 else []
    return [value for value in values if axis.start <= value <= axis.stop]


# -- a method's own figure


def svg(figure: Figure, name: str) -> str:
    """A matplotlib figure as an inline SVG: the same bytes every time, no document around it, no identifier twice on a page.

    Parameters
    ----------
    figure : closed when it came from pyplot
    name : of letters, digits and dashes, different for every figure of a page
    """
    import matplotlib
    from matplotlib import pyplot

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    # A style sheet inside would reach beyond the figure: what it says goes on the figure's own element.
    drawn = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'(\sid="|(?:xlink:)?href="#|url\(#)', rf"\g<1>{name}-", drawn)
    width = float(re.search(r'<svg[^>]*?\swidth="([\d.]+)pt"', drawn)[1])  # type: ignore[index]
    drawn = re.sub(r'(<svg[^>]*?)\swidth="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?)\sheight="[^"]*"', r"\1", drawn, count=1)
    size = f"stroke-linejoin:round;stroke-linecap:butt;width:{width * 4 / 3:.0f}px;min-width:{FEWEST_PIXELS * width * 4 / 3:.0f}px"
    return drawn.replace("<svg", f'<svg aria-hidden="true" style="{size}"', 1)


def outcomes(findings: Iterable[Finding]) -> list[tuple[Mark, str, int]]:
    """How many findings came out how."""
    found = list(findings)
    count = {outcome: sum(finding.outcome is outcome for finding in found) for outcome in MARKS}
    return [(MARKS[outcome], str(outcome), n) for outcome, n in count.items() if n]
