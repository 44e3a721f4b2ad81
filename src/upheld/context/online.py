"""Online, strictly prequential: every item is answered once, with the context as it stood before its batch, and that answer alone is
scored; then its label is released and learned from.

A challenger's skill learns from the same batches beside the incumbent. Its answers to a batch, given before it learns from it, are its
validation; after `meta_every` batches it takes over if it did better, and the meta agent writes the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from upheld.context.acceptance import accepts
from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.consumers import Consumer, Workflow
from upheld.context.folder import Confined, Context, ContextFunction
from upheld.context.history import Entry, History
from upheld.context.loop import confusions
from upheld.context.rollouts import Rollout, RolloutCache, evaluate, figure
from upheld.context.skill import Skill
from upheld.context.step import learn
from upheld.context.task import Sample, Task
from upheld.context.vectors import Embed

PROTOCOLS = ("prequential", "accumulated")


@dataclass
class Learner:
    """A skill and the context it has made so far, with its answers since the window began."""

    skill: Skill
    context: Context
    window: list[Rollout] = field(default_factory=list)


@dataclass
class OnlineLoop:
    """One stream.

    Parameters
    ----------
    meta_every : batches a window; 0 leaves the meta level off
    accumulate : how many of the latest answered samples are learned from with each batch (None: the batch; -1: all)
    seed_context : where to start from, instead of the empty context
    protocol : ``"prequential"``, or ``"accumulated"``, which answers all items seen so far again after learning from them. It rates
        a memoriser near 1 and is there for comparison only.
    """

    task: Task
    consumer: Consumer | Workflow
    meta: MetaAgent
    base: BaseAgent
    embed: Embed
    folder: Path
    cache: RolloutCache
    budget: int = 1500
    meta_every: int = 5
    accumulate: int | None = None
    protocol: str = "prequential"
    confined: Confined | None = None
    seed_context: Path | None = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol is {self.protocol!r}; choose {' or '.join(PROTOCOLS)}")
        self.history = History()
        self.scored: list[Rollout] = []
        self.seen: list[Sample] = []
        first = self.meta.propose(self.task, self.history)
        start = Context(self.seed_context or self.folder / "nothing")
        self.incumbent = Learner(first, start.copy(self.folder / "incumbent"))
        self.challenger: Learner | None = None
        self._batches = 0

    def run(self, stream: Sequence[Sample], batch_size: int = 20) -> float:
        """The cumulative metric over a stream."""
        for start in range(0, len(stream), batch_size):
            self.step(stream[start : start + batch_size])
        return self.value()

    def step(self, batch: Sequence[Sample]) -> list[Rollout]:
        """Answer a batch, then learn from it. The answers are those that count."""
        answers = self._answered(self.incumbent, batch)
        self.scored += answers
        learners = [self.incumbent] + ([self.challenger] if self.challenger else [])
        given = [answers] + ([self._answered(self.challenger, batch)] if self.challenger else [])
        self.seen += batch
        for learner, rollouts in zip(learners, given, strict=True):
            learner.window += rollouts
            self._learn(learner, self._learned_from(rollouts))
        self._batches += 1
        if self.meta_every and self._batches % self.meta_every == 0:
            self._review()
        return answers

    def value(self) -> float:
        """The metric over all items so far, under the protocol."""
        if self.protocol == "accumulated":
            return figure(self.task, self._answered(self.incumbent, self.seen))
        return figure(self.task, self.scored)

    def function(self) -> ContextFunction:
        return self._function(self.incumbent.context)

    def _function(self, context: Context) -> ContextFunction:
        return ContextFunction(context, self.embed, self.budget, self.confined)

    def _answered(self, learner: Learner, samples: Sequence[Sample]) -> list[Rollout]:
        return evaluate(self.task, samples, self._function(learner.context), self.consumer, self.cache)

    def _learned_from(self, rollouts: Sequence[Rollout]) -> list[Rollout]:
        if self.accumulate is None:
            return list(rollouts)
        earlier = {one.id: one for one in self.scored}
        kept = list({**earlier, **{one.id: one for one in rollouts}}.values())
        return kept if self.accumulate < 0 else kept[-max(self.accumulate, len(rollouts)) :]

    def _review(self) -> None:
        """The end of a window: who goes on, and who challenges next."""
        self._record(self.incumbent, accepted=True)
        if self.challenger:
            targets = [one.target for one in self.challenger.window]
            new, old = self._judged(self.challenger), self._judged(self.incumbent)
            taken = accepts("paired", new, old, targets, self.task.scoring)
            self._record(self.challenger, accepted=taken)
            if taken:
                self.incumbent = Learner(self.challenger.skill, self.challenger.context.copy(self.folder / "incumbent"))
        self.incumbent.window = []
        skill = self.meta.propose(self.task, self.history)
        context = self.incumbent.context.copy(self.folder / "challenger")
        self.challenger = Learner(skill, context)
        self._learn(self.challenger, experience(context) or self.scored)

    def _learn(self, learner: Learner, rollouts: Sequence[Rollout]) -> None:
        home = learner.context.root
        learner.context = learn(self.base, learner.skill, self.task, learner.context, rollouts, home, self._function)

    def _judged(self, learner: Learner) -> tuple[list[str], float, float]:
        return [one.answer for one in learner.window], figure(self.task, learner.window), self._tokens(learner)

    @staticmethod
    def _tokens(learner: Learner) -> float:
        return float(np.mean([one.tokens for one in learner.window]))

    def _record(self, learner: Learner, *, accepted: bool) -> None:
        window = learner.window
        self.history.append(
            Entry(
                len(self.history), learner.skill, figure(self.task, window), figure(self.task, window), tuple(one.score for one in window),
                confusions(window), 0.0, self._tokens(learner), max(one.tokens for one in window), self.cache.spent, 0.0, accepted,
                str(learner.context.root.relative_to(self.folder)),
            )
        )  # fmt: skip


def experience(context: Context) -> list[Rollout]:
    """What a context has learned from."""
    path = context.root / "data" / "experience.jsonl"
    if not path.is_file():
        return []
    return [Rollout(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
