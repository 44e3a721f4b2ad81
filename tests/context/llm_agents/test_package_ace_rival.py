"""ACE's package at a scripted endpoint: what it learns, what it is shown of it, and what becomes of replies that do not fit its forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from context_samples import drawn, hashed
from scripted_agent import Messages, acting
from servers import Reply, chat, refusal

from upheld.context import GenerateLM, Task, embedding_reader, evaluate, package_ace_rival
from upheld.context.assembly import count_tokens
from upheld.context.package_ace_rival import Structured, package_ace, within
from upheld.context.rivals import Contest
from upheld.context.rollouts import RolloutCache
from upheld.llm import Endpoint, ModelError
from upheld.llm.retries import Retries

REFLECTION = {"reasoning": "r", "correct_approach": "look at the words", "key_insight": "words tell the organ"}


@pytest.fixture
def contest(tmp_path, val) -> Contest:
    task = Task(drawn(8, 0), text="Name the organ.")
    return Contest(task, val[:6], embedding_reader(task, hashed), hashed, 2000, tmp_path, 2)


def model_at(url: str) -> Endpoint:
    return Endpoint("m", url, retries=Retries(tries=1), concurrency=3)


def at(contest: Contest, url: str, **changes: object) -> Contest:
    return replace(contest, consumer=GenerateLM(contest.task, model_at(url)), **changes)


def is_reflector(messages: Messages) -> bool:
    return "ReflectorOutput" in messages[0]["content"]


def is_manager(messages: Messages) -> bool:
    return "SkillManagerOutput" in messages[0]["content"]


def operations(*rows: dict) -> Reply:
    return chat(json.dumps({"update": {"reasoning": "r", "operations": list(rows)}}))


def case_of(messages: Messages) -> tuple[str, str]:
    """Question and right answer, as the skill manager is told of them."""
    told = messages[0]["content"]
    return (
        told.split("question: ")[-1].split("\ncontext: ")[0],
        told.split("ground_truth: ")[-1].split("\n")[0].strip(),
    )


def memorising(messages: Messages) -> Reply:
    """Every case becomes a skill; the consumer answers with the label of the skill that shares most words with its question."""
    if is_reflector(messages):
        return chat(json.dumps(REFLECTION))
    if is_manager(messages):
        question, label = case_of(messages)
        return operations({"type": "ADD", "section": "cases", "content": f"{question} is {label}"})
    return consumed(messages)


def consumed(messages: Messages) -> Reply:
    context, _, question = messages[-1]["content"].rpartition("Text: ")
    asked = set(question.removesuffix("\nLabel:").split())
    skills = [line.split("\t") for line in context.splitlines() if line.strip().startswith("cases-")]
    near = max(skills, key=lambda row: len(asked & set(row[2].split())), default=None)
    if near is None:
        return chat("I know nothing. <answer>none</answer>")
    return chat(f"As [{near[0].strip()}] says: <answer>{near[2].rpartition(' is ')[2]}</answer>")


def test_who_cannot_be_raced_is_told_why(contest, monkeypatch):
    mind = Structured(model_at("http://127.0.0.1:9/v1"))
    with pytest.raises(
        ValueError, match=r"reflects on what a model writes, and embedding.* writes nothing; give a GenerateLM"
    ):
        package_ace(contest, mind)
    monkeypatch.setattr(package_ace_rival, "version", lambda name: "0.13.0")
    with pytest.raises(
        ImportError, match=r'needs the package ace-framework; pip install --no-deps "ace-framework==0.7.1"'
    ):
        package_ace(at(contest, "http://127.0.0.1:9/v1"), mind)


# -- with the package


@pytest.fixture
def raced(contest) -> Callable[..., object]:
    if not package_ace_rival.installed():
        pytest.skip(f"ACE's package {package_ace_rival.MISSING}")

    def race(script: Callable[[Messages], Reply], **changes: object):
        """The contender, what was asked, the contest, and who reflected."""
        with acting(script) as server:
            one, mind = at(contest, server.url, **changes), Structured(model_at(server.url))
            found = package_ace(one, mind)
            judged = evaluate(one.task, contest.val, found.context, found.consumer, RolloutCache())
        return found, [seen.body["messages"] for seen in server.seen], judged, mind

    return race


def test_it_learns_from_every_case_and_the_epochs_are_tuned(raced, contest, capfd):
    found, asked, judged, mind = raced(memorising)
    assert (found.name, found.knob) == (
        "ace-framework",
        "1 epochs",
    )  # the second adds nothing new, the first of equals stands
    assert found.rollouts == 2 * 8 + 2 * 6
    assert found.val > 0.5
    assert {one.tokens for one in judged} == {count_tokens(found.consumer.text)}
    minds = [one for one in asked if is_reflector(one) or is_manager(one)]
    assert mind.usage.prompt_tokens == 7 * len(minds) == 7 * 2 * 16
    right = list(map(case_of, filter(is_manager, minds)))
    assert right == [(sample.asked, sample.target) for sample in contest.train] * 2
    assert capfd.readouterr() == ("", "")


def test_the_reflector_reads_what_the_consumer_thought_and_the_skills_it_named(raced, contest):
    _, asked, _, _ = raced(memorising)
    reflections = [one[0]["content"] for one in asked if is_reflector(one)]
    assert "I know nothing." in reflections[0]
    assert f"Incorrect. Expected: {contest.train[0].target}" in reflections[0]
    assert "Strategies Applied:\n[cases-00001]" in reflections[1]
    assert sum("Correct." in one for one in reflections) > 8


def test_it_is_shown_within_the_budget_without_what_helped_least(raced):
    found, asked, _, _ = raced(memorising, budget=250)
    assert 200 < count_tokens(found.consumer.text) <= 250
    shown = [one[-1]["content"] for one in asked if not (is_reflector(one) or is_manager(one))]
    assert all(text.count("cases-") < 8 + 1 for text in shown)

    from ace import Skillbook

    book = Skillbook()
    for content, helpful in (("first", 0), ("worst", -1), ("best", 2), ("last", 0)):
        book.add_skill("cases", content, metadata={"helpful": helpful})
    sizes = []
    for left in (["first", "worst", "best", "last"], ["first", "best", "last"], ["first", "best"], ["best"], []):
        text = within(book, sizes[-1] - 1 if sizes else 2000)
        sizes.append(count_tokens(text))
        assert [word for word in ("first", "worst", "best", "last") if word in text.split()] == left
    assert sizes[-1] == 0
    assert len(book.skills()) == 4


def test_a_reply_that_does_not_fit_is_asked_for_anew_and_then_the_case_is_skipped(raced, contest):
    """The manager's first reply is never fit; for one case no reply is."""
    lost = contest.train[3].asked

    def clumsy(messages: Messages) -> Reply:
        if is_manager(messages) and (len(messages) == 1 or case_of(messages)[0] == lost):
            return chat('{"operations": []}' if len(messages) == 1 else "I would rather not.")
        return memorising(messages)

    found, asked, _, _ = raced(clumsy, tries=1)
    assert found.knob == "1 epochs, 1 cases skipped"
    managers = [one for one in asked if is_manager(one)]
    assert [len(one) for one in managers if case_of(one)[0] == lost] == [1, 3, 5, 7]
    assert [len(one) for one in managers if case_of(one)[0] != lost] == [1, 3] * 7
    assert "update\n  Field required" in managers[1][-1]["content"]
    assert found.consumer.text.count("cases-") == 7


@pytest.mark.parametrize(
    "who", [is_reflector, lambda messages: not is_reflector(messages)], ids=["reflector", "consumer"]
)
def test_a_model_that_cannot_be_had_ends_it_at_once(raced, who):
    seen = []

    def gone(messages: Messages) -> Reply:
        seen.append(messages)
        return refusal(401, "who are you?") if who(messages) else memorising(messages)

    with pytest.raises(ModelError, match="who are you"):
        raced(gone)
    assert len(seen) <= 2


def test_a_fault_of_ours_is_no_skipped_case(raced, monkeypatch):
    monkeypatch.setattr(package_ace_rival, "within", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        raced(memorising)
