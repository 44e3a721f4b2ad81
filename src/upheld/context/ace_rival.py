"""ACE (arXiv 2510.04618) with a language model that reflects: a playbook of bullets with ids and counters, which is only appended to.

Reflector and curator are one request a batch, as the base agent has one conversation a batch: less work than the published method, which
reflects on every item, so that a comparison of times favours it. (`rivals.ace` is the same without a model.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from upheld.context.folder import BUDGET, Context, Line
from upheld.context.generate_lm import answered
from upheld.context.llm_agents.tools import as_json
from upheld.context.program_base import flat, remember
from upheld.context.rivals import ACE_BATCH, EPOCHS, SAME, SOURCES, Candidate, Contender, Contest, best
from upheld.context.rollouts import Rollout, RolloutCache, evaluate
from upheld.context.skill import Genes, Skill
from upheld.context.task import OWN, Task
from upheld.context.vectors import Embed
from upheld.llm.answer import Sampling, Usage

if TYPE_CHECKING:
    from upheld.llm import LanguageModel

ROLE = (
    "You keep a playbook: bullets that a fixed language model is shown before each question of a task. You are given its latest answers "
    "with the right ones. Reflect on what went wrong and on what helped, then add bullets that are specific, correct and not there yet; "
    "nothing is rewritten or taken away."
)
ASKED = """# The task

{text}

# The playbook

{playbook}

# Answers, with the right ones

{answers}

# What to do

Answer with JSON alone: {{"bullets": [{{"section": "a word or two", "text": "..."}}], "helpful": [ids of bullets that led to right answers],
"harmful": [ids of bullets that led to wrong ones]}}"""
SCHEMA = {
    "type": "object",
    "required": ["bullets"],
    "properties": {
        "bullets": {
            "type": "array",
            "items": {
                "type": "object", "required": ["section", "text"],
                "properties": {"section": {"type": "string"}, "text": {"type": "string"}},
            },
        },
        "helpful": {"type": "array", "items": {"type": "integer"}},
        "harmful": {"type": "array", "items": {"type": "integer"}},
    },
}  # fmt: skip
ATTEMPTS = 2
"""Replies asked for where the first is no such JSON; after them the batch adds nothing."""
SAMPLING = Sampling(temperature=0.0, max_tokens=4096)


class Reflector:
    """Reads a batch of rollouts and appends to the playbook.

    Parameters
    ----------
    model : reflects, at temperature 0
    embed : finds bullets that say the same (cosine of 0.90 or more), which are not added again

    Attributes
    ----------
    usage : tokens read and written so far
    unread : batches whose replies could not be read
    """

    def __init__(self, task: Task, model: LanguageModel, embed: Embed) -> None:
        self.task, self.model, self.embed = task, model, embed
        self.usage, self.unread = Usage(cost=0.0), 0

    def __call__(self, lines: Sequence[Line], rollouts: Sequence[Rollout]) -> list[Line]:
        """The playbook after these rollouts.

        Raises
        ------
        upheld.llm.ModelError
            If the model cannot be had.
        """
        if not rollouts:
            return list(lines)
        asked = ASKED.format(
            text=self.task.text,
            playbook="\n".join(map(listed, range(len(lines)), lines)) or "(empty)",
            answers="\n".join(map(told, rollouts)),
        )
        for _ in range(ATTEMPTS):
            answer = answered(self.model, asked, ROLE, SAMPLING)
            self.usage = self.usage + answer.usage
            try:
                return self._extended(list(lines), as_json(answer.text, SCHEMA))
            except ValueError:
                continue
        self.unread += 1
        return list(lines)

    def _extended(self, lines: list[Line], reply: dict[str, Any]) -> list[Line]:
        for name in ("helpful", "harmful"):
            for place in set(reply.get(name, ())) & set(range(len(lines))):
                lines[place] = replace(lines[place], **{name: getattr(lines[place], name) + 1})
        for bullet in reply["bullets"]:
            text = flat(bullet["text"])
            known = [line.text for line in lines]
            if text and (not known or float((self.embed([text]) @ self.embed(known).T).max()) < SAME):
                lines.append(Line("bullet", flat(bullet["section"]), text, born=len(lines)))
        return lines


def listed(place: int, line: Line) -> str:
    return f"[{place}] helpful {line.helpful}, harmful {line.harmful} - {line.label}: {line.text}"


def told(rollout: Rollout) -> str:
    own = {OWN: rollout.context} if rollout.context else {}
    shown = {"question": rollout.question, **own, "answer": rollout.answer, "right answer": rollout.target}
    return json.dumps({**shown, "is right": rollout.is_correct}, ensure_ascii=False)


@dataclass(frozen=True)
class Alone:
    """What learning with the setting that was chosen took, and judging it once."""

    rollouts: int
    seconds: float


def reflective_ace(contest: Contest, reflector: Reflector) -> tuple[Contender, Alone]:
    """ACE with source (wrong or all rollouts) and epochs (1 or 2) tuned; the playbook after one epoch is that on the way to two.

    Raises
    ------
    upheld.llm.ModelError
        If the model cannot be had.
    """
    spent = 0
    candidates: list[Candidate] = []
    alone: dict[str, Alone] = {}
    for source in SOURCES:
        cache, lines, began = RolloutCache(), list[Line](), perf_counter()
        for epoch in EPOCHS:
            lines = one_epoch(contest, source, epoch, lines, reflector, cache)
            knob = f"{source}, {epoch} epochs"
            alone[knob] = Alone(cache.spent, perf_counter() - began)
            candidates.append((knob, contest.write(f"ace-{source}-{epoch}", lines, Genes(retrieve="all"))))
        spent += cache.spent
    began, judging = perf_counter(), RolloutCache()
    found = best(contest, "ACE", candidates[: contest.tries], judging)
    judged = (perf_counter() - began) / len(candidates[: contest.tries])
    chosen = alone[found.knob]
    return (
        replace(found, rollouts=spent + judging.spent),
        Alone(chosen.rollouts + len(contest.val), chosen.seconds + judged),
    )


def one_epoch(
    contest: Contest, source: str, epoch: int, lines: list[Line], reflector: Reflector, cache: RolloutCache
) -> list[Line]:
    """The playbook after all training samples, a batch at a time."""
    order = np.random.default_rng([contest.seed, epoch, 0xACE]).permutation(len(contest.train))
    for start in range(0, len(order), ACE_BATCH):
        batch = [contest.train[place] for place in order[start : start + ACE_BATCH]]
        context = contest.write(f"ace-{source}", lines, Genes(retrieve="all"))
        rollouts = evaluate(contest.task, batch, context, contest.consumer, cache)
        lines = reflector(lines, [one for one in rollouts if source == "all" or not one.is_correct])
    return lines


class ReflectiveAgent:
    """ACE online: after each batch the reflector appends to the playbook, whatever the skill says.

    Parameters
    ----------
    source : ``"wrong"`` or ``"all"`` rollouts
    """

    def __init__(self, reflector: Reflector, source: str) -> None:
        self.reflector, self.source = reflector, source

    def apply(self, skill: Skill, context: Context, rollouts: Sequence[Rollout]) -> Context:
        remember(context, rollouts)
        learned = [one for one in rollouts if self.source == "all" or not one.is_correct]
        genes = Genes(retrieve="all", budget=skill.genes.budget if skill.genes else BUDGET)
        context.write(self.reflector(context.lines(), learned), genes)
        return context

    def repair(self, skill: Skill, context: Context, problem: str) -> Context:
        """A playbook is the same at every attempt. Raises ValueError."""
        raise ValueError(f"a playbook fails ({problem}); was a file in {context.root} changed?")
