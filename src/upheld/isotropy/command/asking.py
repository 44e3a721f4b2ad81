"""Answers to a list of prompts, sampled for `upheld.isotropy.command.survey`, with an account of what they cost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from upheld.isotropy.adaptive import AdaptiveSample, Scorer, sample_until
from upheld.isotropy.data.responses import Responses
from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.sampling import SampledResponses, draw_range
from upheld.llm import Answer, LanguageModel, Request, Usage
from upheld.llm.abreast import abreast
from upheld.llm.model import Told, gathered


@dataclass(frozen=True)
class Asking:
    """How every prompt is asked.

    Parameters
    ----------
    n, temperature, max_tokens, seed : see `upheld.isotropy.sampling.sample_responses`
    threshold : draw until it is plain on which side of it the score of n answers lies, or there are `n_max`; None: draw n
    concurrency : requests that the model takes at a time
    """

    n: int = 5
    temperature: float = 0.7
    max_tokens: int = 700
    seed: int = 0
    threshold: float | None = None
    n_max: int = 20
    concurrency: int = 1


@dataclass(frozen=True)
class Asked:
    """The answers to one prompt, and how they were drawn."""

    item: Responses
    drawn: SampledResponses
    adaptive: AdaptiveSample | None = None


def read_prompts(path: str | Path) -> list[tuple[str, str]]:
    """Prompts of a text file, one a line, each under its line's number; empty lines are passed over.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it holds no prompt, one twice, or is no text in UTF-8.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; name a text file with a prompt a line")
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 (byte {error.start + 1}); save it as UTF-8") from None
    found: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        prompt = line.strip()
        if not prompt:
            continue
        if "\x00" in prompt:
            raise ValueError(f"line {number} of {path} holds a NUL byte, so this is no text; name a file in UTF-8")
        if prompt in found:
            raise ValueError(f"line {number} of {path} repeats the prompt of line {found[prompt]}; ask each once")
        found[prompt] = number
    if not found:
        raise ValueError(f"{path} holds no prompt; write one a line")
    return [(str(number), prompt) for prompt, number in found.items()]


def asked(
    prompts: Sequence[tuple[str, str]], client: LanguageModel, asking: Asking, scorer: Scorer, told: Told | None = None
) -> Iterator[Asked]:
    """The answers to every prompt, in their order; several prompts are asked at a time if the model takes so many requests.

    Raises
    ------
    ValueError
        On temperature 0, or as `sample_until`.
    ModelError
        If the model gives no answer, or an empty one.
    """
    abreast_of = 1 if asking.threshold is not None else math.ceil(asking.concurrency / asking.n)
    done = 0
    for start in range(0, len(prompts), 4 * abreast_of):
        portion = prompts[start : start + 4 * abreast_of]
        if abreast_of == 1:
            for one in portion:
                yield _ask(one, client, asking, scorer)
                done += 1
                if told is not None:
                    told(done, len(prompts))
            continue

        def ask(one: tuple[str, str], _: Event) -> Asked:
            return _ask(one, client, asking, scorer)

        found: dict[int, Asked] = {}
        for place, answers in abreast(ask, portion, abreast_of):
            found[place] = answers
            done += 1
            if told is not None:
                told(done, len(prompts))
        yield from (found[place] for place in range(len(portion)))


def _ask(one: tuple[str, str], client: LanguageModel, asking: Asking, scorer: Scorer) -> Asked:
    id_, prompt = one
    if asking.threshold is None:
        drawn = draw_range(client, prompt, range(asking.n), asking.temperature, asking.max_tokens, asking.seed)
        return Asked(Responses(id_, prompt, drawn.texts), drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsotropyWarning)  # said of all prompts together
        sample = sample_until(
            client, scorer, prompt, asking.threshold, asking.n, asking.n_max,
            temperature=asking.temperature, max_tokens=asking.max_tokens, seed=asking.seed,
        )  # fmt: skip
    return Asked(Responses(id_, prompt, sample.responses.texts), sample.responses, sample)


class Meter(LanguageModel):
    """A model, and an account of what it was asked.

    Attributes
    ----------
    usage : tokens and cost of what was answered anew; kept : answers that a cache had
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.id = model.id
        self.usage = Usage(cost=0.0)
        self.fresh = self.kept = 0
        self._lock = Lock()

    def answers(self, requests: Sequence[Request], told: Told | None = None) -> list[Answer]:
        return gathered(self.each(requests), len(requests), told)

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        for place, answer in self.model.each(requests):
            with self._lock:
                if answer.cached:
                    self.kept += 1
                else:
                    self.fresh += 1
                    self.usage += answer.usage
            yield place, answer

    def stream(self, request: Request) -> Iterator[str]:
        return self.model.stream(request)
