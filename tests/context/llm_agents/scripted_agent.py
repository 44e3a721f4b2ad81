"""An endpoint whose model acts by a script: what it says next depends on the conversation it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from context_samples import WORDS
from servers import FaultServer, Reply, chat, data, serving

Messages = list[dict[str, Any]]
Script = Callable[[Messages], Reply]


def calling(*calls: tuple[str, dict[str, Any] | str], text: str | None = None) -> Reply:
    """A turn that asks for calls; arguments given as text are sent as they are, malformed or not."""
    asked = [
        {"id": f"id-{n}", "type": "function", "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)}}
        for n, (name, a) in enumerate(calls)
    ]  # fmt: skip
    message = {"role": "assistant", "content": text, "tool_calls": asked}
    return data({
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    })  # fmt: skip


def refusing(why: str = "I will not.") -> Reply:
    return data({"choices": [{"index": 0, "message": {"role": "assistant", "content": None, "refusal": why}}]})


@contextmanager
def acting(script: Script) -> Iterator[FaultServer]:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        script(handler.body["messages"])(handler)  # type: ignore[attr-defined]

    with serving(reply) as server:
        yield server


def in_turn(*replies: Reply) -> Script:
    """The n-th request is given the n-th reply, the last one over and over."""
    left = list(replies)

    def script(_: Messages) -> Reply:
        return left.pop(0) if len(left) > 1 else left[0]

    return script


def results(messages: Messages) -> list[str]:
    """What its calls gave so far, in this conversation."""
    return [one["content"] for one in messages if one["role"] == "tool"]


def is_meta(messages: Messages) -> bool:
    return messages[0]["content"].startswith("You are a context engineer")


def is_base(messages: Messages) -> bool:
    return messages[0]["content"].startswith("You are an agent")


DONE = chat("Done.", usage=(10, 2))

# -- a model that plays both agents, and the consumer

PROGRAM = "def get_context(question, *, root, embed):\n    return open(root + '/context/notes.md').read()\n"
NOTES = "".join(f"- {label}: {' '.join(words)}\n" for label, words in WORDS.items())
WORK = (
    ("write", {"path": "context/notes.md", "text": NOTES}),
    ("write", {"path": "interfaces/get_context.py", "text": PROGRAM}),
)


def organs(messages):
    """A model that plays both agents: writes a skill, then the notes, one label more each time the base agent is asked."""
    if is_meta(messages):
        folder = messages[1]["content"].partition("your new skill")[0].rstrip(":/ ").rpartition(" ")[2]
        text = "# S\n\n## Skill Overview\n\nWrite notes.\n"
        return DONE if results(messages) else calling(("write", {"path": f"{folder}/SKILL.md", "text": text}))
    if len(results(messages)) == 1:
        known = results(messages)[0].splitlines()
        more = known if not known[0].startswith("error") else []
        notes = "\n".join([*more, *NOTES.splitlines()[len(more) : len(more) + 1]])
        return calling(("write", {"path": "context/notes.md", "text": notes}), WORK[1])
    return DONE if results(messages) else calling(("read", {"path": "context/notes.md"}))


def answering(messages: Messages) -> Reply:
    """The label whose words in the context are in the question; it knows nothing else."""
    context, _, question = messages[-1]["content"].rpartition("Text: ")
    pairs = [line[2:].partition(": ") for line in context.splitlines() if ": " in line]
    told = {label: len(set(words.split()) & set(question.split())) for label, _, words in pairs}
    return chat(f"<answer>{max(told, key=told.__getitem__, default='none')}</answer>")


def all_parts(messages: Messages) -> Reply:
    return organs(messages) if is_meta(messages) or is_base(messages) else answering(messages)
