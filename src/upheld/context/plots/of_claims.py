"""Pictures of the claims. MCE is blue throughout, ACE red; means over seeds, each seed a faint mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    plain_logs,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, ACE = "MCE", "ACE"
LOOKS: dict[str, tuple[str, str]] = {  # colour, mark
    OURS: (BLUE, "o"), ACE: (RED, "s"), "ACE, wrong rollouts": (PINK, "v"), "ACE, all rollouts": (RED, "s"), "GEPA": (ORANGE, "D"),
    "knn few-shot": (GREEN, "^"), "many-shot": (BROWN, "P"), "random few-shot": (SKY, "v"), "labels": (PINK, "<"), "no-skill": (INK, ">"),
    "base": (QUIET, "X"), "first skill each time": (ORANGE, "D"), "random skills": (GREEN, "^"),
    "ACE's schema, wrong rollouts": (PINK, "v"), "ACE's schema, all rollouts": (RED, "s"), "the same files, concatenated": (RED, "s"),
    "ACE, chosen setting alone": (PINK, "v"), "Dynamic Cheatsheet": (BROWN, "P"), "DSPy KNNFewShot": (BROWN, "X"),
    "ace-framework": (RED, "v"),
    "MCE, naive start": (SKY, "D"),
}  # fmt: skip


def _measured(frame: pd.DataFrame, metric: str, **where: Any) -> pd.DataFrame:
    """Rows of a metric. Raises ValueError when there are none."""
    rows = frame[frame["metric"] == metric]
    for key, value in where.items():
        rows = rows[rows[key].astype(str) == str(value)]
    if rows.empty:
        raise ValueError(f"{metric} was not measured")
    return rows


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=8.5, color=QUIET, loc="left")


def by_domain(
    frame: pd.DataFrame, length: str, methods: Sequence[str], metric: str = "score", label: str = "figure on the test set"
) -> Figure:  # fmt: skip
    """Every method's mean in each domain, a row a domain; seeds faintly."""
    rows = _measured(frame, metric, length=length)
    domains = list(dict.fromkeys(rows["domain"]))[::-1]
    shown = [name for name in methods if name in set(rows["method"])]
    drawn, axes = figure(4.8, 1.1 + (0.22 + 0.13 * len(shown)) * len(domains) + 0.18 * ((len(shown) + 1) // 2))
    step = 0.7 / max(len(shown), 2)
    for number, name in enumerate(shown):
        colour, mark = LOOKS[name]
        of = rows[rows["method"] == name]
        places = of["domain"].map(domains.index) + 0.35 - step * (number + 0.5)
        axes.plot(of["value"], places, ".", color=colour, alpha=0.25, markersize=4)
        means = of.groupby("domain")["value"].mean()
        at = [domains.index(str(domain)) + 0.35 - step * (number + 0.5) for domain in means.index]
        axes.plot(means, at, mark, color=colour, markersize=6, linestyle="none", label=name)
    for place in range(len(domains) - 1):
        axes.axhline(place + 0.5, color=FAINT, linewidth=0.8)
    axes.set_yticks(range(len(domains)), domains)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=label, ylim=(-0.5, len(domains) - 0.5))
    legend_above(drawn, axes)
    return drawn


def by_tokens(frame: pd.DataFrame) -> Figure:
    """Mean figure over domains against mean context tokens a query; filled: each at its own length, hollow: within 400 tokens."""
    drawn, axes = figure(4.8, 3.6)
    scores, tokens = _measured(frame, "score"), _measured(frame, "tokens")
    for name, (colour, mark) in LOOKS.items():
        for length in sorted(set(scores["length"].astype(str))):
            of = [
                table[(table["method"] == name) & (table["length"].astype(str) == length)] for table in (tokens, scores)
            ]
            if len(of[0]):
                own = length == "own"
                axes.plot(
                    max(of[0]["value"].mean(), 1), of[1]["value"].mean(), mark, color=colour, markersize=7,
                    markerfacecolor=colour if own else "white", linestyle="none", label=name if own else None,
                )  # fmt: skip
    axes.set(xscale="log", xlabel="context tokens a query (no context: 1)", ylabel="figure, mean over domains")
    plain_logs(axes.xaxis)
    _title(axes, "filled: at its own length; hollow: within 400 tokens")
    legend_above(drawn, axes, 3)
    return drawn


def within_budgets(frame: pd.DataFrame) -> Figure:
    """The figure of both contexts shown within growing budgets, mean over domains; what ACE has at its best, less a point."""
    drawn, axes = figure()
    best = 0.0
    for name in (OURS, ACE):
        colour, mark = LOOKS[name]
        scores, tokens = (
            rows[rows["method"] == name]
            .assign(item=lambda part: part["item"].astype(int))
            .groupby("item")["value"]
            .mean()
            for rows in (_measured(frame, "score within a budget"), _measured(frame, "tokens within a budget"))
        )
        axes.plot(tokens, scores, f"{mark}-", color=colour, markersize=5, label=name)
        best = max(best, float(scores.max())) if name == ACE else best
    axes.axhline(best - 0.01, color=RED, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xscale="log", xlabel="context tokens a query", ylabel="figure on the test set")
    plain_logs(axes.xaxis)
    _title(axes, "budgets of 100 to 1,600 tokens; dashed: ACE's best, less a point")
    legend_above(drawn, axes)
    return drawn


def rollouts(frame: pd.DataFrame) -> Figure:
    """Rollouts until ACE's final figure, a row a domain; where MCE never gets there its mark is hollow at all its rollouts."""
    rows, reached = _measured(frame, "rollouts to ACE's score"), _measured(frame, "reaches ACE's score")
    domains = list(dict.fromkeys(rows["domain"]))[::-1]
    drawn, axes = figure(4.8, 1.2 + 0.42 * len(domains))
    key = ["domain", "seed"]
    there = reached[reached["method"] == OURS].groupby(key)["value"].mean()
    for number, name in enumerate((OURS, ACE, "ACE, chosen setting alone")):
        colour, mark = LOOKS[name]
        of = rows[rows["method"] == name].groupby(key)["value"].mean()
        x, y = of.to_numpy(), np.array([domains.index(domain) for domain, _ in of.index]) + 0.22 - 0.22 * number
        full = there.reindex(of.index).to_numpy() > 0 if name == OURS else np.full(len(of), True)
        looks: dict[str, Any] = {"color": colour, "markersize": 5, "linestyle": "none"}
        axes.plot(x[full], y[full], mark, alpha=0.6, label=name, **looks)
        axes.plot(x[~full], y[~full], mark, markerfacecolor="white", **looks)
    axes.set_yticks(range(len(domains)), domains)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="rollouts, validation included")
    axes.set_xlim(left=0)
    _title(axes, "a mark a seed; hollow: never reached")
    legend_above(drawn, axes)
    return drawn


def stream(frame: pd.DataFrame, length: str) -> Figure:
    """Mean figure so far over the stream, averaged over domains and seeds."""
    rows = _measured(frame, "score of a batch", length=length)
    drawn, axes = figure()
    for name in ("ACE, all rollouts", "ACE, wrong rollouts", "knn few-shot", OURS):
        of = rows[rows["method"] == name]
        means = of.assign(item=of["item"].astype(int)).groupby("item")["value"].mean()
        so_far = means.expanding().mean()
        colour, mark = LOOKS[name]
        ring = (
            {"markersize": 7, "markerfacecolor": "none"} if name == OURS else {"markersize": 4}
        )  # others show through it
        axes.plot(so_far.index, so_far, f"{mark}-", color=colour, linewidth=1, label=name, **ring)
    base = _measured(frame, "score", length=length)
    bare = base[base["method"] == "base"]["value"].mean()
    axes.axhline(bare, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlabel="batches of 20 answered, each before it is learned from", ylabel="mean figure so far")
    _title(axes, "dashed: the bare model")
    legend_above(drawn, axes)
    return drawn


def iterations(frame: pd.DataFrame, length: str) -> Figure:
    """Test figure of the accepted context after every iteration, and the validation figure it was chosen by."""
    drawn, axes = figure()
    for metric, dashes in (("test by iteration", "-"), ("validation by iteration", ":")):
        rows = _measured(frame, metric, length=length)
        for (domain, of), colour in zip(rows.groupby("domain"), (BLUE, GREEN, ORANGE, PINK), strict=False):
            means = of.assign(item=of["item"].astype(int)).groupby("item")["value"].mean()
            axes.plot(
                means.index, means, f"o{dashes}", color=colour, markersize=4, label=f"{domain}, {metric.split()[0]}"
            )
    axes.set(xlabel="iteration (0: no context)", ylabel="figure of the accepted context")
    legend_above(drawn, axes)
    return drawn


def growth(frame: pd.DataFrame) -> Figure:
    """Size of the accepted store, and its figure, by the number of rules there are to know."""
    drawn, (left, right) = figure(5.2, 3.2, ncols=2)
    for axes, metric in ((left, "tokens of the store"), (right, "score")):
        rows = _measured(frame, metric)
        for name in (OURS, "MCE, naive start"):
            colour, mark = LOOKS[name]
            of = rows[rows["method"] == name]
            axes.plot(of["rules"], of["value"], ".", color=colour, alpha=0.3, markersize=4)
            means = of.groupby("rules")["value"].mean()
            axes.plot(means.index, means, f"{mark}-", color=colour, markersize=5, label=name)
        caps = rows[~rows["method"].str.startswith(OURS)].groupby(["method", "rules"])["value"].mean().unstack()
        for cap in caps.index:
            axes.plot(caps.columns, caps.loc[cap], color=QUIET, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.annotate(
                cap.split()[0],
                (caps.columns[-1], caps.loc[cap].iloc[-1]),
                fontsize=7,
                color=QUIET,
                xytext=(2, -2),
                textcoords="offset points",
            )
        axes.set(xscale="log", xlabel="rules")
        axes.set_xticks(sorted(set(rows["rules"])), [f"{n:g}" for n in sorted(set(rows["rules"]))])
        axes.minorticks_off()
    left.set(yscale="log", ylabel="tokens of the store")
    plain_logs(left.yaxis)
    right.set(ylabel="figure on the test set")
    _title(left, "dashed: so many cases a label")
    legend_above(drawn, left)
    return drawn


LEARNER_MARKS = ((BLUE, "o"), (ORANGE, "D"), (PINK, "v"), (SKY, "s"))


def readers(frame: pd.DataFrame, learners: Sequence[str] = ("embedding", "tfidf")) -> Figure:
    """A context's gain under the reader it was learned with, and under the others; below the lower line less than half of it stays."""
    drawn, axes = figure(4.8, 3.8)
    top = 0.0
    for name, (colour, mark) in zip(learners, LEARNER_MARKS, strict=False):
        rows = [
            _measured(frame[frame["method"] == f"learned with {name}"], f"gain, {which} reader")
            for which in ("same", "other")
        ]
        same, other = (part.groupby("domain")["value"].mean() for part in rows)
        axes.plot(
            same,
            other.loc[same.index],
            mark,
            color=colour,
            markersize=6,
            linestyle="none",
            label=f"learned with {f'the {NAMES[name]} reader' if name in NAMES else name}",
        )
        for domain in same.index:
            at = float(same[domain]), float(other[domain])
            axes.annotate(str(domain), at, fontsize=7, color=QUIET, xytext=(4, -3), textcoords="offset points")
        top = max(top, float(same.max()), float(other.max()))
    _halves(axes, top)
    axes.set(xlabel="gain over no context, same reader", ylabel="gain, other reader")
    legend_above(drawn, axes, 1)
    return drawn


NAMES = {"embedding": "MiniLM", "tfidf": "TF-IDF"}


def small_model(frame: pd.DataFrame) -> Figure:
    """The gain for SmolLM2 against that for the reader the context was learned with, a mark a seed."""
    rows = _measured(frame, "gain").pivot_table(index="seed", columns="method", values="value")
    drawn, axes = figure(4.8, 3.6)
    axes.plot(rows["embedding"], rows["SmolLM2"], "o", color=BLUE, alpha=0.5, markersize=7)
    axes.plot(
        rows["embedding"].mean(), rows["SmolLM2"].mean(), "P", color=INK, markersize=9, linestyle="none", label="mean"
    )
    _halves(axes, float(rows.to_numpy().max()))
    axes.set(xlabel="gain over no context, MiniLM reader", ylabel="gain, SmolLM2")
    legend_above(drawn, axes)
    return drawn


def _halves(axes: Axes, top: float) -> None:
    """Lines where all of the gain stays, and half of it."""
    ends = np.array([0, max(top, 0.05) * 1.05])
    for share, said in ((1, "all stays"), (0.5, "half stays")):
        axes.plot(ends, share * ends, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(
            said,
            (ends[1], share * ends[1]),
            fontsize=7.5,
            color=QUIET,
            ha="right",
            va="bottom",
            xytext=(-2, 2),
            textcoords="offset points",
        )
    axes.axhline(0, color=FAINT, linewidth=0.8)


def skills(frame: pd.DataFrame) -> Figure:
    """Points that the skill accepted in a row's domain gains over the first skill in a column's domain."""
    from matplotlib.colors import LinearSegmentedColormap

    rows = _measured(frame, "score of a skill")
    first = rows[rows["method"] == "first skill"].groupby("domain")["value"].mean()
    moved = rows[rows["method"] == "skill of another domain"].pivot_table(
        index="domain", columns="item", values="value"
    )
    columns = [name for name in first.index if name in moved.columns]
    table = 100 * (moved.reindex(columns=columns) - first.reindex(columns)).reindex(index=first.index)
    drawn, axes = figure(4.8, 1.6 + 0.38 * len(table))
    shades = LinearSegmentedColormap.from_list("gain", [RED, "#f7f6f0", BLUE])
    most = max(5.0, float(np.nanmax(np.abs(table.to_numpy()))))
    axes.imshow(table.to_numpy(), cmap=shades, vmin=-most, vmax=most, aspect="auto")
    for (row, column), value in np.ndenumerate(table.to_numpy()):
        said = "" if np.isnan(value) else f"{value:+.0f}"
        axes.text(
            column, row, said, ha="center", va="center", fontsize=8.5, color="white" if abs(value) > 0.6 * most else INK
        )
    axes.set_xticks(range(len(table.columns)), list(table.columns), rotation=35, ha="right")
    axes.set_yticks(range(len(table)), list(table.index))
    axes.tick_params(length=0)
    axes.set(xlabel="carried out in", ylabel="skill accepted in")
    _title(axes, "points above the first skill there (blue: better)")
    return drawn


AGENTIC = (OURS, ACE, "GEPA")
SEARCHED = (OURS, "first skill each time", "random skills")
SCHEMAS = (OURS, "ACE's schema, wrong rollouts", "ACE's schema, all rollouts")
PICTURES: dict[str, Callable[[pd.DataFrame], Figure]] = {
    "context.offline": partial(by_domain, length="own", methods=AGENTIC),
    "context.offline-size": partial(by_domain, length="own", methods=AGENTIC),
    "context.offline-bounded": partial(by_domain, length="400", methods=AGENTIC),
    "context.online": partial(stream, length="own"),
    "context.online-size": partial(by_domain, length="own", methods=(OURS, "ACE, all rollouts", "ACE, wrong rollouts")),
    "context.online-bounded": partial(stream, length="400"),
    "context.over-base": partial(by_domain, length="own", methods=(OURS, "base")),
    "context.over-base-online": partial(by_domain, length="own", methods=(OURS, "base")),
    "context.practitioner": partial(by_domain, length="own", methods=(OURS, "knn few-shot", "many-shot")),
    "context.practitioner-bounded": partial(by_domain, length="400", methods=(OURS, "knn few-shot", "many-shot")),
    "context.meta": partial(by_domain, length="own", methods=SEARCHED),
    "context.meta-bounded": partial(by_domain, length="400", methods=SEARCHED),
    "context.schema": partial(by_domain, length="own", methods=SCHEMAS),
    "context.schema-bounded": partial(by_domain, length="400", methods=SCHEMAS),
    "context.code": partial(by_domain, length="400", methods=(OURS, "the same files, concatenated")),
    "context.coevolve": partial(iterations, length="own"),
    "context.coevolve-bounded": partial(iterations, length="400"),
    "context.adapt": growth,
    "context.adapt-naive": growth,
    "context.transfer-model": readers,
    "context.transfer-model-lm": small_model,
    "context.transfer-model-endpoints": partial(readers, learners=("embedding", "model 1", "model 2", "model 3")),
    "context.transfer-skill": skills,
    "context.ctx-eff": within_budgets,
    "context.lengths": within_budgets,
    "context.train-eff": rollouts,
    "context.train-eff-untuned": rollouts,
    "context.race": by_tokens,
    "context.endpoint": partial(by_domain, length="own", methods=AGENTIC),
    "context.endpoint-size": partial(by_domain, length="own", methods=AGENTIC),
    "context.endpoint-practitioner": partial(by_domain, length="own", methods=(OURS, "knn few-shot", "many-shot")),
    "context.endpoint-dspy": partial(by_domain, length="own", methods=(OURS, "DSPy KNNFewShot")),
    "context.endpoint-ace-package": partial(by_domain, length="own", methods=(OURS, ACE, "ace-framework")),
    "context.endpoint-rollouts": partial(
        by_domain, length="own", methods=(OURS, ACE), metric="rollouts to ACE's score", label="rollouts"
    ),
    "context.train-seconds": partial(
        by_domain, length="own", methods=(OURS, ACE), metric="seconds to ACE's score", label="seconds"
    ),
    "context.endpoint-online": partial(
        by_domain, length="own", methods=(OURS, "ACE, all rollouts", "ACE, wrong rollouts", "Dynamic Cheatsheet")
    ),
    "context.originals": partial(by_domain, length="own", methods=AGENTIC),
    "context.endpoint-race": by_tokens,
}
"""By claim."""
