"""What was tried: an append-only list of skills, contexts and their figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from upheld.context.files import lines_of, write_whole
from upheld.context.skill import Skill


@dataclass(frozen=True)
class Entry:
    """One iteration.

    Attributes
    ----------
    iteration : 0 is the seed context, without a skill
    train : J_train, weighted over batches, each measured before it was learned from; None at iteration 0
    val : J_val
    outcomes : score of every validation sample, in the order of the validation set
    wrong : (target, answer, how often) among the training rollouts, most frequent first
    malformed : share of training answers that are no label at all
    tokens : mean context tokens a validation query
    rollouts : spent so far, validation included
    accepted : whether its context became the incumbent
    folder : of skill and context, relative to the work directory
    """

    iteration: int
    skill: Skill | None
    train: float | None
    val: float
    outcomes: tuple[float, ...]
    wrong: tuple[tuple[str, str, int], ...]
    malformed: float
    tokens: float
    longest: int
    rollouts: int
    seconds: float
    accepted: bool
    folder: str
    agents: str = "program"


class History:
    """Entries in the order they came; nothing is ever changed or removed.

    Examples
    --------
    >>> len(History())
    0
    """

    def __init__(self, entries: tuple[Entry, ...] = ()) -> None:
        self._entries = list(entries)

    def append(self, entry: Entry) -> None:
        """Raises ValueError unless the entry's iteration is the next one."""
        if entry.iteration != len(self._entries):
            raise ValueError(
                f"iteration {entry.iteration} cannot follow {len(self._entries) - 1}; a history is only appended to"
            )
        self._entries.append(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def __getitem__(self, index: int) -> Entry:
        return self._entries[index]

    @property
    def skilled(self) -> list[Entry]:
        """Entries that have a skill."""
        return [entry for entry in self._entries if entry.skill is not None]

    @property
    def incumbent(self) -> Entry:
        """The last accepted entry."""
        return [entry for entry in self._entries if entry.accepted][-1]

    def save(self, path: Path) -> None:
        rows = [{**asdict(entry), "skill": entry.skill and entry.skill.text} for entry in self._entries]
        write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

    @classmethod
    def load(cls, path: Path) -> History:
        from upheld.context.skill import program

        history = cls()
        for line in lines_of(path):
            row = json.loads(line)
            text = row.pop("skill")
            row["outcomes"], row["wrong"] = tuple(row["outcomes"]), tuple(map(tuple, row["wrong"]))
            history.append(Entry(skill=Skill(text, program(text, path)) if text else None, **row))
        return history
