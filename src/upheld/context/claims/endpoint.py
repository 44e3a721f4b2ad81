"""With language models: the paper's setting, on models that the user names by the environment.

``UPHELD_CONTEXT_CONSUMER`` and ``UPHELD_CONTEXT_AGENTS`` are ``openai:MODEL@URL`` each, their keys where `upheld.llm` looks for them. The
same model writes for everyone: MCE's agents, ACE's reflector, GEPA's proposer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from upheld.claims import Measurement, NotRun, Trial
from upheld.context import dspy_rival, package_ace_rival
from upheld.context.ace_rival import Alone, Reflector, reflective_ace
from upheld.context.claims.originals import original
from upheld.context.claims.race import ACE, OURS, told
from upheld.context.claims.setting import LENGTHS, SHARES, Run, Setting, pool, seed_of
from upheld.context.confined import InSandbox
from upheld.context.dspy_rival import KNN, dspy_optimised
from upheld.context.folder import ContextFunction
from upheld.context.generate_lm import GenerateLM
from upheld.context.gepa_rival import asking, reflective_gepa
from upheld.context.llm_agents import LLMBaseAgent, LLMMetaAgent
from upheld.context.llm_agents.conversation import speakers
from upheld.context.loop import Loop, Settings
from upheld.context.package_ace_rival import PACKAGE, Structured, package_ace
from upheld.context.rivals import RIVALS, Contender
from upheld.context.rollouts import RolloutCache, evaluate, figure
from upheld.context.task import Sample, Task
from upheld.context.vectors import Vectors, minilm
from upheld.llm.answer import Usage
from upheld.sandbox import Sandbox, SandboxRefused

CONSUMER, AGENTS = "UPHELD_CONTEXT_CONSUMER", "UPHELD_CONTEXT_AGENTS"
WITHOUT_A_MODEL = ("base", "knn few-shot", "many-shot")
"""Rivals that ask nobody but the consumer."""


def measure_endpoint(trial: Trial) -> Iterator[Measurement]:
    """Test metric, tokens a query, rollouts and seconds of everyone, and what consumer and agents read and wrote meanwhile."""
    consumer, agents = named_models()
    with tempfile.TemporaryDirectory() as folder, walls() as sandbox, closing(InSandbox()) as confined:
        one = raced(trial, consumer, Path(folder).resolve())
        meter = Meter(one)
        run, spent = evolved(one, agents, sandbox, confined)
        yield from meter.read(OURS, spent)
        yield from told(one, OURS, run.context, run.history[-1].rollouts)
        for name in WITHOUT_A_MODEL:
            meter = Meter(one)
            found = RIVALS[name](one.contest())
            yield from meter.read(name, Usage())
            yield from told(one, name, found.context, found.rollouts)
        yield from raced_with_a_model(one, agents, run)
        yield from raced_with_dspy(one)
        yield from raced_with_package_ace(one, agents)


def raced_with_a_model(one: Raced, agents: str, run: Run) -> Iterator[Measurement]:
    """ACE and GEPA, whose model is MCE's."""
    model = speakers(agents)[1]
    meter, reflector = Meter(one), Reflector(one.task, model, one.embed)
    found, alone = reflective_ace(one.contest(), reflector)
    yield from meter.read(ACE, reflector.usage)
    yield from told(one, ACE, found.context, found.rollouts)
    yield from until_as_good(one, run, found, alone)
    meter, spent = Meter(one), [Usage()]
    found = reflective_gepa(one.contest(), asking(model, spent))
    yield from meter.read("GEPA", spent[0])
    yield from told(one, "GEPA", found.context, found.rollouts)


def raced_with_dspy(one: Raced) -> Iterator[Measurement]:
    """The program that practitioners deploy, where its package is installed; `WhereMeasured` says so where it is not."""
    if not dspy_rival.installed():
        return
    meter = Meter(one)
    found = dspy_optimised(one.contest())
    yield from meter.read(KNN, Usage())
    yield from told(one, KNN, found.context, found.rollouts, found.consumer)


def raced_with_package_ace(one: Raced, agents: str) -> Iterator[Measurement]:
    """ACE as its package has it, where that is installed, with MCE's model behind it."""
    if not package_ace_rival.installed():
        return
    meter, mind = Meter(one), Structured(speakers(agents)[1])
    found = package_ace(one.contest(), mind)
    yield from meter.read(PACKAGE, mind.usage)
    yield from told(one, PACKAGE, found.context, found.rollouts, found.consumer)


def named_models() -> tuple[str, str]:
    """Consumer and agents, as the environment names them."""
    consumer, agents = (os.environ.get(name, "") for name in (CONSUMER, AGENTS))
    if not (consumer and agents):
        raise NotRun(f"needs language models: set {CONSUMER} and {AGENTS} to openai:MODEL@URL each")
    return consumer, agents


@contextmanager
def walls() -> Iterator[Sandbox]:
    """Where programs of the agents run."""
    try:
        with Sandbox(preload=["numpy"]) as sandbox:
            yield sandbox
    except SandboxRefused as refused:
        raise NotRun(str(refused)) from refused


# -- the split


@dataclass(frozen=True)
class Raced(Setting):
    """A split with a consumer that is paid for: what was judged once is not asked again."""

    reader: GenerateLM
    judged: RolloutCache = field(default_factory=RolloutCache)

    def tested(self, context: ContextFunction, reader: Any = None) -> tuple[float, float]:
        found = evaluate(self.task, self.test, context, reader or self.reader, self.judged)
        return figure(self.task, found), float(np.mean([one.tokens for one in found]))


def raced(trial: Trial, consumer: str, folder: Path) -> Raced:
    """A trial's split of an embedded domain, or of one of the paper's own."""
    domain, seed = str(trial.condition["domain"]), seed_of(trial)
    whole, parts = (
        embedded(domain, int(trial.condition["pool"]), seed) if "pool" in trial.condition else original(domain, seed)
    )
    train, val, test = parts
    return Raced(
        replace(whole, samples=train), val, test, GenerateLM(whole, consumer), vectors(), LENGTHS[str(trial.condition["length"])], folder,
        seed, int(trial.condition["iterations"]),
    )  # fmt: skip


def embedded(domain: str, n: int, seed: int) -> tuple[Task, Sequence[Sequence[Sample]]]:
    home = pool(domain, n)
    return home.task, home.split(seed, *(round(n * share) for share in SHARES))


@cache
def vectors() -> Vectors:
    """Kept in the process, so that a text is embedded once."""
    return minilm()


# -- who learns with a model


def evolved(one: Raced, agents: str, sandbox: Sandbox, confined: InSandbox) -> tuple[Run, Usage]:
    """The offline loop with language models as both agents, which write the first skill too."""
    folder = one.folder / "mce"
    meta = LLMMetaAgent(agents, folder, sandbox=sandbox, embed=one.embed)
    base = LLMBaseAgent(agents, one.task, folder / "agents", sandbox=sandbox, embed=one.embed, budget=one.budget)
    settings = Settings(one.iterations, len(one.task.samples), budget=one.budget, seed=one.seed)
    loop = Loop(
        one.task, one.val, one.reader, meta, base, one.embed, settings, folder, RolloutCache(), confined=confined, agents=agents,
    )  # fmt: skip
    return Run(one, loop, loop.run()), meta.usage + base.usage


class Meter:
    """What a method takes to learn, from here on."""

    def __init__(self, one: Raced) -> None:
        self.consumer, self.before, self.began = one.reader, one.reader.usage, time.perf_counter()

    def read(self, name: str, agents: Usage) -> Iterator[Measurement]:
        yield Measurement(name, "seconds of learning", time.perf_counter() - self.began)
        after = self.consumer.usage
        for who, read, written in (
            ("agents", agents.prompt_tokens, agents.completion_tokens),
            ("consumer", after.prompt_tokens - self.before.prompt_tokens, after.completion_tokens - self.before.completion_tokens),
        ):  # fmt: skip
            yield Measurement(name, f"tokens read by {who}", read)
            yield Measurement(name, f"tokens written by {who}", written)


def until_as_good(one: Raced, run: Run, ace: Contender, alone: Alone) -> Iterator[Measurement]:
    """Rollouts and seconds, validation included, until the accepted context does as well on the test set as ACE ends; all of them where
    it never does. Of ACE those of its chosen setting alone count, as if it had known that."""
    target = one.tested(ace.context)[0]
    scores = run.trajectory()
    last = next((i for i, score in enumerate(scores) if score >= target), len(scores) - 1)
    seconds = list(accumulate(entry.seconds for entry in run.history))
    yield Measurement(OURS, "reaches ACE's score", float(max(scores) >= target))
    yield Measurement(OURS, "rollouts to ACE's score", run.history[last].rollouts)
    yield Measurement(OURS, "seconds to ACE's score", seconds[last])
    yield Measurement(ACE, "rollouts to ACE's score", alone.rollouts)
    yield Measurement(ACE, "seconds to ACE's score", alone.seconds)
