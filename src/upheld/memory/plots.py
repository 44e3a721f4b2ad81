"""Pictures: phase diagrams with every theory's line, recall against noise, trends in N; and those of the claims.

A theory or a way of recall has the same colour in every picture (Okabe & Ito's palette). All are made to be read at 380 pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from upheld.memory.theory import alpha_c, alpha_th, capacity_zero_t, phi_eq, ramsauer_bound
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
    plain_logs,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_STYLES: dict[str, tuple[str, str]] = {  # colour, dashes
    "paper": (RED, "-"), "paper (Gaussian equal depth)": (RED, "-"), "single, Gaussian": (ORANGE, "--"), "single": (ORANGE, "-"),
    "collective, Gaussian": (PINK, "--"), "collective": (GREEN, "-"), "equal depth": (GREEN, "-"), "spinodal": (SKY, "-"),
    "Ramsauer bound": (QUIET, ":"), "channels": (BLUE, "-"), "Kramers, finite time": (BLUE, "-"),
}  # fmt: skip
KERNEL_COLOURS = {"lse": BLUE, "lsr": RED}
Line = Callable[[Any], Any]


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=8.5, color=QUIET, loc="left")


# -- on a user's own vectors and temperatures


def recall_by_noise(curve: pd.DataFrame) -> Figure:
    """Share of damaged copies that recall their own, and that are refused; where the margin turns negative.

    Parameters
    ----------
    curve : columns ``noise``, ``right``, ``refused``, ``margin``
    """
    picture, axes = figure()
    axes.plot(curve["noise"], curve["right"], "o-", color=BLUE, markersize=4, label="recalled right")
    axes.plot(curve["noise"], curve["refused"], "s--", color=ORANGE, markersize=4, label="refused")
    lost = curve[curve["margin"] < 0]["noise"]
    if len(lost):
        axes.axvline(lost.min(), color=QUIET, linewidth=1, linestyle=(0, (4, 3)), label="margin below 0 from here")
    axes.set(xlabel="noise of the cue, in units of the root mean square", ylabel="share of cues", ylim=(-0.03, 1.03))
    legend_above(picture, axes)
    return picture


def phase_map(cells: pd.DataFrame, lines: Mapping[str, Line]) -> Figure:
    """How far the mean alignment falls short of equilibrium in each cell, with every theory's line.

    Parameters
    ----------
    cells : columns ``alpha``, ``T``, ``phi``, ``phi_N``
    lines : alpha_c(T) by name
    """
    from matplotlib.colors import LinearSegmentedColormap

    table = cells.assign(short=cells["phi_N"] - cells["phi"]).pivot(index="T", columns="alpha", values="short")
    picture, axes = figure(4.8, 4.2)
    shades = LinearSegmentedColormap.from_list("short", ["#f7f6f0", "#8fb3cf", "#1d3557"])
    mesh = axes.pcolormesh(
        _edges(table.columns),
        _edges(table.index),
        np.clip(table.to_numpy(), 0, 0.8),
        cmap=shades,
        vmin=0,
        vmax=0.8,
        rasterized=True,
    )
    bar = picture.colorbar(mesh, ax=axes, shrink=0.8)
    bar.set_label("alignment below equilibrium", fontsize=8.5)
    low, high = axes.get_ylim()
    T = np.linspace(max(low, 0), high, 400)
    for name, line in lines.items():
        colour, dashes = LINE_STYLES[name]
        axes.plot(line(T), T, color=colour, linestyle=dashes, linewidth=1.6, label=name)
    axes.set(
        xlabel="load, alpha = ln M / N",
        ylabel="temperature",
        xlim=(_edges(table.columns)[0], _edges(table.columns)[-1]),
    )
    axes.set_ylim(low, high)
    legend_above(picture, axes)
    return picture


def _edges(centres: Any) -> Any:
    """Borders of cells round their centres."""
    x = np.asarray(centres, dtype=float)
    if len(x) == 1:
        return np.array([x[0] * 0.9, x[0] * 1.1 + 1e-9])
    middle = (x[1:] + x[:-1]) / 2
    return np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])


# -- of the claims


def _values(frame: pd.DataFrame, metric: str, method: str | None = None) -> pd.DataFrame:
    rows = frame[frame["metric"] == metric]
    if method is not None:
        rows = rows[rows["method"] == method]
    if rows.empty:
        raise ValueError(f"{metric} of {method or 'any method'} was not measured")
    return rows


def _dots(axes: Axes, rows: pd.DataFrame, key: str, colour: str, label: str) -> None:
    """Every seed faintly, their mean on top, by the values of a condition."""
    means = rows.groupby(key)["value"].mean()
    axes.plot(rows[key], rows["value"], ".", color=colour, alpha=0.25, markersize=4)
    axes.plot(means.index, means, "o", color=colour, markersize=5, label=label)


def entropy(frame: pd.DataFrame) -> Figure:
    """Distance of the measured entropy from that of the sphere, by temperature and kernel."""
    picture, axes = figure()
    for kernel, colour in (*KERNEL_COLOURS.items(), ("lse and lsr", GREEN)):
        rows = frame[(frame["metric"] == "largest difference") & (frame["method"] == kernel)]
        if len(rows):
            _dots(axes, rows, "T", colour, "between the kernels" if kernel == "lse and lsr" else kernel.upper())
    axes.axhline(0.01, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlabel="temperature", ylabel="largest distance from ½ ln(1 − φ²)")
    axes.set_ylim(bottom=0)
    _title(axes, "dashed: 0.01")
    legend_above(picture, axes, 3)
    return picture


def order_parameter(frame: pd.DataFrame) -> Figure:
    """Measured alignment against temperature on the closed forms."""
    rows = _values(frame, "difference from phi(T)")
    picture, axes = figure()
    T = np.linspace(0.01, max(rows["T"].max(), 0.5) * 1.1, 200)
    for kernel, colour in KERNEL_COLOURS.items():
        axes.plot(T, phi_eq(T, kernel), color=colour, linewidth=1.4, label=f"{kernel.upper()}, closed form")
        seen = rows[rows["kernel"] == kernel]
        for (T_at, _), part in seen.groupby(["T", "N"]):
            at = float(str(T_at))
            spread = float(part["value"].std(ddof=1)) if len(part) > 1 else 0.0
            axes.errorbar(
                at, float(phi_eq(at, kernel)) + part["value"].mean(), yerr=2 * spread / len(part) ** 0.5, fmt="o", color=colour,
                markersize=5, fillstyle="none", elinewidth=1, capsize=2,
            )  # fmt: skip
    axes.set(xlabel="temperature", ylabel="alignment to the target")
    _title(axes, "circles: Monte Carlo, bars: two standard errors")
    legend_above(picture, axes)
    return picture


def capacity(frame: pd.DataFrame) -> Figure:
    """Zero-temperature capacity against the kernel's sharpness: both densities, Ramsauer's bound, and what was measured."""
    rows = _values(frame, "limit of the load at S = 1")
    picture, axes = figure()
    beta = np.geomspace(0.25, 5, 200)
    for law, colour in (("spherical", GREEN), ("gaussian", RED)):
        axes.plot(beta, capacity_zero_t(beta, law), color=colour, linewidth=1.4, label=f"{law} patterns, theory")
        measured = rows[rows["method"] == law].groupby("beta")["value"].mean()
        axes.plot(measured.index, measured, "o", color=colour, markersize=5)
    axes.plot(beta, [ramsauer_bound(one) for one in beta], color=QUIET, linestyle=":", label="Ramsauer bound")
    axes.axhline(0.5, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), label="½, as published")
    axes.set(xlabel="sharpness of the kernel, β_net", ylabel="capacity at T = 0", xscale="log")
    axes.set_xticks([0.25, 0.5, 1, 2, 4])
    plain_logs(axes.xaxis)
    _title(axes, "points: measured, N → ∞")
    legend_above(picture, axes)
    return picture


def lse_line(frame: pd.DataFrame) -> Figure:
    """Temperature at which retrieval is lost, by load, with the lines."""
    rows = frame[frame["metric"].str.startswith("critical temperature at alpha=")]
    if rows.empty:
        raise ValueError("no critical temperature was measured")
    rows = rows.assign(alpha=rows["metric"].str.removeprefix("critical temperature at alpha=").astype(float))
    picture, axes = figure()
    T = np.geomspace(0.02, 6, 300)
    axes.plot(alpha_c(T, density="gaussian"), T, color=RED, label="paper (Gaussian equal depth)")
    axes.plot(alpha_c(T), T, color=GREEN, label="equal depth")
    axes.plot(alpha_c(T, criterion="spinodal"), T, color=SKY, label="spinodal")
    _dots(axes, rows, "alpha", INK, "Monte Carlo, heated")
    axes.set(xlabel="load", ylabel="temperature", xlim=(0, 0.65), yscale="log")
    axes.set_yticks([0.02, 0.1, 0.5, 2, 6])
    plain_logs(axes.yaxis)
    legend_above(picture, axes)
    return picture


def _misplaced(frame: pd.DataFrame) -> Figure:
    rows = _values(frame, "misplaced")
    if "M" in rows:
        rows = rows[rows["M"] == rows["M"].max()]
    means = rows.groupby("method")["value"].mean().sort_values(ascending=False)
    picture, axes = figure(4.8, 1.0 + 0.32 * len(means))
    for place, name in enumerate(means.index):
        colour = LINE_STYLES[name][0]
        seeds = rows[rows["method"] == name]["value"]
        axes.plot(seeds, np.full(len(seeds), place), ".", color=colour, alpha=0.3, markersize=4)
        axes.plot(means[name], place, "o", color=colour, markersize=6)
    axes.set_yticks(range(len(means)), list(means.index), fontsize=8.5)
    axes.set(xlabel="share of cells on the wrong side", xlim=(-0.02, 1.02))
    axes.tick_params(axis="y", length=0)
    return picture


def threshold(frame: pd.DataFrame) -> Figure:
    """Load at which another pattern is expected in the support, against N, with both thresholds."""
    rows = _values(frame, "load with one expected")
    rows = rows.assign(N=rows["item"].str.removeprefix("N=").astype(int))
    return _trend(
        rows,
        "b",
        "load with one other pattern expected",
        lambda b: float(alpha_th(b, "gaussian")),
        lambda b: float(alpha_th(b)),
    )


def lsr_capacity(frame: pd.DataFrame) -> Figure:
    """Load at which the support is as likely free as not, against N; 1/2 as published."""
    rows = _values(frame, "load with probability 1/2")
    rows = rows.assign(N=rows["item"].str.removeprefix("N=").astype(int))
    return _trend(rows, "b", "load with probability ½", lambda b: 0.5, lambda b: float(alpha_th(b)))


def _trend(
    rows: pd.DataFrame, key: str, label: str, paper: Callable[[float], float], exact: Callable[[float], float]
) -> Figure:
    picture, axes = figure()
    for number, (level, part) in enumerate(rows.groupby(key)):
        colour = (BLUE, GREEN, PINK, ORANGE, SKY)[number % 5]
        means = part.groupby("N")["value"].mean()
        axes.plot(1 / means.index.to_numpy(), means, "o-", color=colour, markersize=4, label=f"{key} = {level:.3g}")
        axes.plot(-0.001, exact(float(str(level))), ">", color=colour, markersize=7)
        axes.plot(-0.001, paper(float(str(level))), "x", color=colour, markersize=7)
    axes.set(xlabel="1 / N", ylabel=label)
    _title(axes, "at 1/N = 0: ▸ exact, × as published")
    legend_above(picture, axes, 3)
    return picture


def survival(frame: pd.DataFrame) -> Figure:
    """Share of runs that never leave their support, by temperature, a line a load and N."""
    rows = _values(frame, "survived", "lsr")
    picture, axes = figure()
    for number, ((alpha, N), part) in enumerate(rows.groupby(["alpha", "N"])):
        share = part.groupby("T")["value"].mean()
        colour = (BLUE, GREEN, PINK, ORANGE, SKY, RED, BROWN, INK, QUIET)[number % 9]
        axes.plot(share.index, share, "o-", color=colour, markersize=4, label=f"α = {alpha:g}, N = {N:g}")
    axes.set(xlabel="temperature", ylabel="share of runs that stay", ylim=(-0.03, 1.03), xscale="log")
    legend_above(picture, axes)
    return picture


def lifetime(frame: pd.DataFrame) -> Figure:
    """Sweeps lived against N at load 0.2, a line a temperature."""
    rows = _values(frame, "sweeps lived", "lsr")
    rows = rows[rows["alpha"] == 0.2]
    picture, axes = figure()
    for number, (T, part) in enumerate(rows.groupby("T")):
        means = part.groupby("N")["value"].mean()
        axes.plot(
            means.index,
            means,
            "o-",
            color=(BLUE, GREEN, PINK, ORANGE, SKY)[number % 5],
            markersize=4,
            label=f"T = {T:g}",
        )
    axes.set(xlabel="N", ylabel="mean sweeps lived", yscale="log")
    legend_above(picture, axes, 3)
    return picture


def noise_energy(frame: pd.DataFrame) -> Figure:
    """Relative error of the paper's noise energy, by sharpness and law of the patterns."""
    rows = _values(frame, "relative error")
    picture, axes = figure()
    for law, colour in (("gaussian", RED), ("spherical", GREEN)):
        _dots(axes, rows[rows["method"] == law], "beta", colour, f"{law} patterns")
    axes.axhspan(-0.02, 0.02, color=FAINT, linewidth=0)
    axes.set(xlabel="sharpness of the kernel, β_net", ylabel="measured ÷ published − 1")
    _title(axes, "band: ± 2 %")
    legend_above(picture, axes)
    return picture


def recall_race(frame: pd.DataFrame) -> Figure:
    """Right and wrong answers of every way, a panel a data set: the better, the further to the lower right."""
    rows = frame[frame["metric"].isin(["recall", "wrong recall"])]
    if rows.empty:
        raise ValueError("recall was not measured")
    names: Sequence[str] = list(dict.fromkeys(rows["method"]))
    data = sorted(rows["data"].unique())
    picture, panels = figure(4.8, 3.6, ncols=len(data), sharey=True, squeeze=False)
    colours = (RED, BLUE, INK, GREEN, BROWN, PINK, SKY, ORANGE)
    for axes, one in zip(panels[0], data, strict=True):
        table = rows[rows["data"] == one].pivot_table(index="method", columns="metric", values="value")
        for number, name in enumerate(names):
            axes.plot(
                table.loc[name, "recall"], table.loc[name, "wrong recall"], "osD^v<>P"[number % 8], color=colours[number % 8],
                markersize=6, linestyle="none", label=name,
            )  # fmt: skip
        axes.set(xlabel="recalled right", xlim=(-0.03, 1.05))
        _title(axes, one)
    panels[0][0].set_ylabel("answered wrong")
    legend_above(picture, panels[0][0])
    return picture


def exponential(frame: pd.DataFrame) -> Figure:
    """Share of patterns kept against N, where M grows exponentially."""
    rows = _values(frame, "retrieved")
    picture, axes = figure()
    for name, colour in (("lse", BLUE), ("lsr", RED), ("pairwise Hopfield", QUIET)):
        _dots(axes, rows[rows["method"] == name], "N", colour, name)
    axes.set(xlabel="N, with M = exp(0.1 N) patterns", ylabel="share retrieved", ylim=(-0.03, 1.03))
    legend_above(picture, axes, 3)
    return picture


PICTURES = {
    "memory.entropy-of-the-sphere": entropy, "memory.order-parameter": order_parameter, "memory.capacity-half": capacity,
    "memory.capacity-half-gaussian": capacity, "memory.lse-line": lse_line, "memory.lse-finite-line": lse_line,
    "memory.lse-theories": _misplaced, "memory.threshold-value": threshold, "memory.lsr-any-temperature": survival,
    "memory.lsr-any-temperature-large-N": lifetime, "memory.lsr-line": _misplaced, "memory.lsr-capacity-half": lsr_capacity,
    "memory.noise-regimes": noise_energy, "memory.noise-regimes-gaussian": noise_energy, "memory.recall-race": recall_race,
    "memory.recalls-as-neighbours": recall_race, "memory.refuses-better": recall_race, "memory.exponentially-many": exponential,
}  # fmt: skip
