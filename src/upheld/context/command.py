"""``upheld run context --train train.jsonl --test test.jsonl --out work/``: a better context for a fixed model."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from upheld.context.loop import Loop
    from upheld.context.rivals import Contender
    from upheld.context.rollouts import Rollout
    from upheld.context.task import Sample, Task

EXAMPLE = "upheld run context --train {file} --out work/"
SCHEMA = "upheld.context.run/1"
NOTICE = "Agents: programs, no language model. A heuristic search over how contexts are built, not the paper's agents."


def run(
    train: Annotated[Path, typer.Option("--train", help="Labelled samples to learn from: .jsonl or .csv.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run: context/, skills/, result.json, pictures; resumed.")],
    test: Annotated[Path | None, typer.Option("--test", help="Labelled samples to judge by; they enter no choice.")] = None,
    question_field: Annotated[str, typer.Option("--question-field", help="Field of the text.")] = "question",
    target_field: Annotated[str, typer.Option("--target-field", help="Field of the label.")] = "target",
    metric: Annotated[str, typer.Option("--metric", help="accuracy, macro-f1 or micro-f1 (labels separated by semicolons).")] = "accuracy",
    consumer: Annotated[str, typer.Option("--consumer", help="The fixed model: embedding or tfidf.")] = "embedding",
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="Skills tried.")] = 6,
    train_limit: Annotated[int, typer.Option("--train-limit", min=1, help="Samples drawn an iteration.")] = 200,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples between two updates of the context.")] = 50,
    val_size: Annotated[int | None, typer.Option("--val-size", min=1, help="Samples to choose by; a quarter, at most 100.")] = None,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Context tokens a query, never exceeded.")] = 1500,
    accept: Annotated[str, typer.Option("--accept", help="paired: when probably better; best: by the figure alone.")] = "paired",
    init_skill: Annotated[str, typer.Option("--init-skill", help="few-shot or naive.")] = "few-shot",
    skill: Annotated[Path | None, typer.Option("--skill", help="Folder of a skill with a program, to start from.")] = None,
    online: Annotated[bool, typer.Option("--online", help="A stream: items are answered before they are learned from.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Beside it: no context, few-shot, many-shot, ACE, all tuned.")] = False,
    allow_overlap: Annotated[bool, typer.Option("--allow-overlap", help="Go on though test questions stand in the training file.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print result.json instead of tables.")] = False,
) -> None:  # fmt: skip
    """Evolves how labelled examples become a context, and the context; nothing is trained but text in a folder."""
    asked = dict(locals())
    from upheld.context.task import Task

    fields = {"question": question_field, "target": target_field}
    task = Task.read(train, **fields, metric=metric)
    held_out = list(Task.read(test, **fields, metric=metric).samples) if test else []
    refuse_overlap(task, held_out, allowed=allow_overlap)
    result = stream(task, asked) if online else offline(task, held_out, asked)
    out.mkdir(parents=True, exist_ok=True)
    text = json_module.dumps({"schema": SCHEMA, "notice": NOTICE, **result}, ensure_ascii=False, indent=1)
    (out / "result.json").write_text(text + "\n", encoding="utf-8")
    if json:
        print(text)


def refuse_overlap(task: Task, test: list[Sample], *, allowed: bool) -> None:
    from upheld.context.task import overlap

    shared = overlap(task.samples, test)
    if shared and not allowed:
        raise ValueError(
            f"{len(shared)} of {len(test)} test questions stand in the training file too, the first being {shared[0]}; take them out, or "
            "--allow-overlap"
        )


def engineer(task: Task, asked: dict[str, Any]) -> Any:
    """The estimator that these options describe."""
    from upheld.context.crossover import ProgramMetaAgent
    from upheld.context.engineer import ContextEngineer
    from upheld.context.skill import Skill
    from upheld.context.vectors import minilm

    meta: Any = "program"
    if asked["skill"] is not None:
        genes = Skill.load(asked["skill"]).genes
        if genes is None:
            raise ValueError(f"the skill in {asked['skill']} has no program; add its genes under '## Program'")
        meta = ProgramMetaAgent(init=genes, budget=asked["budget"], seed=asked["seed"])
    names = ("consumer", "iterations", "train_limit", "val_size", "accept", "init_skill", "seed")
    return ContextEngineer(
        task, meta=meta, batch_size=asked["batch"], token_budget=asked["budget"], workdir=asked["out"] / "run",
        embed=minilm(asked["out"] / "vectors.sqlite"), **{name: asked[name] for name in names},
    )  # fmt: skip


def offline(task: Task, test: list[Sample], asked: dict[str, Any]) -> dict[str, Any]:
    """Learn, judge, write."""
    from upheld.context.explain import influences, pareto
    from upheld.context.loop import export
    from upheld.context.rollouts import evaluate, figure

    asked["out"].mkdir(parents=True, exist_ok=True)
    learned = engineer(task, asked).fit([one.question for one in task.samples], [one.target for one in task.samples])
    loop, history, out = learned.loop_, learned.history_, asked["out"]
    export(loop, history, out / "context")
    for entry in history.skilled:
        entry.skill and entry.skill.save(out / "skills" / f"{entry.iteration:02d}")
    judged = evaluate(loop.task, test, learned.context_, loop.consumer, loop.cache) if test else []
    rivals = contenders(loop, out / "rivals") if asked["compare"] else []
    table = {one.name: rival_row(loop, one, test) for one in rivals}
    draw(history, task.metric, table, out)
    rows = [
        {
            "iteration": one.iteration, "skill": one.skill.overview if one.skill else "seed context", "train": one.train, "val": one.val,
            "tokens": one.tokens, "rollouts": one.rollouts, "accepted": one.accepted,
        }
        for one in history
    ]  # fmt: skip
    found = {
        "metric": task.metric, "budget": asked["budget"], "consumer": loop.consumer.id, "iterations": rows,
        "test": figure(loop.task, judged) if judged else None, "test_tokens": mean_tokens(judged), "rivals": table,
        "front": [[one.iteration, one.tokens, one.val] for one in pareto(history)],
        "lines": [
            {"label": one.line.label, "text": one.line.text, "helped": one.helped, "harmed": one.harmed}
            for one in influences(learned.context_.context, judged, learned.embed_)[:20]
        ],
    }  # fmt: skip
    if not asked["json"]:
        show(found)
    return found


def contenders(loop: Loop, folder: Path) -> list[Contender]:
    from upheld.context.rivals import RIVALS, Contest

    settings = loop.settings
    contest = Contest(
        loop.task, loop.val, loop.consumer, loop.embed, settings.budget, folder, 1 + settings.iterations, settings.seed
    )
    return [rival(contest) for rival in RIVALS.values()]


def rival_row(loop: Loop, rival: Contender, test: list[Sample]) -> dict[str, Any]:
    from upheld.context.rollouts import RolloutCache, evaluate, figure

    val = evaluate(loop.task, loop.val, rival.context, loop.consumer, RolloutCache())
    judged = evaluate(loop.task, test, rival.context, loop.consumer, RolloutCache()) if test else []
    return {
        "knob": rival.knob, "val": rival.val, "test": figure(loop.task, judged) if judged else None, "tokens": mean_tokens(val),
        "rollouts": rival.rollouts,
    }  # fmt: skip


def mean_tokens(rollouts: list[Rollout]) -> float | None:
    return sum(one.tokens for one in rollouts) / len(rollouts) if rollouts else None


def draw(history: Any, metric: str, rivals: dict[str, dict[str, Any]], out: Path) -> None:
    from upheld.context.plots import accuracy_by_rollouts, accuracy_by_tokens, effects

    others = {name: (row["tokens"], row["val"]) for name, row in rivals.items()}
    accuracy_by_rollouts(history, metric).savefig(out / "rollouts.png", dpi=150)
    accuracy_by_tokens(history, metric, others).savefig(out / "tokens.png", dpi=150)
    effects(history).savefig(out / "genes.png", dpi=150)


def show(found: dict[str, Any]) -> None:
    """The iterations, what was accepted, and how it does on the test file."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout)
    console.print(NOTICE)
    table = Table("iteration", "skill", "train", "validation", "tokens", "rollouts", "accepted")
    for row in found["iterations"]:
        table.add_row(
            str(row["iteration"]), row["skill"], shown(row["train"]), shown(row["val"]), f"{row['tokens']:.0f}", str(row["rollouts"]),
            "yes" if row["accepted"] else "",
        )  # fmt: skip
    console.print(table)
    if found["rivals"]:
        others = Table("beside it", "knob", "validation", "test", "tokens", "rollouts")
        for name, row in found["rivals"].items():
            others.add_row(
                name, row["knob"], shown(row["val"]), shown(row["test"]), f"{row['tokens']:.0f}", str(row["rollouts"])
            )
        console.print(others)
    if found["test"] is not None:
        console.print(
            f"test {found['metric']}: {found['test']:.3f} at {found['test_tokens']:.0f} context tokens a query"
        )


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def stream(task: Task, asked: dict[str, Any]) -> dict[str, Any]:
    """The training file as a stream, scored before it is learned from."""
    from tempfile import TemporaryDirectory

    from upheld.context.consumers import embedding_reader
    from upheld.context.crossover import ProgramMetaAgent
    from upheld.context.online import OnlineLoop
    from upheld.context.program_base import ProgramBaseAgent
    from upheld.context.rollouts import RolloutCache
    from upheld.context.vectors import minilm

    out = asked["out"]
    out.mkdir(parents=True, exist_ok=True)
    embed = minilm(out / "vectors.sqlite")
    meta = ProgramMetaAgent(init=asked["init_skill"], budget=asked["budget"], seed=asked["seed"])
    with TemporaryDirectory() as folder:
        loop = OnlineLoop(
            task,
            embedding_reader(task, embed),
            meta,
            ProgramBaseAgent(embed),
            embed,
            Path(folder),
            RolloutCache(),
            asked["budget"],
        )
        value = loop.run(task.samples, asked["batch"])
        loop.function().save(out / "context")
    if not asked["json"]:
        print(f"{NOTICE}\nprequential {task.metric} over {len(task.samples)} items: {value:.3f}")
    return {"metric": task.metric, "budget": asked["budget"], "prequential": value, "items": len(task.samples)}


def write_data(out: Path) -> None:
    """Which part of a library does a description belong to? First paragraphs of SciPy's documentation (1.17.1, BSD-3), as JSON
    lines with id, question, target."""
    from upheld.context.data import apidocs

    rows = ({"id": one.id, "question": one.question, "target": one.target} for one in apidocs().task.samples)
    out.write_text("".join(json_module.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
