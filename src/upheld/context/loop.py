"""The bi-level loop, offline::

    s_i   = meta_agent(task, interfaces, H)
    c     = copy of the incumbent;  for each batch:  rollouts with c;  c = base_agent(s_i, c, rollouts)
    H    += (s_i, c, J_train weighted over batches before each was learned from, J_val)

Killed at any moment it goes on after the last whole batch: a batch's context is a folder that appears in one step.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from upheld.context.acceptance import RULES, accepts
from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.consumers import Consumer, Workflow, known_label
from upheld.context.files import write_whole
from upheld.context.folder import Confined, Context, ContextFunction
from upheld.context.history import Entry, History
from upheld.context.rollouts import Rollout, RolloutCache, evaluate, problems, train_figure
from upheld.context.skill import Genes, Skill
from upheld.context.step import learn
from upheld.context.task import Sample, Task
from upheld.context.vectors import Embed


@dataclass(frozen=True)
class Settings:
    """How much is done. `train_limit` samples are drawn an iteration, in batches of `batch_size`; `budget` tokens a query."""

    iterations: int = 6
    train_limit: int = 200
    batch_size: int = 50
    budget: int = 1500
    accept: str = "paired"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("iterations", "train_limit", "batch_size", "budget"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} is {value!r}; give a whole number, at least 1")
        if self.accept not in RULES:
            raise ValueError(f"accept is {self.accept!r}; choose {' or '.join(RULES)}")


@dataclass
class Loop:
    """One run in a work directory.

    Parameters
    ----------
    task : text, metric, template; its samples are the training samples
    val : chooses among contexts; no agent sees it
    seed_context : where to start from, instead of the empty context
    agents : what the history says who wrote the skills
    told : hears every finished iteration
    """

    task: Task
    val: Sequence[Sample]
    consumer: Consumer | Workflow
    meta: MetaAgent
    base: BaseAgent
    embed: Embed
    settings: Settings
    folder: Path
    cache: RolloutCache
    seed_context: Path | None = None
    confined: Confined | None = None
    agents: str = "program"
    told: Callable[[Entry], None] | None = None

    def run(self) -> History:
        """All iterations that are still missing. Raises ValueError when the folder holds another run."""
        self._claim_folder()
        path = self.folder / "history.jsonl"
        history = History.load(path) if path.is_file() else History()
        while len(history) <= self.settings.iterations:
            entry = self._iteration(history) if len(history) else self._seed()
            history.append(entry)
            history.save(path)
            if self.told is not None:
                self.told(entry)
        return history

    def function(self, entry: Entry) -> ContextFunction:
        """The context of an iteration."""
        return self._function(Context(self.folder / entry.folder / "context"))

    def _claim_folder(self) -> None:
        """Write down what this run is, or check that the folder holds the same."""
        samples = [(one.id, one.asked, one.target) for one in (*self.task.samples, *self.val)]
        named = {
            "settings": asdict(self.settings),
            "consumer": self.consumer.id,
            "samples": samples,
            "agents": self.agents,
            "task": [self.task.metric, self.task.template, list(self.task.signatures), self.task.text],
        }
        if self.seed_context is not None:
            named["seed"] = digest(self.seed_context)
        mine = json.dumps(named, ensure_ascii=False)
        path = self.folder / "run.json"
        if path.is_file() and path.read_text(encoding="utf-8") != mine:
            raise ValueError(
                f"{self.folder} holds a run on other data or settings; give another folder, or remove that one"
            )
        write_whole(path, mine)

    def _function(self, context: Context) -> ContextFunction:
        return ContextFunction(context, self.embed, self.settings.budget, self.confined)

    def _seed(self) -> Entry:
        start = time.perf_counter()
        home = self.folder / "iterations" / "00" / "context"
        Context(self.seed_context or home / "nothing").copy(home)
        answers, tokens, scores = self._validated(Context(home), home.parent)
        value = self.task.scoring(answers, self._targets)
        return Entry(
            0, None, None, value, tuple(scores), (), 0.0, float(np.mean(tokens)), max(tokens), len(self.val),
            time.perf_counter() - start, True, "iterations/00", self.agents,
        )  # fmt: skip

    @property
    def _targets(self) -> list[str]:
        return [sample.target for sample in self.val]

    def _validated(self, context: Context, home: Path) -> tuple[list[str], list[int], list[float]]:
        """Answers, tokens and scores; answers, and what went wrong with contexts, are kept in `home`."""
        rollouts = evaluate(self.task, self.val, self._function(context), self.consumer, self.cache)
        answers = [one.answer for one in rollouts]
        if wrong := problems(rollouts):
            write_whole(home / "problems.json", json.dumps(wrong, ensure_ascii=False, indent=1))
        write_whole(home / "val.json", json.dumps(answers, ensure_ascii=False))
        return answers, [one.tokens for one in rollouts], [one.score for one in rollouts]

    def _iteration(self, history: History) -> Entry:
        start = time.perf_counter()
        home = self.folder / "iterations" / f"{len(history):02d}"
        skill = self._skill(history, home / "skill")
        batches = self._learn(skill, Context(self.folder / history.incumbent.folder / "context"), home, len(history))
        answers, tokens, scores = self._validated(Context(home / "context"), home)
        value, old = self.task.scoring(answers, self._targets), history.incumbent
        before = json.loads((self.folder / old.folder / "val.json").read_text(encoding="utf-8"))
        taken = accepts(
            self.settings.accept, (answers, value, float(np.mean(tokens))), (before, old.val, old.tokens), self._targets, self.task.scoring
        )  # fmt: skip
        seen = [one for batch in batches for one in batch]
        return Entry(
            len(history), skill, train_figure(self.task, batches), value, tuple(scores), confusions(seen), malformed(self.task, seen),
            float(np.mean(tokens)), max(tokens), history[-1].rollouts + len(seen) + len(self.val), time.perf_counter() - start, taken,
            str(home.relative_to(self.folder)), self.agents,
        )  # fmt: skip

    def _skill(self, history: History, folder: Path) -> Skill:
        if (folder / "SKILL.md").is_file():
            return Skill.load(folder)
        skill = self.meta.propose(self.task, history)
        part = folder.with_name("skill.part")
        if part.exists():
            shutil.rmtree(part)
        skill.save(part)
        part.replace(folder)
        return skill

    def _batches(self, iteration: int) -> list[list[Sample]]:
        rng = np.random.default_rng([self.settings.seed, iteration, 0xBA7C4])
        order = rng.permutation(len(self.task.samples))[: self.settings.train_limit]
        size = self.settings.batch_size
        return [
            [self.task.samples[place] for place in order[start : start + size]] for start in range(0, len(order), size)
        ]

    def _learn(self, skill: Skill, incumbent: Context, home: Path, iteration: int) -> list[list[Rollout]]:
        """The rollouts of every batch; the context after the last one is home/context."""
        batches, rollouts = self._batches(iteration), []
        context, step = incumbent, -1
        for step, batch in enumerate(batches):
            after, kept = home / f"step-{step + 1}", home / "train" / f"{step}.json"
            last = home / "context" if step + 1 == len(batches) else after
            if not last.is_dir() and not after.is_dir() and not (home / "context").is_dir():
                found = evaluate(self.task, batch, self._function(context), self.consumer, self.cache)
                write_whole(kept, json.dumps([one.__dict__ for one in found], ensure_ascii=False))
                learn(self.base, skill, self.task, context, found, last, self._function)
            rollouts.append([Rollout(**row) for row in json.loads(kept.read_text(encoding="utf-8"))])
            context = Context(after)
        for old in home.glob("step-*"):
            shutil.rmtree(old)
        return rollouts


def digest(folder: Path) -> str:
    """A hash of the files in a folder."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(folder)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def confusions(rollouts: Sequence[Rollout]) -> tuple[tuple[str, str, int], ...]:
    """(target, answer, how often) of wrong rollouts, most frequent first."""
    counts = Counter((one.target, one.answer) for one in rollouts if not one.is_correct)
    return tuple(
        (target, answer, n) for (target, answer), n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    )


def malformed(task: Task, rollouts: Sequence[Rollout]) -> float:
    """Share of answers that are no label of the task."""
    labels = task.labels()
    return sum(not known_label(one.answer, labels) for one in rollouts) / len(rollouts)


def export(loop: Loop, history: History, out: Path) -> Path:
    """The incumbent's files, without what it was learned from, as a folder to deploy."""
    home = Context(loop.folder / history.incumbent.folder / "context").copy(out)
    if (home.root / "data").exists():
        shutil.rmtree(home.root / "data")
    if not home.operator.is_file():  # nothing beat the empty context: a folder that says nothing, and can be loaded
        home.write([], Genes(budget=loop.settings.budget))
    return out
