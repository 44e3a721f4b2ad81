"""DSPy's optimisers at a scripted endpoint: what they show, what they may show, and what becomes of an answer that cannot be read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from context_samples import drawn, hashed
from scripted_agent import Messages, acting
from servers import Reply, chat, refusal

from upheld.context import GenerateLM, Task, dspy_rival, embedding_reader, evaluate
from upheld.context.dspy_rival import dspy_optimised
from upheld.context.rivals import Contest
from upheld.context.rollouts import RolloutCache
from upheld.llm import Endpoint, ModelError
from upheld.llm.retries import Retries


@pytest.fixture
def contest(tmp_path, val) -> Contest:
    task = Task(drawn(40, 0), text="Name the organ.")
    return Contest(task, val[:6], embedding_reader(task, hashed), hashed, 2000, tmp_path, 2)


def at(contest: Contest, url: str, **changes: object) -> Contest:
    model = Endpoint("m", url, retries=Retries(tries=1), concurrency=3)
    return replace(contest, consumer=GenerateLM(contest.task, model), **changes)


def nearest(messages: Messages) -> Reply:
    """The label of the demonstration that shares most words with the question, spelled in capitals."""
    turns = [one["content"] for one in messages[1:]]
    asked = set(turns[-1].split())
    near = max(range(0, len(turns) - 1, 2), key=lambda place: len(asked & set(turns[place].split())), default=None)
    label = "none" if near is None else turns[near + 1].split("## ]]")[1].split("[[")[0].strip()
    return chat(f"[[ ## label ## ]]\n{label.upper()}\n\n[[ ## completed ## ]]")


def test_who_cannot_be_raced_is_told_why(contest, monkeypatch):
    with pytest.raises(ValueError, match="there is no optimiser 'X'; choose KNNFewShot, BootstrapFewShot, MIPROv2"):
        dspy_optimised(contest, "X")
    with pytest.raises(ValueError, match=r"ask a model that writes, and embedding.* is none; give a GenerateLM"):
        dspy_optimised(contest)
    monkeypatch.setattr(dspy_rival, "installed", lambda: False)
    with pytest.raises(ImportError, match=r'needs the package dspy; pip install "upheld\[context-dspy\]"'):
        dspy_optimised(at(contest, "http://127.0.0.1:9/v1"))


def test_the_nearest_cases_are_shown_as_turns_and_their_number_is_tuned(contest, capsys):
    pytest.importorskip("dspy")
    with acting(nearest) as server:
        raced = at(contest, server.url, tries=3)
        found = dspy_optimised(raced)
        [judged] = evaluate(raced.task, contest.val[:1], found.context, found.consumer, RolloutCache())
    assert (found.name, found.rollouts) == ("DSPy KNNFewShot", 3 * 6)
    assert found.knob in ("1 cases", "3 cases", "5 cases")
    assert found.val > 0.5
    assert judged.answer in raced.task.labels()  # as the task spells it
    assert judged.tokens > 0
    turns = [len(one.body["messages"]) for one in server.seen]
    assert sorted(set(turns)) == [2 + 2 * k for k in (1, 3, 5)]  # system, demonstrations, question
    first = server.seen[0].body
    assert "Name the organ. Labels: bone, heart, skin." in first["messages"][0]["content"]
    assert first["temperature"] == 0
    texts = [one.question for one in contest.train]
    near = hashed([f"text: {one}" for one in texts]) @ hashed([asked_of(first)])[0]
    shown = next(text for text in texts if text in first["messages"][1]["content"])
    assert near[texts.index(shown)] == near.max()
    assert raced.consumer.usage.prompt_tokens == 7 * len(server.seen)
    assert capsys.readouterr() == ("", "")


def asked_of(body: dict) -> str:
    return "text: " + body["messages"][-1]["content"].split("## ]]\n")[1].split("\n")[0]


def test_demonstrations_are_cut_to_the_budget_the_least_like_first(contest):
    pytest.importorskip("dspy")
    with acting(nearest) as server:

        def within(budget: int) -> tuple[list[int], list[Messages]]:
            """Tokens of the context a question, and what was asked, with five cases to show."""
            server.seen.clear()
            one = at(contest, server.url, budget=budget)
            found = evaluate(
                one.task, contest.val, None, dspy_rival.Program("KNNFewShot", 5, one, one.consumer), RolloutCache()
            )
            return [rollout.tokens for rollout in found], [seen.body["messages"] for seen in server.seen]

        whole, _ = within(2000)
        half = max(whole) // 2
        tokens, shown = within(half)
        assert 0 < min(tokens) <= max(tokens) <= half
        assert {len(messages) for messages in shown} <= {4, 6, 8, 10}
        like = [[overlap(messages, turn["content"]) for turn in messages[1:-1:2]] for messages in shown]
        fewest = [min(overlap(messages, turn["content"]) for turn in messages[1:-1:2]) for messages in within(2000)[1]]
        assert sum(map(min, like)) > sum(fewest)
        tokens, shown = within(1)
        assert set(tokens) == {0}
        assert all(len(messages) == 2 and "Labels:" not in messages[0]["content"] for messages in shown)


def overlap(messages: Messages, text: str) -> int:
    return len(set(messages[-1]["content"].split()) & set(text.split()))


def test_cases_that_are_bootstrapped_are_those_the_model_gets_right(contest):
    pytest.importorskip("dspy")
    right = {one.question: one.target for one in (*contest.train, *contest.val)}

    def knows(messages: Messages) -> Reply:
        label = next(label for text, label in right.items() if text in messages[-1]["content"])
        return chat(f"[[ ## label ## ]]\n{label}\n\n[[ ## completed ## ]]")

    with acting(knows) as server:
        found = dspy_optimised(at(contest, server.url), "BootstrapFewShot")
    assert (found.val, found.name) == (1.0, "DSPy BootstrapFewShot")


@pytest.mark.parametrize("reply", [chat("It is the heart."), chat(None)], ids=["no marks", "nothing"])
def test_an_answer_that_cannot_be_read_is_wrong_and_says_why(contest, reply):
    pytest.importorskip("dspy")
    with acting(lambda _: reply) as server:
        found = dspy_optimised(at(contest, server.url, tries=1))
        [judged] = evaluate(contest.task, contest.val[:1], found.context, found.consumer, RolloutCache())
    assert (found.val, judged.answer, judged.is_correct) == (0.0, "", False)
    assert judged.problem


def test_an_endpoint_that_fails_is_no_wrong_answer(contest):
    pytest.importorskip("dspy")
    with acting(lambda _: refusal(401, "who are you?")) as server, pytest.raises(ModelError, match="who are you"):
        dspy_optimised(at(contest, server.url, tries=1))
