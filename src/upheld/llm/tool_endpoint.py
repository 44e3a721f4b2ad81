"""Tools for a model at an OpenAI-compatible endpoint, through the ``tools`` of ``/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from upheld.llm.answer import Message, Sampling
from upheld.llm.endpoint import Endpoint, readable, sendable
from upheld.llm.keys import redacted
from upheld.llm.replies import Unusable, usage_of
from upheld.llm.tools import Step, Tool, ToolCall, ToolModel, ToolResult, Turn


class ToolEndpoint(Endpoint, ToolModel):
    """A model at an endpoint that can be offered tools; parameters as for `Endpoint`.

    Examples
    --------
    >>> agent = ToolEndpoint("my-model", "http://localhost:8000/v1")                                    # doctest: +SKIP
    >>> converse(agent, [Message("user", "Add 2 and 3.")], [adder], max_turns=4).turns[-1].text         # doctest: +SKIP
    '5'
    """

    def turn(self, steps: Sequence[Step], tools: Sequence[Tool], sampling: Sampling) -> Turn:
        asked = self.settings(sampling) | {
            "messages": [_sent(step) for step in steps],
            "tools": [
                {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema}}
                for tool in tools
            ],
        }  # fmt: skip
        reply = self._connection.json(lambda client: client.chat.completions.with_raw_response.create(**asked))
        turn = readable(self._connection, lambda: _turn(reply, self._total.prices))
        self._total.add(turn.usage)
        return turn


def _sent(step: Step) -> dict[str, Any]:
    if isinstance(step, Message):
        return {"role": step.role, "content": sendable(step.content)}
    if isinstance(step, ToolResult):
        return {"role": "tool", "tool_call_id": step.call.id, "content": sendable(step.text)}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in step.calls
    ]
    return {"role": "assistant", "content": step.text} | ({"tool_calls": calls} if calls else {})


def _turn(reply: dict[str, Any], prices: tuple[float, float] | None) -> Turn:
    choices = reply.get("choices")
    message = (
        choices[0].get("message") if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    )
    if not isinstance(message, dict):
        raise Unusable("answered without a message; check that the endpoint is OpenAI-compatible")
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise Unusable("answered with a content of another kind than text; use a text model")
    calls = tuple(_call(place, one) for place, one in enumerate(message.get("tool_calls") or ()))
    if not text and not calls:
        refusal = message.get("refusal")
        raise Unusable(f"refused: {redacted(str(refusal))[:120]!r}" if refusal else "gave neither text nor a tool call")
    return Turn(redacted(text), calls, usage_of(reply, prices))


def _call(place: int, one: object) -> ToolCall:
    """A call as the model wrote it; arguments that some servers give as an object are text again."""
    function = one.get("function") if isinstance(one, dict) else None
    if not isinstance(one, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Unusable("gave a tool call without a function's name; check the endpoint's tool parser")
    arguments = function.get("arguments", "")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(one.get("id") or f"call-{place}"), function["name"], redacted(written))
