"""Online: a stream answered in batches, each item once, before anything is learned from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from upheld.claims import Measurement, Trial
from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.claims.setting import LENGTHS, line_reader, pool, scratch, seed_of, vectors
from upheld.context.confined import InSandbox
from upheld.context.consumers import Consumer
from upheld.context.crossover import ProgramMetaAgent
from upheld.context.folder import Context, ContextFunction
from upheld.context.online import OnlineLoop
from upheld.context.program_base import ProgramBaseAgent
from upheld.context.rivals import SOURCES, PlaybookAgent
from upheld.context.rollouts import RolloutCache, evaluate, figure
from upheld.context.task import Sample, Task
from upheld.context.vectors import Vectors

BATCH = 20
META_EVERY = 2
"""Batches a window. With the default of 5 a stream of 10 batches is over when the first challenger is judged: the meta level would never
act on an item that is scored."""
STREAMED = 2 / 3
"""Of a pool: 200 of 300 texts; the reader's delta for several labels is set on those that are left."""
PLAYBOOKS = tuple(f"ACE, {source} rollouts" for source in SOURCES)
"""A stream has no validation set to choose the source on: both are rivals, and the better one counts."""


def measure_stream(trial: Trial) -> Iterator[Measurement]:
    """Cumulative metric over one stream."""
    n, budget = int(trial.condition["pool"]), LENGTHS[str(trial.condition["length"])]
    home, seed = pool(str(trial.condition["domain"]), n), seed_of(trial)
    order = np.random.default_rng(seed).permutation(n)
    drawn = [home.task.samples[place] for place in order]
    stream, aside = drawn[: round(n * STREAMED)], drawn[round(n * STREAMED) :]
    embed = vectors(n)
    reader = line_reader("embedding", home.task, aside, embed)
    with TemporaryDirectory(dir=scratch()) as folder:
        for name, (meta, base, meta_every) in learners(embed, budget, seed).items():
            yield from streamed(
                Path(folder) / name, name, home.task, stream, reader, embed, budget, meta, base, meta_every
            )
        empty = ContextFunction(Context(Path(folder) / "nothing"), embed, budget)
        yield Measurement(
            "base", "score", figure(home.task, evaluate(home.task, stream, empty, reader, RolloutCache()))
        )


def learners(embed: Vectors, budget: int, seed: int) -> dict[str, tuple[ProgramMetaAgent, BaseAgent, int]]:
    """Meta agent, base agent, and how often the meta level acts."""
    own = ProgramBaseAgent(embed)
    found: dict[str, tuple[ProgramMetaAgent, BaseAgent, int]] = {
        "MCE": (ProgramMetaAgent(budget=budget, seed=seed), own, META_EVERY),
        "knn few-shot": (ProgramMetaAgent(budget=budget, strategy="fixed"), own, 0),
    }
    for name, source in zip(PLAYBOOKS, SOURCES, strict=True):
        found[name] = ProgramMetaAgent(init="naive", budget=budget), PlaybookAgent(embed, source), 0
    return found


def streamed(
    folder: Path, name: str, task: Task, stream: Sequence[Sample], reader: Consumer, embed: Vectors, budget: int,
    meta: MetaAgent, base: BaseAgent, meta_every: int, batch: int = BATCH, confined: InSandbox | None = None,
) -> Iterator[Measurement]:  # fmt: skip
    loop = OnlineLoop(task, reader, meta, base, embed, folder, RolloutCache(), budget, meta_every, confined=confined)
    yield Measurement(name, "score", loop.run(stream, batch))
    yield Measurement(name, "tokens", float(np.mean([one.tokens for one in loop.scored])))
    for part, at in enumerate(range(0, len(stream), batch), 1):
        yield Measurement(name, "score of a batch", figure(task, loop.scored[at : at + batch]), f"{part}")
