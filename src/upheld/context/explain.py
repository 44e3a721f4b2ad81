"""Why a context does what it does: which line helped or harmed which question, what each gene was worth, and what is worth its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from upheld.context.assembly import read_parameters
from upheld.context.crossover import RIDGE, one_hot
from upheld.context.folder import Context, ContextFunction, Line
from upheld.context.history import Entry, History
from upheld.context.program_base import flat
from upheld.context.rollouts import Rollout
from upheld.context.skill import VALUES, Genes
from upheld.context.vectors import Embed


@dataclass(frozen=True)
class Influence:
    """A line, and the questions nearest to it that were answered right and wrong."""

    line: Line
    helped: tuple[str, ...]
    harmed: tuple[str, ...]


def influences(context: Context, rollouts: Sequence[Rollout], embed: Embed) -> list[Influence]:
    """Every line that was the nearest one to a question; the most harmful first."""
    lines = context.lines()
    if not lines or not rollouts:
        return []
    near = (embed([flat(one.question) for one in rollouts]) @ embed([line.text for line in lines]).T).argmax(axis=1)
    pairs = list(zip(near.tolist(), rollouts, strict=True))
    found = [
        Influence(
            lines[place],
            tuple(one.id for at, one in pairs if at == place and one.is_correct),
            tuple(one.id for at, one in pairs if at == place and not one.is_correct),
        )
        for place in sorted(set(near.tolist()))
    ]
    return sorted(found, key=lambda one: (len(one.helped) - len(one.harmed), one.line.label, one.line.text))


def without(function: ContextFunction, dropped: Sequence[str], folder: Context) -> ContextFunction:
    """The context in another folder, without the lines that have one of these texts; to be scored from the rollout cache.

    Raises ValueError when a text is no line of the context.
    """
    copied = function.context.copy(folder.root)
    lines = copied.lines()
    if unknown := set(dropped) - {line.text for line in lines}:
        raise ValueError(f"no line says {sorted(unknown)[0]!r}; copy the text from context/lines.csv")
    read = read_parameters(copied.root)
    genes = Genes(
        retrieve=read["retrieve"],
        k=int(read["k"]),
        order=read["order"],
        format=read["format"],
        budget=int(read["budget"]),
    )
    copied.write([line for line in lines if line.text not in dropped], genes)
    return ContextFunction(copied, function.embed, function.budget, function.confined)


def gene_effects(history: History) -> dict[tuple[str, str | int], float]:
    """Ridge estimate of each gene value's effect on J_val, for values that were tried."""
    entries = [entry for entry in history.skilled if entry.skill and entry.skill.genes]
    if not entries:
        return {}
    x = np.array([one_hot(entry.skill.genes, list(VALUES)) for entry in entries if entry.skill and entry.skill.genes])
    y = np.array([entry.val for entry in entries])
    weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ (y - y.mean()))
    keys = [(name, value) for name in VALUES for value in VALUES[name]]
    return {key: float(weight) for key, weight, n in zip(keys, weights, x.sum(axis=0), strict=True) if n}


def pareto(history: History) -> list[Entry]:
    """Iterations that no other beats in both J_val and tokens a query, from the cheapest on."""
    front: list[Entry] = []
    for entry in sorted(history, key=lambda entry: (entry.tokens, -entry.val)):
        if not front or entry.val > front[-1].val:
            front.append(entry)
    return front
