"""A response cache around any language model: what was answered once is not asked, waited or paid for again.

The key of an answer is the model's id, the messages or prompt, every parameter, and the seed. An unseeded request at a
temperature above 0 asks for a fresh draw each time, so its answers are numbered within a run: the second time it is asked it
means the second draw, and is never given the first one again. A second run over the same file counts from the first draw again;
it repeats the first run, and its answers are the same, not new ones. For new ones take another file, other seeds, or no cache.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from upheld.llm.answer import Answer, Request
from upheld.llm.cache_file import CacheError, CacheFile, portions
from upheld.llm.model import LanguageModel, Told, gathered
from upheld.llm.record import Draws, Slot, answer_of, answer_text, request_text
from upheld.llm.replay import Replay, write_export


class CachedModel(LanguageModel):
    """A model whose answers are kept in a file, each committed before it is handed out.

    A run that is killed loses nothing that was answered. Several processes may use one file; where two ask the same at once, the first
    answer is kept and both give it. Threads may share one object, but which of them is given which draw of an unseeded request is then
    left to chance.

    Parameters
    ----------
    model : asked for what the cache does not hold
    path : of the cache, created when it is not there

    Raises
    ------
    CacheError
        If the file is no cache, is damaged, or cannot be written.

    Examples
    --------
    >>> model = CachedModel(language_model("embedded"), "answers.sqlite")            # doctest: +SKIP
    >>> model.chat("Name a planet.").cached, model.chat("Name a planet.").cached     # doctest: +SKIP
    (False, False)
    >>> CachedModel(language_model("embedded"), "answers.sqlite").chat("Name a planet.").cached     # doctest: +SKIP
    True
    """

    def __init__(self, model: LanguageModel, path: str | os.PathLike[str]) -> None:
        self.model = model
        self.id = model.id
        self._file = CacheFile(path)
        self._draws = Draws()
        self._given: set[Slot] = set()

    def answers(self, requests: Sequence[Request], told: Told | None = None) -> list[Answer]:
        return gathered(self.each(requests), len(requests), told)

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        places: defaultdict[Slot, list[int]] = defaultdict(list)
        for place, slot in enumerate(self._draws.take(self.id, requests)):
            places[slot].append(place)
        waiting = set(places)
        try:
            for slot, answer in self._kept(list(places)):
                waiting.discard(slot)
                yield from ((place, answer) for place in places[slot])
            missing = [slot for slot in places if slot in waiting]
            for number, answer in self.model.each([requests[places[slot][0]] for slot in missing]):
                slot = missing[number]
                request = requests[places[slot][0]]
                answer = self._keep(slot, request, answer)
                waiting.discard(slot)
                yield from ((place, answer) for place in places[slot])
        finally:
            self._draws.give_back(waiting)

    def stream(self, request: Request) -> Iterator[str]:
        """The answer piece by piece, or in one piece if it is kept; it is kept once it has come to its end."""
        [slot] = self._draws.take(self.id, [request], streamed=True)
        came = False
        try:
            for _, answer in self._kept([slot]):
                came = True
                yield answer.text
            if came:
                return
            pieces = []
            for piece in self.model.stream(request):
                pieces.append(piece)
                yield piece
            self._keep(slot, request, Answer("".join(pieces), "unknown", self.id))
            came = True
        finally:
            if not came:
                self._draws.give_back([slot])

    def export(self, path: str | os.PathLike[str], *, everything: bool = False) -> Path:
        """Write answers to a JSONL file that `Replay` answers from without the model; it is whole, or what was there before stays.

        Parameters
        ----------
        everything : all answers of this model in the file, such as those of other processes, instead of those that this object gave

        Raises
        ------
        CacheError
            If the file cannot be written.
        """
        return write_export(Path(path), self._all() if everything else self._rows(sorted(self._given)))

    @staticmethod
    def replay(path: str | os.PathLike[str], model: str | None = None) -> Replay:
        """The model that an export holds (`Replay`)."""
        return Replay(path, model)

    def close(self) -> None:
        self._file.close()

    def _kept(self, slots: Sequence[Slot]) -> Iterator[tuple[Slot, Answer]]:
        for key, draw, _, _, text in self._rows(slots):
            try:
                answer = answer_of(text)
            except ValueError as error:
                raise CacheError(
                    f"the cache {self._file.path} is damaged ({error}); move it away or name another"
                ) from error
            self._given.add((key, draw))
            yield (key, draw), answer

    def _keep(self, slot: Slot, request: Request, answer: Answer) -> Answer:
        """The answer that belongs to the slot from now on: this one, or that of a process that was quicker."""
        inserted = self._file.rows(
            "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?, ?) RETURNING 1",
            (*slot, self.id, request_text(request), answer_text(answer)),
        )
        if not inserted:
            [(_, answer)] = self._kept([slot])
        self._given.add(slot)
        return answer

    def _rows(self, slots: Sequence[Slot]) -> Iterator[Any]:
        for portion in portions(slots):
            marks = ", ".join(["(?, ?)"] * len(portion))
            yield from self._file.rows(
                f"SELECT key, draw, model, request, answer FROM answer WHERE (key, draw) IN (VALUES {marks}) ORDER BY key, draw",
                [value for slot in portion for value in slot],
            )

    def _all(self) -> Iterator[Any]:
        return self._file.each_row(
            "SELECT key, draw, model, request, answer FROM answer WHERE model = ? ORDER BY key, draw", (self.id,)
        )
