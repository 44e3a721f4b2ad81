"""A request and its answer as they are kept in a cache and in an export: as JSON, without keys."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from threading import Lock
from typing import Any

from upheld.llm.answer import Answer, Request, Token, Usage
from upheld.llm.keys import redacted

Slot = tuple[str, int]
"""Where an answer is kept: the hash of what was asked of whom, and the number of the draw."""


def request_key(model: str, request: Request, streamed: bool = False) -> str:
    """SHA-256 of the model's id, the messages or the prompt, every parameter, and the seed.

    A streamed answer has its own key: it comes without token counts and log-probabilities.
    """
    asked = {"model": model, "streamed": streamed, **_plain(request)}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def is_repeatable(request: Request) -> bool:
    """Whether the same request means the same answer: it has a seed, or takes the likeliest tokens."""
    return request.sampling.seed is not None or request.sampling.temperature == 0


def request_text(request: Request) -> str:
    return json.dumps(_redacted(_plain(request)), sort_keys=True)


def answer_text(answer: Answer) -> str:
    kept = asdict(answer)
    del kept["cached"]
    return json.dumps(_redacted(kept), sort_keys=True)


def answer_of(text: str) -> Answer:
    """The answer that `answer_text` wrote, marked as cached; raises ValueError for anything else."""
    try:
        kept = json.loads(text)
        tokens = tuple(
            Token(token["text"], token["logprob"], tuple((other, value) for other, value in token["alternatives"]))
            for token in kept["tokens"]
        )
        usage = Usage(**kept["usage"])
        if not isinstance(kept["text"], str):
            raise TypeError("its text is none")
        return Answer(kept["text"], kept["finish"], kept["model"], tokens, usage, cached=True)
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no answer: {error}") from error


class Draws:
    """Numbers of draws, so that an answer is never given twice as if it had been drawn twice.

    The k-th time that an unseeded request is asked in one run it means the k-th draw; a later run counts from the first again and
    thereby repeats this one. A request that is repeatable (`is_repeatable`) has one draw.
    """

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._returned: defaultdict[str, list[int]] = defaultdict(list)
        self._lock = Lock()

    def take(self, model: str, requests: Sequence[Request], streamed: bool = False) -> list[Slot]:
        """Where the answer to each request belongs."""
        slots = []
        with self._lock:
            for request in requests:
                key, draw = request_key(model, request, streamed), 0
                if not is_repeatable(request):
                    if self._returned[key]:
                        draw = self._returned[key].pop(0)
                    else:
                        draw = self._taken[key]
                        self._taken[key] += 1
                slots.append((key, draw))
        return slots

    def give_back(self, slots: Iterable[Slot]) -> None:
        """Draws that never came (a failure, an interruption) are the next to be taken; repeatable requests need none."""
        with self._lock:
            for key, draw in slots:
                if key in self._taken:
                    self._returned[key] = sorted({*self._returned[key], draw})


def _plain(request: Request) -> dict[str, Any]:
    sampling = asdict(request.sampling)
    sampling |= {
        name: float(sampling[name]) + 0.0 for name in ("temperature", "top_p")
    }  # 0, 0.0 and -0.0 are one temperature
    asked = {"messages": [[turn.role, turn.content] for turn in request.messages]}
    return {**(asked if request.prompt is None else {"prompt": request.prompt}), "sampling": sampling}


def _redacted(value: Any) -> Any:
    """The same with every key blanked, whoever put one into a prompt."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: _redacted(item) for name, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, list | tuple) else value
