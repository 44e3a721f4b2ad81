"""Pictures: a user's dual bounds step by step; and of the claims rates beside theory and exact risks, starts, bounds, trees.

A learner or start has the same colour and mark in every picture (Okabe & Ito's palette, which colour-blind readers can tell apart).
All figures are made to be read at 380 pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from upheld.lagrangian import bounds
from upheld.report import drawing
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
    plain_logs,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

figure = partial(drawing.figure, labels=8.5)
legend_above = partial(drawing.legend_above, size=8, handle=2.2)
STYLES: dict[str, tuple[str, str, str]] = {  # colour, line, marker
    "SGA": (BLUE, "-", "o"),
    "SGA, tuned": (BLUE, "--", "s"),
    "SGA, default": (SKY, "-", "D"),
    "ERM": (GREEN, "-", "^"),
    "warm start": (RED, "-", "P"),
    "mean of optima": (RED, "-", "P"),
    "mean LP dual": (ORANGE, "-", "X"),
    "contextual": (PINK, "-", "*"),
    "contextual, unguarded": (PINK, "--", "h"),
    "own LP dual": (BROWN, "-", "v"),
    "last optimum": (RED, ":", "<"),
    "own optimum": (INK, ":", "d"),
    "best constant": (INK, "--", "d"),
    "random": (QUIET, ":", "x"),
    "constant": (QUIET, "--", "1"),
    "zero": (QUIET, "-", "."),
    "learned": (BLUE, "-", "o"),
    "lagrangian": (BLUE, "-", "o"),
    "LP": (ORANGE, "-", "s"),
    "HiGHS, LP": (ORANGE, "-", "s"),
    "HiGHS, root with cuts": (RED, "-", "^"),
    "CP-SAT": (GREEN, "-", "v"),
    "HiGHS": (QUIET, "-", "D"),
    "GCG, our blocks": (GREEN, "-", "^"),
    "GCG, root": (RED, "-", "s"),
}
STARTED = {"learned": "from learned multipliers", "zero": "from zero", "own LP dual": "from its LP's"}
DASHED, DOTTED = (0, (5, 2)), (0, (1, 1.5))
HARD = "hard"


def style(name: str) -> tuple[str, str, str]:
    """Colour, line and marker of a learner, a start or a solver."""
    return STYLES.get(name, (QUIET, "-.", "+"))


def _plain_logs(axis: Any, ticks: Iterable[float] | None = None) -> None:
    """1,000 instead of 10^3 on a logarithmic axis; `ticks` where the values measured are few."""
    from matplotlib.ticker import NullLocator

    plain_logs(axis)
    if ticks is not None:
        axis.set_ticks([float(one) for one in ticks])
        axis.set_minor_locator(NullLocator())


def _whole_ticks(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _headed(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8.5, color=INK, loc="left")


# -- of a user's own instances


def convergence(
    frame: pd.DataFrame,
    *,
    levels: Mapping[str, Any] | None = None,
    maximise: bool = False,
    relative: bool | None = None,
) -> Figure:
    """The best bound so far over oracle calls, one line a start.

    One instance: the bound itself, with the LP's and HiGHS' bounds and the plan as level lines. Several: how far it is from the best
    bound known of each, in per cent: median and band from the 10 % to the 90 % quantile of the instances.

    Parameters
    ----------
    frame : columns of ``bounds.parquet``: ``instance``, ``start``, ``oracle_calls``, ``u``
    levels : of the one instance: ``lp_bound``, ``plan``, ``highs_root_bound``
    maximise : bounds fall
    relative : draw distances also for one instance
    """
    frame = frame.assign(best=_best_so_far(frame, maximise))
    single = frame["instance"].nunique() == 1 and not relative
    picture, axes = figure(4.8, 3.4)
    values = frame if single else frame.assign(best=_shortfall(frame, maximise))
    for start, rows in values.groupby("start", sort=False):
        colour, line, _ = style(str(start))
        table = rows.pivot_table(index="oracle_calls", columns="instance", values="best").ffill()
        axes.plot(table.index, table.median(axis=1), color=colour, linestyle=line, linewidth=1.7, marker=".", markersize=4,
                  label=STARTED.get(str(start), f"from {start}"))  # fmt: skip
        if not single and table.shape[1] > 1:
            axes.fill_between(
                table.index,
                table.quantile(0.1, axis=1),
                table.quantile(0.9, axis=1),
                color=colour,
                alpha=0.15,
                linewidth=0,
            )
    axes.set(xlabel="solutions of all blocks (oracle calls)")
    _whole_ticks(axes.xaxis)
    if single:
        _levels(axes, frame, levels or {}, maximise)
        axes.set_ylabel(f"certified {'upper' if maximise else 'lower'} bound so far")
        plain_numbers(axes.yaxis)
        between = (
            "the optimum lies between bounds and plan"
            if (levels or {}).get("plan") is not None
            else f"the optimum lies {'below' if maximise else 'above'}"
        )
        _headed(axes, f"{frame['instance'].iloc[0]}: {between}")
    else:
        axes.set_yscale("symlog", linthresh=0.01)
        axes.set_ylabel("distance to the best bound known, %")
        _plain_logs(axes.yaxis)
        axes.set_ylim(bottom=0)
        _headed(axes, f"{frame['instance'].nunique()} instances: median, band from q10 to q90")
    legend_above(picture, axes, 3)
    return picture


def _best_so_far(frame: pd.DataFrame, maximise: bool) -> pd.Series:
    by = frame.groupby(["instance", "start"], sort=False)["u"]
    return by.cummin() if maximise else by.cummax()


def _shortfall(frame: pd.DataFrame, maximise: bool) -> pd.Series:
    """Per cent of the best bound of each instance."""
    top = frame.groupby("instance")["u"].transform("min" if maximise else "max")
    return 100 * (frame["best"] - top).abs() / top.abs().clip(lower=1e-12)


def _levels(axes: Axes, frame: pd.DataFrame, levels: Mapping[str, Any], maximise: bool) -> None:
    """LP, HiGHS' root and the plan; what starts far off (from zero) is cut away, so that the rest can be told apart."""
    known = {
        "plan": ("plan", INK, "-"),
        "lp_bound": ("LP bound", ORANGE, DASHED),
        "highs_root_bound": ("HiGHS root", RED, DOTTED),
    }
    drawn = {key: float(levels[key]) for key in known if levels.get(key) is not None}
    for key, value in drawn.items():
        name, colour, line = known[key]
        axes.axhline(value, color=colour, linestyle=line, linewidth=1.1, label=name)
    ends = [*frame.groupby("start")["best"].last(), *frame.loc[frame["start"] == "learned", "best"], *drawn.values()]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low or abs(high) or 1.0)
    axes.set_ylim(low - room, high + room)


# -- of the claims: measurements in long format


def _rows(frame: pd.DataFrame, metric: str, **where: Any) -> pd.DataFrame:
    """Rows of a metric under these conditions."""
    rows = frame[frame["metric"] == metric]
    for key, value in where.items():
        rows = rows[rows[key].isin(value) if isinstance(value, list | tuple) else rows[key] == value]
    if rows.empty:
        raise ValueError(f"{metric} was not measured{''.join(f', {key} = {value}' for key, value in where.items())}")
    return rows


def _methods(rows: pd.DataFrame) -> list[str]:
    """In the order of `STYLES`."""
    present = list(dict.fromkeys(rows["method"]))
    return [name for name in STYLES if name in present] + [name for name in present if name not in STYLES]


def _interval(values: pd.Series) -> tuple[float, float]:
    """Mean and half-width of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _against(axes: Axes, rows: pd.DataFrame, x: str, name: str, *, label: str | None = None) -> None:
    """Means with 95 % intervals over `x`."""
    colour, line, marker = style(name)
    at = {float(str(value)): _interval(seen["value"]) for value, seen in rows.groupby(x)}
    axes.errorbar(
        list(at), [mean for mean, _ in at.values()], [half for _, half in at.values()], color=colour, linestyle=line,
        linewidth=1.3, marker=marker, markersize=4.5, capsize=2, label=label or name,
    )  # fmt: skip


def _curve(axes: Axes, x: np.ndarray, y: Sequence[float], label: str, line: Any, colour: str = QUIET) -> None:
    axes.plot(x, y, color=colour, linestyle=line, linewidth=1.2, label=label)


Line = tuple[str, Callable[[Any, int], float], Any]


def rates(frame: pd.DataFrame, curves: Sequence[tuple[str, str]], lines: Sequence[Line], ylabel: str) -> Figure:
    """A loss on the hard family against N at the most rows, and against s at the longest past, on log axes.

    Parameters
    ----------
    curves : methods and metrics
    lines : names and functions of (s, N): what theory says, and exact risks
    """
    rows = pd.concat([_rows(frame, metric, family=HARD, method=method).assign(curve=f"{method}: {metric}" if
                      len({metric for _, metric in curves}) > 1 else method) for method, metric in curves])  # fmt: skip
    s, n = np.sort(rows["s"].unique()), np.sort(rows["n"].unique())
    picture, (left, right) = figure(5.0, 3.5, ncols=2, sharey=True)
    for axes, x, values, fixed in ((left, "n", n, ("s", s.max())), (right, "s", s, ("n", n.max()))):
        for (method, _), (curve, seen) in zip(curves, rows.groupby("curve", sort=False), strict=True):
            chosen = seen[seen[fixed[0]] == fixed[1]]
            _against(axes, chosen, x, method if curve == method else _second(str(curve), method), label=str(curve))
        fine = np.geomspace(values.min(), values.max(), 25)
        for name, of, line in lines:
            points = [(v, int(fixed[1])) if x == "s" else (fixed[1], round(v)) for v in fine]
            _curve(axes, fine, [of(*point) for point in points], name, line)
        axes.set(xscale="log", yscale="log", xlabel="past instances N" if x == "n" else "coupling rows s")
        _plain_logs(axes.xaxis, _few_ticks(values))
        _headed(axes, f"{fixed[0] if fixed[0] == 's' else 'N'} = {int(fixed[1]):,}")
    left.set_ylabel(ylabel)
    legend_above(picture, left, 2)
    return picture


def _second(curve: str, method: str) -> str:
    """Two metrics of one method are told apart by colour."""
    return method if curve.endswith("excess") else "SGA, default"


def _few_ticks(values: np.ndarray, most: int = 3) -> list[float]:
    return [float(values[int(k)]) for k in np.unique(np.linspace(0, len(values) - 1, most).round())]


def _epsilon(n: int) -> float:
    return float(0.75 / np.sqrt(n))


def erm_rate(frame: pd.DataFrame) -> Figure:
    """ERM's excess and generalisation gap, far below the bound."""
    return rates(
        frame, [("ERM", "excess"), ("ERM", "generalisation gap")],
        [("proved: 109.42 s^1.5 / √N", lambda s, n: bounds.erm_bound(s, n, 1.0, 1.0), DASHED),
         ("exact least risk of any learner", lambda s, n: bounds.bayes_risk(s, n, _epsilon(n)), DOTTED)],
        "excess, generalisation gap",
    )  # fmt: skip


def lower_bound(frame: pd.DataFrame) -> Figure:
    """Every learner of one vector, above the exact least risk."""
    return rates(
        frame, [(name, "excess") for name in ("ERM", "SGA", "mean of optima", "random", "constant")],
        [("exact least risk of any learner", lambda s, n: bounds.bayes_risk(s, n, _epsilon(n)), DOTTED)],
        "excess",
    )  # fmt: skip


def sga_rate(frame: pd.DataFrame) -> Figure:
    """SGA between the exact least risk and its bound."""
    return rates(
        frame, [("SGA", "excess")],
        [("proved: 2 s / √N", lambda s, n: bounds.sga_bound(s, n, 1.0, 1.0), DASHED),
         ("exact least risk of any learner", lambda s, n: bounds.bayes_risk(s, n, _epsilon(n)), DOTTED)],
        "excess",
    )  # fmt: skip


def warm_start_rate(frame: pd.DataFrame) -> Figure:
    """The squared distance of the mean of past optima, between the exact least one and the bound."""
    return rates(
        frame, [("warm start", "squared distance")],
        [("proved: s / (4 N)", lambda s, n: bounds.warm_start_bound(s, n, 1.0), DASHED),
         ("exact least of any estimator", lambda s, n: bounds.warm_start_bayes_risk(s, n, _epsilon(n)), DOTTED)],
        "squared distance",
    )  # fmt: skip


def two_rates(frame: pd.DataFrame) -> Figure:
    """Each in its own loss, relative to what it was at the shortest past, with guides of slope -1/2 and -1."""
    picture, axes = figure(4.6, 3.3)
    for method, metric in (("SGA", "excess"), ("warm start", "squared distance")):
        rows = _rows(frame, metric, family=HARD, method=method)
        first = rows[rows["n"] == rows["n"].min()].groupby("s")["value"].mean()
        scaled = rows.assign(value=rows["value"] / rows["s"].map(first))
        _against(axes, scaled, "n", method, label=f"{method}: {metric}")
    n = np.sort(rows["n"].unique())
    _curve(axes, n, (n / n[0]) ** -0.5, "slope -1/2", DASHED)
    _curve(axes, n, (n / n[0]) ** -1.0, "slope -1", DOTTED)
    axes.set(xscale="log", yscale="log", xlabel="past instances N", ylabel=f"loss, over that at N = {int(n[0]):,}")
    _plain_logs(axes.xaxis, n)
    _plain_logs(axes.yaxis)
    legend_above(picture, axes, 2)
    return picture


def sga_against_erm(frame: pd.DataFrame) -> Figure:
    """SGA's excess less ERM's, paired, in units of their mean: above 0, ERM is better."""
    rows = _rows(frame, "excess", method=["SGA", "ERM"])
    keys = [key for key in ("family", "s", "n", "seed", "item") if key in rows]
    wide = (
        rows.assign(**{key: rows[key].fillna("") for key in keys})
        .pivot_table(index=keys, columns="method", values="value")
        .dropna()
    )
    wide = wide.assign(value=wide["SGA"] - wide["ERM"]).reset_index()
    wide["regime"] = [_regime(family, s) for family, s in zip(wide["family"], wide["s"], strict=True)]
    picture, axes = figure(4.8, 3.6)
    for k, (regime, seen) in enumerate(wide.groupby("regime", sort=False)):
        colour = (BLUE, SKY, GREEN, RED, ORANGE, PINK)[k % 6]
        size = seen.groupby("n")[["SGA", "ERM"]].mean().mean(axis=1)
        at = {float(str(n)): (np.array(_interval(part["value"])) / float(size.loc[n])) for n, part in seen.groupby("n")}
        axes.errorbar(list(at), [v[0] for v in at.values()], [v[1] for v in at.values()], color=colour, linewidth=1.3, marker="o",
                      markersize=4, capsize=2, label=str(regime))  # fmt: skip
    axes.axhline(0, color=INK, linewidth=0.9)
    axes.annotate(
        "ERM better",
        (0.01, 0),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=QUIET,
    )
    axes.annotate(
        "SGA better",
        (0.01, 0),
        xycoords=("axes fraction", "data"),
        xytext=(0, -3),
        textcoords="offset points",
        fontsize=8,
        color=QUIET,
        va="top",
    )
    axes.set(xscale="log", xlabel="past instances N", ylabel="(SGA - ERM) / mean of both")
    axes.margins(y=0.15)
    _plain_logs(axes.xaxis)
    legend_above(picture, axes, 3)
    return picture


def _regime(family: str, s: Any) -> str:
    return (
        f"hard, s = {int(s)}"
        if family == HARD
        else f"bias .3, s = {int(s)}"
        if family.startswith("hard")
        else str(family)
    )


def real_families(frame: pd.DataFrame) -> Figure:
    """Excess on held-out instances of real families against N, with what no vector can close."""
    rows = _rows(frame, "excess, relative")
    families = list(dict.fromkeys(rows["family"]))
    gaps = frame[frame["metric"] == "contextual gap, relative"].groupby("family")["value"].mean()
    picture, panels = figure(4.8, 0.9 + 2.4 * len(families), nrows=len(families), squeeze=False)
    for axes, family in zip(panels[:, 0], families, strict=True):
        seen = rows[rows["family"] == family].assign(value=100 * rows["value"])
        for name in _methods(seen):
            _against(axes, seen[seen["method"] == name], "n", name)
        n = np.sort(seen["n"].unique())
        top = float(seen[(seen["method"] == "ERM") & (seen["n"] == n[0])]["value"].mean())
        _curve(axes, n, top * (n / n[0]) ** -0.5, "slope -1/2", DASHED)
        if family in gaps.index:
            axes.axhline(100 * gaps[family], color=INK, linewidth=1.2, linestyle=DOTTED, label="contextual gap")
        axes.set(xscale="log", yscale="log", xlabel="past instances N", ylabel="excess, % of the bound")
        _plain_logs(axes.xaxis, n)
        _plain_logs(axes.yaxis)
        _headed(axes, family)
    legend_above(picture, panels[0, 0], 3)
    return picture


def starts(frame: pd.DataFrame) -> Figure:
    """Gap to the optimum of the dual before the first step, after 10 and after 30 steps of subgradient ascent: median, q10 to q90."""
    metrics = {0: "gap after 0 steps", 10: "gap after 10 steps", 30: "gap after 30 steps"}
    rows = pd.concat([_rows(frame, metric).assign(steps=steps) for steps, metric in metrics.items()])
    families, names = list(dict.fromkeys(rows["family"])), _methods(rows)
    picture, panels = figure(5.0, 0.8 + 0.27 * len(names), ncols=len(families), sharey=True, squeeze=False)
    fills = {0: "white", 10: SKY, 30: BLUE}
    for axes, family in zip(panels[0], families, strict=True):
        for place, name in enumerate(reversed(names)):
            seen = 100 * rows[(rows["family"] == family) & (rows["method"] == name)].set_index("steps")["value"].clip(
                lower=1e-6
            )
            for steps, shift in ((0, 0.22), (10, 0.0), (30, -0.22)):
                values = seen[seen.index == steps]
                if values.empty:
                    continue
                axes.hlines(place + shift, values.quantile(0.1), values.quantile(0.9), color=FAINT, linewidth=3.5)
                axes.plot(values.median(), place + shift, "o", color=BLUE, markerfacecolor=fills[steps], markersize=4.5,
                          label=f"after {steps} steps" if place == 0 else None)  # fmt: skip
        axes.set(xscale="log", xlabel="gap to u*, %")
        axes.set_yticks(range(len(names)), list(reversed(names)))
        axes.tick_params(axis="y", length=0)
        _plain_logs(axes.xaxis)
        _headed(axes, family)
    legend_above(picture, panels[0, 0], 3)
    return picture


def calls_to_goal(frame: pd.DataFrame) -> Figure:
    """Oracle calls of a subgradient run until .1 % from the best bound, by start: mean with interval, every instance a dot."""
    rows = _rows(frame, "calls to 0.1%")
    families, names = list(dict.fromkeys(rows["family"])), _methods(rows)
    picture, panels = figure(5.0, 0.8 + 0.26 * len(names), ncols=len(families), sharey=True, squeeze=False)
    for axes, family in zip(panels[0], families, strict=True):
        for place, name in enumerate(reversed(names)):
            values = rows[(rows["family"] == family) & (rows["method"] == name)]["value"]
            _dots(axes, values, place, name)
        axes.set(xscale="log", xlabel="oracle calls")
        axes.set_yticks(range(len(names)), list(reversed(names)))
        axes.tick_params(axis="y", length=0)
        _plain_logs(axes.xaxis)
        _headed(axes, f"{family}: to .1 % of u*")
    return picture


def _dots(axes: Axes, values: pd.Series, place: float, name: str) -> None:
    """Every value faint, the mean with its interval on top."""
    if values.empty:
        return
    colour, _, marker = style(name)
    axes.plot(values, np.full(len(values), place), ".", color=FAINT, markersize=5, zorder=1)
    mean, half = _interval(values)
    axes.errorbar(mean, place, xerr=half, color=colour, marker=marker, markersize=5, capsize=2, linewidth=1.3, zorder=2)


def bound_bars(frame: pd.DataFrame) -> Figure:
    """How far the LP bound, the Lagrangian bound and HiGHS' root stay below the best solution known, by family."""
    rows = _rows(frame, "bound over optimum", method=["HiGHS, LP", "lagrangian", "HiGHS, root with cuts"])
    rows = rows.assign(value=100 * (1 - rows["value"]))
    families, methods = list(dict.fromkeys(rows["family"])), ["HiGHS, LP", "lagrangian", "HiGHS, root with cuts"]
    labels = {"HiGHS, LP": "LP", "lagrangian": "Lagrangian, u*", "HiGHS, root with cuts": "HiGHS root, with cuts"}
    picture, axes = figure(4.8, 0.9 + 0.5 * len(families))
    places = np.arange(len(families))[::-1]
    for k, method in enumerate(methods):
        means = [
            _interval(rows[(rows["family"] == family) & (rows["method"] == method)]["value"]) for family in families
        ]
        where = places + 0.26 * (1 - k)
        axes.barh(where, [mean for mean, _ in means], 0.24, color=style(method)[0], label=labels[method],
                  xerr=[half for _, half in means], error_kw={"linewidth": 0.9, "ecolor": INK, "capsize": 1.5})  # fmt: skip
        for y, (mean, half) in zip(where, means, strict=True):
            axes.annotate(f"{mean:.2g}" if mean > 5e-4 else "0", (mean + half, y), xytext=(3, 0), textcoords="offset points", va="center",
                          fontsize=7, color=QUIET)  # fmt: skip
    axes.set_yticks(places, families)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="bound below the best solution known, %")
    axes.set_xlim(left=min(0.0, float(axes.get_xlim()[0])))
    axes.margins(x=0.12)
    legend_above(picture, axes, 3)
    return picture


def _dots_by_family(axes: Axes, rows: pd.DataFrame, families: list[str]) -> None:
    """A row a family, within it a line of dots a method."""
    places = np.arange(len(families))[::-1]
    for k, method in enumerate(_methods(rows)):
        for place, family in zip(places, families, strict=True):
            of_both = rows[(rows["family"] == family) & (rows["method"] == method)]
            _dots(axes, of_both["value"], place + 0.26 * (1 - k), method)
    axes.set_yticks(places, families)
    axes.tick_params(axis="y", length=0)


def _name_dots(axes: Axes, methods: list[str]) -> None:
    """For the legend."""
    for method in methods:
        colour, _, marker = style(method)
        axes.plot([], [], marker, color=colour, label="Lagrangian, u*" if method == "lagrangian" else method)


def closed_gap(frame: pd.DataFrame) -> Figure:
    """Share of the LP's gap that is closed, every instance a dot; 1 is the optimum, and what lies far below the LP is drawn at the edge."""
    rows = _rows(frame, "closed share of the LP's gap", method=["lagrangian", "HiGHS, root with cuts", "CP-SAT"])
    worst, edge = float(rows["value"].min()), -0.5
    rows = rows.assign(value=rows["value"].clip(lower=edge))
    families = list(dict.fromkeys(rows["family"]))
    picture, axes = figure(4.8, 0.9 + 0.5 * len(families))
    _dots_by_family(axes, rows, families)
    _name_dots(axes, _methods(rows))
    for value in (0, 1):
        axes.axvline(value, color=QUIET, linewidth=0.8, linestyle=DOTTED, zorder=0)
    below = f"; left edge: less, down to {worst:.2g}" if worst < edge else ""
    axes.set(xlabel=f"share closed of the gap from LP (0) to optimum (1){below}")
    axes.set_xlim(max(worst, edge) - 0.05, 1.08)
    legend_above(picture, axes, 3)
    return picture


def column_generation(frame: pd.DataFrame) -> Figure:
    """How far GCG's root lies above u*, and the seconds of both, by family, every instance a dot."""
    above = _rows(frame, "root bound above u*, relative")
    above = above.assign(value=100 * above["value"])
    families = list(dict.fromkeys(above["family"]))
    picture, panels = figure(5.0, 0.9 + 0.5 * len(families), ncols=2, sharey=True)
    seconds = _rows(frame, "seconds")
    for axes, rows in zip(panels, (above, seconds), strict=True):
        _dots_by_family(axes, rows, families)
    _name_dots(panels[1], _methods(seconds))
    panels[0].axvline(0, color=QUIET, linewidth=0.8, linestyle=DOTTED, zorder=0)
    panels[0].set(xlabel="bound above u*, %")
    panels[1].set(xlabel="seconds", xscale="log")
    _plain_logs(panels[1].xaxis)
    legend_above(picture, panels[1], 3)
    return picture


def trees(frame: pd.DataFrame) -> Figure:
    """Nodes and seconds of the same tree by its bounds, every instance a dot; HiGHS' own seconds beside them."""
    names = _methods(_rows(frame, "nodes"))
    picture, panels = figure(5.0, 0.9 + 0.36 * len(names), ncols=2, sharey=True)
    labels = {
        "LP": "LP bounds",
        "zero": "Lagrangian,\nfrom zero",
        "SGA": "Lagrangian,\nfrom SGA",
        "warm start": "Lagrangian,\nwarm start",
    }
    for axes, metric in zip(panels, ("nodes", "seconds"), strict=True):
        rows = _rows(frame, metric)
        for place, name in enumerate(reversed(names)):
            _dots(axes, rows[rows["method"] == name]["value"], place, name)
        axes.set(xscale="log", xlabel=metric, ylim=(-0.6, len(names) - 0.4))
        axes.set_yticks(range(len(names)), [labels.get(name, name) for name in reversed(names)])
        axes.tick_params(axis="y", length=0)
        _plain_logs(axes.xaxis)
    return picture


def oracle(frame: pd.DataFrame) -> Figure:
    """Longest supergradient over its bound, and the worst violations of concavity and of the supergradient inequality."""
    lengths = _rows(frame, "length of supergradient over bound")
    names = list(dict.fromkeys(lengths["oracle"]))
    picture, (left, right) = figure(5.0, 0.9 + 0.25 * len(names), ncols=2, sharey=True)
    places = {name: len(names) - 1 - k for k, name in enumerate(names)}
    for name, place in places.items():
        _dots(left, lengths[lengths["oracle"] == name]["value"], place, "lagrangian")
    left.axvline(1, color=RED, linewidth=1.1, linestyle=DASHED)
    left.set(xlabel="length / (2B√s)", xlim=(0, 1.06))
    left.set_yticks(list(places.values()), list(places))
    for metric, marker, colour in (
        ("violation of supergradient inequality", "o", BLUE),
        ("violation of concavity", "x", PINK),
    ):
        worst = _rows(frame, metric).groupby("oracle")["value"].max().clip(lower=1e-18)
        right.plot(
            [worst[name] for name in places],
            list(places.values()),
            marker,
            color=colour,
            markersize=5,
            label=metric.split(" of ")[1],
        )
    right.axvline(1e-7, color=RED, linewidth=1.1, linestyle=DASHED, label="allowed")
    right.set(xscale="log", xlabel="worst violation (none: left edge)", xlim=(5e-19, 1e-5))
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
    legend_above(picture, right, 3)
    return picture


def workers(frame: pd.DataFrame) -> Figure:
    """Speed-up by a second thread, by how large and how many the blocks are."""
    rows = _rows(frame, "speed-up")
    names = list(dict.fromkeys(rows["blocks"]))
    seconds = frame[frame["metric"] == "seconds of a call"].groupby("blocks")["value"].median()
    picture, axes = figure(4.6, 0.9 + 0.45 * len(names))
    for place, name in enumerate(reversed(names)):
        _dots(axes, rows[rows["blocks"] == name]["value"], place, "lagrangian")
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.axvline(1.4, color=RED, linewidth=1.1, linestyle=DASHED, label="claimed: 1.4")
    axes.axvline(1.0, color=QUIET, linewidth=0.9, linestyle=DOTTED, label="no gain")
    ticks = [
        f"{name}\n{_milliseconds(seconds[name])} a call" if name in seconds.index else name for name in reversed(names)
    ]
    axes.set_yticks(range(len(names)), ticks)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="speed-up with 2 threads", xlim=(0, max(2.1, float(rows["value"].max()) * 1.05)))
    legend_above(picture, axes, 2)
    return picture


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


def from_the_instance(frame: pd.DataFrame) -> Figure:
    """How far the mean bound on new instances stays below their own optima, in per cent, one dot a seed."""
    rows = _rows(frame, "held-out mean u")
    keys = [key for key in ("family", "size", "seed") if key in rows]
    best = rows[rows["method"] == "own optimum"].set_index(keys)["value"]
    places = pd.MultiIndex.from_frame(rows[keys])
    top = best.reindex(places).to_numpy()
    rows = rows.assign(value=100 * (top - rows["value"]) / np.abs(top))
    rows = rows[rows["method"] != "own optimum"]
    families = list(dict.fromkeys(rows["family"]))
    order = rows.groupby("method")["value"].mean().sort_values(ascending=False).index
    picture, panels = figure(4.8, 0.7 + 0.28 * len(order) * len(families), nrows=len(families), squeeze=False)
    for axes, family in zip(panels[:, 0], families, strict=True):
        for place, name in enumerate(order):
            _dots(axes, rows[(rows["family"] == family) & (rows["method"] == name)]["value"], place, str(name))
        axes.set_yticks(range(len(order)), list(order))
        axes.tick_params(axis="y", length=0)
        axes.set(xlabel="mean bound below the instances' own optima, %")
        axes.set_xlim(left=0)
        _headed(axes, family)
    return picture


PICTURES = {
    "lagrangian.concave-dual": oracle,
    "lagrangian.erm-rate": erm_rate,
    "lagrangian.lower-bound": lower_bound,
    "lagrangian.sga-rate": sga_rate,
    "lagrangian.sga-beats-erm": sga_against_erm,
    "lagrangian.warm-start-rate": warm_start_rate,
    "lagrangian.warm-start-faster-rate": two_rates,
    "lagrangian.warm-start-pays": calls_to_goal,
    "lagrangian.race-of-starts": starts,
    "lagrangian.tighter-than-lp": bound_bars,
    "lagrangian.closed-gap": closed_gap,
    "lagrangian.column-generation": column_generation,
    "lagrangian.parallel-blocks": workers,
    "lagrangian.prunes": trees,
    "lagrangian.generalises": real_families,
    "lagrangian.contextual-gap": real_families,
    "lagrangian.from-the-instance": from_the_instance,
}
