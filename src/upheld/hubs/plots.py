"""Pictures: the answer for one data set, and what was measured for each claim.

The method is blue throughout, and what is compared with it also differs by position or by the form of its marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from upheld.hubs.detector import JointHubs, two_sd_line
from upheld.hubs.table import hub_table
from upheld.report.drawing import BLUE, GREEN, INK, PINK, QUIET, RED, figure, framed, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
Picture = Callable[[pd.DataFrame], Figure]

PALE = "#b9b8b0"  # dots and bars that are there, and are not meant
MARKERS = "sD^vP*Xph"
LINE_STYLES = {"2 sd": "-", "permutation": "--", "rotation": ":"}
MOST_VARIABLES = 30
LABELS = 8  # points

NAMES = {
    "jic": "joint hubs (ours)",
    "average-ipc": "average matrix",
    "ipc-sqrt": "components per group",
    "ipc-frac": "components, s = p/5",
    "pooled-ipc": "pooled samples",
    "graphical-lasso": "graphical lasso",
    "group-lasso": "group lasso",
    "fused-lasso": "fused lasso",
    "hub-weighted-lasso": "hub-weighted lasso",
    "hub-lasso": "hub lasso",
    "nodewise-lasso": "nodewise lasso",
    "tumours": "tumours",
    "permuted": "genes permuted",
    "rotated": "genes rotated",
}


# -- the answer for one data set


def influence_plot(
    estimator: JointHubs, table: pd.DataFrame | None = None, *, null_lines: Mapping[str, float] | None = None
) -> Figure:
    """Influence by variable, the spectrum that decided it, and the group that binds.

    Parameters
    ----------
    estimator : fitted
    table : of `hub_table`; its bootstrap intervals are drawn where it has them. The thirty variables of largest influence
        are shown, selected ones in bold
    null_lines : influences that the largest of a null exceeds in 5 % of draws, by the null's name

    Examples
    --------
    >>> from upheld.hubs.data import load_khan
    >>> X, subtype = load_khan(top=30)
    >>> figure = influence_plot(JointHubs().fit(X, groups=subtype))
    >>> [axes.get_title(loc="left").split(":")[0] for axes in figure.axes]
    ['Influence of 30 variables', 'Spectrum of the weighted matrix', 'Which group binds']
    """
    check_is_fitted(estimator)
    shown = (hub_table(estimator) if table is None else table).head(MOST_VARIABLES)
    picture = Figure(figsize=(8.4, max(4.4, 1.5 + 0.175 * len(shown))), layout="constrained")
    grid = picture.add_gridspec(2, 2, width_ratios=(1.45, 1), height_ratios=(1.3, 1))
    left, above, below = (framed(picture.add_subplot(place), LABELS) for place in (grid[:, 0], grid[0, 1], grid[1, 1]))
    _influences(left, estimator, shown, null_lines or {})
    _scree(above, estimator)
    _group_weights(below, estimator)
    return picture


def _influences(axes: Axes, estimator: JointHubs, shown: pd.DataFrame, null_lines: Mapping[str, float]) -> None:
    y = np.arange(len(shown))
    w, chosen = shown["influence"].to_numpy(float), shown["selected"].to_numpy(bool)
    individual = shown["kind"].str.startswith("individual").to_numpy(bool)
    colours = np.where(chosen, BLUE, np.where(individual, RED, QUIET))
    axes.hlines(y, 0, w, color=colours, linewidth=1.6, alpha=0.55)
    if "low" in shown:
        axes.hlines(y + 0.28, shown["low"], shown["high"], color=colours, linewidth=0.8, alpha=0.9)
        axes.plot([], [], color=QUIET, linewidth=0.8, label="bootstrap interval, 95 %")
    for mask, marker in ((chosen, "o"), (individual, "D"), (~chosen & ~individual, ".")):
        axes.scatter(w[mask], y[mask], c=colours[mask], marker=marker, s=26, zorder=3)
    line = two_sd_line(estimator.influence_[~estimator.screened_out_])
    for name, value in {"2 sd": line, **null_lines}.items():
        label = "mean + 2 sd" if name == "2 sd" else f"95 % of {name} null"
        axes.axvline(value, color=INK, linewidth=0.9, linestyle=LINE_STYLES.get(name, "-."), label=label, zorder=0)
    right = np.maximum(w, shown["high"]) if "high" in shown else w
    for row, kind in enumerate(shown["kind"]):
        if individual[row]:
            own = kind.removeprefix("individual to ")
            axes.annotate(f"hub of {own} only", (right[row], row), fontsize=7, color=RED, va="center", xytext=(5, 0),
                          textcoords="offset points", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    axes.set_yticks(y, _shortened(shown["variable"]), fontsize=7)
    for tick, is_hub in zip(axes.get_yticklabels(), chosen, strict=True):
        tick.set(color=INK if is_hub else QUIET, fontweight="bold" if is_hub else "normal")
    p = len(estimator.influence_)
    some = "" if len(shown) == p else f", the {len(shown)} largest"
    n = int(estimator.get_support().sum())
    _titled(axes, f"Influence of {p:,} variables{some}:\n{n or 'none'} selected as common hub{'s' * (n > 1)}")
    axes.set(xlabel="influence w (0 to 1)", ylim=(len(shown) - 0.4, -0.8))
    axes.set_xlim(0, 1.02 * max(right.max(), line, *null_lines.values(), 0) * (1 + 0.22 * individual.any()))
    axes.tick_params(axis="y", length=0)
    axes.legend(fontsize=7, loc="lower right", framealpha=1, edgecolor="none")


def _scree(axes: Axes, estimator: JointHubs) -> None:
    """The lowest eigenvalues of S(l*), and how many make up the joint eigenspace."""
    s = len(estimator.components_)
    values = estimator.spectrum_[: max(3 * s, s + 2)]
    number = np.arange(1, len(values) + 1)
    axes.plot(number, values, color=PALE, linewidth=1, zorder=1)
    axes.scatter(number, values, c=[BLUE if i <= s else PALE for i in number], s=16, zorder=2)
    axes.axvline(s + 0.5, color=INK, linewidth=0.9)
    axes.annotate(f"s = {s} ", (s + 0.5, values.max()), ha="right", va="top", fontsize=8)
    _titled(axes, f"Spectrum of the weighted matrix:\ngap {estimator.eigengap_:.2g} behind the joint eigenspace")
    axes.set(xlabel="number of the eigenvalue", ylabel="eigenvalue")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _group_weights(axes: Axes, estimator: JointHubs) -> None:
    labels = _shortened([str(label) for label in estimator.groups_])
    weights = np.asarray(estimator.group_weights_)
    y = np.arange(len(weights))
    axes.barh(y, weights, color=[BLUE if weight > 1e-6 else PALE for weight in weights], height=0.6)
    for i, weight in enumerate(weights):
        axes.annotate(f" {weight:.2f}", (weight, i), va="center", fontsize=8)
    sizes = estimator.n_samples_
    ticks = labels if sizes is None else [f"{label} (n = {n})" for label, n in zip(labels, sizes, strict=True)]
    axes.set_yticks(y, ticks, fontsize=8)
    _titled(
        axes,
        "Which group binds:\n"
        + ("all of them" if weights.min() > 1e-6 else f"{(weights > 1e-6).sum()} of {len(weights)}"),
    )
    axes.set(xlabel="weight at the optimum (sum 1)", xlim=(0, 1.15 * weights.max()), ylim=(len(weights) - 0.4, -0.6))
    axes.tick_params(axis="y", length=0)


def _shortened(names: Any, longest: int = 18) -> list[str]:
    texts = [str(name).replace("$", r"\$") for name in names]
    return [text if len(text) <= longest else text[: longest - 1] + "…" for text in texts]


# -- what was measured for the claims


@dataclass(frozen=True)
class Race:
    """One row a method, one dot a draw, a bar for the mean; a draw in which the rival came out ahead of us is hollow.

    Parameters
    ----------
    metric : what is drawn
    what, setting : the same in words, and how the rivals were treated
    rows : the measured method behind each row's label; ours is "jic"
    by : the condition that sets the shade; "n" gives way to n/p where several p were measured
    oracle : by row label, the method whose mean is drawn beside it: the rival at its best penalty
    """

    metric: str
    what: str
    setting: str
    rows: Mapping[str, str]
    by: str = "n"
    log: bool = False
    lower_is_better: bool = False
    oracle: Mapping[str, str] = field(default_factory=dict)

    def figure(self, frame: pd.DataFrame) -> Figure:
        data = self._shaded(frame[frame["metric"] == self.metric])
        levels = sorted(data["shade"].unique())
        means = {
            label: self._middle(data.loc[data["method"] == method, "value"]) for label, method in self.rows.items()
        }
        means = {label: mean for label, mean in means.items() if np.isfinite(mean)}
        order = sorted(means, key=means.__getitem__, reverse=not self.lower_is_better)
        picture, axes = figure(4.2, 1.5 + 0.16 * len(order) * (1 + len(levels)), labels=LABELS)
        for row, label in enumerate(order):
            for i, level in enumerate(levels):
                y = row + (i - (len(levels) - 1) / 2) * 0.7 / len(levels)
                self._mark(axes, data[data["shade"] == level], label, y, _shades(len(levels))[i])
            if row:
                axes.axhline(row - 0.5, color="#eceae3", linewidth=0.7, zorder=0)
        axes.set_yticks(range(len(order)), order)
        axes.set(ylim=(len(order) - 0.5, -0.5), xlabel=self.what)
        axes.tick_params(axis="y", length=0)
        if self.log:
            _log_ticks(axes.xaxis)
        _titled(axes, self._title(means), of_figure=True)
        for tick, label in zip(axes.get_yticklabels(), order, strict=True):
            if self.rows[label] == "jic":
                tick.set(color=BLUE, fontweight="bold")
        self._explain(picture, data)
        return picture

    def _shaded(self, data: pd.DataFrame) -> pd.DataFrame:
        if self.by == "n" and data["p"].nunique() > 1:
            return data.assign(shade=(data["n"] / data["p"]).round(3))
        return data.assign(shade=data[self.by])

    def _middle(self, values: pd.Series[Any] | FloatArray) -> float:
        return float(np.exp(np.log(values).mean()) if self.log else values.mean())

    def _mark(self, axes: Axes, data: pd.DataFrame, label: str, y: float, colour: Any) -> None:
        draws, ahead = _paired(data, self.rows[label], self.lower_is_better)
        if not len(draws):
            return
        axes.scatter(draws, np.full(len(draws), y), s=13, facecolors=["white" if a else colour for a in ahead],
                     edgecolors=colour, linewidths=0.8, alpha=0.55, zorder=2)  # fmt: skip
        axes.plot([self._middle(draws)], [y], marker="|", markersize=11, markeredgewidth=2.2, color=colour, zorder=3)
        if label in self.oracle:
            best = data.loc[data["method"] == self.oracle[label], "value"].mean()
            axes.plot([best], [y], marker="D", markersize=4.5, markerfacecolor="white", color=RED, zorder=3)

    def _title(self, means: Mapping[str, float]) -> str:
        ours = next((label for label in means if self.rows[label] == "jic"), None)
        rivals = {label: mean for label, mean in means.items() if label != ours}
        if ours is None or not rivals:
            return self.what
        best = (min if self.lower_is_better else max)(rivals, key=rivals.__getitem__)
        what = self.what.split(" (")[0]
        return f"{what}: ours {_short(means[ours])}, best rival {_short(rivals[best])}\n({best}; {self.setting})"

    def _explain(self, picture: Figure, data: pd.DataFrame) -> None:
        name = "n/p" if self.by == "n" and data["p"].nunique() > 1 else self.by
        levels = sorted(data["shade"].unique())
        dot: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5}
        handles = [
            Line2D([], [], color=shade, label=f"{name} = {level:g}", **dot)
            for level, shade in zip(levels, _shades(len(levels)), strict=True)
        ]
        handles.append(Line2D([], [], color=QUIET, markerfacecolor="white", label="rival ahead in that draw", **dot))
        if self.oracle:
            handles.append(Line2D([], [], linestyle="", marker="D", markersize=5, markerfacecolor="white", color=RED,
                                  label="rival at its best penalty"))  # fmt: skip
        picture.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _paired(data: pd.DataFrame, method: str, lower_is_better: bool) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Draws of a method, and in which of them it was ahead of ours."""
    keys = [key for key in data.columns if key not in ("method", "metric", "value", "item")]
    theirs = data[data["method"] == method].set_index(keys)["value"]
    ours = data[data["method"] == "jic"].set_index(keys)["value"].reindex(theirs.index)
    ahead = (theirs < ours) if lower_is_better else (theirs > ours)
    return theirs.to_numpy(float), ahead.to_numpy(bool)


def beats_existing(frame: pd.DataFrame) -> Figure:
    rows = _rows(frame, lambda name, rest: rest in (["intersection"], ["ic", "intersection"]) and _claimed(name))
    return Race("F", "F (1 is best)", "authors' protocol", rows).figure(frame)


def beats_tuned(frame: pd.DataFrame, by: str = "n") -> Figure:
    """Each rival under the better of its two selection rules; what its best penalty could do beside it."""
    F = frame[frame["metric"] == "F"].groupby("method")["value"].mean()
    rows, oracle = {NAMES["jic"]: "jic"}, {}
    for name in dict.fromkeys(method.split(", ")[0] for method in F.index):
        found = [method for method in F.index if method.split(", ")[0] == name]
        tuned = [method for method in found if "ic" not in method.split(", ") and "oracle" not in method.split(", ")]
        if name == "jic" or not (_claimed(name) or (name == "average-ipc" and by == "K")):
            continue
        rows[_name(name)] = max(tuned, key=F.__getitem__)
        best = [method for method in found if "oracle" in method.split(", ")]
        if best:
            oracle[_name(name)] = max(best, key=F.__getitem__)
    return Race("F", "F (1 is best)", "rivals cross-validated", rows, by=by, oracle=oracle).figure(frame)


def ranks_better(frame: pd.DataFrame) -> Figure:
    rows = _rows(frame, lambda name, rest: rest in ([], ["cv"]) and _claimed(name))
    return Race("AUC", "AUC (1 is best, 0.5 chance)", "rivals cross-validated", rows).figure(frame)


def one_fit_seconds(frame: pd.DataFrame) -> Figure:
    rows = _rows(frame, lambda name, rest: not rest and name.endswith("lasso") and _claimed(name))
    return Race(
        "seconds, one fit", "Seconds of one fit", "compilation excluded", rows, log=True, lower_is_better=True
    ).figure(frame)


def near_common(frame: pd.DataFrame) -> Figure:
    return beats_tuned(frame, by="K")


def coexistence(frame: pd.DataFrame) -> Figure:
    """F against the number of individual hubs, draws and mean."""
    methods = {"jic": "jic", "fused-lasso": "fused-lasso, cv, score", "ipc-sqrt": "ipc-sqrt, score"}
    picture, axes = figure(4.2, 3.4, labels=LABELS)
    F = frame[frame["metric"] == "F"]
    step = np.diff(np.sort(F["r2"].unique())).min() if F["r2"].nunique() > 1 else 1
    for i, (name, method) in enumerate(methods.items()):
        colour = (BLUE, RED, GREEN)[i]
        rows = F[F["method"] == method]
        axes.scatter(
            rows["r2"] + (i - 1) * 0.06 * step,
            rows["value"],
            s=13,
            color=colour,
            marker="oD^"[i],
            alpha=0.35,
            linewidths=0,
        )
        mean = rows.groupby("r2")["value"].mean()
        axes.plot(mean.index, mean, color=colour, marker="oD^"[i], linewidth=2, label=_name(name))
    most = F[F["r2"] == F["r2"].max()].groupby("method")["value"].mean()
    seen = ", ".join(f"{_name(name)} {most[method]:.2f}" for name, method in methods.items() if name != "ipc-sqrt")
    _titled(axes, f"F at {F['r2'].max()} individual hubs a group:\n{seen}", of_figure=True)
    axes.set(xlabel="individual hubs in each group", ylabel="F (1 is best)", ylim=(-0.03, 1.05))
    axes.set_xticks(sorted(F["r2"].unique()))
    legend_below(picture, axes, 2)
    return picture


def average_suffices(frame: pd.DataFrame) -> Figure:
    picture = _gains(frame[frame["design"] == "balanced"], "n", "balanced design")
    picture.axes[0].axvspan(-0.05, 0.05, color="#dfeaf5", zorder=0, label="equivalent, ± 0.05")
    legend_below(picture, picture.axes[0], 2)
    return picture


def minimax_needed(frame: pd.DataFrame) -> Figure:
    return _gains(frame[frame["design"] == "near-common"], "K", "other hubs miss one group")


def _gains(frame: pd.DataFrame, by: str, design: str) -> Figure:
    """Paired difference to the average matrix, a dot a draw."""
    F = frame[frame["metric"] == "F"]
    wide = F.pivot_table(index=[by, "seed"], columns="method", values="value")
    gain = (wide["jic"] - wide["average-ipc, score"]).dropna()
    levels = sorted(gain.index.get_level_values(by).unique())
    picture, axes = figure(4.2, 1.5 + 0.5 * len(levels), labels=LABELS)
    for row, level in enumerate(levels):
        values = gain.xs(level, level=by).to_numpy(float)
        axes.scatter(values, row + _spread(values, 0.3), s=13, color=BLUE, alpha=0.45, linewidths=0)
        axes.plot([values.mean()], [row], marker="|", markersize=22, markeredgewidth=2.2, color=INK)
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.set_yticks(range(len(levels)), [f"{by} = {level}" for level in levels])
    axes.set(ylim=(len(levels) - 0.4, -0.6), xlabel="F of ours − F of the plain average (bar: mean)")
    axes.tick_params(axis="y", length=0)
    seen = ", ".join(f"{gain.xs(level, level=by).mean():+.2f} at {by} = {level}" for level in levels)
    _titled(axes, f"Mean gain in F over the plain average,\n{design}:\n{seen}", of_figure=True)
    return picture


def population_margin(frame: pd.DataFrame) -> Figure:
    """Smallest influence of a common hub less the largest of another variable, by s."""
    rows = frame[frame["metric"] == "influence margin"]
    levels = sorted(rows["multiple"].unique())
    picture, axes = figure(4.2, 1.5 + 0.5 * len(levels), labels=LABELS)
    for i, level in enumerate(levels):
        values = rows.loc[rows["multiple"] == level, "value"].to_numpy(float)
        above = values > 0
        y = i + _spread(values, 0.3)
        axes.scatter(values[above], y[above], s=13, color=BLUE, alpha=0.45, linewidths=0)
        axes.scatter(values[~above], y[~above], s=16, color=RED, alpha=0.8, marker="x", linewidths=1)
        axes.annotate(f"{above.mean():.0%}", (1.02, i), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    axes.axvline(0, color=INK, linewidth=0.9)
    names = ["s = hubs" if level == 1 else f"s = {level} × hubs" for level in levels]
    axes.set_yticks(range(len(levels)), names)
    axes.set(ylim=(len(levels) - 0.4, -0.6), xlabel="weakest common hub − strongest other variable, influence")
    axes.tick_params(axis="y", length=0)
    _titled(
        axes, "Share of draws with every common hub on top (right),\nat the population's correlations", of_figure=True
    )
    return picture


def consistent(frame: pd.DataFrame) -> Figure:
    """Error against n on logarithmic axes, with the slope that theory gives."""
    rows = frame[frame["metric"] == "largest error of influence"]
    mean = rows.groupby("n")["value"].apply(lambda x: np.exp(np.log(x).mean()))
    n = mean.index.to_numpy(float)
    picture, axes = figure(4.2, 3.2, labels=LABELS)
    axes.scatter(rows["n"], rows["value"], s=13, color=BLUE, alpha=0.35, linewidths=0, label="one draw")
    axes.plot(n, mean, color=BLUE, marker="o", linewidth=2, label="geometric mean")
    middle = np.exp(np.log(mean).mean())
    axes.plot(
        n, middle * np.sqrt(np.exp(np.log(n).mean()) / n), color=INK, linewidth=1, linestyle="--", label="slope −1/2"
    )
    axes.set(xscale="log", xlabel="samples in each group", ylabel="largest error of an influence")
    _count_ticks(axes, n)
    _log_ticks(axes.yaxis)
    slope = np.polyfit(np.log(rows["n"]), np.log(rows["value"]), 1)[0] if len(n) > 1 else np.nan
    _titled(axes, f"The error falls like n to the {slope:.2f}".replace("-", "−"), of_figure=True)
    legend_below(picture, axes, 3)
    return picture


def bound(frame: pd.DataFrame) -> Figure:
    rows = frame[frame["metric"] == "deviation over bound"]
    picture, axes = figure(4.2, 2.8, labels=LABELS)
    axes.scatter(rows["n"], rows["value"], s=13, color=BLUE, alpha=0.45, linewidths=0)
    axes.axhline(1, color=INK, linewidth=0.9)
    axes.annotate("the bound", (1, 1), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=9,
                  xytext=(0, 2), textcoords="offset points")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="samples in each group", ylabel="deviation ÷ bound")
    axes.set_ylim(top=4)
    _count_ticks(axes, np.sort(rows["n"].unique()))
    _titled(axes, f"The optimum moves by at most {_short(rows['value'].max())} of the bound", of_figure=True)
    return picture


def dimension(frame: pd.DataFrame) -> Figure:
    """True positive rate against s, a line for each number of hubs."""
    rows = frame[frame["metric"] == "TPR"].copy()
    rows["factor"] = rows["method"].str.extract(r"s = ([\d.]+) sqrt", expand=False).astype(float)
    picture, axes = figure(4.2, 3.3, labels=LABELS)
    levels = sorted(rows["r1"].unique())
    for i, level in enumerate(levels):
        part = rows[rows["r1"] == level]
        mean = part.groupby("factor")["value"].mean()
        colour = (BLUE, RED, GREEN, PINK)[i % 4]
        jitter = (i - (len(levels) - 1) / 2) * 0.03
        axes.scatter(part["factor"] + jitter, part["value"], s=13, color=colour, alpha=0.3, linewidths=0)
        axes.plot(mean.index + jitter, mean, color=colour, marker=MARKERS[i % 9], linewidth=2, label=f"{level} hubs")
    axes.set(xlabel="dimension s ÷ √p", ylabel="share of the hubs found", ylim=(-0.03, 1.05))
    axes.set_xticks(sorted(rows["factor"].unique()))
    by_factor = rows.groupby("factor")["value"].mean()
    seen = ", ".join(f"{mean:.2f}" for mean in by_factor)
    _titled(axes, f"Share of the hubs found: {seen} as s grows", of_figure=True)
    legend_below(picture, axes, 3)
    return picture


def tumours(frame: pd.DataFrame) -> Figure:
    """Agreement of halves against both nulls, and how often each gene was chosen in a half."""
    picture, (above, below) = figure(4.2, 5.0, labels=LABELS, nrows=2, height_ratios=(1, 1.6))
    jaccard = frame[frame["metric"] == "Jaccard of top 10"]
    for row, (source, colour) in enumerate((("tumours", BLUE), ("permuted", QUIET), ("rotated", QUIET))):
        values = jaccard.loc[jaccard["method"] == source, "value"].to_numpy(float)
        above.scatter(values, row + _spread(values, 0.3), s=9, color=colour, alpha=0.3, linewidths=0)
        above.plot([values.mean()], [row], marker="|", markersize=20, markeredgewidth=2.4, color=colour)
        above.annotate(f"{values.mean():.2f}", (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    above.set_yticks(range(3), ["tumours", "genes permuted", "genes rotated"])
    above.set(ylim=(2.6, -0.6), xlabel="Jaccard of the ten strongest genes of two halves", xlim=(-0.02, 1.02))
    _titled(above, "How well two halves of the tumours agree (right: mean)", of_figure=True)
    chosen = (
        frame[frame["metric"] == "chosen in half"].groupby("item")["value"].mean().sort_values(ascending=False).head(10)
    )
    below.barh(np.arange(len(chosen)), chosen, color=BLUE, height=0.6)
    below.set_yticks(range(len(chosen)), chosen.index)
    below.set(ylim=(len(chosen) - 0.4, -0.6), xlabel="share of halves in which the gene is a hub", xlim=(0, 1))
    _titled(below, f"\n{chosen.index[0]} is chosen most often, in {chosen.iloc[0]:.0%} of halves", of_figure=True)
    for axes in (above, below):
        axes.tick_params(axis="y", length=0)
    return picture


def certificate(frame: pd.DataFrame) -> Figure:
    """Excess of the objective over the lower bound, ours and the authors' optimiser."""
    rows = frame[frame["metric"] == "objective over bound"]
    picture, axes = figure(4.2, 2.2, labels=LABELS)
    for row, (method, colour) in enumerate((("jic", BLUE), ("stiefel", RED))):
        values = 100 * np.maximum(rows.loc[rows["method"] == method, "value"].to_numpy(float) - 1, 1e-12)
        axes.scatter(values, row + _spread(np.log(values), 0.25), s=16, color=colour, alpha=0.6, linewidths=0)
    axes.axvline(0.1, color=INK, linewidth=0.9)
    axes.annotate("certified ", (0.1, 1.55), ha="right", va="bottom", fontsize=9)
    axes.set_yticks(range(2), ["ours", "the authors'\noptimiser"])
    axes.set(xscale="log", xlabel="objective above the proven lower bound, %", ylim=(1.6, -0.6))
    axes.tick_params(axis="y", length=0)
    excess = 100 * (rows.groupby("method")["value"].mean() - 1)
    _titled(
        axes,
        f"Above the proven bound: ours {_short(excess['jic'])} %, theirs {_short(excess['stiefel'])} %",
        of_figure=True,
    )
    return picture


# -- their parts


def _titled(axes: Axes, title: str, *, of_figure: bool = False) -> None:
    """A title in the text's size; in narrow figures it begins at the figure's edge, not at the axes'."""
    axes.set_title("" if of_figure else title, loc="left", fontsize=9, color=INK)
    if of_figure and len(axes.figure.axes) == 1:
        axes.figure.suptitle(title, x=0.01, ha="left", fontsize=9, color=INK)
    elif of_figure:
        axes.set_title(title, loc="center", fontsize=9, color=INK)


def _shades(n: int) -> list[Any]:
    """From light to dark blue."""
    if n == 1:
        return [BLUE]
    light, dark = np.array([0.45, 0.70, 0.88]), np.array([0.0, 0.25, 0.45])
    return [tuple(light + (dark - light) * i / (n - 1)) for i in range(n)]


def _spread(values: FloatArray, height: float) -> FloatArray:
    """Heights that keep dots of equal value apart, alike every time."""
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(height * (2 * ((order * 0.618034) % 1) - 1), dtype=float)


def _log_ticks(axis: Any) -> None:
    """Plain numbers, three a decade at most."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    """Two significant digits, as one would write them."""
    text = f"{value:.2g}"
    return (
        f"{value:.2f}" if 0.1 <= abs(value) < 10 and "." in text else np.format_float_positional(float(text), trim="-")
    )


def _count_ticks(axes: Axes, counts: Sequence[float] | FloatArray) -> None:
    axes.set_xticks(counts)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _name(name: str) -> str:
    return NAMES.get(name, name)


def _claimed(name: str) -> bool:
    """Whether the claims name this rival; floors such as a random order are in the report's table."""
    return name not in ("average-ipc", "pooled-ipc", "marginal", "random", "nodewise-lasso")


def _rows(frame: pd.DataFrame, wanted: Callable[[str, list[str]], bool]) -> dict[str, str]:
    """Row labels and measured methods: ours, and the rivals wanted by name and tuning."""
    rows = {NAMES["jic"]: "jic"}
    for method in dict.fromkeys(frame["method"]):
        name, *rest = method.split(", ")
        if method != "jic" and wanted(name, rest):
            rows[_name(name)] = method
    return rows


PICTURES: dict[str, Picture] = {
    "hubs.beats-existing": beats_existing,
    "hubs.beats-tuned": beats_tuned,
    "hubs.ranks-better": ranks_better,
    "hubs.coexistence": coexistence,
    "hubs.almost-all-groups": near_common,
    "hubs.average-suffices": average_suffices,
    "hubs.minimax-needed": minimax_needed,
    "hubs.no-networks-needed": one_fit_seconds,
    "hubs.eigenspace": population_margin,
    "hubs.consistent": consistent,
    "hubs.bound": bound,
    "hubs.dimension": dimension,
    "hubs.tumours": tumours,
    "hubs.certified": certificate,
}
