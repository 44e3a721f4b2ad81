"""Rivals that ask the model itself how sure it is: P(True), and a percentage in its own words.

P(True) (Kadavath et al. 2022, section 3) shows the model a question with a proposed answer and asks whether it is true.
With the log-probabilities of the first token of its reply::

    P(True) = p(True) / (p(True) + p(False))

each a sum over the tokens that begin that word ("True", " true", "T", ...). For an endpoint without log-probabilities it
is the share of "True" among sampled replies (``by="samples"``). Verbalised confidence (Tian et al. 2023) is the
percentage that the model states. Both are HIGH = more trustworthy; a race takes 1 minus them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from upheld.isotropy.wording import Wording, enclosed
from upheld.llm import Answer, LanguageModel, Message, ModelError, Request, Sampling, conversation

P_TRUE = Wording(
    "p-true",
    1,
    "You are given a question and a proposed answer to it. Decide whether the proposed answer is true. Reply with one word, "
    "True or False.",
)
PERCENTAGE = Wording(
    "verbalised-confidence",
    1,
    "You are given a question and a proposed answer to it. State how probable it is that everything the proposed answer "
    "claims is true, as a whole number of percent from 0 to 100. Reply with that number alone.",
)

ALTERNATIVES = 20
STATED = re.compile(r"(?:confidence:\s*)?([0-9]{1,3})\s*%?\.?", re.IGNORECASE)
WORD = re.compile(r"\W*(true|false)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Confidence:
    """How sure a model says it is of an answer.

    Attributes
    ----------
    value : between 0 and 1, HIGH = more trustworthy; NaN if nothing could be read
    source : what it was read from
    read : share of the probability, or of the replies, that could be read; near 0 the model did not do what it was asked
    """

    value: float
    source: Literal["logprobs", "samples", "stated"]
    read: float


def p_true(
    client: LanguageModel,
    prompt: str,
    answer: str,
    *,
    by: Literal["logprobs", "samples"] = "logprobs",
    n_samples: int = 10,
    seed: int | None = None,
) -> Confidence:
    """P(True) of one answer; `p_true_each` asks for many at once.

    Parameters
    ----------
    by : "samples" for an endpoint that gives no log-probabilities
    n_samples, seed : how many replies "samples" draws; reply i with seed + i, or None for fresh ones

    Raises
    ------
    ValueError
        If the prompt or the answer is empty, n_samples < 1, or `by` is neither.
    ModelError
        If the model cannot be reached, or gives no log-probabilities though they are wanted.
    """
    return p_true_each(client, prompt, [answer], by=by, n_samples=n_samples, seed=seed)[0]


def p_true_each(
    client: LanguageModel,
    prompt: str,
    answers: Sequence[str],
    *,
    by: Literal["logprobs", "samples"] = "logprobs",
    n_samples: int = 10,
    seed: int | None = None,
) -> list[Confidence]:
    """`p_true` of several answers to one prompt."""
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}")
    turns = [conversation(_question(prompt, answer), P_TRUE.text) for answer in answers]
    if by == "samples":
        return _share_of_true(client, turns, n_samples, seed)
    if by != "logprobs":
        raise ValueError(f"by must be 'logprobs' or 'samples', got {by!r}")
    sampling = Sampling(0.0, max_tokens=1, logprobs=ALTERNATIVES)
    return [_from_tokens(reply) for reply in client.answers([Request(one, sampling=sampling) for one in turns])]


def verbalised_confidence(client: LanguageModel, prompt: str, answer: str, *, seed: int | None = None) -> Confidence:
    """The probability that the model states for one answer; `verbalised_confidence_each` asks for many at once.

    Raises
    ------
    ValueError
        If the prompt or the answer is empty.
    ModelError
        If the model cannot be reached.
    """
    return verbalised_confidence_each(client, prompt, [answer], seed=seed)[0]


def verbalised_confidence_each(
    client: LanguageModel, prompt: str, answers: Sequence[str], *, seed: int | None = None
) -> list[Confidence]:
    """`verbalised_confidence` of several answers to one prompt."""
    turns = [conversation(_question(prompt, answer), PERCENTAGE.text) for answer in answers]
    sampling = Sampling(0.0, max_tokens=16, seed=seed)
    return [_stated(reply) for reply in client.answers([Request(one, sampling=sampling) for one in turns])]


def read_percentage(reply: str) -> float | None:
    """The share in a reply that is a whole number of percent and nothing else, or None.

    Examples
    --------
    >>> read_percentage("85%"), read_percentage("Confidence: 100"), read_percentage("0.9"), read_percentage("about 80")
    (0.85, 1.0, None, None)
    """
    found = STATED.fullmatch(reply.strip())
    percent = int(found.group(1)) if found else 101
    return percent / 100 if percent <= 100 else None


def _question(prompt: str, answer: str) -> str:
    if not prompt.strip():
        raise ValueError("the prompt is empty; give what was asked")
    if not answer.strip():
        raise ValueError("the answer is empty; leave it out")
    return f"{enclosed('question', prompt)}\n\n{enclosed('answer', answer)}"


def _from_tokens(reply: Answer) -> Confidence:
    """P(True) from the likeliest tokens at the first place; NaN if the model ends there without a word."""
    if reply.text and not reply.tokens:
        raise ModelError(f"{reply.model} gave no log-probabilities though they were asked for; take by='samples'")
    mass = {"true": 0.0, "false": 0.0}
    for token in reply.tokens[:1]:
        listed = any(text == token.text for text, _ in token.alternatives)
        for text, logprob in (*token.alternatives, *(() if listed else ((token.text, token.logprob),))):
            begun = text.strip().lower()
            for word in mass:
                if begun and word.startswith(begun):
                    mass[word] += math.exp(logprob)
    read = sum(mass.values())
    return Confidence(mass["true"] / read if read > 0 else math.nan, "logprobs", min(read, 1.0))


def _share_of_true(
    client: LanguageModel, turns: Sequence[tuple[Message, ...]], n_samples: int, seed: int | None
) -> list[Confidence]:
    """P(True) as the share of "True" among replies that begin with either word."""
    seeds = [None if seed is None else seed + i for i in range(n_samples)]
    requests = [Request(one, sampling=Sampling(1.0, max_tokens=8, seed=each)) for one in turns for each in seeds]
    replies = client.answers(requests)
    shares = []
    for start in range(0, len(replies), n_samples):
        words = [found.group(1).lower() for r in replies[start : start + n_samples] if (found := WORD.match(r.text))]
        value = words.count("true") / len(words) if words else math.nan
        shares.append(Confidence(value, "samples", len(words) / n_samples))
    return shares


def _stated(reply: Answer) -> Confidence:
    share = read_percentage(reply.text)
    return Confidence(math.nan, "stated", 0.0) if share is None else Confidence(share, "stated", 1.0)
