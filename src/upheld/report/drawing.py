"""What methods' pictures have in common: Okabe and Ito's palette, which colour-blind readers can tell apart, and a quiet frame.

All pictures are made to be read at 380 pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, SKY, GREEN, ORANGE, RED, PINK, YELLOW = (
    "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#B8A900",
)  # fmt: skip
INK, QUIET, FAINT = "#1c1c1a", "#5b5b57", "#dddcd5"


def figure(width: float = 4.8, height: float = 3.2, *, labels: float = 9, **panels: Any) -> tuple[Figure, Any]:
    """An empty figure of this size in inches, and its axes; size of the labels in points, panels as of `Figure.subplots`."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    axes = drawn.subplots(**panels)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(QUIET)
        one.tick_params(labelsize=labels, color=QUIET, labelcolor=INK, which="both")
        one.xaxis.label.set_size(labels + 0.5)
        one.yaxis.label.set_size(labels + 0.5)
    return drawn, axes


def legend_above(picture: Figure, axes: Axes, columns: int = 2, *, size: float = 8.5, handle: float = 1.8) -> None:
    """The legend of one panel above all of them, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    picture.legend(
        handles, labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=size, handlelength=handle,
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
