"""Segment-Score: which passages of an answer a reference document supports, by a language model as judge.

The judge splits an answer into verbatim segments and marks each 1 (supported by the reference) or 0 (wrong,
unverifiable, or partly wrong)::

    factuality(answer) = mean of its marks,      factuality(prompt) = mean over its labelled answers

A reply counts only if it is JSON of that form and its segments, put together, are the answer up to white space. Else the
judge is told what is wrong and asked once more; after that the answer is *unlabelled*, never scored 0.

Protocol: Bhardwaj, Kempe & Rudner, ICML 2026 (Segment-Score); the wordings are ours. There are three of them with one
meaning, since the judge's verdict is itself a measurement whose repeatability is in question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from upheld.isotropy.wording import Wording, enclosed
from upheld.llm import LanguageModel, Message, Request, Sampling, Usage, conversation

FORM = (
    'Reply with JSON alone: a list of objects, each with "segment" (text) and "mark" (1 or 0), for example\n'
    '[{"segment": "Ada Lovelace was born in London", "mark": 1}, {"segment": " in 1820.", "mark": 0}]'
)

JUDGES = (
    Wording(
        "segment-judge-plain",
        1,
        "You check an answer against a reference. Split the answer into short consecutive segments, each making one claim. "
        "Copy every segment letter by letter, so that all of them, read one after the other, are the whole answer: leave "
        "nothing out, add nothing, correct nothing. Mark a segment 1 if the reference supports all that it claims. Mark it 0 "
        "if any part of it is contradicted by the reference or cannot be verified with it. Use nothing but the reference.\n"
        + FORM,
    ),
    Wording(
        "segment-judge-editor",
        1,
        "Work as a fact-checking editor whose only source is the reference. Go through the answer from its first to its last "
        "character and cut it into pieces of one statement each. The pieces are quotations: put together in order they must "
        "give back the answer exactly, spelling mistakes included. A piece earns a 1 when the source backs it in full; when "
        "it is wrong, when only a part of it is right, or when the source is silent on it, it earns a 0.\n" + FORM,
    ),
    Wording(
        "segment-judge-steps",
        1,
        "Two things are given: a reference and an answer.\n1. Divide the answer into passages, none of which claims more than "
        "one thing. Quote each passage word for word and in order, without gaps or overlaps, until the answer is used up.\n"
        "2. For each passage ask whether the reference confirms it completely. Write 1 for yes. Write 0 for no, which "
        "includes: it is false, it is partly false, the reference does not tell.\n" + FORM,
    ),
)

FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*)\n\s*```", re.DOTALL)


class Unreadable(ValueError):
    """What is wrong with a judge's reply, said so that the judge can mend it."""


@dataclass(frozen=True)
class Segment:
    """A passage of an answer, and whether the reference supports it (1) or not (0)."""

    text: str
    mark: int


@dataclass(frozen=True)
class JudgedAnswer:
    """What the judge made of one answer.

    Attributes
    ----------
    segments : none if unlabelled
    attempts : replies asked for, 1 or 2; usage : their tokens
    reason : why the last reply could not be read, None if labelled
    """

    segments: tuple[Segment, ...]
    attempts: int
    usage: Usage
    reason: str | None = None

    @property
    def factuality(self) -> float | None:
        """Mean of the marks, None if unlabelled."""
        return sum(segment.mark for segment in self.segments) / len(self.segments) if self.segments else None


@dataclass(frozen=True)
class JudgedPrompt:
    """All answers to one prompt, and the id of the wording that the judge was given."""

    answers: tuple[JudgedAnswer, ...]
    judge: str

    @property
    def factualities(self) -> tuple[float | None, ...]:
        """One an answer, None where unlabelled, as `upheld.isotropy.data.responses.Responses` takes them."""
        return tuple(answer.factuality for answer in self.answers)

    @property
    def n_unlabelled(self) -> int:
        """Answers left out of `factuality`."""
        return self.factualities.count(None)

    @property
    def factuality(self) -> float | None:
        """Mean over the labelled answers, None if there are none."""
        known = [one for one in self.factualities if one is not None]
        return sum(known) / len(known) if known else None

    @property
    def nonfactuality(self) -> float | None:
        """1 - factuality."""
        return None if self.factuality is None else 1 - self.factuality

    @property
    def usage(self) -> Usage:
        """Tokens that the judge read and wrote."""
        return reduce(add, (answer.usage for answer in self.answers))


class SegmentScorer:
    """Labels answers with a language model as judge.

    Parameters
    ----------
    client : the judge
    judge : which instruction it is given, one of `JUDGES`
    temperature, seed : of its replies
    max_tokens : its reply repeats the answer, so allow about three times the longest answer

    Examples
    --------
    >>> from upheld.llm import language_model                                              # doctest: +SKIP
    >>> scorer = SegmentScorer(language_model("openai:judge@http://localhost:8000/v1"))    # doctest: +SKIP
    >>> scorer.judge_prompt(["Lima lies in Peru."], "Lima is the capital of Peru.").factuality  # doctest: +SKIP
    1.0
    """

    def __init__(
        self,
        client: LanguageModel,
        *,
        judge: Wording = JUDGES[0],
        temperature: float = 0.0,
        max_tokens: int = 4096,
        seed: int | None = None,
    ) -> None:
        self.client = client
        self.judge = judge
        self.sampling = Sampling(temperature, max_tokens=max_tokens, seed=seed)

    def judge_prompt(self, answers: Sequence[str], reference: str) -> JudgedPrompt:
        """Judge the answers to one prompt against its reference document.

        Raises
        ------
        ValueError
            If there are no answers, or one of them or the reference is empty.
        ModelError
            If the judge cannot be reached.
        """
        return JudgedPrompt(tuple(self.judge_answers(answers, [reference] * len(answers))), self.judge.id)

    def judge_answers(self, answers: Sequence[str], references: Sequence[str]) -> list[JudgedAnswer]:
        """Judge answers, each against its own reference; all are asked together, then all second attempts."""
        _check_texts(answers, references)
        turns = [
            conversation(f"{enclosed('reference', reference)}\n\n{enclosed('answer', answer)}", self.judge.text)
            for answer, reference in zip(answers, references, strict=True)
        ]
        judged, replies = self._ask(turns, answers)
        failed = [i for i, one in enumerate(judged) if one.reason is not None]
        if failed:
            # the same conversation gets the same reply from a judge at temperature 0, so it goes on instead
            goes_on = [
                (*turns[i], Message("assistant", replies[i] or "(nothing)"), _complaint(judged[i].reason))
                for i in failed
            ]
            again, _ = self._ask(goes_on, [answers[i] for i in failed])
            for i, second in zip(failed, again, strict=True):
                judged[i] = replace(second, attempts=2, usage=judged[i].usage + second.usage)
        return judged

    def _ask(
        self, turns: Sequence[tuple[Message, ...]], answers: Sequence[str]
    ) -> tuple[list[JudgedAnswer], list[str]]:
        replies = self.client.answers([Request(one, sampling=self.sampling) for one in turns])
        judged = []
        for reply, answer in zip(replies, answers, strict=True):
            try:
                judged.append(JudgedAnswer(read_segments(reply.text, answer), 1, reply.usage))
            except Unreadable as wrong:
                reason = f"{wrong} (it was cut off)" if reply.finish == "length" else str(wrong)
                judged.append(JudgedAnswer((), 1, reply.usage, reason))
        return judged, [reply.text for reply in replies]


def read_segments(reply: str, answer: str) -> tuple[Segment, ...]:
    """The segments in a judge's `reply` about `answer`, inside a code fence or not.

    Raises
    ------
    Unreadable
        If the reply is anything else than segments with marks that make up the answer.

    Examples
    --------
    >>> read_segments('[{"segment": "Lima is", "mark": 1}, {"segment": "in Chile.", "mark": 0}]', "Lima is in Chile.")
    (Segment(text='Lima is', mark=1), Segment(text='in Chile.', mark=0))
    """
    items = _json(reply)
    if not isinstance(items, list) or not items:
        raise Unreadable("the reply is no JSON list of segments")
    segments = tuple(_segment(number, item) for number, item in enumerate(items, start=1))
    _check_verbatim("".join(segment.text for segment in segments), answer)
    return segments


def _json(reply: str) -> Any:
    """The reply as JSON, or else what its code fence holds."""
    fence = FENCE.search(reply)
    for text in [reply] if fence is None else [reply, fence.group(1)]:
        try:
            return json.loads(text, object_pairs_hook=_distinct)
        except (json.JSONDecodeError, RecursionError):
            continue
    raise Unreadable("the reply is no JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    item = dict(pairs)
    if len(item) < len(pairs):
        raise Unreadable(f"an object of the reply has the same key twice: {', '.join(key for key, _ in pairs)}")
    return item


def _segment(number: int, item: Any) -> Segment:
    if not isinstance(item, dict) or item.keys() != {"segment", "mark"}:
        raise Unreadable(f'item {number} is no object with "segment" and "mark" and nothing else')
    text, mark = item["segment"], item["mark"]
    if not isinstance(text, str) or not text.strip():
        raise Unreadable(f"segment {number} is empty")
    if isinstance(mark, bool) or not isinstance(mark, int) or mark not in (0, 1):
        raise Unreadable(f"the mark of segment {number} is {json.dumps(mark)}, neither 1 nor 0")
    return Segment(text, mark)


def _check_verbatim(joined: str, answer: str) -> None:
    """All letters and signs of the answer in their order, white space aside."""
    got, wanted = ("".join(text.split()) for text in (joined, answer))
    if got == wanted:
        return
    same = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    raise Unreadable(
        f"the segments are not the answer: after {wanted[:same][-20:]!r} they go on with {got[same:][:20]!r}, "
        f"the answer with {wanted[same:][:20]!r} (white space left out)"
    )


def _complaint(reason: str | None) -> Message:
    return Message("user", f"That cannot be used: {reason}. Judge the same answer again, and keep to the form.\n{FORM}")


def _check_texts(answers: Sequence[str], references: Sequence[str]) -> None:
    if isinstance(answers, str):
        raise TypeError("answers is one text; give a list of answers")
    if not answers:
        raise ValueError("there are no answers to judge; give at least one")
    if len(references) != len(answers):
        raise ValueError(f"there are {len(references)} references for {len(answers)} answers; give one an answer")
    for number, (answer, reference) in enumerate(zip(answers, references, strict=True), start=1):
        if not answer.strip():
            raise ValueError(f"answer {number} is empty; leave it out")
        if not reference.strip():
            raise ValueError(f"the reference of answer {number} is empty; nothing could be verified with it")
