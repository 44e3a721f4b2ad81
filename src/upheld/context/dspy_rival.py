"""DSPy's few-shot optimisers as rivals: above all `KNNFewShot`, the nearest training cases as turns of a chat, which is what practitioners
deploy at an endpoint.

Everything is the package's own (dspy 3.4 or later): retrieval, prompts, demonstrations, what it does with a malformed answer. The model
behind it is the consumer's, with the consumer's sampling, retries and count of tokens; the budget a query is the race's, and so is the
number of validation passes that tune its main knob.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from upheld.context.assembly import count_tokens
from upheld.context.consumers import Answered
from upheld.context.folder import Context, ContextFunction
from upheld.context.generate_lm import MANY, GenerateLM, unanswered
from upheld.context.rivals import Contender, Contest
from upheld.context.rollouts import RolloutCache, evaluate, figure
from upheld.llm.abreast import abreast

if TYPE_CHECKING:
    from upheld.context.task import Sample

KNN = "DSPy KNNFewShot"
OPTIMISERS = {"KNNFewShot": (1, 3, 5, 10, 16, 2, 8), "BootstrapFewShot": (2, 4, 8), "MIPROv2": (0, 4)}
"""Each one's main knob, tuned on the validation set as far as tries allow: cases shown; 0 leaves MIPROv2 its instructions alone."""
MISSING = 'needs the package dspy; pip install "upheld[context-dspy]"'


def installed() -> bool:
    return importlib.util.find_spec("dspy") is not None


def dspy_optimised(contest: Contest, name: str = "KNNFewShot") -> Contender:
    """The best of an optimiser's programs by the validation set; the first among equals.

    Parameters
    ----------
    contest : its consumer is a `GenerateLM`, whose model the programs ask
    name : ``"KNNFewShot"``, ``"BootstrapFewShot"`` or ``"MIPROv2"`` (which needs ``optuna``)

    Raises
    ------
    ValueError
        If there is no such optimiser, or the consumer does not write its answers.
    ImportError
        If `dspy` is not installed.
    upheld.llm.ModelError
        If the model cannot be had.
    """
    if name not in OPTIMISERS:
        raise ValueError(f"there is no optimiser {name!r}; choose {', '.join(OPTIMISERS)}")
    if not isinstance(contest.consumer, GenerateLM):
        raise ValueError(
            f"DSPy's programs ask a model that writes, and {contest.consumer.id} is none; give a GenerateLM as the consumer"
        )
    if not installed():
        raise ImportError(f"this rival {MISSING}")
    empty = ContextFunction(Context(contest.folder / "dspy"), contest.embed, contest.budget)
    cache, tried = RolloutCache(), []
    for shots in OPTIMISERS[name][: contest.tries]:
        program = Program(name, shots, contest, contest.consumer)
        val = figure(contest.task, evaluate(contest.task, contest.val, empty, program, cache))
        tried.append(Contender(f"DSPy {name}", empty, cache.spent, f"{shots} cases", val, program))
    best = tried[int(np.argmax([one.val for one in tried]))]
    return Contender(best.name, empty, cache.spent, best.knob, best.val, best.consumer)


class Program:
    """A DSPy program that an optimiser compiled, as a consumer that brings its own context (a `Workflow`)."""

    reads_order = True

    def __init__(self, name: str, shots: int, contest: Contest, consumer: GenerateLM) -> None:
        import dspy

        self.contest, self.consumer = contest, consumer
        self.id = f"dspy:{name}/{shots}/{consumer.id}"
        told = contest.task.text + (MANY if contest.task.scoring.multilabel else "")
        self.bare: Any = dspy.Signature("text -> label", told)
        self.lm: Any = dspy.LM(
            "consumer",
            engine=Engine(consumer),
            temperature=0.0,
            max_tokens=consumer.max_tokens,
            cache=False,
            num_retries=0,
        )
        known: Any = dspy.Signature("text -> label", f"{told} Labels: {', '.join(contest.task.labels())}.")
        with silent(), self._at_work(dspy.ChatAdapter()):
            self.program = compiled(name, shots, contest, dspy.Predict(known), self.lm)

    def run(self, context: ContextFunction, questions: Sequence[str]) -> list[Answered]:
        """One answer a question; what cannot be read as the package wants it is an empty one, and why is said beside it. The context that
        is given is not looked at."""
        with silent():
            found = dict(abreast(self._ask, questions, self.consumer.at_once or 1))
        return [found[place] for place in range(len(questions))]

    def _ask(self, question: str, _: Event) -> Answered:
        from dspy.utils.exceptions import AdapterParseError

        within = bounded(self.contest, self.bare)
        try:
            with self._at_work(within):
                label = str(self.program(text=question).label)
        except AdapterParseError as error:
            return Answered("", 0.0, within.tokens, " ".join(str(error).split())[:LONGEST])
        return Answered(self.consumer.extracted(label.strip()), 0.0, within.tokens)

    @contextmanager
    def _at_work(self, adapter: Any) -> Iterator[None]:
        """DSPy with this model, in this thread alone; what the model's own errors say is said as they are."""
        import dspy
        from dspy.utils.exceptions import LMError

        from upheld.llm import ModelError

        try:
            with dspy.context(lm=self.lm, adapter=adapter, disable_history=True):
                yield
        except LMError as error:
            if isinstance(error.__cause__, ModelError):
                raise error.__cause__ from error
            raise


LONGEST = 200
"""Characters kept of why an answer could not be read."""


def compiled(name: str, shots: int, contest: Contest, student: Any, lm: Any) -> Any:
    import dspy
    from dspy.teleprompt import BootstrapFewShot, KNNFewShot, MIPROv2

    train, val = examples(contest.train), examples(contest.val)
    if name == "KNNFewShot":
        embed = dspy.Embedder(lambda texts: contest.embed(list(texts)), caching=False)
        return KNNFewShot(shots, train, embed, max_bootstrapped_demos=0, max_labeled_demos=shots).compile(student)
    right = rightly(contest)
    if name == "BootstrapFewShot":
        chosen = BootstrapFewShot(right, max_bootstrapped_demos=shots, max_labeled_demos=2 * shots)
        return chosen.compile(student, trainset=train)
    chosen = MIPROv2(
        right, prompt_model=lm, task_model=lm, max_bootstrapped_demos=shots, max_labeled_demos=shots, auto="light", seed=contest.seed
    )  # fmt: skip
    return chosen.compile(student, trainset=train, valset=val)


def examples(samples: Sequence[Sample]) -> list[Any]:
    import dspy

    return [dspy.Example(text=one.asked, label=one.target).with_inputs("text") for one in samples]


def rightly(contest: Contest) -> Any:
    def right(example: Any, prediction: Any, trace: Any = None) -> bool:
        return bool(contest.task.scoring.scores([str(prediction.label).strip()], [example.label])[0] == 1.0)

    return right


def bounded(contest: Contest, bare: Any) -> Any:
    """DSPy's own format of a chat, with the demonstrations that are most like the question as far as the budget goes.

    Counted is what is in the prompt beyond the same prompt without labels and demonstrations, which is its template.
    """
    import dspy

    class Within(dspy.ChatAdapter):  # type: ignore[misc]
        tokens = 0

        def __call__(self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: Any) -> Any:
            kept = nearest_first(contest, demos, inputs["text"])
            while kept and self.beyond(signature, kept, inputs) > contest.budget:
                kept.pop()
            if self.beyond(signature, kept, inputs) > contest.budget:
                signature = bare
            self.tokens = self.beyond(signature, kept, inputs)
            shown = {id(one) for one in kept}
            return super().__call__(lm, lm_kwargs, signature, [one for one in demos if id(one) in shown], inputs)

        def beyond(self, signature: Any, demos: Any, inputs: Any) -> int:
            return self.length(signature, demos, inputs) - self.length(bare, [], inputs)

        def length(self, signature: Any, demos: Any, inputs: Any) -> int:
            return sum(count_tokens(str(turn["content"])) for turn in self.format(signature, demos, inputs))

    return Within()


def nearest_first(contest: Contest, demos: Sequence[Any], text: str) -> list[Any]:
    if not demos:
        return []
    near = contest.embed([one["text"] for one in demos]) @ contest.embed([text])[0]
    return [demos[place] for place in np.argsort(-near, kind="stable")]


@dataclass(frozen=True)
class Engine:
    """The consumer's model as DSPy's: it is asked at the consumer's sampling, and counted there."""

    consumer: GenerateLM

    def complete(self, request: Any) -> Any:
        """One answer; an empty one where the model was reached and gave none.

        Raises
        ------
        upheld.llm.ModelError
            If the model cannot be had.
        """
        from upheld.llm import Message, ModelError, Request, conversation

        turns = [Message(one.role, "".join(part.text for part in one.parts)) for one in request.messages]
        try:
            asked = Request(conversation(turns, request.system), sampling=self.consumer.sampling)
            answer = self.consumer.model.answers([asked])[0]
        except ModelError as error:
            if not unanswered(error):
                raise
            return said("", request.model, 0, 0)
        self.consumer.count(answer)
        return said(answer.text, answer.model, answer.usage.prompt_tokens, answer.usage.completion_tokens)


def said(text: str, model: str, read: int, written: int) -> Any:
    from dspy import lm15

    turn = lm15.Message("assistant", (lm15.TextPart(text),))
    return lm15.Response(None, model, turn, "stop", lm15.Usage(input_tokens=read, output_tokens=written))


@contextmanager
def silent() -> Iterator[None]:
    """What the package prints of every question is not wanted here."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield
