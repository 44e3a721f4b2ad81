"""Conversations in which a model calls functions: what it may call, what it asks for, who answers, and when they end.

>>> def add(a: int, b: int) -> str:
...     return str(a + b)
>>> adder = Tool("add", "Sum of two whole numbers.", add)
>>> adder.answer('{"a": 2, "b": 3}')
'5'
>>> adder.answer('{"a": 2}')
'error: add needs b (integer)'
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from upheld.llm.answer import Message, Sampling, Usage

LONGEST = 20_000
"""Characters of a tool's answer that a model is given; what is cut off is said."""
KINDS: dict[object, tuple[str, type | tuple[type, ...]]] = {
    str: ("string", str), int: ("integer", int), float: ("number", (int, float)), bool: ("boolean", bool),
    list: ("array", list), dict: ("object", dict),
}  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.

    Parameters
    ----------
    name, description : what the model is told of it
    run : its parameters are annotated with str, int, float, bool, list or dict; gives text. What it raises as ValueError or
        OSError the model reads as an error, and may mend.
    """

    name: str
    description: str
    run: Callable[..., str]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of its arguments."""
        parameters = self._parameters()
        return {
            "type": "object",
            "properties": {name: {"type": KINDS[one.annotation][0]} for name, one in parameters.items()},
            "required": [name for name, one in parameters.items() if one.default is one.empty],
            "additionalProperties": False,
        }

    def answer(self, arguments: str) -> str:
        """What the function gives for arguments as a model wrote them (a JSON object, or what was meant as one).

        Never raises for what the model did wrong: the answer then begins with ``error:``.
        """
        try:
            given = json.loads(arguments or "{}")
        except ValueError as error:
            return f"error: the arguments of {self.name} are no JSON ({error}); write one JSON object"
        wrong = self._refused(given)
        if wrong:
            return f"error: {wrong}"
        try:
            return _cut(self.run(**given))
        except (ValueError, OSError) as error:
            return _cut(f"error: {error}")

    def _refused(self, given: object) -> str | None:
        parameters = self._parameters()
        if not isinstance(given, dict):
            return f"the arguments of {self.name} must be one JSON object, not {type(given).__name__}"
        for name in given:
            if name not in parameters:
                return f"{self.name} takes no {name!r}; it takes {', '.join(parameters) or 'nothing'}"
        for name, one in parameters.items():
            kind, types = KINDS[one.annotation]
            if name not in given and one.default is one.empty:
                return f"{self.name} needs {name} ({kind})"
            if name in given and (
                not isinstance(given[name], types) or (isinstance(given[name], bool) and kind != "boolean")
            ):
                return f"{name} of {self.name} must be of type {kind}, got {json.dumps(given[name])[:60]}"
        return None

    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.run, eval_str=True).parameters


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for; its arguments are as it wrote them."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Turn:
    """What a model said and which calls it asks for; none, when it is done."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ToolResult:
    """What a call gave."""

    call: ToolCall
    text: str


Step = Message | Turn | ToolResult


class ToolModel(ABC):
    """A model that can be offered tools."""

    id: str

    @abstractmethod
    def turn(self, steps: Sequence[Step], tools: Sequence[Tool], sampling: Sampling) -> Turn:
        """How it goes on.

        Raises
        ------
        ModelError
            If the model gives no turn.
        """


@dataclass
class Conversation:
    """All that was said; `finished` if the model ended it, and not the limit of turns."""

    steps: list[Step] = field(default_factory=list)
    finished: bool = False

    @property
    def turns(self) -> list[Turn]:
        return [step for step in self.steps if isinstance(step, Turn)]

    @property
    def usage(self) -> Usage:
        first, *rest = [turn.usage for turn in self.turns] or [Usage()]
        return sum(rest, start=first)


def converse(
    model: ToolModel, messages: Sequence[Message], tools: Sequence[Tool], *, max_turns: int, sampling: Sampling | None = None,
    told: Callable[[Step], None] | None = None,
) -> Conversation:  # fmt: skip
    """Let a model work with tools until it asks for no call, or for `max_turns` turns.

    Parameters
    ----------
    messages : what the conversation begins with
    told : hears every turn and every result

    Raises
    ------
    ModelError
        If the model gives no turn; what its calls did by then is done.
    ValueError
        If two tools bear one name or there is no turn to take.
    """
    known = {tool.name: tool for tool in tools}
    if len(known) < len(tools) or max_turns < 1:
        raise ValueError("tools need different names, and max_turns must be at least 1")
    held = Conversation(list(messages))
    hear = told or (lambda step: None)
    for _ in range(max_turns):
        turn = model.turn(held.steps, tools, sampling or Sampling(temperature=0.0, max_tokens=4096))
        held.steps.append(turn)
        hear(turn)
        if not turn.calls:
            held.finished = True
            break
        for call in turn.calls:
            result = ToolResult(call, _answer(call, known))
            held.steps.append(result)
            hear(result)
    return held


def _answer(call: ToolCall, known: Mapping[str, Tool]) -> str:
    if call.name not in known:
        return f"error: there is no tool {call.name!r}; there are {', '.join(known)}"
    return known[call.name].answer(call.arguments)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[{len(text) - LONGEST} more characters]"
