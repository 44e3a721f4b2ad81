"""What the command does with its options: the data, the run, what is written."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from upheld.context import dspy_rival, package_ace_rival
from upheld.context.ace_rival import Reflector, reflective_ace
from upheld.context.consumers import Workflow
from upheld.context.dspy_rival import KNN, dspy_optimised
from upheld.context.engineer import ContextEngineer, named, objects_of
from upheld.context.explain import influences, pareto
from upheld.context.exports import as_agent_skill
from upheld.context.generate_lm import GenerateLM
from upheld.context.gepa_rival import asking, gepa, reflective_gepa
from upheld.context.history import History
from upheld.context.llm_agents.conversation import speakers
from upheld.context.loop import Loop, export
from upheld.context.package_ace_rival import PACKAGE, Structured, package_ace
from upheld.context.rivals import RIVALS, Contender, Contest, ace
from upheld.context.rollouts import Rollout, RolloutCache, evaluate, figure, problems
from upheld.context.skill import Skill
from upheld.context.task import Sample, Task, overlap
from upheld.context.vectors import minilm
from upheld.llm import ModelError, Usage
from upheld.sandbox import Sandbox, SandboxRefused

SCHEMA = "upheld.context.run/2"
PROGRAMS = (
    "Agents: programs, no language model. A heuristic search over how contexts are built, not the paper's agents."
)
OPTIONS = {
    "consumer_model": "--consumer-model", "agent_model": "--agent-model", "val_size": "--val-size", "init_skill": "--init-skill",
    "accept is": "--accept is", ", or X_val": "", ", or give genes": "",
}  # fmt: skip
"""What errors of the estimator are called on the command line."""
FIRST_TEXT = "Give the label of a text."


def result_of(asked: dict[str, Any]) -> dict[str, Any]:
    """Read, learn, judge, write; what result.json holds."""
    fields = {"question": asked["question_field"], "target": asked["target_field"]}
    options = {"metric": asked["metric"], "text": asked["task_text"] or FIRST_TEXT}
    task = Task.read(asked["train"], **fields, **options)
    held_out = list(Task.read(asked["test"], **fields, **options).samples) if asked["test"] else []
    refuse_overlap(task, held_out, allowed=asked["allow_overlap"])
    refuse_a_full_folder(asked["agent_skill"])
    begin = time.perf_counter()
    with told_to_the_user(asked):
        learner = engineer(task, asked)
        result = stream(task, learner, asked) if asked["online"] else offline(task, held_out, learner, asked)
        if asked["agent_skill"] is not None:
            as_agent_skill(learner.context_, asked["agent_skill"], task)
    notice = PROGRAMS if asked["agent_model"] is None else f"Agents: {asked['agent_model']}, with tools."
    spent = {who: {"read": one.prompt_tokens, "written": one.completion_tokens} for who, one in learner.usage_.items()}
    return {"schema": SCHEMA, "notice": notice, **result, "tokens": spent, "seconds": time.perf_counter() - begin}


def refuse_overlap(task: Task, test: list[Sample], *, allowed: bool) -> None:
    shared = overlap(task.samples, test)
    if shared and not allowed:
        raise ValueError(
            f"{len(shared)} of {len(test)} test questions stand in the training file too, the first being {shared[0]}; take them out, or "
            "--allow-overlap"
        )


def refuse_a_full_folder(folder: Path | None) -> None:
    """A skill for agents is written at the end: what is wrong with its place is said before anything is paid for."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is no empty folder; name another one with --agent-skill, or clear that one")


@contextmanager
def told_to_the_user(asked: dict[str, Any]) -> Iterator[None]:
    """Errors name options, and say that a run that stopped goes on; where none began, no folder is left behind."""
    out = asked["out"]
    fresh = not out.exists()
    try:
        yield
    except ModelError as error:
        raise ModelError(
            f"{error}; what was done is kept in {asked['out']}, give the same command again to go on"
        ) from error
    except SandboxRefused as error:
        raise ValueError(f"{error} (--allow-weak-sandbox)") from error
    except ValueError as error:
        if fresh and not any((out / "run" / name).is_file() for name in ("run.json", "online/stream.json")):
            shutil.rmtree(out, ignore_errors=True)
        said = str(error)
        for parameter, option in OPTIONS.items():
            said = said.replace(parameter, option)
        raise ValueError(said) from error


def engineer(task: Task, asked: dict[str, Any]) -> ContextEngineer:
    """The estimator that these options describe."""
    consumer, endpoint = asked["consumer"], asked["endpoint"]
    if endpoint is not None and not (asked["consumer_model"] or asked["agent_model"]):
        raise ValueError(
            f"--endpoint {endpoint} is asked for nothing; name a model there with --consumer-model or --agent-model"
        )
    if consumer is None:
        consumer = "embedding" if asked["consumer_model"] is None else "llm" if endpoint is not None else "label-lm"
    elif asked["consumer_model"] is not None and consumer not in ("llm", "label-lm"):
        raise ValueError(
            f"--consumer {consumer} is no language model; leave out --consumer-model, or take --consumer llm or label-lm"
        )
    agents = "program" if asked["agent_model"] is None else "llm"
    if agents == "llm":
        with Sandbox(
            allow_weak=asked["allow_weak_sandbox"]
        ):  # refused now, and not after the first rollouts were paid for
            pass
    asked["out"].mkdir(parents=True, exist_ok=True)
    names = ("iterations", "train_limit", "val_size", "accept", "seed", "endpoint", "consumer_model", "agent_model", "seed_context",
             "allow_weak_sandbox")  # fmt: skip
    return ContextEngineer(
        task, consumer=consumer, meta=agents, base=agents, batch_size=asked["batch"], token_budget=asked["budget"],
        workdir=asked["out"] / "run", embed=minilm(asked["out"] / "vectors.sqlite"),
        init_skill=Skill.load(asked["skill"]) if asked["skill"] is not None else asked["init_skill"],
        **{name: asked[name] for name in names},
    )  # fmt: skip


def offline(task: Task, test: list[Sample], learner: ContextEngineer, asked: dict[str, Any]) -> dict[str, Any]:
    learned = learner.fit(objects_of(task.samples), [one.target for one in task.samples])
    loop, history, out = learned.loop_, learned.history_, asked["out"]
    export(loop, history, out / "context")
    for entry in history:
        if entry.skill is not None:
            entry.skill.save(out / "skills" / f"{entry.iteration:02d}")
    judged = evaluate(loop.task, test, learned.context_, loop.consumer, loop.cache) if test else []
    rivals = contenders(loop, out / "rivals", asked) if asked["compare"] else []
    table = {one.name: rival_row(loop, one, test) for one in rivals}
    draw(history, task.metric, table, out)
    rows = [
        {
            "iteration": one.iteration, "skill": one.skill.overview if one.skill else "seed context", "train": one.train, "val": one.val,
            "tokens": one.tokens, "rollouts": one.rollouts, "accepted": one.accepted, "failed": failures(loop, one.folder),
        }
        for one in history
    ]  # fmt: skip
    return {
        "metric": task.metric, "budget": asked["budget"], "consumer": loop.consumer.id, "iterations": rows,
        "test": figure(loop.task, judged) if judged else None, "test_tokens": mean_tokens(judged), "problems": problems(judged),
        "rivals": table, "rivals_left_out": left_out(loop, asked["agent_model"]) if asked["compare"] else {},
        "front": [[one.iteration, one.tokens, one.val] for one in pareto(history)],
        "lines": [
            {"label": one.line.label, "text": one.line.text, "helped": one.helped, "harmed": one.harmed}
            for one in (influences(learned.context_.context, judged, learned.embed_)[:20] if learned.context_.own else [])
        ],
    }  # fmt: skip


def failures(loop: Loop, folder: str) -> list[str]:
    """What went wrong in an iteration: a last batch that left the context as it was, contexts that could not be made."""
    told = loop.folder / folder / "context" / "data" / "failed.txt"
    counted = loop.folder / folder / "problems.json"
    found = [f"the last batch changed nothing: {told.read_text(encoding='utf-8').strip()}"] if told.is_file() else []
    rows = json.loads(counted.read_text(encoding="utf-8")) if counted.is_file() else []
    return found + [f"{row['n']} validation questions: {row['problem']}" for row in rows]


def contenders(loop: Loop, folder: Path, asked: dict[str, Any]) -> list[Contender]:
    """Every rival on the same split; where a model is the agents, it reflects for ACE and GEPA too."""
    assert not isinstance(loop.consumer, Workflow)  # no option names one
    settings = loop.settings
    contest = Contest(
        loop.task, loop.val, loop.consumer, loop.embed, settings.budget, folder, 1 + settings.iterations, settings.seed
    )
    found = [rival(contest) for name, rival in RIVALS.items() if name != "ACE"]
    missing = left_out(loop, asked["agent_model"])
    if KNN not in missing:
        found.append(dspy_optimised(contest))
    if asked["agent_model"] is None:
        return [*found, ace(contest), gepa(contest)]
    model = speakers(named(asked["agent_model"], asked["endpoint"], "agent_model"))[1]
    reflected = reflective_ace(contest, Reflector(loop.task, model, loop.embed))[0]
    if PACKAGE not in missing:
        found.append(package_ace(contest, Structured(model)))
    return [*found, reflected, reflective_gepa(contest, asking(model, [Usage()]))]


def left_out(loop: Loop, agent_model: str | None) -> dict[str, str]:
    """Rivals that are not run with this consumer and these agents on this machine, and why."""
    if not isinstance(loop.consumer, GenerateLM):
        return dict.fromkeys((KNN, PACKAGE), "asks a model that writes its answers (--consumer llm)")
    missing = {} if dspy_rival.installed() else {KNN: dspy_rival.MISSING}
    if agent_model is None:
        return {**missing, PACKAGE: "asks a model that reflects (--agent-model)"}
    return missing if package_ace_rival.installed() else {**missing, PACKAGE: package_ace_rival.MISSING}


def rival_row(loop: Loop, rival: Contender, test: list[Sample]) -> dict[str, Any]:
    consumer = rival.consumer or loop.consumer
    val = evaluate(loop.task, loop.val, rival.context, consumer, RolloutCache())
    judged = evaluate(loop.task, test, rival.context, consumer, RolloutCache()) if test else []
    return {
        "knob": rival.knob, "val": rival.val, "test": figure(loop.task, judged) if judged else None, "tokens": mean_tokens(val),
        "rollouts": rival.rollouts,
    }  # fmt: skip


def mean_tokens(rollouts: list[Rollout]) -> float | None:
    return sum(one.tokens for one in rollouts) / len(rollouts) if rollouts else None


def draw(history: History, metric: str, rivals: dict[str, dict[str, Any]], out: Path) -> None:
    from upheld.context.plots import accuracy_by_rollouts, accuracy_by_tokens, effects

    others = {name: (row["tokens"], row["val"]) for name, row in rivals.items()}
    accuracy_by_rollouts(history, metric).savefig(out / "rollouts.png", dpi=150)
    accuracy_by_tokens(history, metric, others).savefig(out / "tokens.png", dpi=150)
    if any(entry.skill and entry.skill.genes for entry in history.skilled):
        effects(history).savefig(out / "genes.png", dpi=150)


def stream(task: Task, learner: ContextEngineer, asked: dict[str, Any]) -> dict[str, Any]:
    """The training file as a stream, scored before it is learned from."""
    samples, size = list(task.samples), asked["batch"]
    for start in range(0, len(samples), size):
        batch = samples[start : start + size]
        learner.partial_fit(objects_of(batch), [one.target for one in batch], classes=task.labels())
    if learner.online_.ahead:
        raise ValueError(
            f"{asked['out']} holds a longer stream that begins like {asked['train']}; give the whole of it to go on, or another --out"
        )
    learner.context_.save(asked["out"] / "context")
    return {
        "metric": task.metric, "budget": asked["budget"], "consumer": learner.consumer_.id, "prequential": learner.prequential_,
        "items": len(samples), "problems": problems(learner.online_.scored),
    }  # fmt: skip
