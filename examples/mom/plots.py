"""Pictures of the median of means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def errors(frame: pd.DataFrame) -> Figure:
    """Distribution of the squared error, one line an estimator."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    for method, rows in frame[frame["metric"] == "squared error"].groupby("method"):
        axes.ecdf(rows["value"], label=str(method))
    axes.set(xscale="log", xlabel="squared error", ylabel="share of samples")
    axes.legend()
    return figure


PICTURES = {"mom.beats-mean-on-normal": errors}
