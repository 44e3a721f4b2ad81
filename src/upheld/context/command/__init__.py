"""``upheld run context --train train.jsonl --test test.jsonl --out work/``: a better context for a fixed model."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = """upheld run context --train {file} --out work/
  upheld run context --train {file} --endpoint http://localhost:8000/v1 --consumer-model small --agent-model large --out work/"""


def run(
    train: Annotated[Path, typer.Option("--train", help="Labelled samples to learn from: .jsonl or .csv.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run: context/, skills/, result.json, pictures; resumed.")],
    test: Annotated[Path | None, typer.Option("--test", help="Labelled samples to judge by; they enter no choice.")] = None,
    question_field: Annotated[str, typer.Option("--question-field", help="Field of the text.")] = "question",
    target_field: Annotated[str, typer.Option("--target-field", help="Field of the label.")] = "target",
    metric: Annotated[str, typer.Option("--metric", help="accuracy, macro-f1 or micro-f1 (labels separated by semicolons).")] = "accuracy",
    task_text: Annotated[str | None, typer.Option("--task", help="What the task is, for models that read it: a sentence or two.")] = None,
    consumer: Annotated[str | None, typer.Option("--consumer", help="The fixed model: embedding (the default), tfidf, label-lm (a model "
        "on this machine scores the labels) or llm (a model writes its answer; the default with an endpoint and a name).")] = None,
    endpoint: Annotated[str | None, typer.Option("--endpoint", help="URL of an OpenAI-compatible endpoint, up to and with /v1.")] = None,
    consumer_model: Annotated[str | None, typer.Option("--consumer-model", help="The fixed model: its name there, or a folder.")] = None,
    agent_model: Annotated[str | None, typer.Option("--agent-model", help="The model that writes skills and contexts, with tools: its name "
        "at the endpoint, a folder, or embedded. Without it, programs do.")] = None,
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="Skills tried.")] = 6,
    train_limit: Annotated[int, typer.Option("--train-limit", min=1, help="Samples drawn an iteration.")] = 200,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples between two updates of the context.")] = 50,
    val_size: Annotated[int | None, typer.Option("--val-size", min=1, help="Samples to choose by; a quarter, at most 100.")] = None,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Context tokens a query, never exceeded.")] = 1500,
    accept: Annotated[str, typer.Option("--accept", help="paired: when probably better; best: by the figure alone.")] = "paired",
    init_skill: Annotated[str, typer.Option("--init-skill", help="few-shot or naive, for programs.")] = "few-shot",
    skill: Annotated[Path | None, typer.Option("--skill", help="Folder of a skill to begin with; for programs one with a program.")] = None,
    seed_context: Annotated[Path | None, typer.Option("--seed-context", help="Where to start from: a file with your own prompt, such as "
        "AGENTS.md, or the folder of a context.")] = None,
    online: Annotated[bool, typer.Option("--online", help="A stream: items are answered before they are learned from.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Beside it: no context, few-shot, many-shot, ACE, GEPA, all tuned.")] = False,
    allow_overlap: Annotated[bool, typer.Option("--allow-overlap", help="Go on though test questions stand in the training file.")] = False,
    allow_weak_sandbox: Annotated[bool, typer.Option("--allow-weak-sandbox", help="Run programs that models wrote although this machine "
        "can only limit their resources.")] = False,
    agent_skill: Annotated[Path | None, typer.Option("--agent-skill", help="Write the context as a skill for agents, too.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print result.json instead of tables.")] = False,
) -> None:  # fmt: skip
    """Evolves how labelled examples become a context, and the context; nothing is trained but text in a folder."""
    asked = dict(locals())
    from upheld.context.command.running import result_of
    from upheld.context.command.terminal import show

    result = result_of(asked)
    out.mkdir(parents=True, exist_ok=True)
    text = json_module.dumps(result, ensure_ascii=False, indent=1)
    (out / "result.json").write_text(text + "\n", encoding="utf-8")
    if json:
        print(text)
    else:
        show(result, out)


def write_data(out: Path) -> None:
    """Which part of a library does a description belong to? First paragraphs of SciPy's documentation (1.17.1, BSD-3), as JSON
    lines with id, question, target."""
    from upheld.context.data import apidocs

    rows = ({"id": one.id, "question": one.question, "target": one.target} for one in apidocs().task.samples)
    out.write_text("".join(json_module.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
