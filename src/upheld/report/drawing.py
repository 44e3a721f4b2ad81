"""What methods' pictures have in common: colours that colour-blind readers can tell apart too, and a quiet frame.

The palette is Okabe and Ito's; their yellow, which is lost on white, gave way to a brown that is as far from the others.

All pictures are made to be read at 380 pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, SKY, GREEN, ORANGE, RED, PINK, BROWN = (
    "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#7B4B1E",
)  # fmt: skip
INK, QUIET, FAINT = "#1c1c1a", "#5b5b57", "#dddcd5"
Place = Literal["outside upper left", "outside lower center"]


def figure(width: float = 4.8, height: float = 3.2, *, labels: float = 9, **panels: Any) -> tuple[Figure, Any]:
    """An empty figure of this size in inches, and its axes; size of the labels in points, panels as of `Figure.subplots`."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    axes = drawn.subplots(**panels)
    for one in np.ravel(axes):
        framed(one, labels)
    return drawn, axes


def framed(axes: Axes, labels: float = 9) -> Axes:
    """The same axes with a quiet frame: no lines above and to the right, labels of this size in points."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(QUIET)
    axes.tick_params(labelsize=labels, color=QUIET, labelcolor=INK, which="both")
    axes.xaxis.label.set_fontsize(labels + 0.5)
    axes.yaxis.label.set_fontsize(labels + 0.5)
    return axes


def legend_above(picture: Figure, axes: Axes, columns: int = 2, *, size: float = 8.5, handle: float = 1.8) -> None:
    """The legend of one panel above all of them, where it hides nothing."""
    _legend(picture, axes, "outside upper left", columns, size, handle)


def legend_below(picture: Figure, axes: Axes, columns: int = 2, *, size: float = 8.5, handle: float = 1.8) -> None:
    """The same below them, for a picture with a title."""
    _legend(picture, axes, "outside lower center", columns, size, handle)


def _legend(picture: Figure, axes: Axes, place: Place, columns: int, size: float, handle: float) -> None:
    handles, labels = axes.get_legend_handles_labels()
    picture.legend(
        handles, labels, loc=place, ncols=columns, frameon=False, fontsize=size, handlelength=handle,
        columnspacing=1.2, labelspacing=0.3,
    )  # fmt: skip


def plain_numbers(axis: Any) -> None:
    """1,000 instead of 10^3 at the marks."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def plain_logs(axis: Any) -> None:
    """The same on a logarithmic axis, where marks between the decades have no numbers."""
    from matplotlib.ticker import NullFormatter

    plain_numbers(axis)
    axis.set_minor_formatter(NullFormatter())
