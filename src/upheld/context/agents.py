"""The two agents, and what passes between them; program agents and agents on language models are both of this kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from upheld.context.folder import Context
from upheld.context.history import History
from upheld.context.rollouts import Rollout
from upheld.context.skill import Skill
from upheld.context.task import Task


class MetaAgent(Protocol):
    """Writes skills: agentic crossover over skills, executions and evaluations."""

    def propose(self, task: Task, history: History) -> Skill:
        """A new skill. The task's samples are not for it: it reads the text, the signatures and the history."""


class BaseAgent(Protocol):
    """Carries a skill out: rollouts become a context."""

    def apply(self, skill: Skill, context: Context, rollouts: Sequence[Rollout]) -> Context:
        """The context after these rollouts, in the same folder. It sees no validation and no test data."""

    def repair(self, skill: Skill, context: Context, problem: str) -> Context:
        """The context after its interface failed with this problem; asked for at most three times a batch."""
