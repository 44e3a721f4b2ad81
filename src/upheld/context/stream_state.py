"""What is kept of a stream after each batch, so that a process killed at any moment goes on after the last whole one.

A state is a folder of its own, which appears in one step::

    kept-0003/   state.json (answers batch by batch, skills, windows)   history.jsonl   incumbent/   challenger/
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from upheld.context.files import write_whole
from upheld.context.folder import Context
from upheld.context.history import History
from upheld.context.rollouts import Rollout
from upheld.context.skill import Skill, program

INCUMBENT, CHALLENGER = "incumbent", "challenger"


@dataclass
class Learner:
    """A skill and the context it has made so far, with its answers since the window began."""

    skill: Skill
    context: Context
    window: list[Rollout] = field(default_factory=list)


@dataclass(frozen=True)
class State:
    """A stream after some batches: the answers of each, who learns, the history, and the rollouts spent."""

    batches: Sequence[Sequence[Rollout]]
    incumbent: Learner
    challenger: Learner | None
    history: History
    spent: int

    def keep(self, folder: Path) -> None:
        """Write it below the stream's folder, in the place of the one before."""
        part = folder / "kept.part"
        if part.exists():
            shutil.rmtree(part)
        part.mkdir(parents=True)
        learners = {INCUMBENT: self.incumbent, CHALLENGER: self.challenger}
        for name, one in learners.items():
            if one is not None:
                one.context.copy(part / name)
        self.history.save(part / "history.jsonl")
        told = {
            "batches": [[asdict(one) for one in batch] for batch in self.batches],
            "learners": {name: as_json(one) for name, one in learners.items() if one is not None},
            "spent": self.spent,
        }
        write_whole(part / "state.json", json.dumps(told, ensure_ascii=False))
        earlier = kept(folder)
        part.replace(folder / f"kept-{len(self.batches):04d}")
        for old in earlier:
            shutil.rmtree(old)

    @classmethod
    def latest(cls, folder: Path) -> State | None:
        """The last one that was kept, its contexts put back where a stream works on them; None where there is none."""
        if not (found := kept(folder)):
            return None
        home = found[-1]
        told = json.loads((home / "state.json").read_text(encoding="utf-8"))
        learners = {
            name: learner(row, Context(home / name).copy(folder / name)) for name, row in told["learners"].items()
        }
        batches = [[Rollout(**row) for row in batch] for batch in told["batches"]]
        history = History.load(home / "history.jsonl")
        return cls(batches, learners[INCUMBENT], learners.get(CHALLENGER), history, told["spent"])


def kept(folder: Path) -> list[Path]:
    """States in a folder, the latest last: two, where the process was killed before the older one was taken away."""
    return sorted(folder.glob("kept-*"), key=lambda path: int(path.name.partition("-")[2]))


def as_json(one: Learner) -> dict[str, Any]:
    return {"skill": one.skill.text, "files": one.skill.files, "window": [asdict(rollout) for rollout in one.window]}


def learner(row: dict[str, Any], context: Context) -> Learner:
    skill = Skill(row["skill"], program(row["skill"], context.root), row["files"])
    return Learner(skill, context, [Rollout(**told) for told in row["window"]])
