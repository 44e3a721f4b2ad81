"""Operators that somebody else wrote, run in the sandbox: one call for a list of questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from upheld.context.folder import Made
from upheld.context.vectors import Embed
from upheld.sandbox import Limits, Sandbox

SECONDS = 2.0


class InSandbox:
    """Runs ``get_context`` of a folder; what fails gives an empty context with its reason.

    Parameters
    ----------
    allow_weak : go on where this machine can only limit resources

    Raises
    ------
    upheld.sandbox.SandboxRefused
        At the first call, where the machine cannot confine a program and `allow_weak` is false.
    """

    def __init__(self, *, allow_weak: bool = False) -> None:
        self.sandbox = Sandbox(limits=Limits(seconds=SECONDS), preload=["numpy"], allow_weak=allow_weak)

    def __call__(self, root: Path, questions: Sequence[str], embed: Embed) -> list[Made]:
        return self.call("get_context", root, [[question] for question in questions], embed)

    def call(self, name: str, root: Path, arguments: Sequence[list[Any]], embed: Embed) -> list[Made]:
        """What an interface gives for each list of arguments."""
        program = (root / "interfaces" / f"{name}.py").read_text(encoding="utf-8")
        n = len(arguments)
        limits = Limits(seconds=SECONDS, total_seconds=60 + SECONDS * n, cpu_seconds=60 + SECONDS * n, callbacks=20 * n)
        done = self.sandbox.call(
            program, name, arguments, keywords={"root": str(root.resolve())},
            callbacks={"embed": lambda texts: embed(checked(texts))}, read=[root.resolve()], limits=limits,
        )  # fmt: skip
        return [made(name, one.value, one.error) for one in done.outcomes]

    def close(self) -> None:
        self.sandbox.close()


def checked(texts: Any) -> list[str]:
    """What a program asks to have embedded. Raises TypeError unless it is a list of texts."""
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise TypeError("embed takes a list of at least one text")
    return texts


def made(name: str, value: object, error: str | None) -> Made:
    if error is not None:
        return Made("", 0, f"{name} failed: {error}")
    if not isinstance(value, str):
        return Made("", 0, f"{name} returned {type(value).__name__} instead of text; return a str")
    return Made(value, 0)
