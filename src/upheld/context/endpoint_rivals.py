"""A rival online that needs a model which writes: Dynamic Cheatsheet. (`dspy_rival` has those offline that need DSPy.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upheld.context.consumers import Consumer
from upheld.context.folder import shortened
from upheld.context.task import Sample, Task

if TYPE_CHECKING:
    from upheld.llm import LanguageModel

# -- Dynamic Cheatsheet (Suzgun et al., arXiv 2504.07952): one memory, rewritten after every item

CURATOR = (
    "You keep a cheatsheet that helps to solve a stream of similar tasks. {text}\nWrite it anew after each task: keep what is useful, "
    "add what was learned from this one, correct what was wrong, and stay within {budget} words. Answer with the cheatsheet alone."
)
SEEN = "The cheatsheet so far:\n{memory}\n\nThe task:\n{question}\n\nThe answer that was given: {answer}\nThe right answer: {target}"


@dataclass
class DynamicCheatsheet:
    """A memory that a model rewrites after every item, and that is the context of the next.

    As elsewhere online, an item is answered before anything is learned from it, and its right answer is told afterwards; the published
    method judges its own answers instead, which can only be harder.

    Parameters
    ----------
    consumer : answers, with the cheatsheet as its context
    curator : ``"openai:MODEL@URL"`` or a `LanguageModel`, rewrites the cheatsheet
    budget : words of the cheatsheet; what is written beyond them is cut at the end of a line
    """

    task: Task
    consumer: Consumer
    curator: str | LanguageModel
    budget: int = 1500

    def __post_init__(self) -> None:
        from upheld.llm import language_model

        self.model = language_model(self.curator)
        self.memory = ""

    def run(self, stream: Sequence[Sample]) -> float:
        """The cumulative metric over a stream.

        Raises
        ------
        upheld.llm.ModelError
            If the model cannot be had.
        """
        answers = [self.step(sample) for sample in stream]
        return self.task.scoring(answers, [sample.target for sample in stream])

    def step(self, sample: Sample) -> str:
        """The answer to an item; the cheatsheet is rewritten after it."""
        answer = self.consumer.answer([sample.asked], [self.memory])[0].text
        told = SEEN.format(memory=self.memory or "(empty)", question=sample.asked, answer=answer, target=sample.target)
        written = self.model.chat(told, system=CURATOR.format(text=self.task.text, budget=self.budget)).text
        self.memory = shortened(written, self.budget)
        return answer
