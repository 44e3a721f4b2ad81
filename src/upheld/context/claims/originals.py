"""The paper's own data, which are the user's to bring: ``UPHELD_CONTEXT_DATA`` names the folder.

It holds a folder a domain, named as in the reference repository (its ``env`` folder can be given as it is), with train.jsonl, val.jsonl and
test.jsonl in it or in a folder ``data`` below.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from upheld.claims import NotRun
from upheld.context.metrics import METRICS, SEPARATOR, Metric, register_metric
from upheld.context.task import Sample, Task, overlap

DATA = "UPHELD_CONTEXT_DATA"
SIZES = {"train": 200, "val": 100, "test": 500}
"""At most, as in the paper's scripts; a seed draws them where a file holds more."""


def same_reactants(answer: str, target: str) -> float:
    """Whether both name the same molecules, in whatever order; SMILES as they are written."""
    a, b = ({part.strip() for part in text.split(".") if part.strip()} for text in (answer, target))
    return float(a == b)


def share_of_same_reactants(answers: Sequence[str], targets: Sequence[str]) -> float:
    return sum(map(same_reactants, answers, targets)) / len(targets)


REACTANTS = "same-reactants"
if REACTANTS not in METRICS:
    register_metric(Metric(REACTANTS, share_of_same_reactants, same_reactants))


@dataclass(frozen=True)
class Original:
    """One of the five domains: its fields, its metric, and what the consumer is told."""

    question: str
    target: str
    metric: str
    text: str


ORIGINALS = {
    "finer": Original("question", "target", "accuracy", "Name the XBRL tag that fits the entity in the sentence."),
    "uspto": Original(
        "question", "target", REACTANTS, "Name the reactants of the product, as SMILES with a full stop between them."
    ),
    "symptom_diagnosis": Original("question", "answer", "accuracy", "Name the disease that the symptoms belong to."),
    "crime_prediction": Original("question", "answer", "micro-f1", "Name the charges that the facts of the case amount to."),
    "aegis2": Original("prompt", "prompt_label", "macro-f1", "Is the user's message safe or unsafe? Answer safe or unsafe."),
}  # fmt: skip


def original(name: str, seed: int) -> tuple[Task, tuple[list[Sample], list[Sample], list[Sample]]]:
    """A domain, and its samples to learn from, to choose by and to test on. What stands in the test file is neither learned from nor
    chosen by.

    Raises
    ------
    NotRun
        If the environment names no folder, or it lacks a file of this domain.
    """
    home = os.environ.get(DATA, "")
    if not home:
        raise NotRun(f"needs the paper's data sets: set {DATA} to a folder with {', '.join(ORIGINALS)}")
    parts = {part: drawn(read(Path(home), name, part), SIZES[part], seed) for part in SIZES}
    test = parts["test"]
    train, val = (without(parts[part], test) for part in ("train", "val"))
    val = without(val, train)
    kind = ORIGINALS[name]
    return Task([*train, *val, *test], kind.metric, text=kind.text), (train, val, test)


def read(home: Path, name: str, part: str) -> list[Sample]:
    places = [home / name / f"{part}.jsonl", home / name / "data" / f"{part}.jsonl"]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise NotRun(
            f"{DATA} holds no {name}/{part}.jsonl, a line an object with the fields of the reference repository"
        )
    kind = ORIGINALS[name]
    samples = Task.from_jsonl(found, question=kind.question, target=kind.target).samples
    return [replace(one, id=f"{part}-{one.id}", target=spelled(one.target, kind.metric)) for one in samples]


def spelled(target: str, metric: str) -> str:
    """A target without the marks around it; several labels with our separator between them."""
    if metric != "micro-f1":
        return target.strip()
    bare = target.replace("[罪名]", "").replace("<eoa>", "").replace("；", ";").replace("、", ";")
    return SEPARATOR.join(sorted(part.strip() for part in bare.split(";") if part.strip()))


def drawn(samples: list[Sample], most: int, seed: int) -> list[Sample]:
    order = np.random.default_rng([seed, 0x0216]).permutation(len(samples))[:most]
    return [samples[place] for place in order]


def without(samples: list[Sample], others: list[Sample]) -> list[Sample]:
    shared = set(overlap(others, samples))
    return [one for one in samples if one.id not in shared]
