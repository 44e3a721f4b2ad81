"""Online, strictly prequential: every item is answered once, with the context as it stood before its batch, and that answer alone is
scored; then its label is released and learned from.

A challenger's skill learns from the same batches beside the incumbent. Its answers to a batch, given before it learns from it, are its
validation; after `meta_every` batches it takes over if it did better, and the meta agent writes the next one.

A stream that is kept goes on after its last whole batch: given again from its start, batches that were answered are answered from what
was kept, and neither model nor agent is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from upheld.context.acceptance import accepts
from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.consumers import Consumer, Workflow
from upheld.context.files import lines_of, write_whole
from upheld.context.folder import Confined, Context, ContextFunction
from upheld.context.history import Entry, History
from upheld.context.loop import confusions, digest, malformed
from upheld.context.rollouts import Rollout, RolloutCache, evaluate, figure
from upheld.context.step import learn
from upheld.context.stream_state import CHALLENGER, INCUMBENT, Learner, State
from upheld.context.task import Sample, Task
from upheld.context.vectors import Embed

PROTOCOLS = ("prequential", "accumulated")


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
    keep : write down every batch, and go on from what the folder holds
    agents : what the history says who wrote the skills

    Raises
    ------
    ValueError
        If there is no such protocol, or the folder holds a stream under other settings; from `step`, if it holds another stream.
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
    keep: bool = False
    agents: str = "program"

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol is {self.protocol!r}; choose {' or '.join(PROTOCOLS)}")
        self.history = History()
        self.scored: list[Rollout] = []
        self.seen: list[Sample] = []
        self._answers: list[list[Rollout]] = []
        self._batches = 0
        start = Context(self.seed_context or self.folder / "nothing")
        found = self._found(start) if self.keep else None
        if found is None:
            first = self.meta.propose(self.task, self.history)
            self.incumbent = Learner(first, start.copy(self.folder / INCUMBENT))
            self.challenger: Learner | None = None
            self._kept()
        else:
            self._answers = [list(batch) for batch in found.batches]
            self.incumbent, self.challenger, self.history = found.incumbent, found.challenger, found.history
            self.cache.spent = found.spent

    @property
    def ahead(self) -> int:
        """Batches that were kept, and have not been given again."""
        return len(self._answers) - self._batches

    def _found(self, start: Context) -> State | None:
        """What the folder holds of this stream. Raises ValueError when it holds another one."""
        named = {
            "budget": self.budget, "meta_every": self.meta_every, "accumulate": self.accumulate, "protocol": self.protocol,
            "consumer": self.consumer.id, "task": [self.task.metric, self.task.template, list(self.task.signatures), self.task.text],
            "agents": self.agents, "seed": digest(start.root) if start.root.is_dir() else None,
        }  # fmt: skip
        path, mine = self.folder / "stream.json", json.dumps(named, ensure_ascii=False)
        if path.is_file() and path.read_text(encoding="utf-8") != mine:
            raise ValueError(
                f"{self.folder} holds a stream under other settings; give another folder, or remove that one"
            )
        write_whole(path, mine)
        return State.latest(self.folder)

    def _kept(self) -> None:
        if self.keep:
            State(self._answers, self.incumbent, self.challenger, self.history, self.cache.spent).keep(self.folder)

    def run(self, stream: Sequence[Sample], batch_size: int = 20) -> float:
        """The cumulative metric over a stream."""
        for start in range(0, len(stream), batch_size):
            self.step(stream[start : start + batch_size])
        return self.value()

    def step(self, batch: Sequence[Sample]) -> list[Rollout]:
        """Answer a batch, then learn from it. The answers are those that count."""
        if self.ahead:
            return self._given_again(batch)
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
        self._answers.append(answers)
        self._kept()
        return answers

    def _given_again(self, batch: Sequence[Sample]) -> list[Rollout]:
        """The answers to a batch that was learned from before the process ended."""
        answers = self._answers[self._batches]
        if [(one.asked, one.target) for one in batch] != [(one.asked, one.target) for one in answers]:
            raise ValueError(
                f"{self.folder} holds a stream whose batch {self._batches + 1} is another; give the same samples, in the same order and "
                "batches, to go on, or another folder"
            )
        self.scored += answers
        self.seen += batch
        self._batches += 1
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
                self.incumbent = Learner(self.challenger.skill, self.challenger.context.copy(self.folder / INCUMBENT))
        self.incumbent.window = []
        skill = self.meta.propose(self.task, self.history)
        context = self.incumbent.context.copy(self.folder / CHALLENGER)
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
        """Append to the history, and put skill, context and answers where meta agents look for them."""
        window, place = learner.window, f"iterations/{len(self.history):02d}"
        home = self.folder / place
        learner.context.copy(home / "context")
        learner.skill.save(home / "skill")
        write_whole(home / "train" / "0.json", json.dumps([one.__dict__ for one in window], ensure_ascii=False))
        value = figure(self.task, window)
        self.history.append(
            Entry(
                len(self.history), learner.skill, value, value, tuple(one.score for one in window), confusions(window),
                malformed(self.task, window), self._tokens(learner), max(one.tokens for one in window), self.cache.spent, 0.0, accepted,
                place, self.agents,
            )
        )  # fmt: skip
        self.history.save(self.folder / "history.jsonl")


def experience(context: Context) -> list[Rollout]:
    """What a context has learned from."""
    path = context.root / "data" / "experience.jsonl"
    if not path.is_file():
        return []
    return [Rollout(**json.loads(line)) for line in lines_of(path)]
