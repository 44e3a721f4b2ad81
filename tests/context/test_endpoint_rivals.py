"""Rivals that ask a model: what they tell it, and that what it says is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from context_samples import WORDS, drawn, hashed

from upheld.context import Answered, Rollout, Sample, Task, embedding_reader
from upheld.context.ace_rival import Reflector
from upheld.context.endpoint_rivals import DynamicCheatsheet
from upheld.context.folder import shortened
from upheld.context.gepa_rival import reflective_gepa
from upheld.context.rivals import Contest
from upheld.llm import Answer, LanguageModel, Request


class Curator(LanguageModel):
    """Appends the task and its right answer to the cheatsheet it is shown."""

    id = "curator"

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def answers(self, requests: Sequence[Request], told: object = None) -> list[Answer]:
        self.asked += requests
        return [Answer(self._written(one.messages[-1].content), "stop", self.id) for one in requests]

    def _written(self, shown: str) -> str:
        memory = shown.split("so far:\n")[1].split("\n\nThe task:")[0].replace("(empty)", "").strip()
        question = shown.split("The task:\n")[1].split("\n\n")[0]
        return f"{memory}\n- {shown.split('The right answer: ')[1]}: {question}"

    def stream(self, request: Request) -> Iterator[str]:
        yield self.answers([request])[0].text


def test_a_cheatsheet_is_answered_from_before_it_is_rewritten():
    samples = drawn(40, 0)
    task = Task(samples)
    sheet = DynamicCheatsheet(task, embedding_reader(task, hashed), Curator(), budget=10**4)
    novel = [Sample(f"n{i}", f"nothing{i} like{i} it{i}", "bone" if i % 2 else "skin") for i in range(6)]
    sheet.run(novel)
    assert sheet.memory.count("\n") == 5
    first = sheet.model.asked[0].messages[-1].content
    assert "(empty)" in first
    assert "nothing0" in first
    assert sheet.run(novel) == 1.0  # what it was told it finds again
    assert "within 10000 words" in sheet.model.asked[0].messages[0].content


def test_what_is_beyond_the_budget_is_cut_at_a_line():
    assert shortened("a b c\nd e\nf", 5) == "a b c\nd e"
    assert shortened("a b c", 2) == ""


@pytest.fixture
def contest(tmp_path, val) -> Contest:
    task = Task(drawn(40, 0))
    return Contest(task, val[:6], embedding_reader(task, hashed), hashed, 2000, tmp_path, 2)


class Said(LanguageModel):
    """Gives replies in turn, the last one over and over."""

    id = "said"

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked = list(replies), []

    def answers(self, requests: Sequence[Request], told: object = None) -> list[Answer]:
        self.asked += [one.messages[-1].content for one in requests]
        return [
            Answer(self.replies.pop(0) if len(self.replies) > 1 else self.replies[0], "stop", self.id) for _ in requests
        ]

    def stream(self, request: Request) -> Iterator[str]:
        raise NotImplementedError


WRONG = [Rollout("0", "pulse", "skin", "heart", False, 0.0, 0.0, 0)]


def reply(*texts: str, **more: list[int]) -> str:
    return "Well: " + json.dumps({"bullets": [{"section": "organs", "text": text} for text in texts], **more})


def test_a_playbook_counts_and_is_only_appended_to(task):
    model = Said(
        reply("a pulse is of the heart"),
        reply("a pulse is of the heart", "a rash is of the skin", helpful=[0, 7], harmful=[0]),
    )
    reflector = Reflector(task, model, hashed)
    first = reflector([], WRONG)
    assert [(one.label, one.text) for one in first] == [("organs", "a pulse is of the heart")]
    second = reflector(first, WRONG)
    assert [one.text for one in second] == ["a pulse is of the heart", "a rash is of the skin"]
    assert [(one.helpful, one.harmful) for one in second] == [(1, 1), (0, 0)]
    assert "[0] helpful 0, harmful 0 - organs: a pulse is of the heart" in model.asked[1]
    assert (
        json.dumps({"question": "pulse", "answer": "skin", "right answer": "heart", "is right": False})
        in model.asked[1]
    )


def test_a_reflection_that_cannot_be_read_is_asked_for_once_more_and_then_adds_nothing(task):
    model = Said("no idea", '{"bullets": [{"text": 3}]}', reply("x"))
    reflector = Reflector(task, model, hashed)
    assert reflector([], WRONG) == []
    assert (reflector.unread, len(model.asked)) == (1, 2)
    assert [one.text for one in reflector([], WRONG)] == ["x"]
    assert reflector([], []) == []


class Strict:
    """Knows the label of a question if its context lists the words of all labels."""

    id, reads_order = "strict", True

    def prompt(self, context: str, question: str) -> str:
        return f"{context}|{question}"

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Answered]:
        return [Answered(label(q) if LISTED in c else "none", 0.0, 1) for q, c in zip(questions, contexts, strict=True)]


LISTED = "\n".join(f"- {label}: {' '.join(words)}" for label, words in WORDS.items())


def label(question: str) -> str:
    return max(WORDS, key=lambda one: len(set(WORDS[one]) & set(question.split())))


def test_gepa_s_own_proposer_has_its_prompt_rewritten(contest):
    asked: list[str] = []

    def reflect(prompt: str) -> str:
        asked.append(prompt)
        return f"Better:\n```\n{LISTED}\n```"

    found = reflective_gepa(replace(contest, consumer=Strict(), tries=6), reflect)
    assert "This is wrong. The right answer is" in asked[0]
    assert found.val == 1.0
    assert found.context("pulse") == LISTED
