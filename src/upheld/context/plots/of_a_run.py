"""Pictures of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from upheld.context.explain import gene_effects, pareto
from upheld.context.history import History
from upheld.report.drawing import BLUE, GREEN, ORANGE, QUIET, RED, figure, legend_above

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_EFFECTS = 14


def accuracy_by_rollouts(history: History, metric: str) -> Figure:
    """J_train and J_val over the rollouts spent; accepted contexts are filled."""
    drawn, axes = figure()
    entries = list(history)
    axes.plot([one.rollouts for one in entries], [one.val for one in entries], color=BLUE, label="validation")
    for one in entries:
        axes.plot(one.rollouts, one.val, "o", color=BLUE, markerfacecolor=BLUE if one.accepted else "white")
    trained = [one for one in entries if one.train is not None]
    axes.plot(
        [one.rollouts for one in trained],
        [one.train for one in trained],
        "--",
        color=ORANGE,
        label="train, before learning",
    )
    axes.set_xlabel("rollouts spent (filled: accepted)")
    axes.set_ylabel(metric)
    legend_above(drawn, axes)
    return drawn


def accuracy_by_tokens(history: History, metric: str, rivals: Mapping[str, tuple[float, float]]) -> Figure:
    """J_val against context tokens a query: every iteration, the front that no other beats, and rivals as (tokens, J_val)."""
    drawn, axes = figure()
    axes.plot([one.tokens for one in history], [one.val for one in history], "o", color=QUIET, label="iterations")
    front = pareto(history)
    axes.plot([one.tokens for one in front], [one.val for one in front], "-o", color=GREEN, label="front")
    together: dict[tuple[float, float], list[str]] = {}  # rivals of one place share a name
    for name, (tokens, value) in rivals.items():
        together.setdefault((round(tokens), round(value, 3)), []).append(name)
    middle = max((tokens for tokens, _ in rivals.values()), default=0) / 2
    for place, names in together.items():
        right = place[0] > middle  # a name at the right edge is written to the left
        axes.plot(*place, "s", color=RED)
        axes.annotate(
            ", ".join(names), place, textcoords="offset points", xytext=(-6 if right else 6, 4), fontsize=8,
            ha="right" if right else "left",
        )  # fmt: skip
    axes.set_xlabel("context tokens a query")
    axes.set_ylabel(f"validation {metric}")
    legend_above(drawn, axes)
    return drawn


def effects(history: History) -> Figure:
    """What each tried value of a gene was worth, by the ridge regression that guides crossover."""
    found = sorted(gene_effects(history).items(), key=lambda pair: abs(pair[1]))[-MOST_EFFECTS:]
    drawn, axes = figure(height=0.9 + 0.24 * max(len(found), 4))
    names: Sequence[str] = [f"{gene} = {value}" for (gene, value), _ in found]
    axes.barh(names, [effect for _, effect in found], color=[GREEN if effect > 0 else RED for _, effect in found])
    axes.set_xlabel("effect on validation")
    return drawn
