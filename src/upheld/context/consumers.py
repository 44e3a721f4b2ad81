"""Consumers: fixed models that answer a question with a context. The answer depends on both texts alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from upheld.context.assembly import count_tokens
from upheld.context.metrics import SEPARATOR, label_set, micro_f1
from upheld.context.task import Sample, Task
from upheld.context.vectors import Embed

if TYPE_CHECKING:
    from upheld.context.folder import ContextFunction

LABEL_WEIGHT = 0.3
EDGES = " \t-*|:;,→"
"""What sets a line or a label off. Not the full stop, with which a question ends: its case line is then the question, embedded already."""


@dataclass(frozen=True)
class Answered:
    """An answer, how far it lies above the runner-up, and the tokens of its prompt; `problem` says why there is none."""

    text: str
    margin: float
    tokens: int
    problem: str = ""


class Consumer(Protocol):
    """A model under test. `id` is a part of the rollout cache's key; `reads_order` says whether format and order can matter."""

    reads_order: bool

    @property
    def id(self) -> str: ...

    def prompt(self, context: str, question: str) -> str: ...

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Answered]: ...


@runtime_checkable
class Workflow(Protocol):
    """A consumer of several steps, or an agent: it calls a context's interfaces itself, in the order of its work."""

    reads_order: bool

    @property
    def id(self) -> str: ...

    def run(self, context: ContextFunction, questions: Sequence[str]) -> list[Answered]:
        """One answer a question; `tokens` are those of all that it was given from the context."""


class LineReader:
    """Reads a context as lines that speak of labels, and answers with the label of the nearest one.

    A line belongs to every label it holds as whole tokens, the longest label first, what matched being spent; the label's span is
    cut out and the rest is compared::

        score(y) = 0.3 cos(x, y) + max over y's lines of cos(x, line)

    Ties go to the first label. With several labels a question, all scores above max - delta are the answer.

    Parameters
    ----------
    labels : all that can be answered, in the order of ties
    """

    reads_order = False
    temperature = 0.05
    """Of the softmax that makes shares of cosines: an order, not a calibrated law."""

    def __init__(self, task: Task, embed: Embed, name: str) -> None:
        self.task, self.labels, self.embed = task, task.labels(), embed
        if len(self.labels) < 2:
            raise ValueError(f"the samples have one label only, {self.labels[0]!r}; a reader needs two to choose from")
        self._name = f"{name}/{task.metric}/{'|'.join(self.labels)}"
        self.delta = 0.0
        self._places = {label.lower(): place for place, label in enumerate(self.labels)}
        longest = sorted(map(re.escape, self._places), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)", re.IGNORECASE)
        self._line = lru_cache(maxsize=200_000)(self._read)

    @property
    def id(self) -> str:
        return f"{self._name}/delta={self.delta:.3f}" if self.task.scoring.multilabel else self._name

    def prompt(self, context: str, question: str) -> str:
        return self.task.prompt(context, question)

    def _read(self, line: str) -> tuple[tuple[int, ...], str]:
        """The labels of a line, and its rest."""
        found = tuple(dict.fromkeys(self._places[match[0].lower()] for match in self._pattern.finditer(line)))
        return found, " ".join(self._pattern.sub(" ", line).split()).strip(EDGES) if found else ""

    def scores(self, questions: Sequence[str], contexts: Sequence[str]) -> NDArray[np.float64]:
        """(questions, labels); one matrix product for all lines of all contexts."""
        asked = self.embed([" ".join(question.split()) for question in questions])
        scores = LABEL_WEIGHT * (asked @ self.embed(self.labels).T).astype(float)
        rests, readings = self._places_of_lines(contexts)
        if not rests:
            return scores
        near = asked @ self.embed(list(rests)).T
        for row, context in enumerate(contexts):
            lines, labels = readings[context]
            if len(lines):
                best = np.full(len(self.labels), -np.inf)
                np.maximum.at(best, labels, near[row, lines])
                scores[row] += np.where(np.isfinite(best), best, 0.0)
        return scores

    def _places_of_lines(
        self, contexts: Sequence[str]
    ) -> tuple[dict[str, int], dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]]:
        rests: dict[str, int] = {}
        readings = {}
        for context in dict.fromkeys(contexts):
            lines, labels = [], []
            for line in context.split("\n"):
                found, rest = self._line(line)
                for label in found:
                    lines.append(rests.setdefault(rest, len(rests)))
                    labels.append(label)
            readings[context] = np.array(lines, dtype=np.int64), np.array(labels, dtype=np.int64)
        return rests, readings

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Answered]:
        scores = self.scores(questions, contexts)
        ranked = np.sort(scores, axis=1)
        margins = ranked[:, -1] - ranked[:, -2]
        counts = {context: count_tokens(context) for context in dict.fromkeys(contexts)}
        lengths = [counts[c] + count_tokens(q) for c, q in zip(contexts, questions, strict=True)]
        return [
            Answered(several(row, self.labels, self._cut), float(margin), length)
            for row, margin, length in zip(scores, margins, lengths, strict=True)
        ]

    @property
    def _cut(self) -> float | None:
        return self.delta if self.task.scoring.multilabel else None

    def tune(self, samples: Sequence[Sample]) -> None:
        """Set delta on training samples: each read with the others as its context, by micro-F1."""
        if not self.task.scoring.multilabel:
            return
        best = -1.0
        cases = [f"- {one.target}: {' '.join(one.question.split())}" for one in samples]
        contexts = ["\n".join(cases[:place] + cases[place + 1 :]) for place in range(len(samples))]
        scores = self.scores([one.asked for one in samples], contexts)
        for delta in np.linspace(0, 0.6, 25):
            answers = [several(row, self.labels, float(delta)) for row in scores]
            value = micro_f1(answers, [one.target for one in samples])
            if value > best:
                best, self.delta = value, float(delta)


def several(scores: NDArray[np.float64], labels: Sequence[str], cut: float | None) -> str:
    """The best label; with a cut, all labels whose scores lie no further below the best one."""
    if cut is None:
        return labels[int(np.argmax(scores))]
    return SEPARATOR.join(label for label, score in zip(labels, scores, strict=True) if score >= scores.max() - cut)


def embedding_reader(task: Task, embed: Embed) -> LineReader:
    """A reader on sentence embeddings: a nearest-line classifier, deterministic and cheap."""
    return LineReader(task, embed, f"embedding:{getattr(embed, 'id', 'given')}")


def tfidf_reader(task: Task, texts: Sequence[str]) -> LineReader:
    """A reader on TF-IDF vectors of words and word pairs, weighted on `texts` (training questions)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit([*texts, *task.labels()])

    def embed(asked: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(weights.transform(asked).toarray(), dtype=np.float32)

    return LineReader(task, embed, f"tfidf:{len(weights.vocabulary_)}")


def known_label(answer: str, labels: Sequence[str]) -> bool:
    """Whether an answer is made of labels alone."""
    return answer in labels or (bool(label_set(answer)) and label_set(answer) <= set(labels))
