"""A learned context in the forms that others take: a folder for agents, and a module of DSPy. (The context itself is a folder already.)"""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upheld.context.folder import PROMPT, ContextFunction, Line
from upheld.context.task import Task, with_own

if TYPE_CHECKING:
    import dspy

NAME_LONGEST, DESCRIPTION_LONGEST = 64, 1024


def as_agent_skill(function: ContextFunction, folder: str | Path, task: Task, *, name: str = "learned-context") -> Path:
    """Write the context as a folder in the form of Agent Skills (agentskills.io): SKILL.md with a header, files beside it.

    An agent reads instead of calling, so the whole store is written, label by label; nothing in it needs this library.

    Parameters
    ----------
    folder : created; its last part should be `name`, as the form has it
    task : its text becomes the description, by which an agent decides whether to read on
    name : lower-case letters, digits and hyphens, at most 64

    Raises
    ------
    ValueError
        If the folder holds something already, or the name is none.

    Examples
    --------
    >>> as_agent_skill(engineer.context_, "skills/learned-context", engineer.task_)                     # doctest: +SKIP
    PosixPath('skills/learned-context')
    """
    folder, root = Path(folder), function.context.root
    if not name or len(name) > NAME_LONGEST or not all(part.isalnum() and part.islower() for part in name.split("-")):
        raise ValueError(
            f"a skill's name holds lower-case letters, digits and single hyphens, at most 64, got {name!r}"
        )
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; name another folder for the skill, or clear that one")
    folder.mkdir(parents=True, exist_ok=True)
    description = " ".join(f"{task.text} Use it for each text that is to be given a label.".split())[
        :DESCRIPTION_LONGEST
    ]
    labels = "\n".join(f"- {label}" for label in task.labels())
    listed = written(function, folder / "references")
    prompt = root / "context" / PROMPT
    parts = [
        f"---\nname: {name}\ndescription: {quoted(description)}\n---\n\n# {task.text}",
        prompt.read_text(encoding="utf-8").strip() if prompt.is_file() else "",
        "## How to use it\n\nBefore you answer, look up in references/ what resembles the text most, and answer as those cases were. "
        "Answer with one of the labels, as it is spelled.",
        f"## Labels\n\n{labels}",
        "## References\n\n" + ("\n".join(f"- references/{place}" for place in listed) or "None: nothing was learned."),
    ]
    (folder / "SKILL.md").write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return folder


def written(function: ContextFunction, references: Path) -> list[str]:
    """The context's files below a folder: a store label by label, files of another kind as they are."""
    files = function.context.root / "context"
    if not files.is_dir():
        return []
    references.mkdir()
    if function.own:
        lines = function.context.lines()
        if not lines:
            return []
        (references / "cases.md").write_text(by_label(lines), encoding="utf-8")
        return ["cases.md"]
    shutil.copytree(files, references, dirs_exist_ok=True)
    return sorted(str(path.relative_to(references)) for path in references.rglob("*") if path.is_file())


def by_label(lines: list[Line]) -> str:
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.label].append(line)
    shown = {label: "\n".join(f"- {said(line)}" for line in groups[label]) for label in sorted(groups)}
    return "\n\n".join(f"## {label}\n\n{text}" for label, text in shown.items()) + "\n"


def said(line: Line) -> str:
    return line.text if line.kind == "case" else f"({line.kind}) {line.text}"


def quoted(text: str) -> str:
    """A text as a value in YAML, whatever marks it holds."""
    import yaml  # type: ignore[import-untyped]

    return str(yaml.safe_dump(text, width=10**6, default_style='"')).strip()


def as_dspy(function: ContextFunction, task: Task) -> dspy.Module:
    """The context as a module of DSPy: ``question -> label``, with c(question) before it; to be run with any of DSPy's models, and to be
    optimised further. A case's own context is given as `own_context`.

    Raises
    ------
    ImportError
        If `dspy` is not installed.

    Examples
    --------
    >>> module = as_dspy(engineer.context_, engineer.task_)                                             # doctest: +SKIP
    >>> module(question="chest pain since monday").label                                                # doctest: +SKIP
    'cardiology'
    """
    try:
        import dspy
    except ImportError as missing:
        raise ImportError('this export needs the package dspy; pip install "upheld[context-dspy]"') from missing

    labels = ", ".join(task.labels())
    signature = dspy.Signature("context, question -> label", f"{task.text} The labels: {labels}.")

    class Contextual(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.answer = dspy.Predict(signature)

        def forward(self, question: str, own_context: str = "") -> Any:
            return self.answer(context=function(question), question=with_own(question, own_context))

    return Contextual()
