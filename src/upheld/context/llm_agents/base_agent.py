"""The base agent on a language model: follows a skill on a batch of rollouts, in the context's folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.context.folder import BUDGET, PARTS, Context
from upheld.context.llm_agents.conversation import hold, speakers
from upheld.context.llm_agents.prompts import BASE_ROLE, base_prompt
from upheld.context.llm_agents.tools import Toolbox
from upheld.context.llm_agents.workspace import Workspace, only_files
from upheld.context.rollouts import Rollout
from upheld.context.skill import Skill
from upheld.context.task import Task
from upheld.context.vectors import Embed
from upheld.llm.answer import Message, Sampling, Usage
from upheld.sandbox import Sandbox

if TYPE_CHECKING:
    from upheld.llm import LanguageModel
    from upheld.llm.tools import ToolModel


class LLMBaseAgent:
    """Works on a context in conversations with tools. It sees the context's folder alone: no validation and no test data.

    Parameters
    ----------
    model : ``"openai:MODEL@URL"``, ``"embedded"``, a folder, or a model
    task : its text, metric and signatures are told; its samples are not
    transcripts : folder for what was said
    sandbox : runs the model's programs
    budget : tokens a query
    max_turns : of a conversation
    sampling : of its turns (None: temperature 0, at most 4096 tokens)

    Attributes
    ----------
    usage : tokens read and written so far

    Examples
    --------
    >>> base = LLMBaseAgent("openai:my-model@http://localhost:8000/v1", task, Path("run/agents"), sandbox=Sandbox(),
    ...                     embed=minilm())                                                             # doctest: +SKIP
    """

    def __init__(
        self, model: str | LanguageModel | ToolModel, task: Task, transcripts: Path, *, sandbox: Sandbox, embed: Embed,
        budget: int = BUDGET, max_turns: int = 40, sampling: Sampling | None = None,
    ) -> None:  # fmt: skip
        self.model, self.answerer = speakers(model)
        self.task, self.transcripts, self.sandbox, self.embed = task, transcripts, sandbox, embed
        self.budget, self.max_turns, self.sampling = budget, max_turns, sampling
        self.usage = Usage(cost=0.0)
        self._rollouts: Sequence[Rollout] = ()

    def apply(self, skill: Skill, context: Context, rollouts: Sequence[Rollout]) -> Context:
        """The context after these rollouts, which are to stand in its data/train.json.

        Raises
        ------
        ModelError
            If the model cannot be had.
        upheld.sandbox.SandboxRefused
            If this machine cannot confine the model's programs.
        """
        self._rollouts = rollouts
        return self._work(skill, context, "")

    def repair(self, skill: Skill, context: Context, problem: str) -> Context:
        """The context after its interface failed. Raises as `apply` does."""
        return self._work(skill, context, f"The interface fails: {problem}.")

    def _work(self, skill: Skill, context: Context, problem: str) -> Context:
        root = context.root.resolve()
        skill.save(root / "skill")
        tools = Toolbox(Workspace(root, root), self.sandbox, self.answerer, self.embed, self._spend).tools()
        asked = base_prompt(self.task, skill, self._rollouts, self.budget, problem)
        log = self.transcripts / f"base-{len(list(self.transcripts.glob('base-*.jsonl'))) + 1:04d}.jsonl"
        held = hold(
            self.model,
            [Message("system", BASE_ROLE), Message("user", asked)],
            tools,
            self.max_turns,
            log,
            self.sampling,
        )
        self._spend(held.usage)
        only_files(root)
        for place in root.iterdir():
            if place.name not in PARTS:
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        return context

    def _spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage
