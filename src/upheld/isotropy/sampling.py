"""Answers to one prompt, sampled so that their spread means something.

The model is asked for one self-contained answer of about 500 words between tags, at temperature 0.7 (the paper's
protocol: 20 answers for a study; 5 serve in use). Sample i is drawn with seed base_seed + i, so that more samples never
change the earlier ones. Temperature 0, a response cache, or one seed for all make every answer the same and the score 0
by construction: the first is refused, and identical answers are remarked on.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.wording import Wording
from upheld.llm import Answer, LanguageModel, ModelError, Request, Sampling, Usage, conversation

INSTRUCTION = Wording(
    "answer-between-tags",
    1,
    "Answer the user in one continuous text of about 500 words that a reader understands without seeing the question. "
    "State facts, and keep remarks about yourself, your sources or the task out of it. Begin with <answer>, end with "
    "</answer>, and write nothing before or after these tags.",
)

OPENING = re.compile(r"<answer>", re.IGNORECASE)
CLOSING = re.compile(r"</answer>", re.IGNORECASE)
CUT_CLOSING = re.compile(r"<(?:/(?:a(?:n(?:s(?:w(?:er?)?)?)?)?)?)?$", re.IGNORECASE)


@dataclass(frozen=True)
class SampledResponses:
    """Answers to one prompt with what is known of each.

    Attributes
    ----------
    prompt : what was asked
    texts : (n,) answers without their tags
    truncated : (n,) whether the closing tag was missing: the model was cut off, or paid no heed to the tags
    finishes : (n,) why each ended, as `upheld.llm.Answer` has it
    seeds : (n,) seed of each draw, None where fresh
    model : id of the model that answered; wording : id of the instruction it was given
    usage : tokens of all answers together
    """

    prompt: str
    texts: tuple[str, ...]
    truncated: tuple[bool, ...]
    finishes: tuple[str, ...]
    seeds: tuple[int | None, ...]
    model: str
    usage: Usage
    wording: str = INSTRUCTION.id

    def __len__(self) -> int:
        return len(self.texts)

    def __add__(self, later: SampledResponses) -> SampledResponses:
        """These answers, then `later` ones to the same prompt."""
        if (self.prompt, self.model, self.wording) != (later.prompt, later.model, later.wording):
            raise ValueError(
                "answers to different prompts, of different models or instructions do not add up; keep them apart"
            )
        return SampledResponses(
            self.prompt,
            self.texts + later.texts,
            self.truncated + later.truncated,
            self.finishes + later.finishes,
            self.seeds + later.seeds,
            self.model,
            self.usage + later.usage,
            self.wording,
        )


def sample_responses(
    client: LanguageModel,
    prompt: str,
    n: int = 5,
    temperature: float = 0.7,
    max_tokens: int = 700,
    seed: int | None = None,
) -> list[str]:
    """`n` answers to `prompt`, for `SemanticIsotropy`; `draw_responses` gives them with what is known of each.

    Parameters
    ----------
    client : the model
    prompt : what is asked
    n : number of answers
    temperature : above 0; with 0 all answers would be the same
    max_tokens : an answer is cut there, and kept
    seed : sample i has seed + i; None draws afresh each time

    Raises
    ------
    ValueError
        On an empty prompt, n < 1, or temperature 0.
    ModelError
        If the model gives no answer, or an empty one.

    Examples
    --------
    >>> from upheld.llm import language_model                                          # doctest: +SKIP
    >>> sample_responses(language_model("embedded"), "Who was Ada Lovelace?", seed=0)  # doctest: +SKIP
    """
    return list(draw_responses(client, prompt, n, temperature, max_tokens, seed).texts)


def draw_responses(
    client: LanguageModel,
    prompt: str,
    n: int = 5,
    temperature: float = 0.7,
    max_tokens: int = 700,
    seed: int | None = None,
) -> SampledResponses:
    """As `sample_responses`, with truncation, seeds and usage.

    Warns
    -----
    IsotropyWarning
        If two answers are identical byte for byte.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    drawn = draw_range(client, prompt, range(n), temperature, max_tokens, seed)
    warn_of_identical(drawn.texts)
    return drawn


def draw_range(
    client: LanguageModel, prompt: str, places: range, temperature: float, max_tokens: int, seed: int | None
) -> SampledResponses:
    """Samples number `places` of a prompt, each the same whatever others are drawn with it."""
    if not prompt.strip():
        raise ValueError("the prompt is empty; ask something")
    if temperature == 0:
        raise ValueError(
            "temperature 0 gives the same answer each time, and so the score 0; take 0.7, as the paper does"
        )
    seeds = tuple(None if seed is None else seed + i for i in places)
    turns = conversation(prompt, INSTRUCTION.text)
    answers = client.answers(
        [Request(turns, sampling=Sampling(temperature, max_tokens=max_tokens, seed=one)) for one in seeds]
    )
    texts, truncated = zip(*(between_tags(answer.text) for answer in answers), strict=True)
    _check_not_empty(texts, places, prompt, answers)
    return SampledResponses(
        prompt,
        texts,
        truncated,
        tuple(answer.finish for answer in answers),
        seeds,
        answers[0].model,
        reduce(add, (answer.usage for answer in answers)),
    )


def between_tags(text: str) -> tuple[str, bool]:
    """The answer in a model's `text`, and whether its closing tag is missing.

    Examples
    --------
    >>> between_tags("Sure. <answer>Lima lies in Peru.</answer> Anything else?")
    ('Lima lies in Peru.', False)
    >>> between_tags("<answer>Lima lies in</ans")
    ('Lima lies in', True)
    """
    if opening := OPENING.search(text):
        text = text[opening.end() :]
    if closing := CLOSING.search(text):
        return text[: closing.start()].strip(), False
    return CUT_CLOSING.sub("", text.rstrip()).strip(), True


def warn_of_identical(texts: Sequence[str]) -> None:
    """Remark on answers that are the same byte for byte, which no sampler above temperature 0 gives for a long text."""
    first: dict[str, int] = {}
    for i, text in enumerate(texts):
        if first.setdefault(text, i) < i:
            warnings.warn(
                f"answers {first[text]} and {i} are identical byte for byte; if a cache or a fixed seed answered, "
                "the score is too low by construction: turn it off, or give another seed",
                IsotropyWarning,
                stacklevel=3,
            )
            return


def _check_not_empty(texts: Sequence[str], places: range, prompt: str, answers: Sequence[Answer]) -> None:
    for place, text, answer in zip(places, texts, answers, strict=True):
        if not text:
            raise ModelError(
                f"answer {place} of {answer.model} to {prompt[:60]!r} is empty (it ended with {answer.finish!r} after "
                f"{answer.usage.completion_tokens} tokens); raise max_tokens, or ask another model"
            )
