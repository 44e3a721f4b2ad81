"""What every trial stands on: a pool of texts embedded once, split anew by each seed, a reader, and a loop over it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from upheld.claims import Preparation, Trial
from upheld.context.consumers import Consumer, LineReader, Workflow, embedding_reader, tfidf_reader
from upheld.context.crossover import ProgramMetaAgent
from upheld.context.data import GENERATORS, generate, ledger
from upheld.context.data.domain import Domain
from upheld.context.folder import Context, ContextFunction
from upheld.context.history import Entry, History
from upheld.context.loop import Loop, Settings
from upheld.context.program_base import ProgramBaseAgent
from upheld.context.rivals import Contest
from upheld.context.rollouts import RolloutCache, evaluate, figure
from upheld.context.skill import Genes
from upheld.context.task import Sample, Task
from upheld.context.vectors import Embed, Vectors

DOMAINS = ("apidocs", *GENERATORS)
POOL_SEED = 2601
SHARES = (8 / 15, 3 / 15, 4 / 15)
"""Of a pool, for training, validation and test: 160, 60 and 80 of 300."""
RULES = (5, 10, 20, 40, 80)
ITERATIONS = 6
WINDOW = 80_000
"""Tokens a query where each method may choose its own length: ACE's budget, and more than any of these contexts needs."""
IN_MEMORY = "/dev/shm"
"""Where Linux keeps files in memory: a loop makes sure that each of its files is on the disk, which takes most of its time."""
LENGTHS = {"own": WINDOW, "400": 400}


@cache
def pool(domain: str, n: int, rules: int | None = None) -> Domain:
    """The texts of a domain, the same in every trial; `rules` is for the ledger alone."""
    if rules is not None:
        return ledger(n, seed=POOL_SEED, rules=rules)
    return generate(domain, n, seed=POOL_SEED)


def seed_of(trial: Trial) -> int:
    """The same under all conditions of an experiment, so that its conditions are compared on the same splits."""
    return int(trial.rng("split", ignoring=tuple(trial.condition)).integers(2**31))


def scratch() -> str | None:
    """A folder in memory for a trial's files, where there is one."""
    return IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None


# -- vectors


def embed_pools(folder: Path, n: int) -> None:
    """Vectors of every text and label of the pools, once."""
    from upheld.context.vectors import minilm

    pools = [pool(name, n) for name in DOMAINS] + [pool("ledger", n, rules) for rules in RULES]
    texts = {text for one in pools for text in (*one.task.labels(), *(flat(s.question) for s in one.task.samples))}
    listed = sorted(texts)
    (folder / "texts.json").write_text(json.dumps(listed), encoding="utf-8")
    np.save(folder / "vectors.npy", minilm()(listed))


POOLS = Preparation("context.pools", embed_pools, timeout_s=900)


def flat(text: str) -> str:
    return " ".join(text.split())


@cache
def vectors(n: int) -> Vectors:
    """An embedder that knows the pools; kept in the process, so that lines which several trials write are embedded once too."""
    from upheld.llm import embedder

    home = POOLS(n=n).folder()
    return Vectors(
        embedder("minilm"), known=(json.loads((home / "texts.json").read_text("utf-8")), np.load(home / "vectors.npy"))
    )


# -- one split


@dataclass(frozen=True)
class Setting:
    """One split of a pool, a reader tuned on its training part, and a folder to work in."""

    task: Task
    val: Sequence[Sample]
    test: Sequence[Sample]
    reader: Consumer
    embed: Vectors
    budget: int
    folder: Path
    seed: int
    iterations: int = ITERATIONS

    def agent(self, **options: Any) -> ProgramMetaAgent:
        return ProgramMetaAgent(budget=self.budget, seed=self.seed, **options)

    def evolve(self, name: str, meta: ProgramMetaAgent, iterations: int | None = None) -> Run:
        """The offline loop under a meta agent."""
        settings = Settings(
            iterations or self.iterations, len(self.task.samples), budget=self.budget, seed=self.seed
        )  # fmt: skip
        loop = Loop(
            self.task, self.val, self.reader, meta, ProgramBaseAgent(self.embed), self.embed, settings, self.folder / name, RolloutCache()
        )  # fmt: skip
        return Run(self, loop, loop.run())

    def contest(self) -> Contest:
        """The same for rivals: as many validation passes as the loop has."""
        return Contest(
            self.task, self.val, self.reader, self.embed, self.budget, self.folder / "rivals", 1 + self.iterations, self.seed
        )  # fmt: skip

    def tested(self, context: ContextFunction, reader: Consumer | Workflow | None = None) -> tuple[float, float]:
        """The metric on the test set, which chose nothing, and mean context tokens a query."""
        found = evaluate(self.task, self.test, context, reader or self.reader, RolloutCache())
        return figure(self.task, found), float(np.mean([one.tokens for one in found]))

    def empty(self) -> ContextFunction:
        return ContextFunction(Context(self.folder / "nothing"), self.embed, self.budget)


@dataclass(frozen=True)
class Run:
    """A finished loop."""

    setting: Setting
    loop: Loop
    history: History

    @property
    def context(self) -> ContextFunction:
        return self.loop.function(self.history.incumbent)

    @property
    def genes(self) -> Genes | None:
        skill = self.history.incumbent.skill
        return skill.genes if skill else None

    def incumbents(self) -> list[Entry]:
        """The accepted entry after every iteration, iteration 0 included."""
        kept: list[Entry] = []
        for entry in self.history:
            kept.append(entry if entry.accepted else kept[-1])
        return kept

    def trajectory(self) -> list[float]:
        """Test metric of the accepted context after every iteration."""
        known: dict[int, float] = {}
        for entry in self.incumbents():
            if entry.iteration not in known:
                known[entry.iteration] = self.setting.tested(self.loop.function(entry))[0]
        return [known[entry.iteration] for entry in self.incumbents()]


@dataclass(frozen=True)
class Weighed:
    """TF-IDF weights as an embedder."""

    id: str
    embed: Embed


def line_reader(name: str, task: Task, train: Sequence[Sample], embed: Vectors) -> LineReader:
    """A reader by name, tuned on training samples; `task` holds every label."""
    questions = [one.question for one in train]
    reader = embedding_reader(task, embed) if name == "embedding" else tfidf_reader(task, questions)
    if name == "tfidf":
        reader.embed = Vectors(Weighed(reader.id, reader.embed))  # each text once, as for embeddings
    reader.tune(train)
    return reader


@contextmanager
def setting(trial: Trial, *, rules: int | None = None, domain: str | None = None) -> Iterator[Setting]:
    """A trial's split; the same for every condition of a domain and seed but for what the condition changes."""
    n, domain = int(trial.condition["pool"]), domain or str(trial.condition.get("domain", "ledger"))
    home = pool(domain, n, rules)
    seed = seed_of(trial)
    train, val, test = home.split(seed, *(round(n * share) for share in SHARES))
    embed = vectors(n)
    task = replace(home.task, samples=train)
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        yield Setting(
            task, val, test, line_reader("embedding", home.task, train, embed), embed, LENGTHS[str(trial.condition.get("length", "own"))],
            Path(folder), seed, int(trial.condition.get("iterations", ITERATIONS)),
        )  # fmt: skip
