"""Servers measured from outside: the same prompts at rising concurrency, as vLLM's and SGLang's own benchmarks do.

One server is started without a drafter and one with it (``--speculative-config`` of vLLM, ``--speculative-algorithm`` of SGLang);
both speak OpenAI's protocol. What is compared is tokens a second of the whole, at equal concurrency.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Throughput:
    """What a server gave.

    Parameters
    ----------
    concurrency : requests under way at a time
    tokens : completion tokens of all requests, as the server counts them
    seconds : of the whole, by the wall clock
    """

    concurrency: int
    tokens: int
    seconds: float

    @property
    def tokens_a_second(self) -> float:
        return self.tokens / self.seconds


def throughput(
    base_url: str,
    model: str,
    prompts: Sequence[str],
    *,
    concurrency: int,
    max_tokens: int = 256,
    temperature: float = 0.0,
    api_key: str = "none",
) -> Throughput:
    """Send every prompt as a user's turn, at most `concurrency` at a time.

    Parameters
    ----------
    base_url : up to ``/v1``

    Raises
    ------
    ValueError
        If there is no prompt, or the concurrency is below 1.
    openai.OpenAIError
        If the server refuses or cannot be reached.
    """
    import openai

    if not prompts or concurrency < 1:
        raise ValueError(
            f"a server is measured with one prompt or more, one at a time or more; got {len(prompts)} and {concurrency}"
        )
    with openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0) as client:

        def ask(prompt: str) -> int:
            said: Any = client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=max_tokens,
                temperature=temperature,
            )
            return int(said.usage.completion_tokens)

        ask(prompts[0])  # a cold server is no server
        with ThreadPoolExecutor(concurrency) as crew:
            begin = time.perf_counter()
            tokens = sum(crew.map(ask, prompts))
            seconds = time.perf_counter() - begin
    return Throughput(concurrency, tokens, seconds)
