"""A task: labelled samples, what an answer is worth, and how a prompt is put together."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upheld.context.metrics import Metric, label_set, metric_named
from upheld.context.signatures import FIRST, signatures

TEMPLATE = "{context}\n\nText: {question}\nLabel:"


@dataclass(frozen=True)
class Sample:
    """One labelled case.

    Parameters
    ----------
    question : what a learned context is made for: c(question)
    extras : whatever else its row had
    context : what belongs to this case alone, such as the passage that the question is about; the consumer reads it before the question,
        and nothing is retrieved by it
    """

    id: str
    question: str
    target: str
    extras: Mapping[str, Any] = field(default_factory=dict, hash=False)
    context: str = ""

    @property
    def asked(self) -> str:
        """What stands in the consumer's prompt for the question."""
        return with_own(self.question, self.context)


def with_own(question: str, context: str) -> str:
    """A question after its case's own context, if it has one."""
    return f"{context}\n\n{question}" if context else question


@dataclass(frozen=True)
class Task:
    """Samples, metric, prompt template and interface signatures.

    Parameters
    ----------
    samples : at least one
    metric : name of a metric, see `upheld.context.metrics.METRICS`
    template : of the consumer's prompt, with the slots ``{context}`` and ``{question}``
    signatures : interfaces that a context offers, `get_context` first; further ones need a consumer that calls them (`Workflow`)
    text : what the task is, for agents that read

    Raises
    ------
    ValueError
        If there are no samples, two bear one id, the template lacks a slot, the metric is unknown, or a
        signature is none.

    Examples
    --------
    >>> Task([Sample("0", "chest pain", "cardiology")]).prompt("", "headache")
    'Text: headache\\nLabel:'
    """

    samples: Sequence[Sample]
    metric: str = "accuracy"
    template: str = TEMPLATE
    signatures: tuple[str, ...] = (FIRST,)
    text: str = "Give the label of a text."

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a task needs at least one sample; the list is empty")
        metric_named(self.metric)
        signatures(self.signatures)
        for slot in ("{context}", "{question}"):
            if slot not in self.template:
                raise ValueError(f"the template has no {slot}; put it where the {slot[1:-1]} belongs")
        if len({sample.id for sample in self.samples}) < len(self.samples):
            raise ValueError("two samples bear the same id; give each its own, or leave ids out")

    @property
    def scoring(self) -> Metric:
        return metric_named(self.metric)

    def labels(self) -> tuple[str, ...]:
        """All labels of the samples, sorted; ties between labels are broken in this order."""
        many = self.scoring.multilabel
        found = (label_set(sample.target) if many else [sample.target] for sample in self.samples)
        return tuple(sorted({label for labels in found for label in labels}))

    def prompt(self, context: str, question: str) -> str:
        """The consumer's prompt; without a context, the plain prompt."""
        before, after = (part.replace("{question}", question) for part in self.template.split("{context}", 1))
        return before + context + after if context else before + after.lstrip("\n")

    @classmethod
    def from_jsonl(
        cls, path: str | Path, *, question: str = "question", target: str = "target", **options: Any
    ) -> Task:
        """A task from JSON lines; ``ground_truth`` is understood as the target, and a field ``context`` is the sample's own.

        Raises
        ------
        ValueError
            If a line is no JSON object, a field is missing or empty, or ``context`` is no text: the message names the line and the field.
        """
        rows = []
        for number, line in enumerate(text_of(path).split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as wrong:
                raise ValueError(f"{path}, line {number} is not JSON ({wrong.msg}); write one object a line") from wrong
            rows.append((number, row))
        return cls(samples(rows, path, question, target), **options)

    @classmethod
    def from_csv(cls, path: str | Path, *, question: str = "question", target: str = "target", **options: Any) -> Task:
        """A task from a table with a header. Raises ValueError as `from_jsonl` does."""
        table = csv.DictReader(io.StringIO(text_of(path), newline=""))
        try:
            rows = [(table.line_num, row) for row in table]
        except csv.Error as wrong:
            raise ValueError(f"{path}, line {table.line_num} is no row of a table ({wrong}); mend it") from wrong
        return cls(samples(rows, path, question, target), **options)

    @classmethod
    def read(cls, path: str | Path, **fields: Any) -> Task:
        """A task from a file, by its ending: .jsonl or .csv."""
        path = Path(path)
        if path.suffix == ".csv":
            return cls.from_csv(path, **fields)
        if path.suffix == ".jsonl":
            return cls.from_jsonl(path, **fields)
        raise ValueError(f"{path} is neither .jsonl nor .csv; convert it to one of them")


OWN = "context"
"""The field of a sample's own context, as the reference repository names it."""


def text_of(path: str | Path) -> str:
    """What a file says. Raises ValueError when it is no text."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise ValueError(f"{path} is not UTF-8 text (byte {wrong.start + 1}); convert it") from wrong


def samples(rows: Sequence[tuple[int, Any]], path: str | Path, question: str, target: str) -> list[Sample]:
    """Samples of numbered rows."""
    if not rows:
        raise ValueError(f"{path} holds no samples; write one a line, with {question!r} and {target!r}")
    made = []
    for number, row in rows:
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, line {number} holds no object with fields; write {{{question!r}: ..., {target!r}: ...}}"
            )
        named = "ground_truth" if target == "target" and target not in row and "ground_truth" in row else target
        for field_name in (question, named):
            if not str(row.get(field_name) if row.get(field_name) is not None else "").strip():
                raise ValueError(
                    f"{path}, line {number} has no {field_name!r}; it has {', '.join(map(str, row))}: name the right "
                    "field with --question-field or --target-field, or fill it in"
                )
        own = "" if OWN in (question, named) or row.get(OWN) is None else row[OWN]
        if not isinstance(own, str):
            raise ValueError(
                f"{path}, line {number}: {OWN!r} holds a {type(own).__name__}; write the sample's own context as text, or leave it out"
            )
        extras = {key: value for key, value in row.items() if key not in (question, named, "id", OWN)}
        made.append(Sample(str(row.get("id", number)), str(row[question]), str(row[named]), extras, own.strip()))
    return made


def overlap(train: Sequence[Sample], test: Sequence[Sample]) -> list[str]:
    """Ids of test samples whose question, with the same context of its own, stands in the training samples too, white space and case
    aside."""
    seen = {" ".join(sample.asked.lower().split()) for sample in train}
    return [sample.id for sample in test if " ".join(sample.asked.lower().split()) in seen]
