"""Tools for a model that only speaks: it is told to write a call as a fenced block of JSON, and reads results as a user's turn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby

from upheld.llm.answer import Message, Sampling
from upheld.llm.model import LanguageModel
from upheld.llm.tools import Step, Tool, ToolCall, ToolModel, ToolResult, Turn

BLOCK = re.compile(r"```tool[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
HOW = """You can call tools. To call one, write a block like this and nothing after it:
```tool
{{"name": "NAME", "arguments": {{...}}}}
```
You will be given what it returned. When you are done, answer without such a block. The tools:
{tools}"""


class SpokenTools(ToolModel):
    """Any language model, offered tools in words.

    Parameters
    ----------
    model : one that chats, for instance the embedded one; small ones are weak at this
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.id = f"spoken:{model.id}"

    def turn(self, steps: Sequence[Step], tools: Sequence[Tool], sampling: Sampling) -> Turn:
        answer = self.model.chat(_messages(steps, tools), sampling=sampling)
        calls = tuple(_call(place, block) for place, block in enumerate(BLOCK.findall(answer.text)))
        return Turn(answer.text, calls, answer.usage)


def _call(place: int, block: str) -> ToolCall:
    """The call in a block. What is no call stays one of no name, so that the model is told and may try again."""
    try:
        found = json.loads(block)
    except ValueError:
        return ToolCall(f"call-{place}", "", block)
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return ToolCall(f"call-{place}", "", block)
    return ToolCall(f"call-{place}", found["name"], json.dumps(found.get("arguments", {})))


def _messages(steps: Sequence[Step], tools: Sequence[Tool]) -> list[Message]:
    """The conversation in turns of user and assistant, after a system's turn that describes the tools."""
    listed = "\n".join(
        f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.schema['properties'])}" for tool in tools
    )
    spoken = [_spoken(step) for step in steps]
    system = [one.content for one in spoken if one.role == "system"]
    rest = groupby((one for one in spoken if one.role != "system"), key=lambda one: one.role)
    joined = [
        Message(role, "\n\n".join(one.content for one in turns)) for role, turns in rest
    ]  # templates want them to alternate
    return [Message("system", "\n\n".join([*system, HOW.format(tools=listed)])), *joined]


def _spoken(step: Step) -> Message:
    if isinstance(step, Message):
        return step
    if isinstance(step, ToolResult):
        return Message("user", f"{step.call.name or 'your block'} returned:\n{step.text}")
    return Message("assistant", step.text)
