"""Pictures: the effect so far with its band, covariate balance before and after; and those of the claims.

A method has the same colour and mark in every picture (Okabe & Ito's palette, which colour-blind readers can tell apart). All figures
are made to be read at 380 pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from upheld.report.drawing import (
    BLUE,
    BROWN,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PINK,
    QUIET,
    RED,
    SKY,
    figure,
    legend_above,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DESCRIBED, SHIPPED = "as described", "as shipped"
STYLES: dict[str, tuple[str, str]] = {  # colour, marker
    DESCRIBED: (RED, "o"),
    SHIPPED: (BLUE, "s"),
    "as shipped, time kernel": (SKY, "D"),
    "online ipw": (ORANGE, "v"),
    "online normalised ipw": (ORANGE, "^"),
    "online aipw": (PINK, "<"),
    "online aipw, tree": (PINK, ">"),
    "online cbps": (BROWN, "v"),
    "online overlap weights": (BROWN, "^"),
    "online aipw on features": (PINK, "*"),
    "reservoir": (GREEN, "o"),
    "small reservoir": (GREEN, "."),
    "window": (SKY, "x"),
    "window, whole blocks": (SKY, "X"),
    "exact moments, equal memory": (INK, "d"),
    "exact moments, equal features": (INK, "D"),
    "difference in means": (QUIET, "|"),
    "all rows, ipw": (QUIET, "1"),
    "all rows, aipw": (QUIET, "2"),
    "all rows, ebal": (QUIET, "3"),
    "all rows, econml": (QUIET, "4"),
    "all rows, doubleml": (QUIET, "+"),
    "compress++, whole blocks": (GREEN, "X"),
}
OTHERS = (GREEN, PINK, BROWN, ORANGE)
SCENARIO = {
    "none": "nothing drifts", "assignment": "the assignment drifts", "outcome": "outcomes drift", "both": "both drift",
}  # fmt: skip
NOTEWORTHY = 0.1
FLOOR = 1e-6  # under which a squared error is drawn at the edge


def style(method: str) -> tuple[str, str]:
    """Colour and marker of a method; those without their own get one by their name."""
    return STYLES.get(method, (OTHERS[sum(method.encode()) % len(OTHERS)], "P"))


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=8.5, color=QUIET, loc="left")


# -- on a user's own rows


def estimate_so_far(way: pd.DataFrame, *, difference: Mapping[str, float] | None = None, level: float = 0.95) -> Figure:
    """The effect of each arm over the rows so far, with its interval; and where the plain difference in means ends.

    Parameters
    ----------
    way : columns ``n``, ``arm``, ``ate``, ``low``, ``high``; gaps where there was no estimate
    difference : by arm
    """
    arms = list(dict.fromkeys(way["arm"]))
    picture, axes = figure(4.8, 3.2)
    colours = (BLUE, RED, GREEN, PINK, ORANGE, SKY)
    for number, arm in enumerate(arms):
        colour = colours[number % len(colours)]
        seen = way[way["arm"] == arm].astype(dict.fromkeys(("ate", "low", "high"), float))
        label = "effect so far" if len(arms) == 1 else f"arm {arm}"
        marker = "o" if len(seen) < 12 else ""
        axes.plot(seen["n"], seen["ate"], color=colour, linewidth=1.6, marker=marker, markersize=3.5, label=label)
        axes.fill_between(seen["n"], seen["low"], seen["high"], color=colour, alpha=0.16, linewidth=0)
        if len(seen) == 1:  # a band of one point cannot be seen
            axes.vlines(seen["n"], seen["low"], seen["high"], color=colour, linewidth=1.2)
        if difference and str(arm) in difference:
            name = "difference in means" if number == 0 else None
            axes.axhline(
                difference[str(arm)],
                color=colour if len(arms) > 1 else QUIET,
                linewidth=1,
                linestyle=(0, (4, 3)),
                label=name,
            )
    axes.set(xlabel="rows", ylabel="effect on the outcome")
    plain_numbers(axes.xaxis)
    _title(axes, f"band: {level:.0%} interval at each report")
    legend_above(picture, axes)
    return picture


def love(balance: pd.DataFrame, *, most: int = 25) -> Figure:
    """Standardised differences in means of each covariate, before and after weighting: the mark should cross to the left.

    Parameters
    ----------
    balance : columns ``covariate``, ``arm``, ``smd_before``, ``smd_after``; of several arms, the worst is drawn
    most : covariates drawn, those that differed most
    """
    covariates = balance[balance["covariate"] != "(all features)"]  # the kernel's distance has another unit
    covariates = covariates[covariates["smd_before"] > 0]  # levels that nobody has
    table = covariates.groupby("covariate", sort=False)[["smd_before", "smd_after"]].max().sort_values("smd_before")
    hidden = max(len(table) - most, 0)
    table = table.tail(most)
    picture, axes = figure(4.8, 1.2 + 0.2 * len(table))
    places = np.arange(len(table))
    axes.hlines(places, table["smd_before"], table["smd_after"].fillna(table["smd_before"]), color=FAINT, linewidth=2)
    axes.plot(
        table["smd_before"],
        places,
        "o",
        color=RED,
        markerfacecolor="white",
        markersize=5,
        label="before",
        clip_on=False,
    )
    axes.plot(table["smd_after"], places, "o", color=BLUE, markersize=5, label="after weighting", clip_on=False)
    axes.axvline(NOTEWORTHY, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(f"{NOTEWORTHY:g}", (NOTEWORTHY, 1), xycoords=("data", "axes fraction"), xytext=(2, -2), textcoords="offset points",
                  fontsize=8, color=QUIET, va="top")  # fmt: skip
    axes.set_yticks(places, [_short(name) for name in table.index], fontsize=8)
    axes.set(xlabel="standardised difference in means")
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    if hidden:
        _title(axes, f"the {most} covariates that differed most; {hidden} more")
    legend_above(picture, axes)
    return picture


def _short(name: str, width: int = 30) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


# -- of the claims: measurements in long format


def _values(frame: pd.DataFrame, metric: str, methods: Sequence[str] = (), **where: Any) -> pd.DataFrame:
    """Rows of a metric, of these methods alone if any are named, under these conditions."""
    rows = frame[frame["metric"] == metric]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    if methods:
        rows = rows[rows["method"].isin(methods)]
    if rows.empty:
        raise ValueError(f"{metric} was not measured{''.join(f', {key} = {value}' for key, value in where.items())}")
    return rows


def _interval(values: pd.Series) -> tuple[float, float]:
    """Mean and half-width of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _over(axes: Axes, rows: pd.DataFrame, x: str, *, root: bool = False) -> None:
    """Means with 95 % intervals over x, a line a method; of squared errors, their roots."""
    for method in [name for name in STYLES if name in set(rows["method"])] + sorted(set(rows["method"]) - set(STYLES)):
        colour, marker = style(method)
        mine = rows[rows["method"] == method]
        found = {at: _interval(values) for at, values in mine.groupby(x)["value"]}
        middle = np.array([mean for mean, _ in found.values()])
        half = np.array([min(half, 0.9 * mean) if mean > 0 else half for mean, half in found.values()])
        low, high = middle - half, middle + half
        if root:
            middle, low, high = np.sqrt(middle), np.sqrt(low), np.sqrt(high)
        axes.errorbar(
            list(found), middle, [middle - low, high - middle], color=colour, marker=marker, markersize=4.5, linewidth=1.3,
            capsize=2, label=method,
        )  # fmt: skip


def _slope_line(axes: Axes, x: Sequence[float], start: float, slope: float, label: str) -> None:
    at = np.array([min(x), max(x)], dtype=float)
    axes.plot(at, start * (at / at[0]) ** slope, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), label=label)


def _log_axes(axes: Axes, ticks: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set(xscale="log", yscale="log")
    axes.set_xticks(list(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    plain_numbers(axes.xaxis)


def _plain_values(axis: Any) -> None:
    """0.02 instead of 2 x 10^-2 on a logarithmic axis of less than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def memory(frame: pd.DataFrame) -> Figure:
    """Bytes held after streams of several lengths: flat if memory is bounded."""
    rows = _values(frame, "bytes", (DESCRIBED, SHIPPED)).assign(value=lambda table: table["value"] / 1000)
    picture, axes = figure()
    _over(axes, rows, "n")
    _log_axes(axes, sorted(rows["n"].unique()))
    lowest, highest = rows["value"].min(), rows["value"].max()
    axes.set_ylim(lowest / 3, highest * 3)
    _plain_values(axes.yaxis)
    axes.set(xlabel="rows of the stream", ylabel="kB held")
    legend_above(picture, axes)
    return picture


def seconds(frame: pd.DataFrame) -> Figure:
    """Process time of streams of several lengths, beside a line that is proportional to them."""
    rows = _values(frame, "seconds", (DESCRIBED, SHIPPED))
    picture, axes = figure()
    _over(axes, rows, "n")
    lengths = sorted(rows["n"].unique())
    start = float(rows[rows["n"] == lengths[0]]["value"].min())
    _slope_line(axes, lengths, start, 1.0, "in proportion")
    _log_axes(axes, lengths)
    _plain_values(axes.yaxis)
    axes.set(xlabel="rows of the stream", ylabel="seconds of process time")
    legend_above(picture, axes, 3)
    return picture


def balance_kept(frame: pd.DataFrame) -> Figure:
    """Distance of coreset and reservoir from their arm, over the kernel's unit ball, by k; a panel a dimension."""
    rows = _values(frame, "distance")
    rows = rows.assign(k=rows["item"].str.removeprefix("k=").astype(int))
    rows = rows[rows["method"].str.endswith(SHIPPED)].replace({"method": {
        SHIPPED: "coreset", f"reservoir of equal size, {SHIPPED}": "reservoir of equal size",
    }})  # fmt: skip
    dimensions = sorted(rows["d"].unique())
    picture, panels = figure(5.2, 3.0, ncols=len(dimensions), sharey=True, squeeze=False)
    for axes, d in zip(panels[0], dimensions, strict=True):
        here = rows[rows["d"] == d]
        for method, colour, marker in (("coreset", BLUE, "s"), ("reservoir of equal size", GREEN, "o")):
            means = here[here["method"] == method].groupby("k")["value"].mean()
            axes.plot(means.index, means, color=colour, marker=marker, markersize=4.5, linewidth=1.3, label=method)
        _log_axes(axes, sorted(rows["k"].unique()))
        _plain_values(axes.yaxis)
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlabel("k")
        _title(axes, f"{d} covariates")
    panels[0, 0].set_ylabel("distance from the arm")
    legend_above(picture, panels[0, 0])
    return picture


def rates(frame: pd.DataFrame) -> Figure:
    """Imbalance and error of one coreset pair with k = sqrt(n), beside 1/sqrt(n)."""
    picture, panels = figure(5.2, 3.2, ncols=2)
    for axes, metric, ylabel, root in (
        (panels[0], "imbalance", "imbalance", False),
        (panels[1], "squared error", "root mean squared error", True),
    ):
        rows = _values(frame, metric, (DESCRIBED, SHIPPED))
        _over(axes, rows, "n", root=root)
        lengths = sorted(rows["n"].unique())
        start = float(rows[rows["n"] == lengths[0]].groupby("method")["value"].mean().max())
        _slope_line(axes, lengths, np.sqrt(start) if root else start, -0.5, "1/√n")
        _log_axes(axes, lengths[:: max(1, len(lengths) // 2)])
        axes.set(xlabel="rows", ylabel=ylabel)
        _plain_values(axes.yaxis)
    legend_above(picture, panels[1], 3)
    return picture


def race(frame: pd.DataFrame) -> Figure:
    """Root mean squared error of everybody, a panel a scenario; of several paces, families and logits, over all."""
    rows = _values(frame, "squared error")
    rows = rows[rows["method"].isin(STYLES)]
    scenarios = [name for name in SCENARIO if name in set(rows["scenario"])]
    methods = [name for name in STYLES if name in set(rows["method"])]
    picture, panels = figure(
        5.2, 0.7 + 0.17 * len(methods) * -(-len(scenarios) // 2), nrows=-(-len(scenarios) // 2), ncols=2, sharex=True, sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axes, scenario in zip(panels.ravel(), scenarios, strict=False):
        _ranked(axes, rows[rows["scenario"] == scenario], methods)
        _title(axes, SCENARIO[scenario])
    for axes in panels.ravel()[len(scenarios) :]:
        axes.set_visible(False)
    picture.supxlabel("root mean squared error of the effect, 95 % interval", fontsize=9)
    return picture


def _ranked(axes: Axes, rows: pd.DataFrame, methods: Sequence[str], *, root: bool = True) -> None:
    """A line a method, in the given order from the top: mean with interval on a logarithmic axis."""
    for place, method in enumerate(reversed(methods)):
        mine = rows[rows["method"] == method]["value"].dropna()
        if mine.empty:
            continue
        colour, marker = style(method)
        mean, half = _interval(mine)
        shown = mean / (100 if root else 10)  # an interval that reaches 0 has no end on a logarithmic axis
        ends = np.maximum([mean - half, mean, mean + half], max(shown, FLOOR))
        low, middle, high = np.sqrt(ends) if root else ends
        axes.plot([low, high], [place, place], color=colour, linewidth=1.4)
        axes.plot(middle, place, marker, color=colour, markersize=5)
    axes.set(xscale="log")
    axes.set_yticks(range(len(methods)), list(reversed(methods)), fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    from matplotlib.ticker import NullFormatter

    plain_numbers(axes.xaxis)
    axes.xaxis.set_minor_formatter(NullFormatter())


def drift(scenario: str) -> Any:
    """The picture of what a drift costs each online method: its error without and with the drift."""

    def picture_of(frame: pd.DataFrame) -> Figure:
        rows = _values(frame, "squared error")
        rows = rows[rows["scenario"].isin(["none", scenario])]
        shown = [name for name in STYLES if name in set(rows["method"]) and not name.startswith("all rows")]
        means = rows.groupby(["method", "scenario"])["value"].mean()
        picture, axes = figure(4.8, 0.9 + 0.21 * len(shown))
        for place, method in enumerate(reversed(shown)):
            colour, _ = style(method)
            steady, moved = (float(np.sqrt(means.get((method, one), np.nan))) for one in ("none", scenario))
            axes.plot([steady, moved], [place, place], color=colour, linewidth=1.6)
            axes.plot(steady, place, "o", color=colour, markerfacecolor="white", markersize=5.5)
            axes.plot(moved, place, "o", color=colour, markersize=5.5)
        axes.plot(
            [], [], "o", color=INK, markerfacecolor="white", markersize=5.5, linestyle="none", label=SCENARIO["none"]
        )
        axes.plot([], [], "o", color=INK, markersize=5.5, linestyle="none", label=SCENARIO[scenario])
        axes.set_yticks(range(len(shown)), list(reversed(shown)), fontsize=8)
        axes.set(xscale="log", xlabel="root mean squared error of the effect")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=FAINT, linewidth=0.6)
        from matplotlib.ticker import NullFormatter

        plain_numbers(axes.xaxis)
        axes.xaxis.set_minor_formatter(NullFormatter())
        legend_above(picture, axes)
        return picture

    return picture_of


def mechanism(frame: pd.DataFrame) -> Figure:
    """The same coresets weighted in several ways, a panel a scenario."""
    recipes = {"": "direct weights", ", logistic": "logistic weights", ", x alone": "the covariates' means alone"}
    rows = _values(frame, "squared error")
    scenarios = [name for name in ("assignment", "outcome") if name in set(rows["scenario"])]
    picture, panels = figure(5.0, 2.6, ncols=len(scenarios), sharey=True, squeeze=False)
    for axes, scenario in zip(panels[0], scenarios, strict=True):
        here = rows[rows["scenario"] == scenario]
        for shift, name in ((0.1, DESCRIBED), (-0.1, SHIPPED)):
            for place, ending in enumerate(reversed(recipes)):
                mine = here[here["method"] == name + ending]["value"]
                if mine.empty:
                    continue
                mean, half = _interval(mine)
                low, middle, high = np.sqrt(np.maximum([mean - half, mean, mean + half], FLOOR))
                colour, marker = style(name)
                axes.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.4)
                axes.plot(middle, place + shift, marker, color=colour, markersize=5, label=name if place == 0 else None)
        axes.set_xlim(left=0)
        axes.set_yticks(range(len(recipes)), list(reversed(recipes.values())), fontsize=8)
        axes.tick_params(axis="y", length=0)
        _title(axes, SCENARIO[scenario])
    picture.supxlabel("root mean squared error of the effect, 95 % interval", fontsize=9)
    legend_above(picture, panels[0, 0])
    return picture


def misspecification(frame: pd.DataFrame) -> Figure:
    """Error where linear models are right, and where one or both are wrong."""
    rows = _values(frame, "squared error")
    methods = [name for name in STYLES if name in set(rows["method"])]
    means = rows.groupby(["method", "models"])["value"].mean()
    picture, axes = figure(4.8, 0.9 + 0.3 * len(methods))
    for place, method in enumerate(reversed(methods)):
        colour, _ = style(method)
        right, wrong = (float(np.sqrt(means.get((method, one), np.nan))) for one in ("right", "wrong"))
        axes.plot([right, wrong], [place, place], color=colour, linewidth=1.6)
        axes.plot(right, place, "o", color=colour, markerfacecolor="white", markersize=5.5)
        axes.plot(wrong, place, "o", color=colour, markersize=5.5)
    axes.plot([], [], "o", color=INK, markerfacecolor="white", linestyle="none", label="linear models are right")
    axes.plot([], [], "o", color=INK, linestyle="none", label="one or both are wrong")
    axes.set_yticks(range(len(methods)), list(reversed(methods)), fontsize=8.5)
    axes.set(xlabel="root mean squared error of the effect")
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    legend_above(picture, axes)
    return picture


def real(frame: pd.DataFrame) -> Figure:
    """Absolute error on ACIC's files."""
    rows = _values(frame, "absolute error")
    methods = [name for name in STYLES if name in set(rows["method"])]
    picture, axes = figure(4.8, 0.7 + 0.2 * len(methods))
    _ranked(axes, rows, methods, root=False)
    picture.supxlabel("mean absolute error of the effect, 95 % interval", fontsize=9)
    return picture


def latency(frame: pd.DataFrame) -> Figure:
    """Seconds of updates and queries at the 99th percentile, with what is allowed."""
    picture, panels = figure(4.8, 2.2, ncols=2, sharey=True)
    for axes, metric, most, title in (
        (panels[0], "seconds of an update, 99 %", 0.05, "update of 100 rows\n(dashed: 50 ms)"),
        (panels[1], "seconds of a query, 99 %", 0.25, "estimate\n(dashed: 250 ms)"),
    ):
        rows = _values(frame, metric, (DESCRIBED, SHIPPED))
        for place, name in enumerate((SHIPPED, DESCRIBED)):
            colour, marker = style(name)
            values = 1000 * rows[rows["method"] == name]["value"]
            axes.plot(
                values, np.full(len(values), place), marker, color=colour, alpha=0.35, markersize=4, linestyle="none"
            )
            axes.plot(values.mean(), place, marker, color=colour, markersize=6)
        axes.axvline(1000 * most, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_yticks((0, 1), (SHIPPED, DESCRIBED), fontsize=8.5)
        axes.set(xlabel="milliseconds, 99 %", ylim=(-0.6, 1.6))
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
        _title(axes, title)
    return picture


def coverage(frame: pd.DataFrame) -> Figure:
    """Share of streams whose interval holds the effect, with its 95 % interval, by scenario."""
    rows = _values(frame, "covered", (DESCRIBED, SHIPPED))
    return _shares(rows, 0.93, "share of streams whose 95 % interval holds the effect")


def coverage_anytime(frame: pd.DataFrame) -> Figure:
    """Share of streams that the confidence sequence holds at every look."""
    rows = _values(frame, "covered throughout", (DESCRIBED, SHIPPED))
    return _shares(rows, 0.95, "share of streams held at every look")


def _shares(rows: pd.DataFrame, wanted: float, label: str) -> Figure:
    from scipy.stats import binomtest

    scenarios = [name for name in SCENARIO if name in set(rows["scenario"])]
    picture, axes = figure(4.8, 1.1 + 0.38 * len(scenarios))
    for shift, name in ((0.12, DESCRIBED), (-0.12, SHIPPED)):
        colour, marker = style(name)
        for place, scenario in enumerate(reversed(scenarios)):
            values = rows[(rows["scenario"] == scenario) & (rows["method"] == name)]["value"]
            if values.empty:
                continue
            held = binomtest(int(values.sum()), len(values)).proportion_ci(method="exact")
            axes.plot([held.low, held.high], [place + shift] * 2, color=colour, linewidth=1.4)
            axes.plot(
                values.mean(), place + shift, marker, color=colour, markersize=5, label=name if place == 0 else None
            )
    axes.axvline(wanted, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    axes.text(wanted, len(scenarios) - 0.42, f"{wanted:g}", fontsize=8, color=QUIET, ha="center", va="bottom")
    axes.set_ylim(-0.5, len(scenarios) - 0.4)
    axes.set_yticks(range(len(scenarios)), [SCENARIO[name] for name in reversed(scenarios)], fontsize=8.5)
    axes.set_xlim(-0.02, 1.02)
    picture.supxlabel(label, fontsize=9)
    axes.tick_params(axis="y", length=0)
    legend_above(picture, axes)
    return picture


PICTURES = {
    "effects.memory-bounded": memory,
    "effects.linear-time": seconds,
    "effects.balance-preserved": balance_kept,
    "effects.convergence": rates,
    "effects.root-n": rates,
    "effects.assignment-shift": drift("assignment"),
    "effects.outcome-shift": drift("outcome"),
    "effects.both-shifts": drift("both"),
    "effects.mechanism": mechanism,
    "effects.misspecification": misspecification,
    "effects.real-wins": real,
    "effects.realtime": latency,
    "effects.coverage": coverage,
    "effects.coverage-anytime": coverage_anytime,
    "effects.race": race,
    "effects.price-of-forgetting": race,
    "effects.price-of-forgetting-real": real,
    "effects.thinning": race,
}
