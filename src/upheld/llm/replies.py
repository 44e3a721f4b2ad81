"""From an OpenAI-compatible server's JSON to an answer. Servers differ; what is missing or of another kind is said, not guessed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from upheld.llm.answer import Answer, Finish, Sampling, Token, Usage
from upheld.llm.keys import redacted

FINISHES: dict[object, Finish] = {"stop": "stop", "length": "length", "content_filter": "filtered"}


class Unusable(ValueError):
    """A reply that is no answer; the message goes on after the model's name ("gave no text")."""


def chat_answer(reply: dict[str, Any], sampling: Sampling, model: str, prices: tuple[float, float] | None) -> Answer:
    """Answer in a reply of ``/chat/completions``."""
    choice = _choice(reply)
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    finish = FINISHES.get(choice.get("finish_reason"), "unknown")
    if text is not None and not isinstance(text, str):
        raise Unusable(f"answered with a content of another kind than text ({type(text).__name__}); use a text model")
    if not text:
        raise Unusable(_WHY_EMPTY[finish])
    return _answer(text, finish, _chat_tokens(choice.get("logprobs")), reply, sampling, model, prices)


def completion_answer(
    reply: dict[str, Any], sampling: Sampling, model: str, prices: tuple[float, float] | None
) -> Answer:
    """Answer in a reply of ``/completions``; a text may well go on with nothing."""
    choice = _choice(reply)
    text = choice.get("text")
    if not isinstance(text, str):
        raise Unusable("gave a completion without a text; check that the endpoint serves /completions for this model")
    finish = FINISHES.get(choice.get("finish_reason"), "unknown")
    if not text and finish != "stop":
        raise Unusable(_WHY_EMPTY[finish])
    logprobs = choice.get("logprobs")
    listed = isinstance(logprobs, dict) and "content" in logprobs  # some servers use the form of a chat here too
    tokens = _chat_tokens(logprobs) if listed else _completion_tokens(logprobs)
    return _answer(text, finish, tokens, reply, sampling, model, prices)


def usage_of(reply: dict[str, Any], prices: tuple[float, float] | None) -> Usage:
    """Token counts that the server gives; a cost if they and the prices are known."""
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens", 0)  # embeddings write nothing
    if not isinstance(read, int) or not isinstance(written, int):
        return Usage()
    return Usage(read, written, None if prices is None else (read * prices[0] + written * prices[1]) / 1e6)


def before(pieces: Iterator[str], stops: tuple[str, ...]) -> Iterator[str]:
    """Pieces of a text up to the first of `stops`; what may be the beginning of one is held back until it is clear."""
    held = ""
    for piece in pieces:
        held += piece
        end = _end(held, stops)
        if end is not None:
            if held[:end]:
                yield held[:end]
            return
        doubtful = max((k for stop in stops for k in range(1, len(stop)) if held.endswith(stop[:k])), default=0)
        clear = len(held) - doubtful
        if clear:
            yield held[:clear]
            held = held[clear:]
    if held:
        yield held


_WHY_EMPTY: dict[Finish, str] = {
    "stop": "gave an empty answer; ask with another seed or prompt",
    "length": "spent all of max_tokens without a word of an answer (a model that reasons first?); raise max_tokens",
    "filtered": "had its answer withheld by the endpoint's content filter; change the prompt",
    "unknown": "gave no text; check that it is a chat model",
}


def _choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        kind = "an error" if reply.get("error") else f"fields {', '.join(map(repr, sorted(reply)[:5])) or 'of no name'}"
        raise Unusable(
            f"answered without choices (it holds {redacted(kind)}); check that the endpoint is OpenAI-compatible"
        )
    return choices[0]


def _answer(
    text: str, finish: Finish, tokens: tuple[Token, ...], reply: dict[str, Any], sampling: Sampling, model: str,
    prices: tuple[float, float] | None,
) -> Answer:  # fmt: skip
    if sampling.logprobs is None:
        tokens = ()
    elif text and not tokens:
        raise Unusable(
            "gave no log-probabilities though they were asked for; ask without them, or use a server that has them"
        )
    end = _end(text, sampling.stop)
    if end is not None:  # some servers leave the stop text in
        text, finish = text[:end], "stop"
        tokens = _tokens_before(tokens, end)
    return Answer(redacted(text), finish, model, tokens, usage_of(reply, prices))


def _end(text: str, stops: tuple[str, ...]) -> int | None:
    return min((text.find(stop) for stop in stops if stop and stop in text), default=None)


def _tokens_before(tokens: tuple[Token, ...], end: int) -> tuple[Token, ...]:
    kept, length = [], 0
    for token in tokens:
        if length >= end:
            break
        kept.append(token)
        length += len(token.text)
    return tuple(kept)


def _chat_tokens(logprobs: object) -> tuple[Token, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    try:
        return tuple(
            Token(
                _text(place["token"]),
                _logprob(place["logprob"]),
                tuple((_text(other["token"]), _logprob(other["logprob"])) for other in place.get("top_logprobs") or ()),
            )
            for place in content or ()
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise Unusable(_NOT_LOGPROBS) from error


def _completion_tokens(logprobs: object) -> tuple[Token, ...]:
    if not isinstance(logprobs, dict):
        return ()
    texts, values, tops = (
        logprobs.get("tokens") or [],
        logprobs.get("token_logprobs") or [],
        logprobs.get("top_logprobs"),
    )
    try:
        return tuple(
            Token(_text(text), _logprob(value), tuple((_text(other), _logprob(v)) for other, v in (top or {}).items()))
            for text, value, top in zip(texts, values, tops or [None] * len(texts), strict=True)
        )
    except (TypeError, AttributeError, ValueError) as error:
        raise Unusable(_NOT_LOGPROBS) from error


_NOT_LOGPROBS = "gave log-probabilities of another form than OpenAI's; ask without them"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _logprob(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise TypeError
    return float(value)
