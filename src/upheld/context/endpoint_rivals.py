"""Rivals that need a model which writes: Dynamic Cheatsheet online, and the few-shot optimisers of DSPy offline.

They are for a user's own endpoint; no claim is judged on them here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from upheld.context.consumers import Consumer
from upheld.context.folder import shortened
from upheld.context.rivals import Contest
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
        answer = self.consumer.answer([sample.question], [self.memory])[0].text
        told = SEEN.format(
            memory=self.memory or "(empty)", question=sample.question, answer=answer, target=sample.target
        )
        written = self.model.chat(told, system=CURATOR.format(text=self.task.text, budget=self.budget)).text
        self.memory = shortened(written, self.budget)
        return answer


# -- DSPy: KNNFewShot, BootstrapFewShot, MIPROv2

OPTIMISERS = ("KNNFewShot", "BootstrapFewShot", "MIPROv2")
SHOTS = {"KNNFewShot": (1, 3, 5, 10, 16), "BootstrapFewShot": (2, 4, 8), "MIPROv2": (0, 4)}
"""Each one's main knob, tuned on the validation set: cases shown; 0 leaves MIPROv2 its instructions alone."""


@dataclass(frozen=True)
class Program:
    """A DSPy program that was compiled: the knob it ended with, and its figure on the validation set."""

    name: str
    answer: Callable[[Sequence[str]], list[str]]
    knob: int
    val: float


def dspy_optimised(name: str, contest: Contest, lm: Any) -> Program:
    """The best of an optimiser's programs by the validation set. Prompts are DSPy's own, with the task's text as instruction.

    Parameters
    ----------
    name : ``"KNNFewShot"``, ``"BootstrapFewShot"`` or ``"MIPROv2"`` (which needs ``optuna``)
    contest : task, validation set, embedder, seed and number of tries; its consumer is not asked, `lm` is
    lm : ``dspy.LM("openai/MODEL", api_base=URL)``

    Raises
    ------
    ValueError
        If there is no such optimiser.
    """
    if name not in OPTIMISERS:
        raise ValueError(f"there is no optimiser {name!r}; choose {', '.join(OPTIMISERS)}")
    tried = []
    for shots in SHOTS[name][: contest.tries]:
        answer = _answering(_compiled(name, shots, contest, lm), lm)
        answers = answer([one.question for one in contest.val])
        tried.append(Program(name, answer, shots, contest.task.scoring(answers, [one.target for one in contest.val])))
    return tried[int(np.argmax([one.val for one in tried]))]


def _compiled(name: str, shots: int, contest: Contest, lm: Any) -> Any:
    import dspy
    from dspy.teleprompt import BootstrapFewShot, KNNFewShot, MIPROv2

    train, val = (
        [dspy.Example(text=one.question, label=one.target).with_inputs("text") for one in part]
        for part in (contest.train, contest.val)
    )
    known: Any = dspy.Signature("text -> label", f"{contest.task.text} Labels: {', '.join(contest.task.labels())}.")
    student = dspy.Predict(known)
    with dspy.context(lm=lm):
        if name == "KNNFewShot":
            embed = dspy.Embedder(lambda texts: contest.embed(list(texts)))
            return KNNFewShot(shots, train, embed, max_bootstrapped_demos=0, max_labeled_demos=shots).compile(student)
        if name == "BootstrapFewShot":
            chosen = BootstrapFewShot(_right, max_bootstrapped_demos=shots, max_labeled_demos=2 * shots)
            return chosen.compile(student, trainset=train)
        chosen = MIPROv2(
            _right, prompt_model=lm, task_model=lm, max_bootstrapped_demos=shots, max_labeled_demos=shots, auto="light", seed=contest.seed
        )  # fmt: skip
        return chosen.compile(student, trainset=train, valset=val)


def _right(example: Any, prediction: Any, trace: Any = None) -> bool:
    return bool(str(prediction.label).strip() == example.label)


def _answering(program: Any, lm: Any) -> Callable[[Sequence[str]], list[str]]:
    def answer(questions: Sequence[str]) -> list[str]:
        import dspy

        with dspy.context(lm=lm):
            return [str(program(text=question).label).strip() for question in questions]

    return answer
