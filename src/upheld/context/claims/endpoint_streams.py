"""Online, with language models that the user names: a stream answered in batches before anything is learned from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from upheld.claims import Measurement, Trial
from upheld.context.ace_rival import ReflectiveAgent, Reflector
from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.claims.endpoint import named_models, vectors, walls
from upheld.context.claims.setting import LENGTHS, pool, seed_of
from upheld.context.claims.streams import META_EVERY, PLAYBOOKS, STREAMED, streamed
from upheld.context.confined import InSandbox
from upheld.context.crossover import ProgramMetaAgent
from upheld.context.endpoint_rivals import DynamicCheatsheet
from upheld.context.folder import Context, ContextFunction
from upheld.context.generate_lm import GenerateLM
from upheld.context.llm_agents import LLMBaseAgent, LLMMetaAgent
from upheld.context.llm_agents.conversation import speakers
from upheld.context.program_base import ProgramBaseAgent
from upheld.context.rivals import SOURCES
from upheld.context.rollouts import RolloutCache, evaluate, figure
from upheld.context.task import Task
from upheld.sandbox import Sandbox

CHEATSHEET = "Dynamic Cheatsheet"


def measure_endpoint_stream(trial: Trial) -> Iterator[Measurement]:
    """Cumulative metric over one stream. Everyone is told the right answers; the cheatsheet is rewritten after every item, the others
    learn batch by batch."""
    consumer, agents = named_models()
    n, budget, batch = (
        int(trial.condition["pool"]),
        LENGTHS[str(trial.condition["length"])],
        int(trial.condition["batch"]),
    )
    home = pool(str(trial.condition["domain"]), n)
    order = np.random.default_rng(seed_of(trial)).permutation(n)[: round(n * STREAMED)]
    stream, task = [home.task.samples[place] for place in order], home.task
    reader = GenerateLM(task, consumer)
    with TemporaryDirectory() as made, walls() as sandbox, closing(InSandbox()) as confined:
        folder = Path(made).resolve()
        for name, (meta, base, every) in learners(task, agents, folder, budget, sandbox).items():
            yield from streamed(
                folder / name, name, task, stream, reader, vectors(), budget, meta, base, every, batch, confined
            )
        sheet = DynamicCheatsheet(task, reader, speakers(agents)[1], budget)
        yield Measurement(CHEATSHEET, "score", sheet.run(stream))
        empty = ContextFunction(Context(folder / "nothing"), vectors(), budget)
        yield Measurement("base", "score", figure(task, evaluate(task, stream, empty, reader, RolloutCache())))


def learners(
    task: Task, agents: str, folder: Path, budget: int, sandbox: Sandbox
) -> dict[str, tuple[MetaAgent, BaseAgent, int]]:
    """Meta agent, base agent, and how often the meta level acts."""
    home, embed = folder / "MCE", vectors()
    found: dict[str, tuple[MetaAgent, BaseAgent, int]] = {
        "MCE": (
            LLMMetaAgent(agents, home, sandbox=sandbox, embed=embed),
            LLMBaseAgent(agents, task, home / "agents", sandbox=sandbox, embed=embed, budget=budget),
            META_EVERY,
        ),
        "knn few-shot": (ProgramMetaAgent(budget=budget, strategy="fixed"), ProgramBaseAgent(embed), 0),
    }
    for name, source in zip(PLAYBOOKS, SOURCES, strict=True):
        base = ReflectiveAgent(Reflector(task, speakers(agents)[1], embed), source)
        found[name] = ProgramMetaAgent(init="naive", budget=budget), base, 0
    return found
