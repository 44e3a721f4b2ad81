"""What a user would otherwise take: the same data, reader, template, token budget and rollouts, each with its own main knob tuned on the
validation set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from upheld.context.consumers import Consumer, Workflow
from upheld.context.folder import BUDGET, Context, ContextFunction, Line
from upheld.context.loop import confusions
from upheld.context.metrics import label_set
from upheld.context.program_base import DISCRIMINATORS, ProgramBaseAgent, by_label, flat, log_odds, remember
from upheld.context.rollouts import Rollout, RolloutCache, evaluate, figure
from upheld.context.skill import VALUES, Genes, Skill
from upheld.context.task import Sample, Task
from upheld.context.vectors import Embed


@dataclass(frozen=True)
class Contest:
    """What every method is given. `tries` validation passes is what the search itself may take."""

    task: Task
    val: Sequence[Sample]
    consumer: Consumer
    embed: Embed
    budget: int
    folder: Path
    tries: int
    seed: int = 0

    @property
    def train(self) -> Sequence[Sample]:
        return self.task.samples

    def write(self, name: str, lines: Sequence[Line], genes: Genes) -> ContextFunction:
        context = Context(self.folder / name)
        context.write(lines, genes.with_(budget=self.budget))
        return ContextFunction(context, self.embed, self.budget)


@dataclass(frozen=True)
class Contender:
    """A rival's context, the rollouts it took, and the knob it ended with; `consumer` answers where a rival is a program that brings its
    own context, and is None where the contest's does."""

    name: str
    context: ContextFunction
    rollouts: int
    knob: str
    val: float
    consumer: Workflow | None = None


Candidate = tuple[str, ContextFunction]


def best(contest: Contest, name: str, candidates: Sequence[Candidate], cache: RolloutCache) -> Contender:
    """The candidate with the best validation figure; the first among equals."""
    if len(candidates) > contest.tries:
        raise ValueError(f"{name} has {len(candidates)} settings to try, {contest.tries} are allowed; leave some out")
    values = [
        figure(contest.task, evaluate(contest.task, contest.val, c, contest.consumer, cache)) for _, c in candidates
    ]
    place = int(np.argmax(values))
    return Contender(name, candidates[place][1], cache.spent, candidates[place][0], values[place])


def base(contest: Contest) -> Contender:
    """No context."""
    empty = ContextFunction(Context(contest.folder / "empty"), contest.embed, contest.budget)
    return best(contest, "base", [("", empty)], RolloutCache())


def cases(samples: Sequence[Sample]) -> list[Line]:
    return [Line("case", sample.target, flat(sample.question), born=place) for place, sample in enumerate(samples)]


def random_few_shot(contest: Contest) -> Contender:
    """A few cases drawn at random, the same for every query; the luckiest of several draws."""
    candidates = []
    for draw in range(contest.tries):
        order = np.random.default_rng([contest.seed, draw, 0xF35]).permutation(len(contest.train))[:16]
        lines = cases([contest.train[place] for place in order])
        candidates.append((f"draw {draw}", contest.write(f"random-{draw}", lines, Genes(retrieve="all"))))
    return best(contest, "random few-shot", candidates, RolloutCache())


def knn_few_shot(contest: Contest) -> Contender:
    """The k nearest training cases; k, and for two of its values lexical search too, as far as tries allow."""
    settings = [(k, "embedding") for k in VALUES["k"]] + [(5, "hybrid"), (3, "hybrid")]
    candidates = [
        (
            f"k = {k}, {search}",
            contest.write(f"knn-{search}-{k}", cases(contest.train), Genes(k=int(k), retrieve=search)),
        )
        for k, search in settings[: contest.tries]
    ]
    return best(contest, "knn few-shot", candidates, RolloutCache())


def many_shot(contest: Contest) -> Contender:
    """All training cases, up to the budget."""
    return best(
        contest, "many-shot", [("", contest.write("many", cases(contest.train), Genes(retrieve="all")))], RolloutCache()
    )


WORDS = (4, 8, 16)


def labels(contest: Contest) -> Contender:
    """The list of labels, each with a one-line description: its most telling words in the training texts; how many is tuned."""
    counts = by_label([alone for sample in contest.train for alone in apart(unanswered(sample))])
    total = sum(counts.values(), Counter[str]())
    candidates = []
    for n in WORDS[: contest.tries]:
        lines = [Line("label", label, " ".join(telling(own, total - own, n))) for label, own in sorted(counts.items())]
        candidates.append((f"{n} words", contest.write(f"labels-{n}", lines, Genes(retrieve="all"))))
    return best(contest, "labels", candidates, RolloutCache())


def telling(own: Counter[str], others: Counter[str], n: int) -> list[str]:
    """The n words that speak most for one side, by smoothed log-odds."""
    return sorted(own, key=lambda word: (-log_odds(own, others, word), word))[:n]


def unanswered(sample: Sample) -> Rollout:
    """A sample that nobody was asked."""
    return Rollout(sample.id, sample.question, "", sample.target, False, 0.0, 0.0, 0, context=sample.context)


def apart(rollout: Rollout) -> list[Rollout]:
    """A rollout for each label of its target, where that may hold several."""
    return [replace(rollout, target=label) for label in sorted(label_set(rollout.target))]


def no_skill(contest: Contest) -> Contender:
    """A base agent that is told nothing: it writes every rollout down and shows all of them."""
    cache = RolloutCache()
    empty = Context(contest.folder / "no-skill-yet")
    found = evaluate(
        contest.task, contest.train, ContextFunction(empty, contest.embed, contest.budget), contest.consumer, cache
    )
    genes = Genes(retrieve="all", budget=contest.budget)
    context = ProgramBaseAgent(contest.embed).apply(
        Skill.of(genes, "None."), Context(contest.folder / "no-skill"), found
    )
    return best(contest, "no-skill", [("", ContextFunction(context, contest.embed, contest.budget))], cache)


# -- ACE (arXiv 2510.04618): bullets, append-only, the whole playbook in the prompt

SAME = 0.90
CONFUSED = 3
ACE_BATCH = 50
SOURCES, EPOCHS = ("wrong", "all"), (1, 2)


def ace(contest: Contest) -> Contender:
    """A playbook that is only appended to, with a deterministic reflector.

    A rollout adds its case as a bullet; a pair of labels confused three times adds a line that sets one against the other; a bullet
    whose cosine to another of its label is 0.90 or more is not added again. Source (wrong or all rollouts) and epochs (1 or 2) are tuned.
    """
    cache = RolloutCache()
    candidates = []
    for source, epochs in product(SOURCES, EPOCHS):
        name = f"ace-{source}-{epochs}"
        candidates.append((f"{source}, {epochs} epochs", playbook(contest, name, source, epochs, cache)))
    return best(contest, "ACE", candidates[: contest.tries], cache)


def playbook(contest: Contest, name: str, source: str, epochs: int, cache: RolloutCache) -> ContextFunction:
    genes = Genes(retrieve="all")
    context = contest.write(name, [], genes)
    seen: list[Rollout] = []
    for epoch in range(epochs):
        order = np.random.default_rng([contest.seed, epoch, 0xACE]).permutation(len(contest.train))
        for start in range(0, len(order), ACE_BATCH):
            batch = [contest.train[place] for place in order[start : start + ACE_BATCH]]
            rollouts = evaluate(contest.task, batch, context, contest.consumer, cache)
            seen += rollouts
            learned = [one for one in rollouts if source == "all" or not one.is_correct]
            lines = with_contrasts(appended(context.context.lines(), learned, contest.embed), seen)
            context = contest.write(name, lines, genes)
    return context


def appended(lines: list[Line], rollouts: Sequence[Rollout], embed: Embed) -> list[Line]:
    """The playbook with a bullet for each rollout that says something new."""
    for one in rollouts:
        text = flat(one.question)
        own = [line.text for line in lines if line.label == one.target]
        if not own or float((embed([text]) @ embed(own).T).max()) < SAME:
            lines = [*lines, Line("case", one.target, text, born=len(lines))]
    return lines


def with_contrasts(lines: list[Line], seen: Sequence[Rollout]) -> list[Line]:
    """The playbook with a line for each pair of labels confused three times so far: the words that tell one from the other."""
    counts = by_label(seen)
    known = {(line.label, line.text) for line in lines}
    for target, answer, n in confusions(seen):
        if n < CONFUSED or answer not in counts:
            continue
        words = telling(counts[target], counts[answer], DISCRIMINATORS)
        line = Line("contrast", target, " ".join(words), born=len(lines))
        if (line.label, line.text) not in known:
            lines = [*lines, line]
            known.add((line.label, line.text))
    return lines


class PlaybookAgent:
    """ACE online: each batch is appended to the playbook, whatever the skill says.

    Parameters
    ----------
    embed : finds bullets that say the same
    source : ``"wrong"`` or ``"all"`` rollouts
    """

    def __init__(self, embed: Embed, source: str) -> None:
        self.embed, self.source = embed, source

    def apply(self, skill: Skill, context: Context, rollouts: Sequence[Rollout]) -> Context:
        seen = remember(context, rollouts)
        learned = [one for one in rollouts if self.source == "all" or not one.is_correct]
        lines = with_contrasts(appended(context.lines(), learned, self.embed), seen)
        context.write(lines, Genes(retrieve="all", budget=skill.genes.budget if skill.genes else BUDGET))
        return context

    def repair(self, skill: Skill, context: Context, problem: str) -> Context:
        """A playbook is the same at every attempt. Raises ValueError."""
        raise ValueError(f"a playbook fails ({problem}); was a file in {context.root} changed?")


RIVALS: dict[str, Callable[[Contest], Contender]] = {
    "base": base, "labels": labels, "random few-shot": random_few_shot, "knn few-shot": knn_few_shot, "many-shot": many_shot,
    "no-skill": no_skill, "ACE": ace,
}  # fmt: skip
