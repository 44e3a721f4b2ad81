"""The meta agent on a language model: reads what was tried, and writes the next skill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from upheld.context.history import History
from upheld.context.llm_agents.conversation import hold, speakers
from upheld.context.llm_agents.prompts import CURATION, META_ROLE, meta_prompt
from upheld.context.llm_agents.tools import Toolbox
from upheld.context.llm_agents.workspace import Workspace, emptied, only_files
from upheld.context.skill import OVERVIEW, Skill
from upheld.context.task import Task
from upheld.context.vectors import Embed
from upheld.llm.answer import Message, Sampling, Usage
from upheld.sandbox import Sandbox

if TYPE_CHECKING:
    from upheld.llm import LanguageModel
    from upheld.llm.tools import ToolModel

ATTEMPTS = 3
SEEN = ("iterations", "skills", "history.jsonl")
"""What it reads of a run. Not the file that names the run's data: questions and labels to choose by would find their way into skills."""


class LLMMetaAgent:
    """Writes skills in conversations with tools; three attempts a skill.

    Parameters
    ----------
    model : ``"openai:MODEL@URL"``, ``"embedded"``, a folder, or a model
    folder : of the run; skills are written to skills/NN in it, transcripts to agents/
    sandbox : runs the model's programs
    max_turns : of an attempt
    first : the skill to begin with (None: it writes that one too)
    sampling : of its turns (None: temperature 0, at most 4096 tokens)

    Attributes
    ----------
    usage : tokens read and written so far

    Examples
    --------
    >>> meta = LLMMetaAgent("openai:my-model@http://localhost:8000/v1", Path("run"), sandbox=Sandbox(), embed=minilm())  # doctest: +SKIP
    """

    def __init__(
        self, model: str | LanguageModel | ToolModel, folder: Path, *, sandbox: Sandbox, embed: Embed, max_turns: int = 20,
        first: Skill | None = None, sampling: Sampling | None = None,
    ) -> None:  # fmt: skip
        self.model, self.answerer = speakers(model)
        self.folder, self.sandbox, self.embed, self.max_turns = folder, sandbox, embed, max_turns
        self.first, self.sampling = first, sampling
        self.usage = Usage(cost=0.0)

    def propose(self, task: Task, history: History) -> Skill:
        """A new skill; where three attempts leave none that can be read, direct curation, and its overview says so.

        Raises
        ------
        ModelError
            If the model cannot be had.
        upheld.sandbox.SandboxRefused
            If this machine cannot confine the model's programs.
        """
        if self.first is not None and not history.skilled:
            return self.first
        root = self.folder.resolve()
        place = f"skills/{len(history):02d}"
        home = emptied(root / place)
        tools = Toolbox(Workspace(root, home, SEEN), self.sandbox, self.answerer, self.embed, self._spend).tools()
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            asked = [
                Message("system", META_ROLE),
                Message("user", meta_prompt(task, history, str(root), place, problem)),
            ]
            log = root / "agents" / f"meta-{len(history):02d}-{attempt}.jsonl"
            held = hold(self.model, asked, tools, self.max_turns, log, self.sampling)
            self._spend(held.usage)
            only_files(home)
            try:
                return Skill.load(home)
            except ValueError as wrong:
                problem = f"{wrong}." + (f" The attempt ended early: {held.problem}." if held.problem else "")
        note = f"(The model wrote no skill that can be read in {ATTEMPTS} attempts; this is direct curation. Its last problem: {problem})"
        return Skill(CURATION.replace(f"{OVERVIEW}\n\n", f"{OVERVIEW}\n\n{note} "))

    def _spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage
