"""Learn a context for a fixed consumer, in the conventions of scikit-learn."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.confined import InSandbox
from upheld.context.consumers import Consumer, Workflow, embedding_reader, tfidf_reader
from upheld.context.crossover import ProgramMetaAgent
from upheld.context.folder import Context
from upheld.context.generate_lm import AT_ONCE, GenerateLM
from upheld.context.label_lm import LabelLM
from upheld.context.llm_agents import LLMBaseAgent, LLMMetaAgent
from upheld.context.loop import Loop, Settings
from upheld.context.online import OnlineLoop
from upheld.context.program_base import ProgramBaseAgent
from upheld.context.rollouts import RolloutCache
from upheld.context.skill import Skill
from upheld.context.task import OWN, Sample, Task, overlap, with_own
from upheld.context.vectors import Embed, minilm
from upheld.sandbox import Sandbox

Question = str | Mapping[str, Any]


class ContextEngineer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Evolves how rollouts become a context, and the context; predicts with the best one found.

    Parameters
    ----------
    task : metric, template and text; its samples are not used (None: accuracy)
    consumer : ``"embedding"``, ``"tfidf"``, ``"label-lm"`` (a model on this machine scores the labels), ``"llm"`` (a model writes its
        answer), a `Consumer`, or a `Workflow` of several steps
    meta, base : ``"program"``, ``"llm"``, or agents
    iterations, train_limit, batch_size, token_budget, accept : see `Settings`
    val_size : samples set aside for choosing when no X_val is given (None: a quarter, at most 100)
    init_skill : the first skill: for program agents ``"few-shot"``, what a practitioner would deploy, or ``"naive"``, errors only; for
        either family a `Skill`
    workdir : where the run is kept and resumed (None: a temporary folder)
    embed : of the reader and of retrieval (None: all-MiniLM-L6-v2)
    endpoint : URL of an OpenAI-compatible endpoint, up to and with /v1, for ``"llm"``
    consumer_model, agent_model : its name at the endpoint; without an endpoint a folder with a model (None: SmolLM2-135M-Instruct)
    seed_context : where to start from: a file with the user's own prompt, such as AGENTS.md, or the folder of a context
    allow_weak_sandbox : run programs that models wrote although this machine can only limit their resources

    Attributes
    ----------
    context_ : the learned `ContextFunction`
    history_ : every iteration
    skill_ : the skill that made it (None: the seed context was never beaten)
    prequential_ : after `partial_fit`, the metric over all items, each answered before it was learned from

    Examples
    --------
    >>> engineer = ContextEngineer(iterations=3).fit(texts, labels)            # doctest: +SKIP
    >>> engineer.predict(["chest pain since monday"])                          # doctest: +SKIP
    array(['cardiology'], dtype=object)
    """

    embed_: Embed
    task_: Task
    folder_: Path
    confined_: InSandbox
    consumer_: Consumer | Workflow
    meta_: MetaAgent
    base_: BaseAgent
    online_: OnlineLoop
    batches_: int
    # What words are weighed by: training questions, of a stream those of its first batch, without their labels.
    _texts: list[str]

    def __init__(
        self, task: Task | None = None, consumer: str | Consumer | Workflow = "embedding", meta: str | MetaAgent = "program",
        base: str | BaseAgent = "program", iterations: int = 6, train_limit: int = 200, batch_size: int = 50,
        val_size: int | None = None, token_budget: int = 1500, accept: str = "paired", init_skill: str | Skill = "few-shot",
        seed: int = 0, workdir: str | Path | None = None, embed: Embed | None = None, endpoint: str | None = None,
        consumer_model: str | None = None, agent_model: str | None = None, seed_context: str | Path | None = None,
        allow_weak_sandbox: bool = False,
    ) -> None:  # fmt: skip
        self.task, self.consumer, self.meta, self.base = task, consumer, meta, base
        self.iterations, self.train_limit, self.batch_size = iterations, train_limit, batch_size
        self.val_size, self.token_budget, self.accept = val_size, token_budget, accept
        self.init_skill, self.seed, self.workdir, self.embed = init_skill, seed, workdir, embed
        self.endpoint, self.consumer_model, self.agent_model = endpoint, consumer_model, agent_model
        self.seed_context, self.allow_weak_sandbox = seed_context, allow_weak_sandbox

    def fit(
        self, X: Sequence[Question], y: Sequence[str], X_val: Sequence[Question] | None = None, y_val: Sequence[str] | None = None
    ) -> Self:  # fmt: skip
        """Learn a context.

        Parameters
        ----------
        X : n texts, or n objects with the field ``question`` and, where a case has a context of its own, ``context``
        y : n labels; of several, with semicolons between

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
        if hasattr(self, "online_"):
            del self.online_, self.batches_
        self._texts = [one.asked for one in train]
        self._prepare(self._task(train), self._task(known))
        self.loop_ = Loop(
            self.task_, val, self.consumer_, self.meta_, self.base_, self.embed_,
            Settings(self.iterations, self.train_limit, self.batch_size, self.token_budget, self.accept, self.seed),
            self.folder_, RolloutCache(), seed_context=self._seed_folder(), confined=self.confined_, agents=self._families(),
        )  # fmt: skip
        self.history_ = self.loop_.run()
        self.skill_ = self.history_.incumbent.skill
        self.context_ = self.loop_.function(self.history_.incumbent)
        self.classes_ = np.array(self._task(known).labels(), dtype=object)
        return self

    def partial_fit(self, X: Sequence[Question], y: Sequence[str], classes: Sequence[str] | None = None) -> Self:
        """One batch of a stream: every item is answered with the context as it stands, then learned from.

        Goes on from the context of `fit`, if there is one. A reader knows the labels of all batches so far and of this one; give
        `classes` where the first batch does not hold them all. With a `workdir` every batch is kept: a new estimator with the same
        parameters is given the stream from its start again, and goes on after the last batch that was learned from.

        Raises
        ------
        ValueError
            If X and y differ in length, fewer than two labels are known, or the `workdir` keeps another stream.
        """
        known = list(map(str, classes)) if classes is not None else list(getattr(self, "classes_", ()))
        batch = as_samples(X, y, f"batch{getattr(self, 'batches_', 0)}")
        labels = sorted({*known, *(Task(batch, self._task(batch).metric).labels())})
        listed = [Sample(f"label-{place}", label, label) for place, label in enumerate(labels)]
        task = self._task(listed)
        if not hasattr(self, "online_"):
            start = self.context_.context.root if hasattr(self, "context_") else None
            if start is None:
                self._texts = [one.asked for one in batch]
            self._prepare(task, task, anew=start is None, tuned=False, within="online")
            self.online_ = OnlineLoop(
                task, self.consumer_, self.meta_, self.base_, self.embed_, self.folder_ / "online", RolloutCache(), self.token_budget,
                confined=self.confined_, seed_context=start or self._seed_folder(), keep=self.workdir is not None, agents=self._families(),
            )  # fmt: skip
        elif labels != known:
            self.consumer_ = self._consumer(task)
        self.online_.task, self.online_.consumer = task, self.consumer_
        self.online_.step(batch)
        tune(self.consumer_, self.online_.seen)
        self.batches_ = getattr(self, "batches_", 0) + 1
        self.task_, self.classes_ = task, np.array(labels, dtype=object)
        self.context_, self.history_ = self.online_.function(), self.online_.history
        self.skill_, self.prequential_ = self.online_.incumbent.skill, self.online_.value()
        return self

    def _prepare(self, task: Task, whole: Task, *, anew: bool = True, tuned: bool = True, within: str = "") -> None:
        """Folder, embedder, sandbox, consumer and agents of a run; `whole` has all labels that are known, and agents work `within` a part
        of the folder."""
        self.embed_, self.task_ = self.embed or minilm(), task
        if self.workdir is not None:
            self.folder_ = Path(self.workdir)
        elif anew:
            self._temporary = tempfile.TemporaryDirectory()
            self.folder_ = Path(self._temporary.name)
        self.confined_ = InSandbox(allow_weak=self.allow_weak_sandbox)
        self.consumer_ = self._consumer(whole)
        if tuned:
            tune(self.consumer_, task.samples)
        self.meta_, self.base_ = self._meta(self.folder_ / within), self._base(self.folder_ / within)

    @property
    def usage_(self) -> dict[str, Any]:
        """Tokens read and written by the consumer and by the agents in this process, where they are language models at work."""
        agents = [one.usage for one in (self.meta_, self.base_) if hasattr(one, "usage")]
        found = {"agents": agents[0] + agents[1]} if len(agents) == 2 else {"agents": agents[0]} if agents else {}
        return found | ({"consumer": self.consumer_.usage} if hasattr(self.consumer_, "usage") else {})

    def predict(self, X: Sequence[Question]) -> NDArray[np.object_]:
        """(n,) answers."""
        check_is_fitted(self, "context_")
        asked = [with_own(text_of(x), own_of(x)) for x in X]
        if isinstance(self.consumer_, Workflow):
            return np.array([one.text for one in self.consumer_.run(self.context_, asked)], dtype=object)
        contexts = [made.text for made in self.context_.many([text_of(x) for x in X])]
        return np.array([one.text for one in self.consumer_.answer(asked, contexts)], dtype=object)

    def predict_proba(self, X: Sequence[Question]) -> NDArray[np.float64]:
        """(n, labels) softmax of the consumer's scores; of a reader's cosines, at a temperature of 0.05, which gives an order and no
        calibrated probability.

        Raises TypeError when the consumer gives no scores.
        """
        check_is_fitted(self, "context_")
        if not hasattr(self.consumer_, "scores"):
            raise TypeError(f"the consumer {self.consumer_.id} gives answers and no scores; use predict")
        contexts = [made.text for made in self.context_.many([text_of(x) for x in X])]
        scores = self.consumer_.scores([with_own(text_of(x), own_of(x)) for x in X], contexts)
        shares = np.exp((scores - scores.max(axis=1, keepdims=True)) / getattr(self.consumer_, "temperature", 1.0))
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

    def _consumer(self, task: Task) -> Consumer | Workflow:
        if not isinstance(self.consumer, str):
            return self.consumer
        if self.consumer not in CONSUMERS:
            raise ValueError(f"consumer is {self.consumer!r}; choose {', '.join(CONSUMERS)}, or give a Consumer")
        if self.consumer == "llm":
            from upheld.llm import CachedModel, language_model

            options: dict[str, Any] = {} if self.endpoint is None else {"concurrency": AT_ONCE}
            model = language_model(named(self.consumer_model, self.endpoint, "consumer_model"), **options)
            self.folder_.mkdir(parents=True, exist_ok=True)
            return GenerateLM(task, CachedModel(model, self.folder_ / "answers.sqlite"))
        if self.consumer == "label-lm":
            return LabelLM(task, self.consumer_model or "embedded")
        if self.consumer == "embedding":
            return embedding_reader(task, self.embed_)
        return tfidf_reader(task, self._texts)

    def _meta(self, home: Path) -> MetaAgent:
        if not isinstance(self.meta, str):
            return self.meta
        given = self.init_skill if isinstance(self.init_skill, Skill) else None
        if self.meta == "llm":
            model = named(self.agent_model, self.endpoint, "agent_model")
            return LLMMetaAgent(model, home, sandbox=self._sandbox(), embed=self.embed_, first=given)
        if self.meta != "program":
            raise ValueError(f"meta is {self.meta!r}; choose program or llm, or give a MetaAgent")
        if given is not None and given.genes is None:
            raise ValueError(
                "the skill to begin with has no program; add its genes under '## Program', or let models be the agents"
            )
        return ProgramMetaAgent(
            init=self.init_skill if isinstance(self.init_skill, str) else given.genes,  # type: ignore[union-attr,arg-type]
            budget=self.token_budget, reads_order=self.consumer_.reads_order, seed=self.seed,
        )  # fmt: skip

    def _base(self, home: Path) -> BaseAgent:
        if not isinstance(self.base, str):
            return self.base
        if self.base == "llm":
            model = named(self.agent_model, self.endpoint, "agent_model")
            return LLMBaseAgent(
                model,
                self.task_,
                home / "agents",
                sandbox=self._sandbox(),
                embed=self.embed_,
                budget=self.token_budget,
            )
        if self.base != "program":
            raise ValueError(f"base is {self.base!r}; choose program or llm, or give a BaseAgent")
        if len(self.task_.signatures) > 1:
            raise ValueError(
                "programs write get_context alone; a task of several interfaces needs base='llm', or an agent of yours"
            )
        if self.meta == "llm":
            raise ValueError(
                "a skill that a model writes has no program for base='program' to carry out; let base be 'llm' too"
            )
        return ProgramBaseAgent(self.embed_)

    def _sandbox(self) -> Sandbox:
        return Sandbox(preload=["numpy"], allow_weak=self.allow_weak_sandbox)

    def _families(self) -> str:
        """Who the agents are, and what they begin with, as the run's folder remembers it."""
        names = [one if isinstance(one, str) else type(one).__name__ for one in (self.meta, self.base)]
        model = f" {named(self.agent_model, self.endpoint, 'agent_model')}" if "llm" in names else ""
        family = "program" if names == ["program", "program"] else "/".join(names) + model
        if isinstance(self.init_skill, Skill):
            return f"{family}, from {hashlib.sha256(self.init_skill.text.encode()).hexdigest()[:12]}"
        return family if self.init_skill == "few-shot" else f"{family}, from {self.init_skill}"

    def _seed_folder(self) -> Path | None:
        """The folder of the context to start from; one made of the user's prompt, if that is what was given."""
        if self.seed_context is None:
            return None
        path = Path(self.seed_context)
        if path.is_file():
            text = path.read_text(encoding="utf-8").strip()
            return Context.from_prompt(text, self.folder_ / "seed", self.token_budget).root
        if not Context(path).operator.is_file():
            raise ValueError(
                f"{path} is neither a file with a prompt nor a folder with interfaces/get_context.py; name one of the two"
            )
        return path


CONSUMERS = ("embedding", "tfidf", "label-lm", "llm")


def named(model: str | None, endpoint: str | None, parameter: str) -> str:
    """A model as `upheld.llm` names it. Raises ValueError for an endpoint without a model."""
    if endpoint is None:
        return model or "embedded"
    if not model:
        raise ValueError(f"the endpoint {endpoint} may serve many models; name one as {parameter}")
    return f"openai:{model}@{endpoint}"


def tune(consumer: Consumer | Workflow, samples: Sequence[Sample]) -> None:
    """Let a consumer that gives several labels find how many, from training samples."""
    if hasattr(consumer, "tune"):
        consumer.tune(samples)


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
        Sample(f"{name}-{place}", text_of(x), str(label), context=own_of(x))
        for place, (x, label) in enumerate(zip(X, y, strict=True))
    ]


def own_of(x: Question) -> str:
    """A case's own context: the field ``context`` of an object. Raises TypeError where that is no text."""
    own = "" if isinstance(x, str) or x.get(OWN) is None else x[OWN]
    if not isinstance(own, str):
        raise TypeError(f"the field {OWN!r} of a question is text, got {type(own).__name__}")
    return own


def objects_of(samples: Sequence[Sample]) -> list[Question]:
    """Samples as `ContextEngineer` takes them."""
    return [{"question": one.question, OWN: one.context} if one.context else one.question for one in samples]
