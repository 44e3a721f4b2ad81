"""A rollout: one question answered by the consumer with a context."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upheld.context.metrics import weighted_mean
from upheld.context.task import OWN, Sample, Task, with_own

if TYPE_CHECKING:
    from upheld.context.consumers import Answered, Consumer, Workflow
    from upheld.context.folder import ContextFunction


@dataclass(frozen=True)
class Rollout:
    """A sample, what was answered, how sure, and at which price.

    `is_correct` means a full score: of several labels all, in whatever order. `margin` is the score of the answer above the
    runner-up; `tokens` those of the context; `problem` says why a context could not be made and was counted as empty, or why there is
    no answer.
    """

    id: str
    question: str
    answer: str
    target: str
    is_correct: bool
    score: float
    margin: float
    tokens: int
    problem: str = ""
    context: str = ""
    """The sample's own, not the learned one."""

    @property
    def asked(self) -> str:
        """What the consumer was asked."""
        return with_own(self.question, self.context)


class RolloutCache:
    """Answers by hash(consumer, prompt): what was answered once costs nothing again."""

    def __init__(self) -> None:
        self._answers: dict[str, Answered] = {}
        self.spent = 0
        """Rollouts asked for, found here or not: the currency in which methods are compared."""

    def answers(self, consumer: Consumer, questions: Sequence[str], contexts: Sequence[str]) -> list[Answered]:
        """One answer a question; what is missing goes to the consumer as one batch."""
        keys = [_key(consumer.id, consumer.prompt(c, q)) for q, c in zip(questions, contexts, strict=True)]
        missing = {key: (q, c) for key, q, c in zip(keys, questions, contexts, strict=True) if key not in self._answers}
        if missing:
            asked, shown = zip(*missing.values(), strict=True)
            self._answers.update(zip(missing, consumer.answer(asked, shown), strict=True))
        self.spent += len(keys)
        return [self._answers[key] for key in keys]


def _key(consumer: str, prompt: str) -> str:
    return hashlib.blake2b(f"{consumer}\0{prompt}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def evaluate(
    task: Task, samples: Sequence[Sample], context: ContextFunction, consumer: Consumer | Workflow, cache: RolloutCache
) -> list[Rollout]:
    """Rollouts of these samples with a context, in their order."""
    from upheld.context.consumers import Workflow
    from upheld.context.folder import Made

    asked = [sample.asked for sample in samples]
    if isinstance(consumer, Workflow):
        answers = consumer.run(context, asked)
        made = [Made("", answer.tokens) for answer in answers]
        cache.spent += len(asked)
    else:
        made = context.many([sample.question for sample in samples])
        answers = cache.answers(consumer, asked, [one.text for one in made])
    scores = task.scoring.scores([one.text for one in answers], [one.target for one in samples])
    return [
        Rollout(
            sample.id, sample.question, answer.text, sample.target, score == 1.0, score, answer.margin, one.tokens,
            one.problem or answer.problem, sample.context,
        )
        for sample, one, answer, score in zip(samples, made, answers, scores, strict=True)
    ]  # fmt: skip


def problems(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
    """Contexts that could not be made, counted as empty, and questions without an answer: why, and how many."""
    counts = Counter(one.problem for one in rollouts if one.problem)
    return [{"problem": problem, "n": n} for problem, n in counts.most_common()]


def figure(task: Task, rollouts: Sequence[Rollout]) -> float:
    """J of these rollouts: the task's metric."""
    return task.scoring([one.answer for one in rollouts], [one.target for one in rollouts])


def train_figure(task: Task, batches: Sequence[Sequence[Rollout]]) -> float:
    """J_train of an iteration: every batch measured before it was learned from, weighted by its size."""
    return weighted_mean([figure(task, batch) for batch in batches], [len(batch) for batch in batches])


def train_json(task: Task, rollouts: Sequence[Rollout]) -> str:
    """What a base agent reads in data/train.json; with a sample's own context, where it has one."""
    told = ("id", "question", "answer", "target", "is_correct")
    details = [
        {name: getattr(one, name) for name in told} | ({OWN: one.context} if one.context else {}) for one in rollouts
    ]
    summary = {"metric": task.metric, "value": figure(task, rollouts), "n": len(rollouts)}
    return json.dumps({"summary": summary, "detailed_results": details}, ensure_ascii=False, indent=1)
