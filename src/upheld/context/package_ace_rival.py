"""ACE by its package on PyPI, `ace-framework` 0.7: its own loop, prompts, reflector and skill manager, which may rewrite and remove too.

The consumer takes the place of the package's agent, so that a rollout is everyone's: the race's template and sampling, with the skillbook
in the words that the package shows to agents not its own. Behind reflector and skill manager is the agents' model. (`ace_rival` is our
own reading of the paper.)
"""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from upheld.context.ace_rival import SAMPLING
from upheld.context.assembly import count_tokens
from upheld.context.consumers import Answered
from upheld.context.folder import Context, ContextFunction
from upheld.context.generate_lm import GenerateLM, answered
from upheld.context.llm_agents.tools import as_json
from upheld.context.rivals import EPOCHS, Contender, Contest
from upheld.context.rollouts import RolloutCache, evaluate, figure
from upheld.llm.answer import Message, Usage

if TYPE_CHECKING:
    from upheld.llm import LanguageModel

PACKAGE = "ace-framework"
RELEASE = "0.7"
"""The last that Python 3.11 can have; its interface is no stable one."""
MISSING = f'needs the package ace-framework; pip install --no-deps "{PACKAGE}=={RELEASE}.1" "python-toon==0.2.0"'
FORM = "Answer with one JSON object alone, which fits this JSON Schema whatever form was shown above:\n{schema}"
AGAIN = "That does not fit the schema: {why}\nAnswer anew, with the JSON object alone."
RETRIES = 3
"""Replies asked for anew where one does not fit, as the package asks for by default."""


def installed() -> bool:
    try:
        return version(PACKAGE).startswith(f"{RELEASE}.") and importlib.util.find_spec("toon") is not None
    except PackageNotFoundError:
        return False


def package_ace(contest: Contest, mind: Structured) -> Contender:
    """The skillbook after one epoch or two, whichever does better on the validation set; that after one is the way to two.

    Parameters
    ----------
    contest : its consumer is a `GenerateLM`
    mind : what reflector and skill manager ask

    Raises
    ------
    ValueError
        If the consumer does not write its answers.
    ImportError
        If `ace-framework` 0.7 or `python-toon`, in which it writes a skillbook, is not installed.
    upheld.llm.ModelError
        If a model cannot be had.
    """
    if not isinstance(contest.consumer, GenerateLM):
        raise ValueError(
            f"{PACKAGE} reflects on what a model writes, and {contest.consumer.id} writes nothing; give a GenerateLM as the consumer"
        )
    if not installed():
        raise ImportError(f"this rival {MISSING}")
    from ace import OfflineACE, Reflector, Skillbook, SkillManager

    logging.getLogger("ace").addHandler(logging.NullHandler())  # else it tells the terminal of every case that it skips
    agent = Agent(contest, contest.consumer)
    learner = OfflineACE(
        agent=agent, reflector=Reflector(mind), skill_manager=SkillManager(mind), enable_observability=False
    )
    empty = ContextFunction(Context(contest.folder / PACKAGE), contest.embed, contest.budget)
    cache, tried, skipped = RolloutCache(), list[Contender](), 0
    for epoch in EPOCHS[: contest.tries]:
        try:
            learned = learner.run(samples(contest), Verdicts(contest))
        except Unskippable as raised:
            raise raised.error from None
        skipped += len(contest.train) - len(learned)
        shown = Skilled(contest, contest.consumer, Skillbook.from_dict(learner.skillbook.to_dict()))
        val = figure(contest.task, evaluate(contest.task, contest.val, empty, shown, cache))
        knob = f"{epoch} epochs" + (f", {skipped} cases skipped" if skipped else "")
        tried.append(Contender(PACKAGE, empty, 0, knob, val, shown))
    best = tried[int(np.argmax([one.val for one in tried]))]
    return replace(best, rollouts=agent.rollouts + cache.spent)


def samples(contest: Contest) -> list[Any]:
    from ace import Sample

    return [Sample(question=one.asked, ground_truth=one.target) for one in contest.train]


# -- what the package calls


class Unskippable(BaseException):
    """Carries an error past the package, which at any Exception skips the case and goes on to the next."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextmanager
def unskippable() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise Unskippable(error) from error


class Agent:
    """The consumer in the place of the package's agent; what it thinks before its answer is what is reflected on."""

    def __init__(self, contest: Contest, consumer: GenerateLM) -> None:
        self.contest, self.consumer, self.rollouts = contest, consumer, 0

    def generate(self, *, question: str, skillbook: Any, **_: Any) -> Any:
        from ace import AgentOutput
        from ace.roles import extract_cited_skill_ids

        with unskippable():
            prompt = self.consumer.prompt(within(skillbook, self.contest.budget), question)
            answer = answered(self.consumer.model, prompt, self.consumer.system, self.consumer.sampling)
            self.consumer.count(answer)
            self.rollouts += 1
            return AgentOutput(
                reasoning=answer.text,
                final_answer=self.consumer.extracted(answer.text),
                skill_ids=extract_cited_skill_ids(answer.text),
            )


class Verdicts:
    """The package's environment: says whether an answer is right, and what would have been."""

    def __init__(self, contest: Contest) -> None:
        self.scoring = contest.task.scoring

    def evaluate(self, sample: Any, output: Any) -> Any:
        from ace import EnvironmentResult

        with unskippable():
            score = self.scoring.scores([output.final_answer], [sample.ground_truth])[0]
        feedback = "Correct." if score == 1.0 else f"Incorrect. Expected: {sample.ground_truth}"
        return EnvironmentResult(feedback, sample.ground_truth, {"correct": score})


class Structured:
    """A model that fills in the package's forms.

    A reply that does not fit is asked for anew, with what is wrong; after `RETRIES` of them the case is skipped, by the package's rule.

    Attributes
    ----------
    usage : tokens read and written so far
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.usage = model, Usage(cost=0.0)

    def complete_structured(self, prompt: str, form: Any, **options: Any) -> Any:
        turns = [Message("user", f"{prompt}\n\n{FORM.format(schema=json.dumps(form.model_json_schema()))}")]
        for _ in range(1 + RETRIES):
            with unskippable():
                answer = answered(self.model, turns, None, SAMPLING)
                self.usage = self.usage + answer.usage
            try:
                return form.model_validate(as_json(answer.text, {"type": "object"}))
            except ValueError as wrong:
                unfit = wrong
                turns += [Message("assistant", answer.text), Message("user", AGAIN.format(why=wrong))]
        raise unfit


# -- what the consumer is shown


def within(skillbook: Any, budget: int) -> str:
    """The skillbook as the package shows it, without those skills that helped least, of equals the latest, as far as the budget asks."""
    from ace import Skillbook
    from ace.prompts_v2_1 import wrap_skillbook_for_external_agent

    kept = Skillbook.from_dict(skillbook.to_dict())
    ranked = sorted(kept.skills(), key=lambda skill: skill.harmful - skill.helpful)
    while count_tokens(text := str(wrap_skillbook_for_external_agent(kept))) > budget:
        kept.remove_skill(ranked.pop().id)
    return text


class Skilled:
    """The consumer with a skillbook in its prompt, the same for every question (a `Workflow`)."""

    reads_order = True

    def __init__(self, contest: Contest, consumer: GenerateLM, skillbook: Any) -> None:
        self.consumer, self.text = consumer, within(skillbook, contest.budget)
        self.id = f"{PACKAGE}/{consumer.id}"

    def run(self, context: ContextFunction, questions: Sequence[str]) -> list[Answered]:
        """One answer a question. The context that is given is not looked at."""
        tokens = count_tokens(self.text)
        return [replace(one, tokens=tokens) for one in self.consumer.answer(questions, [self.text] * len(questions))]
