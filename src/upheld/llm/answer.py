"""What is asked of a language model, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filtered", "unknown"]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class Sampling:
    """How the answer is drawn.

    Parameters
    ----------
    temperature : 0 takes the likeliest token each time
    top_p : tokens beyond this share of the probability are never drawn
    max_tokens : the answer is cut there (``finish == "length"``)
    seed : the same seed gives the same answer, as far as the model keeps that promise; none, a fresh draw
    stop : the answer ends before any of these
    logprobs : whether the log-probabilities of its tokens are wanted, and of how many alternatives at each place
        (None: none; 0: those of the tokens alone)
    """

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 512
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 2:
            raise ValueError(f"temperature must lie between 0 and 2, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie above 0 and at most at 1, got {self.top_p}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if "" in self.stop:
            raise ValueError("stop holds an empty text, before which every answer ends; leave it out")
        if self.logprobs is not None and not 0 <= self.logprobs <= 20:
            raise ValueError(f"logprobs must lie between 0 and 20, got {self.logprobs}")


@dataclass(frozen=True)
class Request:
    """A conversation to go on with (a chat), or a text to complete: one of the two."""

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("a request holds either messages or a prompt; give one of them")


@dataclass(frozen=True)
class Token:
    """One token of an answer with its log-probability (natural), and the likeliest alternatives at its place."""

    text: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Usage:
    """Tokens read and written, and what they cost in the currency of the price list (None: no price is known)."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens, cost)


@dataclass(frozen=True)
class Answer:
    """What a model answered; `tokens` is empty unless their log-probabilities were asked for."""

    text: str
    finish: Finish
    model: str
    tokens: tuple[Token, ...] = ()
    usage: Usage = Usage()
    cached: bool = False


def conversation(user: str | Sequence[Message], system: str | None = None) -> tuple[Message, ...]:
    """Messages of a chat: a user's line, or turns as they are, after a system prompt if there is one."""
    turns = (Message("user", user),) if isinstance(user, str) else tuple(user)
    return (Message("system", system), *turns) if system is not None else turns
