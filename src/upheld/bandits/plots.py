"""Pictures: regret over time, its tail, its growth as the excess shrinks, certificates; and those of the claims.

A policy has the same colour and mark in every picture (Okabe & Ito's palette, which colour-blind readers can tell apart). All figures
are made to be read at 380 pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from upheld.report import drawing
from upheld.report.drawing import BLUE, BROWN, FAINT, GREEN, INK, ORANGE, PINK, QUIET, RED, SKY, figure, plain_logs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

legend_above = partial(drawing.legend_above, handle=2.2)
STYLES: dict[str, tuple[str, str, str]] = {  # colour, line, marker
    "uncertain-ucb": (BLUE, "-", "o"),
    "uncertain-ucb-safe": (BLUE, "--", "s"),
    "uncertain-ts": (SKY, "-", "D"),
    "uncertain-kl-ucb": (SKY, "--", "v"),
    "sat-ucb": (RED, "-", "^"),
    "sat-ucb+": (RED, "--", "v"),
    "simple-sat": (ORANGE, "-", "P"),
    "select": (PINK, "-", "X"),
    "ucb": (QUIET, ":", "o"),
    "ts": (QUIET, "--", "s"),
    "moss": (QUIET, "-", "^"),
}
OTHERS = (GREEN, PINK, BROWN, ORANGE)
LOGARITHM, POWER = (0, (5, 2)), (0, (1, 1.5))  # dashes of the two fits
REGRET = {
    "regret_refined": "refined regret",
    "regret_threshold": "threshold regret",
    "regret": "standard regret",
}


def style(policy: str) -> tuple[str, str, str]:
    """Colour, line and marker of a policy; those without their own get one by their name."""
    return STYLES.get(policy, (OTHERS[sum(policy.encode()) % len(OTHERS)], "-.", "d"))


def _legend(axes: Axes, **options: Any) -> None:
    axes.legend(**{"frameon": False, "fontsize": 8.5, "handlelength": 2.2, "labelspacing": 0.3, **options})


# -- on a user's own arms


def regret_over_time(frame: pd.DataFrame, metric: str = "regret_refined", *, title: str = "") -> Figure:
    """Mean cumulative regret over rounds (log scale), with a band from the 10 % to the 90 % quantile of the runs.

    Parameters
    ----------
    frame : columns ``policy``, ``run``, ``mark`` and the regrets, as `Results.to_frame` gives it; a single instance
    metric : which regret
    title : what was played on; a bootstrap must be called one
    """
    picture, axes = figure(4.8, 3.6)
    for policy, runs in frame.groupby("policy", sort=False, observed=True):
        colour, line, _ = style(str(policy))
        at_mark = runs.groupby("mark")[metric]
        mean, low, high = at_mark.mean(), at_mark.quantile(0.1), at_mark.quantile(0.9)
        axes.plot(mean.index, mean, color=colour, linestyle=line, linewidth=1.6, label=str(policy))
        axes.fill_between(mean.index, low, high, color=colour, alpha=0.13, linewidth=0)
    axes.set(xscale="log", xlabel="round", ylabel=f"{REGRET[metric]} so far", xlim=(1, frame["mark"].max()))
    axes.set_ylim(bottom=0)
    plain_logs(axes.xaxis)
    axes.set_title(
        _folded(f"{title}\nmean, and band from q10 to q90 of the runs"), fontsize=8.5, color=QUIET, loc="left"
    )
    _legend(axes, loc="upper left")
    return picture


def certificates(timeline: pd.DataFrame, threshold: float, *, title: str = "") -> Figure:
    """Lower bound of each arm's mean over rounds (log scale) in one run: thick and named where it certifies the arm.

    Parameters
    ----------
    timeline : columns ``mark``, ``arm``, ``pulls``, ``lower``, ``certified``, see `Evaluation.timeline`
    threshold : S
    """
    picture, axes = figure(4.8, 3.4)
    ever = timeline.groupby("arm", sort=False)["certified"].any()
    colours = dict(zip(ever.index[ever], (BLUE, RED, GREEN, PINK, ORANGE, SKY), strict=False))
    bounds = timeline[np.isfinite(timeline["lower"])]
    for arm, seen in bounds.groupby("arm", sort=False):
        colour = colours.get(arm, QUIET)
        axes.plot(seen["mark"], seen["lower"], color=colour, linewidth=0.8, alpha=0.9 if ever[arm] else 0.5)
        if ever[arm]:
            held = seen["lower"].where(seen["certified"])
            axes.plot(seen["mark"], held, color=colour, linewidth=2.8, solid_capstyle="round", label=str(arm))
    if np.isfinite(threshold):
        axes.axhline(threshold, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(f"good enough: {threshold:g}", (0.01, threshold), xycoords=("axes fraction", "data"),
                      xytext=(0, 3), textcoords="offset points", fontsize=8.5, color=INK)  # fmt: skip
    best = bounds.groupby("mark")["lower"].max()
    bottom = float(best.quantile(0.1)) if len(best) else 0.0
    top = float(bounds["lower"].max()) if len(bounds) else 1.0
    if np.isfinite(threshold):  # always in sight, however far the bounds are from it
        bottom, top = min(bottom, threshold), max(top, threshold)
    axes.set(xscale="log", xlabel="round", ylabel="lower bound of the mean", xlim=(1, timeline["mark"].max()))
    axes.set_ylim(bottom, top + 0.08 * (top - bottom or 1.0))
    plain_logs(axes.xaxis)
    found = "thick: certified good enough" if ever.any() else "no arm was certified"
    axes.set_title(_folded(f"{title}\n{found}"), fontsize=8.5, color=QUIET, loc="left")
    if ever.any():
        _legend(axes, loc="lower right")
    return picture


def _folded(title: str, width: int = 62) -> str:
    import textwrap

    return "\n".join(line for part in title.strip().splitlines() for line in textwrap.wrap(part, width))


# -- of the claims: measurements in long format, one row a run


def _values(frame: pd.DataFrame, metric: str, **where: Any) -> pd.DataFrame:
    """Rows of a metric under these conditions, policies in the order of `STYLES`."""
    rows = frame[frame["metric"] == metric]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    if rows.empty:
        raise ValueError(f"{metric} was not measured{''.join(f', {key} = {value}' for key, value in where.items())}")
    known = [policy for policy in STYLES if policy in set(rows["method"])]
    others = [policy for policy in dict.fromkeys(rows["method"]) if policy not in STYLES]
    return rows.assign(method=pd.Categorical(rows["method"], [*known, *others], ordered=True)).sort_values(
        "method", kind="stable"
    )


def _interval(values: pd.Series) -> tuple[float, float]:
    """Mean and half-width of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def growth(frame: pd.DataFrame) -> Figure:
    """Mean refined regret at a third of the horizon and at the horizon, instance by instance: no distance, no growth."""
    rows = frame[frame["method"] == "uncertain-ucb"]
    final = rows[rows["metric"] == "refined regret"].groupby("instance", sort=False)["value"]
    before = rows[rows["metric"] == "refined regret before"].groupby("instance", sort=False)["value"].mean()
    places = np.arange(len(before))[::-1]
    picture, axes = figure(4.6, 1.1 + 0.27 * len(before))
    axes.hlines(
        places, final.quantile(0.1), final.quantile(0.9), color=FAINT, linewidth=7, label="q10 to q90 of the runs"
    )
    axes.hlines(places, before, final.mean(), color=BLUE, linewidth=1.5)
    axes.plot(before, places, "o", color=BLUE, markerfacecolor="white", markersize=6, label="a third of the rounds")
    axes.plot(final.mean(), places, "o", color=BLUE, markersize=4, label="all rounds")
    axes.set_yticks(places, list(before.index))
    axes.set(xlabel="refined regret of uncertain-ucb")
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    legend_above(picture, axes, 3)
    return picture


def excess(
    frame: pd.DataFrame, *, n_arms: int | None = None, policies: Sequence[str] = ("uncertain-ucb", "uncertain-ucb-safe")
) -> Figure:
    """Refined regret against the excess of the best arm over the threshold, with both fits and both bounds.

    The fits, dashed: a + b ln(1/excess), as the bounds have it, and a power of the excess, as a method that deteriorates would. The
    bounds, grey: what is proved for the safe index, and what no algorithm can beat (gap 0.3, sigma 1/2).
    """
    from upheld.bandits import data, theory

    rows = _values(frame, "refined regret")
    if "others" in rows:
        rows = rows[(rows["gap"] == 0.3) & (rows["others"] == 9)]
    n_arms = n_arms or (10 if "others" in rows else 5)
    picture, axes = figure(4.8, 3.8)
    grid = np.geomspace(rows["excess"].min(), rows["excess"].max(), 60)
    for policy in policies:
        seen = rows[rows["method"] == policy]
        if seen.empty:
            continue
        _measured(axes, seen, policy, joined=False)
        if seen["excess"].nunique() > 1:
            _fits(axes, seen.groupby("excess")["value"].mean(), grid, style(policy)[0])
    proved = [theory.regret_bound(data.small_excess(float(x), n_arms=n_arms).means, data.S, 0.5) for x in grid]
    least = [theory.lower_bound(n_arms, 0.3, float(x), 0.5) for x in grid]
    axes.plot([], [], color=INK, linewidth=0.9, linestyle=LOGARITHM, label="fit: a + b ln(1/excess)")
    axes.plot([], [], color=INK, linewidth=0.9, linestyle=POWER, label="fit: a power of the excess")
    for bound, label, above in (
        (proved, "proved upper bound (safe index)", True),
        (least, "lower bound for any policy", False),
    ):
        axes.plot(grid, bound, color=QUIET, linewidth=1.2)
        axes.annotate(label, (grid[40], bound[40]), xytext=(0, 4 if above else -4), textcoords="offset points",
                      fontsize=8.5, color=QUIET, va="bottom" if above else "top")  # fmt: skip
    _excess_axes(axes, rows)
    axes.set_ylim(top=3 * max(proved))
    legend_above(picture, axes, 2)
    return picture


def deteriorating(frame: pd.DataFrame) -> Figure:
    """Refined regret of every policy against the excess: the steeper, the worse it takes a small excess."""
    rows = _values(frame, "refined regret", gap=0.3, others=9)
    picture, axes = figure(4.8, 4.2)
    for policy, seen in rows.groupby("method", observed=True):
        _measured(axes, seen, str(policy))
    _excess_axes(axes, rows)
    legend_above(picture, axes, 3)
    return picture


def _measured(axes: Axes, rows: pd.DataFrame, policy: str, *, joined: bool = True) -> None:
    """Means with 95 % intervals over the excess."""
    colour, line, marker = style(policy)
    line = line if joined else "none"
    levels = np.sort(rows["excess"].unique())
    means = {float(x): _interval(rows.loc[rows["excess"] == x, "value"]) for x in levels}
    axes.errorbar(
        list(means), [mean for mean, _ in means.values()], [half for _, half in means.values()], color=colour,
        linestyle=line, linewidth=1.2, marker=marker, markersize=4.5, capsize=2, label=policy,
    )  # fmt: skip


def _fits(axes: Axes, means: pd.Series, grid: np.ndarray, colour: str) -> None:
    x, y = np.log(1 / means.index.to_numpy(float)), means.to_numpy(float)
    slope, start = np.polyfit(x, y, 1)
    axes.plot(grid, start + slope * np.log(1 / grid), color=colour, linewidth=0.9, linestyle=LOGARITHM)
    power, scale = np.polyfit(x, np.log(y), 1)
    axes.plot(grid, np.exp(scale + power * np.log(1 / grid)), color=colour, linewidth=0.9, linestyle=POWER)


def _excess_axes(axes: Axes, rows: pd.DataFrame) -> None:
    from matplotlib.ticker import NullLocator

    axes.set(xscale="log", yscale="log", xlabel="excess of the best arm over the threshold", ylabel="refined regret")
    axes.invert_xaxis()
    axes.set_xticks(np.sort(rows["excess"].unique()))
    axes.xaxis.set_minor_locator(NullLocator())
    plain_logs(axes.xaxis)
    plain_logs(axes.yaxis)


def tails(frame: pd.DataFrame, *, condition: str = "delta") -> Figure:
    """Share of runs whose final refined regret exceeds a value, on log scales: the tail that a mean hides.

    One panel for the largest and one for the smallest value of `condition`.
    """
    rows = _values(frame, "refined regret")
    levels = sorted(rows[condition].unique(), reverse=True)
    shown = [levels[0], levels[-1]] if len(levels) > 1 else levels
    picture, panels = figure(4.8, 1.0 + 2.1 * len(shown), nrows=len(shown), sharex=True, squeeze=False)
    for axes, level in zip(panels[:, 0], shown, strict=True):
        for policy, seen in rows[rows[condition] == level].groupby("method", observed=True):
            colour, line, _ = style(str(policy))
            axes.ecdf(
                np.maximum(seen["value"], 1e-2),
                complementary=True,
                color=colour,
                linestyle=line,
                linewidth=1.5,
                label=str(policy),
            )
        axes.set(xscale="log", yscale="log", ylabel="share of runs")
        axes.set_xlim(left=max(1.0, float(rows["value"].min())))
        axes.set_title(f"other arms {level:g} below the threshold", fontsize=8.5, color=QUIET, loc="left")
        plain_logs(axes.xaxis)
        plain_logs(axes.yaxis)
    panels[-1, 0].set_xlabel("refined regret above")
    legend_above(picture, panels[0, 0], 3)
    return picture


def instances(frame: pd.DataFrame) -> Figure:
    """Refined regret over the lower bound on each of the instances that no policy can tell apart, at the smallest excess.

    Hollow: arm 1 is good enough. Filled: it is not, another is. A policy that is cheap on one kind pays on the other.
    """
    smallest = frame["excess"].min()
    rows = _values(frame, "refined regret over lower bound", excess=smallest)
    policies = list(rows["method"].cat.categories)
    means = rows.groupby(["method", "number"], observed=True)["value"].mean()
    picture, axes = figure(4.8, 1.0 + 0.28 * len(policies))
    for place, policy in enumerate(reversed(policies)):
        colour = style(policy)[0]
        on = means[policy]
        axes.hlines(place, max(on.min(), 1e-2), on.max(), color=FAINT, linewidth=3)
        axes.plot(on[on.index > 0], [place] * int((on.index > 0).sum()), "o", color=colour, markersize=5, alpha=0.8)
        axes.plot(
            on[on.index == 0],
            [place] * int((on.index == 0).sum()),
            "o",
            color=colour,
            markerfacecolor="white",
            markersize=6,
        )
    axes.plot([], [], "o", color=INK, markerfacecolor="white", markersize=6, label="arm 1 is good enough")
    axes.plot([], [], "o", color=INK, markersize=5, label="another arm is")
    axes.axvline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(policies)), reversed(policies))
    axes.set(xscale="log", xlabel=f"mean refined regret / lower bound (excess {smallest:g})")
    axes.tick_params(axis="y", length=0)
    plain_logs(axes.xaxis)
    legend_above(picture, axes, 2)
    return picture


def two_regrets(frame: pd.DataFrame) -> Figure:
    """Mean threshold regret against mean refined regret, arms closest to the threshold: the two order policies differently."""
    smallest = frame["delta"].min()
    across = _values(frame, "threshold regret", delta=smallest).groupby("method", observed=True)["value"]
    up = _values(frame, "refined regret", delta=smallest).groupby("method", observed=True)["value"]
    picture, axes = figure(4.8, 3.8)
    for policy, values in up:
        colour, _, marker = style(str(policy))
        (x, dx), (y, dy) = _interval(across.get_group(policy)), _interval(values)
        axes.errorbar(x, y, xerr=min(dx, 0.95 * x), yerr=min(dy, 0.95 * y), color=colour, marker=marker, markersize=6,
                      capsize=2, linewidth=1, linestyle="none", label=str(policy))  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="mean threshold regret", ylabel="mean refined regret")
    plain_logs(axes.xaxis)
    plain_logs(axes.yaxis)
    legend_above(picture, axes, 3)
    return picture


def race(frame: pd.DataFrame) -> Figure:
    """Mean refined regret (mark) and its 99 % quantile (end of the line) on every instance, of the policies that can play them all."""
    rows = _values(frame[frame["widths"] == "published"], "refined regret")
    names = list(dict.fromkeys(rows["instance"]))
    everywhere = rows.groupby("method", observed=True)["instance"].nunique() == len(names)
    policies = [policy for policy in rows["method"].cat.categories if everywhere[policy]]
    columns = min(2, len(names))
    height = -(-len(names) // columns)
    picture, panels = figure(
        5.2, 0.6 + height * (0.55 + 0.13 * len(policies)), nrows=height, ncols=columns, sharey=True, squeeze=False
    )
    for axes, name in zip(panels.ravel(), names, strict=False):
        here = rows[rows["instance"] == name].groupby("method", observed=True)["value"]
        for place, policy in enumerate(reversed(policies)):
            colour, _, marker = style(policy)
            mean, tail = here.get_group(policy).mean(), here.get_group(policy).quantile(0.99)
            axes.plot([max(mean, 0.1), max(tail, 0.1)], [place, place], color=colour, linewidth=1.4)
            axes.plot(max(mean, 0.1), place, marker, color=colour, markersize=4.5)
        axes.set(xscale="log")
        axes.set_title(name, fontsize=8.5, color=INK, loc="left")
        axes.set_yticks(range(len(policies)), reversed(policies), fontsize=7.5)
        axes.tick_params(axis="y", length=0)
        plain_logs(axes.xaxis)
    for axes in panels.ravel()[len(names) :]:
        axes.set_visible(False)
    picture.supxlabel("refined regret: mean (mark) and 99 % quantile (end)", fontsize=9)
    return picture


PICTURES = {
    "bandits.constant-regret": growth,
    "bandits.upper-bound": excess,
    "bandits.earlier-deteriorate": deteriorating,
    "bandits.near-threshold": tails,
    "bandits.lower-bound": instances,
    "bandits.bounds-match": excess,
    "bandits.refined-regret": two_regrets,
    "bandits.race": race,
}
