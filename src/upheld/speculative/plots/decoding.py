"""What a run on one's own prompts comes to: how far drafts go, what they cost, and whether they pay.

The method is blue throughout; others differ by mark or place as well. All functions take plain numbers and tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from upheld.report.drawing import BLUE, BROWN, GREEN, PINK, QUIET, RED, figure, legend_above, plain_logs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLOURS = (BLUE, RED, GREEN, PINK, BROWN)
MARKS = "osD^vP*X<>"


def acceptance_histogram(lengths: Sequence[int], block_size: int) -> Figure:
    """How many tokens a cycle emitted, accepted drafts and the bonus; the line is their mean, tau.

    Parameters
    ----------
    lengths : `SpecStats.acceptance_lengths`, of one text or of many
    block_size : B, the most that a cycle can emit

    Raises
    ------
    ValueError
        If there is no cycle, or one emitted more than B tokens.
    """
    if not len(lengths) or max(lengths) > block_size or min(lengths) < 1:
        raise ValueError(
            f"a histogram needs one cycle or more, each of 1 to {block_size} tokens; got {len(lengths)} cycles"
            + (f" of {min(lengths)} to {max(lengths)} tokens" if len(lengths) else "")
        )
    counts = Counter(lengths)
    places = np.arange(1, block_size + 1)
    tau = float(np.mean(lengths))
    made, axes = figure(4.8, 2.8)
    axes.bar(places, [100 * counts[place] / len(lengths) for place in places.tolist()], color=BLUE, width=0.75)
    axes.axvline(tau, color=RED, linewidth=1.4)
    axes.annotate(
        f"τ = {tau:.2f}", (tau, 1), xycoords=("data", "axes fraction"), xytext=(5, -3), textcoords="offset points", fontsize=9,
        color=RED, va="top",
    )  # fmt: skip
    axes.set_xticks(places if block_size <= 16 else places[:: block_size // 8])
    axes.set_xlabel("tokens emitted in a cycle")
    axes.set_ylabel("cycles, %")
    return made


def acceptance_by_position(acceptance: Mapping[str, Sequence[float]]) -> Figure:
    """The chance that the k-th draft of a block stands, given that those before it do; a line a method.

    Parameters
    ----------
    acceptance : name -> `SpecStats.position_acceptance`; NaN where no cycle came so far

    Raises
    ------
    ValueError
        If nobody has drafted anything.
    """
    if not any(len(shares) for shares in acceptance.values()):
        raise ValueError("no draft was proposed, so there is no acceptance to draw; decode with a drafter first")
    made, axes = figure(4.8, 2.8)
    for place, (name, shares) in enumerate(acceptance.items()):
        axes.plot(
            range(1, len(shares) + 1), 100 * np.asarray(shares, dtype=float), color=COLOURS[place % len(COLOURS)],
            marker=MARKS[place % len(MARKS)], markersize=5, label=name,
        )  # fmt: skip
    axes.set_ylim(0, 103)
    axes.set_xticks(range(1, max(len(shares) for shares in acceptance.values()) + 1))
    axes.set_xlabel("position in the block (all before it accepted)")
    axes.set_ylabel("drafts accepted, %")
    if len(acceptance) > 1:
        legend_above(made, axes)
    return made


def cost_curves(verify: Mapping[int, float], draft: Mapping[int, float], step_s: float | None = None) -> Figure:
    """What k tokens cost in one forward, in one-token steps: verifying them, and drafting them.

    The dotted line is k steps one by one, which is what plain decoding pays for k tokens.

    Parameters
    ----------
    verify, draft : `CostTable.verify` and `CostTable.draft`
    step_s : seconds of a one-token step, which the label tells
    """
    made, axes = figure(4.8, 3.2)
    longest = max([*verify, *draft])
    ks = np.array([1, longest])
    axes.plot(ks, ks, color=QUIET, linestyle=":", linewidth=1.2, label="k steps one by one")
    checked = {1: 1.0, **verify}
    axes.plot(list(checked), list(checked.values()), color=BLUE, marker="o", label="verify k tokens at once")
    axes.plot(list(draft), list(draft.values()), color=RED, marker="s", label="draft a block of k")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted({*checked, *draft}))
    for axis in (axes.xaxis, axes.yaxis):
        plain_logs(axis)
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= tick <= high])
    axes.set_xlabel("tokens k")
    axes.set_ylabel("cost in steps" + (f" of {1000 * step_s:.3g} ms" if step_s else ""))
    legend_above(made, axes)
    return made


def speed_up_forest(table: pd.DataFrame, *, ours: Sequence[str] = ("dflash",), bound: float | None = None) -> Figure:
    """Speed-up over plain decoding of every method, with its interval; left of the line it costs time.

    Parameters
    ----------
    table : a row a method: ``method``, ``estimate``, ``low``, ``high``; NaN ends are left out
    ours : methods that are drawn in blue
    bound : the most that any drafter of this block could reach on this machine, drawn as a dotted line
    """
    missing = {"method", "estimate", "low", "high"} - set(table.columns)
    if missing or table.empty:
        raise ValueError(
            f"the table of speed-ups lacks {', '.join(sorted(missing)) or 'rows'}; it needs a row a method with estimate, low and high"
        )
    rows = table.iloc[::-1].reset_index(drop=True)
    made, axes = figure(4.8, 0.9 + 0.34 * len(rows))
    for place, row in rows.iterrows():
        colour = BLUE if row["method"] in ours else QUIET
        ends = np.array([row["low"], row["high"]], dtype=float)
        if np.isfinite(ends).all():
            axes.plot(ends, [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        axes.plot(row["estimate"], place, "o" if row["method"] in ours else "s", color=colour, markersize=6)
        axes.annotate(
            f"{row['estimate']:.2f}", (row["estimate"], place), xytext=(0, 6), textcoords="offset points", fontsize=8, ha="center",
            color=colour, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    axes.axvline(1.0, color=QUIET, linewidth=1.0, zorder=0)
    if bound is not None:
        axes.axvline(bound, color=RED, linewidth=1.2, linestyle=":")
        axes.annotate(
            "all drafts right", (bound, 1), xycoords=("data", "axes fraction"), xytext=(-4, 0), textcoords="offset points", fontsize=8,
            color=RED, ha="right", va="top", rotation=0,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), rows["method"], fontsize=8.5)
    axes.set_ylim(-0.5, len(rows) - 0.3)
    axes.set_xlim(left=0)
    axes.set_xlabel("times as fast as plain decoding")
    return made
