"""A run repeated without the model: answers written to a JSONL file, and a model that answers from it.

The first line names the format. Every other line is one answer: ``key`` (`upheld.llm.record.request_key`), ``draw``, ``model``,
``request``, ``answer``; ``request`` is there to be read, the key is what counts. Lines are in the order of the keys, so that equal
runs give equal files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from upheld.llm.answer import Answer, Request
from upheld.llm.cache_file import CacheError
from upheld.llm.model import LanguageModel, ModelError, Told, gathered
from upheld.llm.record import Draws, Slot, answer_of, is_repeatable
from upheld.storage import whole_file

HEAD = {"format": "upheld answers", "version": 1}


class Replay(LanguageModel):
    """A model that gives the answers of an export, and no other.

    Parameters
    ----------
    path : written by `CachedModel.export`
    model : id of the model to replay, where the export holds several

    Raises
    ------
    CacheError
        If the file cannot be read, is no export, or holds several models and none is named.
    """

    def __init__(self, path: str | os.PathLike[str], model: str | None = None) -> None:
        self.path = Path(path)
        self._answers: dict[Slot, Answer] = {}
        self._draws = Draws()
        models = set()
        for slot, name, answer in _exported(self.path):
            models.add(name)
            if model in (None, name):
                self._answers[slot] = answer
        if model is None and len(models) != 1:
            held = f"answers of {', '.join(sorted(models))}; name one of them" if models else "no answer"
            raise CacheError(f"{self.path} holds {held}")
        if model is not None and model not in models:
            raise CacheError(
                f"{self.path} holds no answer of {model!r}, but of {', '.join(sorted(models)) or 'nobody'}"
            )
        self.id = model or models.pop()

    def answers(self, requests: Sequence[Request], told: Told | None = None) -> list[Answer]:
        return gathered(self.each(requests), len(requests), told)

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        slots = self._draws.take(self.id, requests)
        missing = [place for place, slot in enumerate(slots) if slot not in self._answers]
        if missing:
            self._draws.give_back(slots)
            raise self._missing(requests[missing[0]], slots[missing[0]], len(missing))
        yield from ((place, self._answers[slot]) for place, slot in enumerate(slots))

    def stream(self, request: Request) -> Iterator[str]:
        [slot] = self._draws.take(self.id, [request], streamed=True)
        if slot not in self._answers:
            self._draws.give_back([slot])
            raise self._missing(request, slot, 1)
        yield self._answers[slot].text

    def _missing(self, request: Request, slot: Slot, n: int) -> ModelError:
        text = request.prompt if request.prompt is not None else request.messages[-1].content
        start = text if len(text) <= 60 else f"{text[:60]}…"
        sampling = request.sampling
        asked = f"temperature {sampling.temperature:g}, at most {sampling.max_tokens} tokens"
        asked += f", seed {sampling.seed}" if is_repeatable(request) else f", draw {slot[1] + 1}"
        more = f" and {n - 1} more" if n > 1 else ""
        return ModelError(
            f"{self.path} holds no answer of {self.id} to {start!r} ({asked}){more}; repeat the run that was exported, or ask the model"
        )


def write_export(path: Path, rows: Iterable[Sequence[Any]]) -> Path:
    """Write rows (key, draw, model, request, answer) as an export."""
    try:
        with whole_file(path) as file:
            file.write(json.dumps(HEAD) + "\n")
            for key, draw, model, request, answer in rows:
                line = {
                    "key": key,
                    "draw": draw,
                    "model": model,
                    "request": json.loads(request),
                    "answer": json.loads(answer),
                }
                file.write(json.dumps(line, sort_keys=True) + "\n")
    except json.JSONDecodeError as error:
        raise CacheError(f"the cache holds an answer that is no JSON ({error}); it is damaged, move it away") from error
    except OSError as error:
        raise CacheError(f"cannot write {path}: {error.strerror or error}; name a file of yours") from error
    return path


def _exported(path: Path) -> Iterator[tuple[Slot, str, Answer]]:
    line = 1  # where reading is, for the message
    try:
        with path.open(encoding="utf-8") as file:
            if json.loads(file.readline()) != HEAD:
                raise CacheError(
                    f"{path} is no export of answers that this version reads; name a file that `export` wrote"
                )
            for text in file:
                line += 1
                kept = json.loads(text)
                yield (str(kept["key"]), int(kept["draw"])), str(kept["model"]), answer_of(json.dumps(kept["answer"]))
    except OSError as error:
        raise CacheError(f"cannot read {path}: {error.strerror or error}; name an export of answers") from error
    except CacheError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CacheError(
            f"{path} is no export of answers, or damaged in line {line} ({error}); export it anew"
        ) from error
