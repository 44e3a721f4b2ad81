"""What was measured for each claim. Every unit is a faint mark, the mean (of ratios: the geometric one) a full one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from upheld.report.drawing import BLUE, QUIET, RED, figure, legend_above, plain_logs, plain_numbers
from upheld.speculative.plots.decoding import COLOURS, MARKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = ("DFlash", "DFlash, calibrated block", "DFlash in bfloat16", "as it is")
PUBLISHED = 6.09
"""The largest speed-up that the authors report, Qwen3-4B on MATH-500."""

SMALLEST_P = 1e-16


def _values(frame: pd.DataFrame, metric: str, **where: Any) -> pd.DataFrame:
    rows = frame[frame["metric"] == metric]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    if rows.empty:
        raise ValueError(f"no {metric} was measured")
    return rows


def by_method(
    frame: pd.DataFrame, metric: str, label: str, *, line: float | None = None, log: bool = False, **where: Any
) -> Figure:
    """One metric of every method, in the order in which they were measured; a dashed line is what the claim sets."""
    rows = _values(frame, metric, **where)
    names = list(dict.fromkeys(rows["method"]))
    made, axes = figure(4.8, 0.9 + 0.36 * len(names))
    for place, name in enumerate(reversed(names)):
        values = rows[rows["method"] == name]["value"].to_numpy()
        colour = BLUE if name in OURS else QUIET
        axes.plot(values, np.full(len(values), place), "|", color=colour, alpha=0.5, markersize=9)
        axes.plot(values.mean(), place, "o" if name in OURS else "s", color=colour, markersize=6)
    axes.set_yticks(range(len(names)), list(reversed(names)), fontsize=8.5)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel(label)
    if log:
        axes.set_xscale("log")
        plain_logs(axes.xaxis)
    if line is not None:
        axes.axvline(line, color=RED, linewidth=1.2, linestyle=(0, (4, 3)))
    return made


def greedy(frame: pd.DataFrame) -> Figure:
    """Share of texts that are the target's own, by target and drafter."""
    rows = _values(frame, "identical")
    shares = rows.groupby(["target", "method"], sort=False)["value"].agg(["mean", "size"]).reset_index()
    made, axes = figure(4.8, 0.9 + 0.36 * len(shares))
    for place, (_, row) in enumerate(shares[::-1].iterrows()):
        name = row["method"]
        axes.plot(100 * row["mean"], place, "o", color=BLUE if name in OURS else QUIET, markersize=7)
        axes.annotate(
            f"{row['mean'] * row['size']:.0f} of {row['size']:.0f}", (100 * row["mean"], place), xytext=(-9, -3),
            textcoords="offset points", fontsize=8, ha="right",
        )  # fmt: skip
    labels = [f"{row['method']}\n{row['target']}" for _, row in shares[::-1].iterrows()]
    axes.set_yticks(range(len(shares)), labels, fontsize=7.5)
    axes.set_xlim(0, 104)
    axes.set_ylim(-0.6, len(shares) - 0.4)
    axes.set_xlabel("texts identical to those of plain decoding, %")
    return made


def sampling(frame: pd.DataFrame) -> Figure:
    """p-values of every verifier; those of a right one are spread evenly, those of a wrong one are nothing."""
    rows = _values(frame, "p")
    names = list(dict.fromkeys(rows["method"]))
    made, axes = figure(4.8, 0.9 + 0.42 * len(names))
    for place, name in enumerate(reversed(names)):
        values = rows[rows["method"] == name]["value"].clip(lower=SMALLEST_P)
        axes.plot(values, np.full(len(values), place), "|", color=RED if "wrong" in name else BLUE, markersize=11)
    axes.axvline(0.001, color=QUIET, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), [name.replace(" (", "\n(") for name in reversed(names)], fontsize=8)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel("p-value of Pearson's test (dashed: 0.001)")
    return made


def costs(frame: pd.DataFrame) -> Figure:
    """c_v(k) in every number format; the dotted line is k steps one by one."""
    rows = frame[frame["metric"].str.startswith("c_v(")]
    rows = rows.assign(k=rows["metric"].str.extract(r"\((\d+)\)", expand=False).astype(int))
    made, axes = figure(4.8, 3.2)
    _lines(axes, rows, "k")
    ends = np.array([1, rows["k"].max()])
    axes.plot(ends, ends, color=QUIET, linestyle=":", label="k steps one by one")
    axes.set_xlabel("tokens k read at once")
    axes.set_ylabel("cost in steps of one token")
    _both_logs(axes, rows["k"])
    legend_above(made, axes)
    return made


def drafts(frame: pd.DataFrame) -> Figure:
    """Milliseconds of k drafts, block by block and token by token."""
    rows = frame[frame["metric"].str.match(r"seconds of \d+ drafts")]
    rows = rows.assign(k=rows["metric"].str.extract(r"(\d+)", expand=False).astype(int), value=1000 * rows["value"])
    made, axes = figure(4.8, 3.0)
    _lines(axes, rows, "k")
    axes.set_xlabel("drafts of a cycle")
    axes.set_ylabel("milliseconds")
    _both_logs(axes, rows["k"])
    legend_above(made, axes)
    return made


def ceiling(frame: pd.DataFrame) -> Figure:
    """What drafts that are always right could give, by how many texts are decoded at once."""
    rows = frame[frame["metric"].str.startswith("ceiling at batch ")]
    rows = rows.assign(b=rows["metric"].str.removeprefix("ceiling at batch ").astype(int))
    made, axes = figure(4.8, 2.8)
    _lines(axes, rows, "b")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(rows["b"].unique()))
    plain_logs(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("texts at once")
    axes.set_ylabel("times as fast, at most")
    legend_above(made, axes)
    return made


def _lines(axes: Any, rows: pd.DataFrame, key: str) -> None:
    for place, (name, part) in enumerate(rows.groupby("method", sort=False)):
        axes.plot(part[key], part["value"], "_", color=COLOURS[place], alpha=0.5, markersize=7)
        means = part.groupby(key)["value"].mean()
        axes.plot(means.index, means, color=COLOURS[place], marker=MARKS[place], markersize=5, label=str(name))


def _both_logs(axes: Any, ks: pd.Series[int]) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(ks.unique()))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        plain_logs(axis)


def speed_ups(frame: pd.DataFrame, temperature: float = 0.0) -> Figure:
    """Plain decoding's pace over every method's, prompt by prompt, and what no drafter of this block exceeds here."""
    rows = _values(frame, "seconds a token", temperature=temperature)
    wide = rows.pivot_table(index="item", columns="method", values="value")
    ratios = {str(name): wide["plain"] / wide[name] for name in wide.columns if name != "plain"}
    names = sorted(ratios, key=lambda name: (name in OURS, name))
    made, axes = figure(4.8, 1.1 + 0.42 * len(names))
    for place, name in enumerate(names):
        values = ratios[name].dropna().to_numpy()
        colour, mean = (BLUE if name in OURS else QUIET), float(np.exp(np.log(values).mean()))
        axes.plot(values, np.full(len(values), place), "|", color=colour, alpha=0.6, markersize=10)
        axes.plot(mean, place, "o" if name in OURS else "s", color=colour, markersize=6)
        axes.annotate(
            f"{mean:.2f}",
            (mean, place),
            xytext=(0, 8),
            textcoords="offset points",
            fontsize=8,
            ha="center",
            color=colour,
        )
    axes.axvline(1.0, color=QUIET, linewidth=1.0)
    if temperature == 0.0:
        bound = _values(frame, "speed-up if every draft were right")["value"].mean()
        for value, colour, words in ((bound, RED, "every draft right, here"), (PUBLISHED, QUIET, "published, GPU")):
            axes.axvline(value, color=colour, linewidth=1.2, linestyle=":")
            axes.annotate(
                f"{words}: {value:.2f}", (value, 0.5), xycoords=("data", "axes fraction"), xytext=(-10, 0), rotation=90,
                textcoords="offset points", fontsize=7.5, color=colour, va="center",
            )  # fmt: skip
        axes.set_xlim(0, max(PUBLISHED, bound) + 0.4)
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(-0.5, len(names) - 0.2)
    axes.set_xlabel("times as fast as plain decoding")
    return made


def by_temperature(frame: pd.DataFrame) -> Figure:
    """The same prompts greedily and at temperature 1: a line a prompt."""
    made, axes = figure(4.8, 2.8)
    wide = frame[frame["metric"] == "seconds a token"].pivot_table(
        index="item", columns=["temperature", "method"], values="value"
    )
    ratio = pd.DataFrame(
        {t: wide[t]["plain"] / wide[t]["DFlash"] for t in sorted(set(wide.columns.get_level_values(0)))}
    )
    for _, row in ratio.iterrows():
        axes.plot(range(len(row)), row, color=BLUE, alpha=0.35, marker="o", markersize=4)
    means = np.exp(np.log(ratio).mean())
    axes.plot(range(len(means)), means, color=BLUE, marker="o", linewidth=2.2)
    axes.axhline(1.0, color=QUIET, linewidth=1.0)
    axes.set_xticks(range(len(means)), [f"temperature {t:g}" for t in ratio.columns])
    axes.set_xlim(-0.3, len(means) - 0.7)
    axes.set_ylabel("times as fast as plain")
    return made


def paired(
    frame: pd.DataFrame, metric: str, label: str, methods: tuple[str, str], unit: str = "item", **where: Any
) -> Figure:
    """One metric of two methods, joined unit by unit."""
    rows = _values(frame, metric, **where)
    wide = rows.pivot_table(index=unit, columns="method", values="value")[list(methods)]
    made, axes = figure(4.8, 2.8)
    for _, row in wide.iterrows():
        axes.plot([0, 1], row, color=BLUE, alpha=0.35, marker="o", markersize=4)
    axes.plot([0, 1], wide.mean(), color=BLUE, marker="o", linewidth=2.2)
    axes.set_xticks([0, 1], list(methods))
    axes.set_xlim(-0.3, 1.3)
    axes.set_ylabel(label)
    return made


def by_kind(frame: pd.DataFrame, prefix: str, methods: tuple[str, str], label: str, line: float) -> Figure:
    """The ratio of two methods on every kind of text."""
    rows = frame[frame["metric"].str.startswith(prefix)]
    rows = rows.assign(kind=rows["metric"].str.removeprefix(prefix))
    wide = rows.pivot_table(index=["kind", "seed"], columns="method", values="value")
    ratio = (wide[methods[0]] / wide[methods[1]]).dropna()
    kinds = list(dict.fromkeys(rows["kind"]))
    made, axes = figure(4.8, 0.9 + 0.36 * len(kinds))
    for place, kind in enumerate(reversed(kinds)):
        values = ratio[kind].to_numpy()
        axes.plot(values, np.full(len(values), place), "|", color=BLUE, alpha=0.5, markersize=9)
        axes.plot(np.exp(np.log(values).mean()), place, "o", color=BLUE, markersize=6)
    axes.axvline(1.0, color=QUIET, linewidth=1.0)
    axes.axvline(line, color=RED, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(kinds)), list(reversed(kinds)), fontsize=8.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(label)
    return made


def by_place(frame: pd.DataFrame) -> Figure:
    """How often the k-th draft stands when all before it do."""
    rows = frame[frame["metric"].str.startswith("acceptance of draft ")]
    rows = rows.assign(k=rows["metric"].str.removeprefix("acceptance of draft ").astype(int), value=100 * rows["value"])
    made, axes = figure(4.8, 3.0)
    for place, (name, part) in enumerate(rows.groupby("method", sort=False)):
        means = part.groupby("k")["value"].mean()
        axes.plot(means.index, means, color=COLOURS[place], marker=MARKS[place], markersize=5, label=str(name))
    axes.set_ylim(0, 103)
    axes.set_xticks(sorted(rows["k"].unique()))
    axes.set_xlabel("position in the block (all before it accepted)")
    axes.set_ylabel("drafts accepted, %")
    legend_above(made, axes)
    return made


def steps(frame: pd.DataFrame) -> Figure:
    """Optimiser steps that the same processor seconds bought."""
    made = by_method(frame, "training steps", "steps of training in equal processor seconds", log=True)
    plain_numbers(made.axes[0].xaxis)
    return made


def batches(frame: pd.DataFrame) -> Figure:
    """Speed-up over `generate` by how many texts are decoded at once."""
    rows = _values(frame, "speed-up")
    means = rows.groupby("batch")["value"].mean()
    made, axes = figure(4.8, 3.0)
    axes.plot(rows["batch"], rows["value"], "o", color=BLUE, alpha=0.3, markersize=4)
    axes.plot(means.index, means, color=BLUE, marker="o", markersize=6)
    axes.axhline(1.0, color=RED, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set_xlabel("texts at once")
    axes.set_ylabel("times `generate` (dashed: as fast)")
    axes.set_xscale("log")
    axes.set_xticks(means.index, [str(batch) for batch in means.index])
    axes.minorticks_off()
    return made


_TAU = "τ, tokens a cycle"
_ACCEPTED = partial(by_method, metric="tau", label=_TAU)
_MODELLED = partial(by_method, metric="modelled speed-up", label="modelled speed-up", line=1.0)
_CHANGED = partial(paired, metric="tau", label=_TAU, methods=("as it is", "changed"), unit="seed")

PICTURES: dict[str, Callable[..., Figure]] = {
    "speculative.lossless-greedy": greedy,
    "speculative.lossless-greedy-share": greedy,
    "speculative.lossless-greedy-bfloat16": greedy,
    "speculative.lossless-sampling": sampling,
    "speculative.lossless-sampling-smollm2": sampling,
    "speculative.sequential-baseline": costs,
    "speculative.sequential-baseline-16": costs,
    "speculative.one-pass-drafting": drafts,
    "speculative.one-pass-drafting-same-layers": drafts,
    "speculative.drafting-share": drafts,
    "speculative.concurrency": ceiling,
    "speculative.lightweight": partial(
        by_method, metric="weights over the target's", label="weights / the target's", line=0.25
    ),
    "speculative.added-memory": partial(
        by_method, metric="added memory over the target's", label="bytes beyond plain decoding / the target's"
    ),
    "speculative.lossless-6x": speed_ups,
    "speculative.lossless-6x-somewhere": speed_ups,
    "speculative.pays": speed_ups,
    "speculative.pays-calibrated": speed_ups,
    "speculative.pays-in-bfloat16": partial(
        by_method, metric="seconds a token", label="seconds a token of decoding"
    ),
    "speculative.beats-lookup": speed_ups,
    "speculative.beats-lookup-calibrated": speed_ups,
    "speculative.race": speed_ups,
    "speculative.sampling-speed": by_temperature,
    "speculative.sampling-speed-kept": by_temperature,
    "speculative.diffusion-alone-is-worse": partial(
        paired, metric="nats a token", label="nats a token under the target", methods=("target", "drafter alone")
    ),
    "speculative.drafter-in-its-place": partial(by_method, metric="tau", label=_TAU, line=1.0, temperature=0.0),
    "speculative.drafter-alone-exact": partial(
        paired, metric="nats a token", label="nats a token under the target", methods=("target", "drafter alone")
    ),
    "speculative.features-raise-acceptance": partial(by_method, metric="tau", label=_TAU),
    "speculative.acceptance": by_place,
    "speculative.acceptance-medusa": partial(by_method, metric="tau", label=_TAU),
    "speculative.beats-eagle3": _MODELLED,
    "speculative.beats-eagle3-2.5x": partial(
        by_kind, prefix="modelled speed-up on ", methods=("DFlash", "EAGLE-style"), line=2.25,
        label="modelled speed-up / the EAGLE-style head's (dashed: 2.25)",
    ),
    "speculative.beats-eagle3-trees": _MODELLED,
    "speculative.training": steps,
    "speculative.keys-and-values-over-input": partial(_CHANGED, change="input"),
    "speculative.acceptance-autoregressive": partial(_CHANGED, change="autoregressive"),
    "speculative.depth": partial(_CHANGED, change="depth"),
    "speculative.decay": partial(_CHANGED, change="uniform"),
    "speculative.random-anchors": partial(_CHANGED, change="grid"),
    "speculative.concurrency-batches": batches,
    "speculative.features-raise-acceptance-smollm2": _ACCEPTED,
    "speculative.keys-and-values-over-input-smollm2": _ACCEPTED,
    "speculative.beats-eagle3-smollm2": partial(
        by_method, metric="seconds a token", label="seconds a token of decoding"
    ),
    "speculative.acceptance-smollm2": _ACCEPTED,
    "speculative.acceptance-autoregressive-smollm2": _ACCEPTED,
    "speculative.autoregressive-alone": partial(
        paired, metric="nats a token", label="nats a token under the target", methods=("autoregressive alone", "DFlash alone")
    ),
    "speculative.taps": _ACCEPTED,
    "speculative.block": _ACCEPTED,
}  # fmt: skip
