"""Agentic crossover as a search over skills, executions and evaluations: a heuristic recombiner, no language model.

Parents are complementary on the validation items; each gene comes from the parent whose value looks better under one draw from a
ridge regression of J_val on one-hot genes::

    w ~ N(w_hat, s2 (X'X + lambda I)^-1),   lambda = 1,   s2 = max(residual variance, J (1 - J) / |val|)

then one gene mutates, named by what the executions show.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from upheld.context.history import Entry, History
from upheld.context.skill import FIRST, NO_CAP, VALUES, Genes, Skill
from upheld.context.task import Task

RIDGE = 1.0
OVERFIT = 0.10
LOW = 0.6
MALFORMED = 0.05
PAIRS, CONCENTRATED = 3, 0.5
TRIES = 50
UNREAD = ("order", "format")
"""Genes that a nearest-line reader does not see: frozen, else the regression explores noise."""

RICHER = {"cases": "cases+contrast", "glossary": "cases+glossary", "contrast": "cases+contrast", "rules": "cases+rules"}


class ProgramMetaAgent:
    """Writes skills as programs of genes.

    Parameters
    ----------
    init : the first skill, ``"few-shot"`` or ``"naive"``, or genes
    budget : tokens a query
    reads_order : whether the consumer can see order and format
    frozen : further genes that stay as they are
    strategy : ``"crossover"``; ``"fixed"`` gives the first skill each time, ``"random"`` uniform genes: what it is compared with
    """

    def __init__(
        self, *, init: str | Genes = "few-shot", budget: int = 1500, reads_order: bool = False, frozen: Sequence[str] = (),
        strategy: str = "crossover", seed: int = 0,
    ) -> None:  # fmt: skip
        if isinstance(init, str) and init not in FIRST:
            raise ValueError(f"init_skill is {init!r}; choose {' or '.join(FIRST)}, or give genes")
        if strategy not in ("crossover", "fixed", "random"):
            raise ValueError(f"strategy is {strategy!r}; choose crossover, fixed or random")
        self.first = (FIRST[init] if isinstance(init, str) else init).with_(budget=budget)
        self.free = [name for name in VALUES if name not in frozen and (reads_order or name not in UNREAD)]
        self.strategy, self.seed = strategy, seed

    def propose(self, task: Task, history: History) -> Skill:
        """The next skill; it depends on seed and history alone, so that a resumed run goes on as it would have."""
        rng = np.random.default_rng([self.seed, len(history), 0x5C111])
        if self.strategy == "fixed" or not history.skilled:
            return Skill.of(self.first, "The first skill: " + described(self.first))
        if self.strategy == "random":
            genes = self.first.with_(**{name: _drawn(VALUES[name], rng) for name in self.free})
            return Skill.of(genes, "Uniformly random genes: " + described(genes))
        return self._crossed(history, rng)

    def _crossed(self, history: History, rng: np.random.Generator) -> Skill:
        tried = {entry.skill.genes for entry in history.skilled if entry.skill}
        a, b = parents(history.skilled)
        weights = draw_weights(history.skilled, self.free, rng)
        inherited = {name: _better(name, _genes(a), _genes(b), weights) for name in self.free}
        child = self.first.with_(**inherited)
        mutated, why = self._mutated(child, a, history[0].val, rng)
        for _ in range(TRIES):
            if mutated not in tried:
                break
            mutated, why = self._random(mutated, rng), "what the evidence asks for was tried already"
        changed = [name for name in self.free if getattr(mutated, name) != getattr(child, name)]
        return Skill.of(mutated, rationale(a, b, inherited, changed, why, mutated))

    def _mutated(self, child: Genes, parent: Entry, bare: float, rng: np.random.Generator) -> tuple[Genes, str]:
        """One mutation, by the first diagnosis that applies and can still change something."""
        for why, candidates in diagnoses(child, parent, bare):
            able = [
                change for change in candidates
                if set(change) <= set(self.free) and child.with_(**change) != child
            ]  # fmt: skip
            if able:
                return child.with_(**able[int(rng.integers(len(able)))]), why
        return self._random(child, rng), "no diagnosis applies: a random gene"

    def _random(self, genes: Genes, rng: np.random.Generator) -> Genes:
        name = self.free[int(rng.integers(len(self.free)))]
        others = [value for value in VALUES[name] if value != getattr(genes, name)]
        return genes.with_(**{name: _drawn(others, rng)})


def parents(entries: Sequence[Entry]) -> tuple[Entry, Entry]:
    """A has the best J_val; B solves, together with A, the largest share of validation items (ties: the better J_val)."""
    a = max(entries, key=lambda entry: entry.val)
    others = [entry for entry in entries if entry is not a] or [a]

    def together(entry: Entry) -> float:
        return float(np.mean(np.maximum(a.outcomes, entry.outcomes) >= 1.0))

    return a, max(others, key=lambda entry: (together(entry), entry.val))


def one_hot(genes: Genes, names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([float(getattr(genes, name) == value) for name in names for value in VALUES[name]])


def draw_weights(
    entries: Sequence[Entry], names: Sequence[str], rng: np.random.Generator
) -> dict[tuple[str, str | int], float]:
    """One Thompson draw of each gene value's effect on J_val."""
    x = np.array([one_hot(_genes(entry), names) for entry in entries])
    values = np.array([entry.val for entry in entries])
    y = values - values.mean()
    inverse = np.linalg.inv(x.T @ x + RIDGE * np.eye(x.shape[1]))
    mean = inverse @ x.T @ y
    noise = max(float(np.var(y - x @ mean)), float(values.mean() * (1 - values.mean())) / len(entries[0].outcomes))
    drawn = mean + np.linalg.cholesky(noise * inverse + 1e-12 * np.eye(len(mean))) @ rng.standard_normal(len(mean))
    keys = [(name, value) for name in names for value in VALUES[name]]
    return dict(zip(keys, map(float, drawn), strict=True))


def diagnoses(child: Genes, parent: Entry, bare: float = 0.0) -> list[tuple[str, list[dict[str, str | int]]]]:
    """What the executions of parent A show, most telling first, and the changes that answer it; `bare` is J_val of the seed context."""
    train = parent.train if parent.train is not None else parent.val
    found: list[tuple[str, list[dict[str, str | int]]]] = []
    if parent.longest > 0.95 * child.budget and child.retrieve == "all":
        found.append(
            (
                "the store exceeds the budget",
                [{"retrieve": name} for name in ("embedding", "lexical", "hybrid", "two-stage")],
            )
        )
    if parent.val <= bare:  # labels that were right before have no line now, and lose to those that have
        found.append((
            f"validation {parent.val:.2f} is no better than the seed context's",
            [{"select": "all"}, {"select": "class-balanced"}, {"select": "low-margin"}],
        ))  # fmt: skip
    if train - parent.val > OVERFIT:
        found.append((
            f"train {train:.2f} lies above validation {parent.val:.2f}",
            [{"guard": "support"}, {"guard": "folds"}, {"prune": "harm"}, {"cap": _step("cap", child.cap, -1)}],
        ))  # fmt: skip
    if train < LOW and parent.val < LOW:
        richer = RICHER.get(child.represent, "cases+rules")
        found.append(("train and validation are both low", [{"represent": richer}, {"k": _step("k", child.k, 1)}]))
    if parent.malformed > MALFORMED:
        others = [value for value in VALUES["format"] if value != child.format]
        found.append((f"{parent.malformed:.0%} of answers are no label", [{"format": value} for value in others]))
    mass = sum(n for _, _, n in parent.wrong)
    if mass and sum(n for _, _, n in parent.wrong[:PAIRS]) >= CONCENTRATED * mass:
        found.append(
            ("few pairs of labels make most mistakes", [{"represent": "cases+contrast"}, {"represent": "contrast"}])
        )
    return found


def rationale(
    a: Entry, b: Entry, inherited: dict[str, str | int], changed: Sequence[str], why: str, genes: Genes
) -> str:
    ours = [name for name, value in inherited.items() if value == getattr(_genes(a), name)]
    lent = [name for name in inherited if name not in ours]
    return (
        f"Parents: iteration {a.iteration} (validation {a.val:.3f}) and {b.iteration} ({b.val:.3f}), which together solve most. "
        f"From the second: {', '.join(lent) or 'nothing'}. Changed: {', '.join(changed) or 'nothing'}, because {why}. "
        f"{described(genes)}"
    )


def described(genes: Genes) -> str:
    """The genes as a sentence."""
    shown = (
        "the whole store" if genes.retrieve == "all" else f"the {genes.k} best of each kind by {genes.retrieve} search"
    )
    cap = "without a cap" if genes.cap == NO_CAP else f"at most {genes.cap} cases a label"
    return (
        f"Learn {genes.represent} from {genes.select} rollouts, {cap}, guard {genes.guard}, prune {genes.prune}; "
        f"show {shown} within {genes.budget} tokens."
    )


def _step(name: str, value: int, step: int) -> str | int:
    """The neighbouring value of an ordered gene; no cap is the largest."""
    values = list(VALUES[name])
    return values[min(max(values.index(value) + step, 0), len(values) - 1)]


def _genes(entry: Entry) -> Genes:
    if entry.skill is None or entry.skill.genes is None:
        raise ValueError(f"iteration {entry.iteration} has a skill without a program; program agents cannot cross it")
    return entry.skill.genes


def _better(name: str, a: Genes, b: Genes, weights: dict[tuple[str, str | int], float]) -> str | int:
    mine, theirs = getattr(a, name), getattr(b, name)
    chosen: str | int = theirs if weights[name, theirs] > weights[name, mine] else mine
    return chosen


def _drawn(values: Sequence[str | int], rng: np.random.Generator) -> str | int:
    return values[int(rng.integers(len(values)))]
