"""One batch: the base agent works on a copy, which takes its place only when it is whole and answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from upheld.context.agents import BaseAgent
from upheld.context.files import write_whole
from upheld.context.folder import Context, ContextFunction
from upheld.context.rollouts import Rollout, train_json
from upheld.context.signatures import signatures
from upheld.context.skill import Skill
from upheld.context.task import Task

REPAIRS = 3
PROBED = 3

Called = Callable[[Context], ContextFunction]


def learn(
    base: BaseAgent, skill: Skill, task: Task, context: Context, rollouts: Sequence[Rollout], out: Path, called: Called
) -> Context:  # fmt: skip
    """The context in `out` after these rollouts; what it was, with the reason in data/failed.txt, if three repairs do not help."""
    part = out.with_name(out.name + ".part")
    work = context.copy(part)
    write_whole(work.root / "data" / "train.json", train_json(task, rollouts))
    work = base.apply(skill, work, rollouts)
    for _ in range(REPAIRS):
        if not (problem := failing(task, work, rollouts, called)):
            break
        work = base.repair(skill, work, problem)
    if problem := failing(task, work, rollouts, called):
        context.copy(part)
        write_whole(part / "data" / "failed.txt", problem + "\n")
    if out.exists():
        shutil.rmtree(out)
    part.replace(out)
    return Context(out)


def failing(task: Task, context: Context, rollouts: Sequence[Rollout], called: Called) -> str:
    """Why an interface is missing or fails on a few questions, or nothing."""
    files = context.root / "context"
    if not context.operator.is_file() and files.is_dir() and any(files.iterdir()):
        return "there are files in context/, and no interfaces/get_context.py that gives them to a question"
    if context.operator.is_file():
        for one in signatures(task.signatures)[1:]:
            if problem := one.missing(context.root):
                return problem
    made = called(context).many([one.question for one in rollouts[:PROBED]])
    return next((one.problem for one in made if one.problem), "")
