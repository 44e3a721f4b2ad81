"""A consumer that writes: any model that chats, above all one at an OpenAI-compatible endpoint; its answer stands between tags."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from upheld.context.assembly import count_tokens
from upheld.context.consumers import Answered
from upheld.context.metrics import SEPARATOR
from upheld.context.task import Task
from upheld.llm.abreast import abreast

if TYPE_CHECKING:
    from upheld.llm import Answer, LanguageModel, Message, Request, Sampling, Usage

AT_ONCE = 8
MAX_TOKENS = 1024
TAGS = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
LONGEST = 200
"""Characters kept of an answer that has no tags; it is hardly a label, and counts as it is."""
SYSTEM = (
    "{text}\nThink as long as you need, then write the final answer, and nothing else, between <answer> and </answer>."
)
MANY = " It may have several labels: put '; ' between them."


class GenerateLM:
    """A model that is asked at temperature 0, eight requests at a time.

    Parameters
    ----------
    task : its text and template make the prompt; its labels are not told to the model, they are the context's to tell
    model : ``"openai:MODEL@URL"``, ``"embedded"``, a folder, or a `LanguageModel`, such as a `CachedModel`, whose answers outlive the run
    max_tokens : of an answer, what the model thinks before it included

    Attributes
    ----------
    id : model, metric and wording
    usage : tokens read and written so far, and their cost; answers from a cache are free

    Raises
    ------
    ValueError
        If there is no such model, or the samples have one label only.

    Examples
    --------
    >>> consumer = GenerateLM(task, "openai:my-model@http://localhost:8000/v1")                         # doctest: +SKIP
    >>> consumer.answer(["chest pain since monday"], ["- cardiology: chest pain"])[0].text              # doctest: +SKIP
    'cardiology'
    """

    reads_order = True

    def __init__(self, task: Task, model: str | LanguageModel, *, max_tokens: int = MAX_TOKENS) -> None:
        from upheld.llm import Sampling, Usage, language_model

        at_endpoint = isinstance(model, str) and model.startswith("openai:")
        options: dict[str, Any] = {"concurrency": AT_ONCE} if at_endpoint else {}
        self.model = language_model(model, **options)
        self.task, self.max_tokens = task, max_tokens
        self.system = SYSTEM.format(text=task.text) + (MANY if task.scoring.multilabel else "")
        self.sampling = Sampling(temperature=0.0, max_tokens=max_tokens)
        self.usage: Usage = Usage()
        self._lock = Lock()
        wording = hashlib.blake2b(f"{self.system}\0{max_tokens}".encode(), digest_size=8).hexdigest()
        self.id = f"generate-lm:{self.model.id}/{task.metric}/{wording}"
        if len(task.labels()) < 2:
            raise ValueError(
                f"the samples have one label only, {task.labels()[0]!r}; there is nothing to learn from them"
            )
        self._labels = {" ".join(label.casefold().split()): label for label in task.labels()}

    def prompt(self, context: str, question: str) -> str:
        return self.task.prompt(context, question)

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Answered]:
        """What stands between the tags. There is no runner-up, so that every margin is 0.

        A question that the model does not answer (withheld by a filter, all of `max_tokens` spent on thoughts) is answered with
        nothing, and why is said beside it.

        Raises
        ------
        ModelError
            If the model cannot be had: what was answered before is lost unless it is a `CachedModel`.
        """
        from upheld.llm import Request, conversation

        requests = [
            Request(conversation(self.prompt(context, question), self.system), sampling=self.sampling)
            for question, context in zip(questions, contexts, strict=True)
        ]
        if self.at_once is None:
            return [self._answered(*pair) for pair in zip(requests, self.model.answers(requests), strict=True)]
        found = dict(abreast(self._ask, requests, self.at_once))
        return [found[place] for place in range(len(requests))]

    def _ask(self, request: Request, _: Event) -> Answered:
        from upheld.llm import ModelError

        try:
            return self._answered(request, self.model.answers([request])[0])
        except ModelError as error:
            if not unanswered(error):
                raise
            return Answered("", 0.0, prompt_tokens(request), str(error))

    def count(self, answer: Answer) -> None:
        """Add what an answer took to `usage`; who asks the model beside the consumer, on its behalf, calls it."""
        if not answer.cached:
            with self._lock:
                self.usage = self.usage + answer.usage

    @property
    def at_once(self) -> int | None:
        """Requests that an endpoint is sent at a time; None for a model on this machine, which has its own batches."""
        return getattr(getattr(self.model, "model", self.model), "concurrency", None)

    def _answered(self, request: Request, answer: Answer) -> Answered:
        self.count(answer)
        return Answered(self.extracted(answer.text), 0.0, answer.usage.prompt_tokens or prompt_tokens(request))

    def extracted(self, text: str) -> str:
        """The answer in a model's text: what stands between the last tags, else the text itself, cut; labels as the task spells them."""
        tagged = TAGS.findall(text)
        said = " ".join((tagged[-1] if tagged else text[:LONGEST]).split())
        parts = said.split(";") if self.task.scoring.multilabel else [said]
        spelled = [self._labels.get(" ".join(part.casefold().split()), part.strip()) for part in parts]
        return SEPARATOR.join(part for part in spelled if part)


def prompt_tokens(request: Request) -> int:
    """Words and marks, where the model does not count its own tokens."""
    return sum(count_tokens(turn.content) for turn in request.messages)


def unanswered(error: OSError) -> bool:
    """Whether an error means this question alone: the model was reached, and gave no answer to it."""
    from upheld.llm.replies import _WHY_EMPTY

    said = str(error)
    return any(why in said for why in _WHY_EMPTY.values()) or "content_filter" in said


def answered(model: LanguageModel, asked: str | Sequence[Message], system: str | None, sampling: Sampling) -> Answer:
    """What a model says; nothing, where it was reached and gave no answer.

    Raises
    ------
    upheld.llm.ModelError
        If the model cannot be had.
    """
    from upheld.llm import Answer, ModelError

    try:
        return model.chat(asked, system=system, sampling=sampling)
    except ModelError as error:
        if not unanswered(error):
            raise
        return Answer("", "stop", model.id)
