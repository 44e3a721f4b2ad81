"""A model that is scripted reply by reply, over real HTTP and in words: what it asks for is done, what it gets wrong it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from servers import Reply, data, refusal, serving

from upheld.llm import Message, ModelError
from upheld.llm.retries import Retries
from upheld.llm.tool_endpoint import ToolEndpoint
from upheld.llm.tools import LONGEST, Tool, ToolResult, converse


def add(a: int, b: int = 1) -> str:
    return str(a + b)


def read(path: str) -> str:
    return Path(path).read_text()


ADD, READ = Tool("add", "Sum.", add), Tool("read", "A file.", read)


def reply(text: str | None = None, *calls: tuple[str, object], **message: object) -> Reply:
    asked = [
        {"id": f"id-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    said = {"role": "assistant", "content": text} | ({"tool_calls": asked} if asked else {}) | message
    return data({
        "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls" if asked else "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    })  # fmt: skip


def held(*plan: Reply, max_turns: int = 6):
    with serving(*plan) as server:
        model = ToolEndpoint("m", server.url, retries=Retries(tries=2, first_s=0.01), prices=(1.0, 10.0))
        return converse(model, [Message("user", "go")], [ADD, READ], max_turns=max_turns), server.seen, model


def results(conversation) -> list[str]:
    return [step.text for step in conversation.steps if isinstance(step, ToolResult)]


def test_calls_are_answered_until_there_is_none() -> None:
    conversation, seen, model = held(reply(None, ("add", '{"a": 2, "b": 3}'), ("add", '{"a": 1}')), reply("It is 5."))
    assert conversation.finished
    assert results(conversation) == ["5", "2"]
    assert conversation.turns[-1].text == "It is 5."
    assert (conversation.usage.prompt_tokens, conversation.usage.completion_tokens) == (20, 4)
    assert model.usage_.cost == pytest.approx((20 * 1.0 + 4 * 10.0) / 1e6)
    offered = seen[0].body["tools"][0]["function"]
    assert offered["parameters"] == {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"],
        "additionalProperties": False,
    }  # fmt: skip
    *_, asked, first, second = seen[1].body["messages"]
    assert [call["id"] for call in asked["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
    assert (first["role"], first["content"], second["content"]) == ("tool", "5", "2")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("add", "{a: 2}", "error: the arguments of add are no JSON"),
        ("add", "[2, 3]", "error: the arguments of add must be one JSON object, not list"),
        ("add", '{"b": 3}', "error: add needs a (integer)"),
        ("add", '{"a": "2"}', 'error: a of add must be of type integer, got "2"'),
        ("add", '{"a": true}', "error: a of add must be of type integer, got true"),
        ("add", '{"a": 2, "c": 3}', "error: add takes no 'c'; it takes a, b"),
        ("sub", "{}", "error: there is no tool 'sub'; there are add, read"),
        ("read", '{"path": "/nowhere/at/all"}', "error: [Errno 2]"),
    ],
)
def test_a_model_is_told_what_it_got_wrong(name: str, arguments: str, told: str) -> None:
    conversation, _, _ = held(reply(None, (name, arguments)), reply("I see."))
    assert results(conversation)[0].startswith(told)
    assert conversation.finished


def test_arguments_that_a_server_gives_as_an_object_are_read() -> None:
    conversation, _, _ = held(reply(None, ("add", {"a": 4})), reply("done"))
    assert results(conversation) == ["5"]


def test_it_ends_at_the_limit_of_turns() -> None:
    conversation, seen, _ = held(reply("more", ("add", '{"a": 1}')), max_turns=3)
    assert not conversation.finished
    assert len(seen) == 3


def test_long_results_are_cut_and_it_is_said() -> None:
    assert Tool("long", "", lambda: "x" * (LONGEST + 7)).answer("").endswith("\n[7 more characters]")


def test_a_failure_of_the_server_is_tried_again_and_a_lasting_one_told() -> None:
    conversation, seen, _ = held(refusal(500), reply("done"))
    assert conversation.finished
    assert len(seen) == 2
    with pytest.raises(ModelError, match=r"answered 500.*\(2 tries\)"):
        held(refusal(500))


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (reply(None), "neither text nor a tool call"),
        (reply(None, refusal="I will not."), "refused: 'I will not.'"),
        (reply(None, tool_calls=[{"id": "1"}]), "without a function's name"),
        (data({"choices": []}), "without a message"),
        (reply([{"type": "image"}]), "another kind than text"),  # type: ignore[arg-type]
    ],
)
def test_replies_that_are_no_turn(answer: Reply, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        held(answer)


def test_bad_settings() -> None:
    model = ToolEndpoint("m", "http://127.0.0.1:9/v1")
    with pytest.raises(ValueError, match="different names"):
        converse(model, [Message("user", "go")], [ADD, ADD], max_turns=3)
    with pytest.raises(ValueError, match="at least 1"):
        converse(model, [Message("user", "go")], [ADD], max_turns=0)


def test_what_leaves_for_the_server_can_be_read_as_json() -> None:
    _, seen, _ = held(reply("fine"))
    assert json.loads(json.dumps(seen[0].body))["messages"] == [{"role": "user", "content": "go"}]


def test_a_key_that_a_server_throws_back_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPHELD_API_KEY_127_0_0_1", "sk-planted-0123456789")
    echoed = reply("your key is sk-planted-0123456789", ("add", '{"a": "sk-planted-0123456789"}'))
    conversation, seen, _ = held(echoed, reply("done"))
    assert seen[0].headers["authorization"] == "Bearer sk-planted-0123456789"
    assert "planted" not in str(conversation.steps)
