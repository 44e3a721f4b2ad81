"""A model over real HTTP, scripted: what is asked, what is read out of an answer, and what happens when there is none."""

from __future__ import annotations

import re
from threading import Barrier

import pytest
from servers import FaultServer, chat, refusal, serving

from upheld.context import Context, ContextFunction, GenerateLM, RolloutCache, Sample, Task, evaluate
from upheld.llm import Answer, CachedModel, Endpoint, LanguageModel, ModelError
from upheld.llm.retries import Retries

TASK = Task([Sample("0", "q", "New York"), Sample("1", "q", "bath")], text="Name the city.")


def model(server: FaultServer, **options) -> Endpoint:
    return Endpoint("m", server.url, retries=Retries(tries=2, first_s=0.01), **{"concurrency": 8, **options})


def asked(server: FaultServer) -> list[str]:
    return [seen.body["messages"][-1]["content"] for seen in server.seen]


def test_the_question_and_what_comes_back():
    with serving(chat("Towers. <answer> new  york </answer>", usage=(31, 5))) as server:
        consumer = GenerateLM(TASK, f"openai:m@{server.url}")
        [answer] = consumer.answer(["tall towers"], ["- New York: towers"])
    assert (answer.text, answer.margin, answer.tokens, answer.problem) == ("New York", 0.0, 31, "")
    assert asked(server) == ["- New York: towers\n\nText: tall towers\nLabel:"]
    system = server.seen[0].body["messages"][0]["content"]
    assert system.startswith("Name the city.\n")
    assert "<answer>" in system
    assert "bath" not in system  # labels are the context's to tell
    assert server.seen[0].body["temperature"] == 0
    assert (consumer.usage.prompt_tokens, consumer.usage.completion_tokens) == (31, 5)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>bath</answer> or <answer>New York</answer>", "New York"),
        ("<ANSWER>\nBath\n</ANSWER>", "bath"),
        ("bath", "bath"),
        ("It is bath.", "It is bath."),
        ("x" * 300, "x" * 200),
        ("<answer>leeds</answer>", "leeds"),
    ],
)
def test_answers_are_read_as_they_are_and_labels_as_the_task_spells_them(text, answer):
    assert GenerateLM(TASK, "openai:m@http://127.0.0.1:9/v1").extracted(text) == answer


def test_several_labels():
    task = Task([Sample("0", "q", "a; b"), Sample("1", "q", "c")], "micro-f1")
    consumer = GenerateLM(task, "openai:m@http://127.0.0.1:9/v1")
    assert consumer.extracted("<answer>B;a ; </answer>") == "b; a"
    assert "'; '" in consumer.system


def test_several_labels_are_right_in_whatever_order(tmp_path):
    task = Task([Sample("0", "q", "a; b"), Sample("1", "q too", "b")], "micro-f1")
    nothing = ContextFunction(Context(tmp_path), lambda texts: texts)
    with serving(chat("<answer>b; a</answer>")) as server:
        found = evaluate(task, task.samples, nothing, GenerateLM(task, f"openai:m@{server.url}"), RolloutCache())
    assert [(one.is_correct, one.score) for one in found] == [(True, 1.0), (False, pytest.approx(2 / 3))]


def test_eight_at_a_time_in_their_order():
    together = Barrier(8, timeout=60)  # three rounds: nobody is answered before eight have asked

    def city(handler):
        number = int(re.findall(r"\d+", handler.body["messages"][-1]["content"])[-1])
        together.wait()
        chat(f"<answer>{number}</answer>")(handler)

    with serving(city) as server:
        answers = GenerateLM(TASK, f"openai:m@{server.url}").answer([f"q {n}" for n in range(24)], [""] * 24)
    assert [one.text for one in answers] == [str(n) for n in range(24)]
    assert server.most_at_once == 8


def test_a_question_that_is_not_answered_is_counted_as_wrong_and_said():
    def picky(handler):
        question = handler.body["messages"][-1]["content"]
        if "forbidden" in question:
            chat(None, finish="content_filter")(handler)
        elif "endless" in question:
            chat("", finish="length")(handler)
        else:
            chat("<answer>bath</answer>")(handler)

    with serving(picky) as server:
        answers = GenerateLM(TASK, model(server)).answer(["a", "forbidden", "endless", "b"], [""] * 4)
    assert [one.text for one in answers] == ["bath", "", "", "bath"]
    assert "content filter" in answers[1].problem
    assert "spent all of max_tokens" in answers[2].problem
    assert len(server.seen) == 4


def test_a_server_that_fails_is_no_answer_and_what_was_answered_is_kept(tmp_path):
    with serving(chat("<answer>bath</answer>"), chat("<answer>bath</answer>"), refusal(500)) as server:
        consumer = GenerateLM(TASK, CachedModel(model(server, concurrency=1), tmp_path / "a.sqlite"))
        with pytest.raises(ModelError, match=r"answered 500.*\(2 tries\)"):
            consumer.answer(["a", "b", "c", "d"], [""] * 4)
        before = len(server.seen)
        server.plan = [chat("<answer>New York</answer>")]
        again = GenerateLM(TASK, CachedModel(model(server, concurrency=1), tmp_path / "a.sqlite"))
        answers = again.answer(["a", "b", "c", "d"], [""] * 4)
    assert [one.text for one in answers] == ["bath", "bath", "New York", "New York"]
    assert len(server.seen) == before + 2


def test_a_model_on_this_machine_is_given_all_at_once():
    class Local(LanguageModel):
        id = "local"

        def answers(self, requests, told=None):
            calls.append(len(requests))
            return [Answer("<answer>bath</answer>", "stop", self.id) for _ in requests]

        def stream(self, request):
            raise NotImplementedError

    calls: list[int] = []
    [first, _] = GenerateLM(TASK, Local()).answer(["a b", "c"], ["", ""])
    assert calls == [2]
    assert first.tokens > 10  # words and marks, where the model counts nothing
