"""Rivals that ask a model: what they tell it, and that what it says is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from context_samples import drawn, hashed

from upheld.context import Sample, Task, embedding_reader
from upheld.context.endpoint_rivals import DynamicCheatsheet, dspy_optimised, shortened
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


@pytest.mark.parametrize("name", ["KNNFewShot", "BootstrapFewShot"])
def test_dspy_s_programs_show_cases_and_are_chosen_by_validation(contest, name):
    dspy = pytest.importorskip("dspy")
    from dspy.utils import DummyLM

    right = {one.question: {"label": one.target} for one in (*contest.train, *contest.val)}
    lm = DummyLM(right)
    found = dspy_optimised(name, contest, lm)
    assert found.val == 1.0
    last = lm.history[-1]["messages"]
    assert contest.val[-1].question in last[-1]["content"]
    assert any(one.question in turn["content"] for one in contest.train for turn in last[1:-1])
    assert dspy.settings.lm is None  # nothing is left behind


def test_an_unknown_optimiser(contest):
    with pytest.raises(ValueError, match="there is no optimiser 'X'; choose KNNFewShot, BootstrapFewShot, MIPROv2"):
        dspy_optimised("X", contest, None)
