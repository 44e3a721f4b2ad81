"""Pictures: samples, how particles fared, and what was measured for each claim.

TFTF is blue throughout; others differ by mark or place as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from upheld.report.drawing import BLUE, GREEN, PINK, QUIET, RED, figure, legend_above, plain_logs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = "osD^vP*X<>"
OURS = "TFTF"
MOST_PICTURES = 64


def sample_grid(samples: Any) -> Figure:
    """Pictures as such, rows of a square number of values as little pictures, points of a plane as points, others as a line each.

    Of all but points, the first 64.

    Parameters
    ----------
    samples : (n, channels, H, W), (n, H, W) or (n, d)
    """
    x = np.asarray(samples, dtype=float)
    if x.shape[1:] == (2,):
        made, axes = figure()
        axes.plot(*x.T, "o", color=BLUE, alpha=0.5, markersize=3)
        axes.set_xlabel("coordinate 0", fontsize=9)
        axes.set_ylabel("coordinate 1", fontsize=9)
        return made
    x = x[:MOST_PICTURES]
    side = math.isqrt(x[0].size)
    if x.ndim == 2 and side * side == x.shape[1] and side > 1:
        x = x.reshape(-1, side, side)
    if x.ndim < 3:
        made, axes = figure()
        axes.plot(x.T, color=BLUE, alpha=0.3, linewidth=0.8)
        axes.set_xlabel("coordinate", fontsize=9)
        return made
    columns = min(8, len(x))
    made, axes = figure(
        0.6 * columns,
        0.6 * math.ceil(len(x) / columns),
        nrows=math.ceil(len(x) / columns),
        ncols=columns,
        squeeze=False,
    )
    low, high = np.quantile(x, [0.01, 0.99])
    for place in axes.ravel():
        place.axis("off")
    for place, one in zip(axes.ravel(), x, strict=False):
        shown = np.clip((one - low) / (high - low), 0, 1)
        if shown.ndim == 3:
            shown = np.moveaxis(shown, 0, -1) if shown.shape[0] == 3 else shown[0]
        place.imshow(shown, cmap="gray", vmin=0, vmax=1)
    return made


def ess_over_time(trace: Mapping[str, Sequence[float]], particles: int) -> Figure:
    """Mean effective sample size along the flow, and below it the share of groups resampled at each step."""
    made, (above, below) = figure(4.8, 3.8, nrows=2, sharex=True, height_ratios=[3, 1])
    above.plot(trace["time"], trace["mean"], color=BLUE, marker="o", markersize=2.5, linewidth=1.2)
    above.axhline(particles, color=QUIET, linewidth=0.8, linestyle=":")
    above.set_ylim(0, 1.08 * particles)
    above.set_ylabel(f"effective of {particles}", fontsize=9)
    below.vlines(trace["time"], 0, 100 * np.asarray(trace["resampled"]), color=RED, linewidth=1.5)
    below.set_ylim(0, 105)
    below.set_ylabel("resampled, %", fontsize=9)
    below.set_xlabel("time of the flow (0 noise, 1 data)", fontsize=9)
    made.align_ylabels()
    return made


def by_method(frame: pd.DataFrame, metric: str, label: str, *, log: bool = False) -> Figure:
    """One metric of every method: each seed a faint mark, their mean and its 95 % interval."""
    rows = frame[frame["metric"] == metric]
    names = list(dict.fromkeys(rows["method"]))
    made, axes = figure(4.8, 0.5 + 0.32 * len(names))
    for place, name in enumerate(reversed(names)):
        values = rows[rows["method"] == name].groupby("seed")["value"].mean().to_numpy()
        half = 1.96 * values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        colour = BLUE if name.startswith(OURS) else QUIET
        axes.plot(values, np.full(len(values), place), "|", color=colour, alpha=0.4)
        axes.errorbar(values.mean(), place, xerr=half, fmt="o", color=colour, capsize=3)
    axes.set_yticks(range(len(names)), list(reversed(names)), fontsize=8)
    axes.set_xlabel(label, fontsize=9)
    if log:
        axes.set_xscale("log")
    return made


def against(frame: pd.DataFrame, x: str, metric: str, labels: tuple[str, str], *, log: bool = True) -> Figure:
    """A metric against a condition, which is logarithmic, as the metric is if `log`; a line a method."""
    from matplotlib.ticker import LogLocator

    made, axes = figure()
    rows = frame[frame["metric"] == metric]
    for place, (name, part) in enumerate(rows.groupby("method", sort=False)):
        means = part.groupby(x)["value"].mean()
        axes.plot(
            means.index,
            means.to_numpy(),
            color=(BLUE, RED, GREEN, PINK)[place % 4],
            marker=MARKS[place],
            label=str(name),
        )
    axes.set_xscale("log")
    axes.set_xticks(sorted(rows[x].unique()))
    plain_logs(axes.xaxis)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # a range of less than a decade has marks, too
        plain_logs(axes.yaxis)
    axes.set_xlabel(labels[0], fontsize=9)
    axes.set_ylabel(labels[1], fontsize=9)
    if rows["method"].nunique() > 1:
        legend_above(made, axes)
    return made


def race(frame: pd.DataFrame) -> Figure:
    """Distance to held-out digits against the judge's accuracy: right and low is good; distances below 0.01 are drawn there."""
    wide = (
        frame[frame["metric"].isin(["energy distance", "judge accuracy"])]
        .groupby(["method", "metric"], sort=False)["value"]
        .mean()
        .unstack()
    )
    made, axes = figure(4.8, 3.6)
    for place, (name, row) in enumerate(wide.iterrows()):
        ours = str(name) == OURS
        axes.plot(row["judge accuracy"], max(row["energy distance"], 0.01), MARKS[place % len(MARKS)], color=BLUE if ours else QUIET,
                  markersize=9 if ours else 6, label=str(name))  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("accuracy under the judge", fontsize=9)
    axes.set_ylabel("energy distance to held-out digits", fontsize=9)
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return made


PICTURES: dict[str, Callable[..., Figure]] = {
    "flows.importance-degenerates": partial(
        against, x="d", metric="ESS share", labels=("dimension", "effective sample size / K")
    ),
    "flows.resampling-helps": partial(by_method, metric="mean error", label="error of the posterior mean", log=True),
    "flows.resampling-beside": partial(by_method, metric="mean error", label="error of the posterior mean", log=True),
    "flows.noise-parts-copies": partial(by_method, metric="unique end points", label="share of end points that differ"),
    "flows.marginals": partial(
        by_method, metric="W1 over exact pairs'", label="distance to an exact sample / largest of exact pairs"
    ),
    "flows.consistent": partial(by_method, metric="slope of log error in log K", label="slope of log error in log K"),
    "flows.beats-rivals": race,
    "flows.judge-accuracy": partial(by_method, metric="judge accuracy", label="accuracy under the judge"),
    "flows.guide-not-fooled": partial(
        by_method, metric="guide above judge", label="guide's accuracy − judge's accuracy"
    ),
    "flows.text-to-image": partial(by_method, metric="caption found again", label="share of captions found again"),
    "flows.text-to-image-trained": partial(
        by_method, metric="caption found again", label="share of captions found again"
    ),
    "flows.flat-memory": partial(
        against,
        x="K",
        metric="peak beyond the particles, over a chunk's",
        labels=("particles K", "peak memory / a chunk's"),
        log=False,
    ),
    "flows.beats-rivals-pictures": partial(
        by_method, metric="FD-judge", label="distance in the judge's features", log=True
    ),
    "flows.guide-not-fooled-pictures": partial(
        by_method, metric="guide above judge", label="guide's accuracy − judge's accuracy"
    ),
    "flows.linear-cost": partial(against, x="K", metric="seconds", labels=("particles K", "processor seconds")),
}
