"""Contexts that one consumer learned with, read by another: the nearest-line reader and three models that the user names.

``UPHELD_CONTEXT_CONSUMERS`` holds three ``openai:MODEL@URL`` with blanks between. Agents are programs, so that no other model is asked.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from upheld.claims import Measurement, NotRun, Trial
from upheld.context.claims.endpoint import Raced, raced
from upheld.context.claims.setting import Run, Setting, line_reader
from upheld.context.generate_lm import GenerateLM

CONSUMERS = "UPHELD_CONTEXT_CONSUMERS"
MODELS = ("model 1", "model 2", "model 3")
LEARNERS = ("embedding", *MODELS)


def measure_endpoint_transfer(trial: Trial) -> Iterator[Measurement]:
    """Gain over the empty context under the consumer that a context was learned with, and under each of the others; all ways."""
    named = named_consumers()
    with tempfile.TemporaryDirectory() as folder:
        first = raced(trial, named[0], Path(folder).resolve())
        learners = consumers(first, named)
        empty = {name: one.tested(one.empty())[0] for name, one in learners.items()}
        for name, score in empty.items():
            yield Measurement(name, "score without a context", score)
        for name, one in learners.items():
            run = one.evolve("mce", one.agent(reads_order=one.reader.reads_order))
            yield from carried_over(name, run, learners, empty)


def carried_over(name: str, run: Run, learners: dict[str, Setting], empty: dict[str, float]) -> Iterator[Measurement]:
    for other, there in learners.items():
        gain = there.tested(run.context)[0] - empty[other]
        metric = "gain, same reader" if other == name else "gain, other reader"
        yield Measurement(f"learned with {name}", metric, gain, other)


def consumers(first: Raced, named: tuple[str, ...]) -> dict[str, Setting]:
    """The same split under each consumer, each with a folder of its own; `first` is under the first model."""
    whole, home = first.reader.task, first.folder
    reader = line_reader("embedding", whole, first.task.samples, first.embed)
    found: dict[str, Setting] = {
        "embedding": Setting(
            first.task, first.val, first.test, reader, first.embed, first.budget, home / "embedding", first.seed, first.iterations
        )
    }  # fmt: skip
    for name, model in zip(MODELS, named, strict=True):
        found[name] = replace(first, reader=GenerateLM(whole, model), folder=home / name)
    return found


def named_consumers() -> tuple[str, ...]:
    """Three models, as the environment names them."""
    named = tuple(dict.fromkeys(os.environ.get(CONSUMERS, "").split()))
    if len(named) != len(MODELS):
        raise NotRun(
            f"needs three language models that answer: set {CONSUMERS} to three different openai:MODEL@URL with blanks between"
        )
    return named
