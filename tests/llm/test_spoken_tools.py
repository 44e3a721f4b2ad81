"""Tools in words: a scripted model, and the alternation of turns that chat templates want."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from upheld.llm import Answer, LanguageModel, Message, Request
from upheld.llm.spoken_tools import SpokenTools
from upheld.llm.tools import Tool, ToolResult, converse


class Scripted(LanguageModel):
    """Says its lines; keeps what it was asked."""

    id = "scripted"

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.asked: list[tuple[Message, ...]] = []

    def answers(self, requests: Sequence[Request], told: object = None) -> list[Answer]:
        self.asked += [request.messages for request in requests]
        return [Answer(self.lines.pop(0), "stop", self.id) for _ in requests]

    def stream(self, request: Request) -> Iterator[str]:
        raise NotImplementedError


def shout(text: str) -> str:
    return text.upper()


def run(*lines: str):
    model = Scripted(*lines)
    start = [Message("system", "Be brief."), Message("user", "Shout hello.")]
    return converse(SpokenTools(model), start, [Tool("shout", "Upper case.", shout)], max_turns=5), model


def test_a_block_is_a_call() -> None:
    conversation, model = run('So:\n```tool\n{"name": "shout", "arguments": {"text": "hello"}}\n```', "HELLO it is.")
    assert conversation.finished
    assert [step.text for step in conversation.steps if isinstance(step, ToolResult)] == ["HELLO"]
    system, *turns = model.asked[1]
    assert system.content.startswith("Be brief.")
    assert "shout: Upper case." in system.content
    assert [turn.role for turn in turns] == ["user", "assistant", "user"]
    assert turns[-1].content == "shout returned:\nHELLO"


def test_two_blocks_give_one_turn_of_results() -> None:
    block = '```tool\n{"name": "shout", "arguments": {"text": "a"}}\n```\n'
    _, model = run(block + block, "done")
    assert [turn.role for turn in model.asked[1]] == ["system", "user", "assistant", "user"]
    assert model.asked[1][-1].content.count("returned:\nA") == 2


def test_a_block_that_is_no_call_is_told() -> None:
    for wrong in ("shout(hello)", '["shout"]', '{"arguments": {}}'):
        conversation, _ = run(f"```tool\n{wrong}\n```", "sorry")
        [result] = [step.text for step in conversation.steps if isinstance(step, ToolResult)]
        assert result == "error: there is no tool ''; there are shout"
