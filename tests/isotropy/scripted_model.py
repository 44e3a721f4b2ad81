"""A language model that answers from a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from upheld.llm import Answer, LanguageModel, Request, Usage


class ScriptedModel(LanguageModel):
    """Answers by a function of the request; a plain text is an answer that ended by itself."""

    id = "scripted"

    def __init__(self, script: Callable[[Request], str | Answer]) -> None:
        self.script = script
        self.asked: list[Request] = []
        self.calls = 0

    def answers(self, requests: Sequence[Request], told=None) -> list[Answer]:
        self.calls += 1
        self.asked += requests
        replies = [self.script(request) for request in requests]
        return [
            Answer(reply, "stop", self.id, usage=Usage(10, len(reply.split()), 0.0))
            if isinstance(reply, str)
            else reply
            for reply in replies
        ]

    def stream(self, request: Request) -> Iterator[str]:
        yield self.answers([request])[0].text
