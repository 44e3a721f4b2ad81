"""Learn a context for a fixed consumer, in the conventions of scikit-learn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.consumers import Consumer, embedding_reader, tfidf_reader
from upheld.context.crossover import ProgramMetaAgent
from upheld.context.loop import Loop, Settings
from upheld.context.program_base import ProgramBaseAgent
from upheld.context.rollouts import RolloutCache
from upheld.context.task import Sample, Task, overlap
from upheld.context.vectors import Embed, minilm

Question = str | Mapping[str, Any]


class ContextEngineer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Evolves how rollouts become a context, and the context; predicts with the best one found.

    Parameters
    ----------
    task : metric, template and text; its samples are not used (None: accuracy)
    consumer : ``"embedding"``, ``"tfidf"``, or a `Consumer`
    meta, base : ``"program"``, or agents
    iterations, train_limit, batch_size, token_budget, accept : see `Settings`
    val_size : samples set aside for choosing when no X_val is given (None: a quarter, at most 100)
    init_skill : ``"few-shot"`` starts from what a practitioner would deploy, ``"naive"`` from errors only
    workdir : where the run is kept and resumed (None: a temporary folder)
    embed : of the reader and of retrieval (None: all-MiniLM-L6-v2)

    Attributes
    ----------
    context_ : the learned `ContextFunction`
    history_ : every iteration
    skill_ : the skill that made it (None: the seed context was never beaten)

    Examples
    --------
    >>> engineer = ContextEngineer(iterations=3).fit(texts, labels)            # doctest: +SKIP
    >>> engineer.predict(["chest pain since monday"])                          # doctest: +SKIP
    array(['cardiology'], dtype=object)
    """

    def __init__(
        self, task: Task | None = None, consumer: str | Consumer = "embedding", meta: str | MetaAgent = "program",
        base: str | BaseAgent = "program", iterations: int = 6, train_limit: int = 200, batch_size: int = 50,
        val_size: int | None = None, token_budget: int = 1500, accept: str = "paired", init_skill: str = "few-shot",
        seed: int = 0, workdir: str | Path | None = None, embed: Embed | None = None,
    ) -> None:  # fmt: skip
        self.task, self.consumer, self.meta, self.base = task, consumer, meta, base
        self.iterations, self.train_limit, self.batch_size = iterations, train_limit, batch_size
        self.val_size, self.token_budget, self.accept = val_size, token_budget, accept
        self.init_skill, self.seed, self.workdir, self.embed = init_skill, seed, workdir, embed

    def fit(
        self, X: Sequence[Question], y: Sequence[str], X_val: Sequence[Question] | None = None, y_val: Sequence[str] | None = None
    ) -> Self:  # fmt: skip
        """Learn a context.

        Raises
        ------
        ValueError
            If X and y differ in length, fewer than two labels occur, or a validation question stands in X.
        """
        known = as_samples(X, y, "train")
        train, val = self._split(known) if X_val is None else (known, as_samples(X_val, y_val, "val"))
        if X_val is not None and (shared := overlap(train, val)):
            raise ValueError(
                f"{len(shared)} validation questions stand in X too, the first being {shared[0]}; take them out of one"
            )
        self.embed_ = self.embed or minilm()
        self.task_ = self._task(train)
        self.consumer_ = self._consumer(self._task(known))
        self._temporary = tempfile.TemporaryDirectory() if self.workdir is None else None
        self.loop_ = Loop(
            self.task_, val, self.consumer_, self._meta(), self._base(), self.embed_,
            Settings(self.iterations, self.train_limit, self.batch_size, self.token_budget, self.accept, self.seed),
            Path(self._temporary.name if self._temporary else self.workdir or "."), RolloutCache(),
        )  # fmt: skip
        self.history_ = self.loop_.run()
        self.skill_ = self.history_.incumbent.skill
        self.context_ = self.loop_.function(self.history_.incumbent)
        self.classes_ = np.array(self._task(known).labels(), dtype=object)
        return self

    def predict(self, X: Sequence[Question]) -> NDArray[np.object_]:
        """(n,) answers."""
        check_is_fitted(self, "context_")
        questions = [text_of(x) for x in X]
        contexts = [made.text for made in self.context_.many(questions)]
        return np.array([one.text for one in self.consumer_.answer(questions, contexts)], dtype=object)

    def predict_proba(self, X: Sequence[Question]) -> NDArray[np.float64]:
        """(n, labels) softmax of the reader's scores at a temperature of 0.05: an order, not a calibrated probability.

        Raises TypeError when the consumer gives no scores.
        """
        check_is_fitted(self, "context_")
        if not hasattr(self.consumer_, "scores"):
            raise TypeError(f"the consumer {self.consumer_.id} gives answers and no scores; use predict")
        questions = [text_of(x) for x in X]
        scores = self.consumer_.scores(questions, [made.text for made in self.context_.many(questions)])
        shares = np.exp((scores - scores.max(axis=1, keepdims=True)) / 0.05)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def score(self, X: Sequence[Question], y: Sequence[str], sample_weight: None = None) -> float:
        """The task's metric."""
        return self.task_.scoring(list(self.predict(X)), list(y))

    def _task(self, samples: Sequence[Sample]) -> Task:
        if self.task is None:
            return Task(samples)
        return Task(samples, self.task.metric, self.task.template, self.task.signatures, self.task.text)

    def _split(self, known: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
        if len(known) < 8:
            raise ValueError(
                f"{len(known)} samples are too few to set some aside for choosing; give at least 8, or X_val"
            )
        size = self.val_size or min(100, len(known) // 4)
        if not 0 < size < len(known):
            raise ValueError(f"val_size is {size} of {len(known)} samples; leave some to learn from")
        order = np.random.default_rng([self.seed, 0x5B117]).permutation(len(known))
        return [known[place] for place in sorted(order[size:])], [known[place] for place in sorted(order[:size])]

    def _consumer(self, task: Task) -> Consumer:
        if not isinstance(self.consumer, str):
            return self.consumer
        if self.consumer not in ("embedding", "tfidf"):
            raise ValueError(f"consumer is {self.consumer!r}; choose embedding or tfidf, or give a Consumer")
        questions = [sample.question for sample in self.task_.samples]
        reader = embedding_reader(task, self.embed_) if self.consumer == "embedding" else tfidf_reader(task, questions)
        reader.tune(self.task_.samples)
        return reader

    def _meta(self) -> MetaAgent:
        if not isinstance(self.meta, str):
            return self.meta
        if self.meta != "program":
            raise ValueError(f"meta is {self.meta!r}; choose program, or give a MetaAgent")
        return ProgramMetaAgent(
            init=self.init_skill, budget=self.token_budget, reads_order=self.consumer_.reads_order, seed=self.seed
        )

    def _base(self) -> BaseAgent:
        if not isinstance(self.base, str):
            return self.base
        if self.base != "program":
            raise ValueError(f"base is {self.base!r}; choose program, or give a BaseAgent")
        return ProgramBaseAgent(self.embed_)


def text_of(x: Question) -> str:
    """A question: text, or an object with the field ``question``. Raises TypeError otherwise."""
    text = x if isinstance(x, str) else x.get("question") if isinstance(x, Mapping) else None
    if not isinstance(text, str):
        raise TypeError(f"a question is text, or an object with the field 'question', got {type(x).__name__}")
    return text


def as_samples(X: Sequence[Question], y: Sequence[str] | None, name: str) -> list[Sample]:
    if y is None or len(X) != len(y):
        raise ValueError(
            f"{name}: {len(X)} questions cannot bear {0 if y is None else len(y)} labels; give each question one"
        )
    return [
        Sample(f"{name}-{place}", text_of(x), str(label)) for place, (x, label) in enumerate(zip(X, y, strict=True))
    ]
