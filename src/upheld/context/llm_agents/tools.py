"""What both agents may call: files, programs in the sandbox, a language model, and similarities of texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from upheld.context.llm_agents.workspace import Workspace, only_files
from upheld.context.vectors import Embed
from upheld.llm.tools import Tool
from upheld.sandbox import Limits, Sandbox, ScriptResult

if TYPE_CHECKING:
    from upheld.llm import LanguageModel, Usage

PROGRAM_S = 20.0
MOST_TEXTS = 2000
ANSWER_TOKENS = 2048
GREP = """
import re
from pathlib import Path


def grep(pattern, folders, root, most):
    found = []
    for folder in map(Path, folders):
        for file in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if file.is_file() and not file.is_symlink():
                for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                    if re.search(pattern, line):
                        found.append(f"{file.relative_to(root)}:{number}: {line[:300]}")
                        if len(found) == most:
                            return found
    return found
"""
MOST_FOUND = 100


class Toolbox:
    """The tools of one agent.

    Parameters
    ----------
    sandbox : runs programs and regular expressions, both of the model's invention
    model : answers `call_llm`; what it costs is told to `spent`
    """

    def __init__(
        self, workspace: Workspace, sandbox: Sandbox, model: LanguageModel, embed: Embed, spent: Callable[[Usage], None]
    ) -> None:
        self.workspace, self.sandbox, self.model, self.embed, self.spent = workspace, sandbox, model, embed, spent

    def tools(self) -> list[Tool]:
        files = self.workspace
        return [
            Tool("read", "Text of a file, 400 lines from first_line on.", files.read),
            Tool("write", "Create or replace a file with this text.", files.write),
            Tool("edit", "Replace the passage old, which stands in the file once, by new.", files.edit),
            Tool("list", "All files below a folder, with their sizes.", files.listing),
            Tool("grep", "Lines that match a regular expression (Python), below a folder or in a file.", self.grep),
            Tool(
                "run_python",
                "Run a Python program (NumPy is there; no network) in your folder; gives what it prints. It may read what you may "
                "read and write where you may write.",
                self.run_python,
            ),
            Tool(
                "call_llm",
                "Ask a language model one question without tools, to summarise or judge texts; with json_schema it answers with JSON "
                "of that form.",
                self.call_llm,
            ),
            Tool(
                "embed_similarity",
                "For each query the top texts most similar to it in meaning: [place, cosine] pairs, as JSON.",
                self.embed_similarity,
            ),
        ]  # fmt: skip

    def grep(self, pattern: str, path: str = ".") -> str:
        place = self.workspace.place(path)
        folders = self.workspace.readable() if place == self.workspace.root else [place]
        if not all(folder.exists() for folder in folders) or not folders:
            raise ValueError(f"there is no {path}; list shows what there is")
        done = self.sandbox.call(
            GREP, "grep", [[pattern, [str(folder) for folder in folders], str(self.workspace.root), MOST_FOUND]],
            read=[folder if folder.is_dir() else folder.parent for folder in folders], limits=Limits(seconds=PROGRAM_S),
        )  # fmt: skip
        [outcome] = done.outcomes
        if outcome.error is not None:
            raise ValueError(f"grep failed: {outcome.error}")
        lines = [str(line) for line in outcome.value] if isinstance(outcome.value, list) else []
        return (
            "\n".join([*lines, *([f"[the first {MOST_FOUND}]"] if len(lines) == MOST_FOUND else [])])
            or "no line matches"
        )

    def run_python(self, program: str) -> str:
        files = self.workspace
        ran = self.sandbox.run(
            program, read=[place for place in files.readable() if not place.is_relative_to(files.write_root)],
            write=[files.write_root], limits=Limits(seconds=PROGRAM_S),
        )  # fmt: skip
        taken = only_files(files.write_root)
        return said(ran) + (
            f"\n[taken away, since only files and folders may stay: {', '.join(taken)}]" if taken else ""
        )

    def call_llm(self, prompt: str, json_schema: dict = {}) -> str:  # type: ignore[type-arg]  # noqa: B006 - never changed
        from upheld.llm import ModelError, Sampling

        asked = (
            prompt
            if not json_schema
            else f"{prompt}\n\nAnswer with JSON alone, of this schema:\n{json.dumps(json_schema)}"
        )
        try:
            answer = self.model.chat(asked, sampling=Sampling(temperature=0.0, max_tokens=ANSWER_TOKENS))
        except ModelError as error:
            raise ValueError(f"call_llm: {error}") from error  # one question among many: the agent goes on without
        self.spent(answer.usage)
        return json.dumps(as_json(answer.text, json_schema), ensure_ascii=False) if json_schema else answer.text

    def embed_similarity(self, queries: list, texts: list, top: int = 5) -> str:  # type: ignore[type-arg]
        for name, given in (("queries", queries), ("texts", texts)):
            if not 0 < len(given) <= MOST_TEXTS or not all(isinstance(text, str) for text in given):
                raise ValueError(f"{name} must be a list of 1 to {MOST_TEXTS} texts")
        near = self.embed(queries) @ self.embed(texts).T
        best = near.argsort(axis=1)[:, ::-1][:, : max(top, 1)]
        return json.dumps(
            [[[int(n), round(float(row[n]), 4)] for n in places] for row, places in zip(near, best, strict=True)]
        )


def said(ran: ScriptResult) -> str:
    """What a program printed, and how it ended."""
    parts = [ran.stdout.rstrip(), ran.stderr[-4000:].rstrip(), f"error: {ran.error}" if ran.error else ""]
    return "\n".join(part for part in parts if part) or "it printed nothing"


def as_json(text: str, schema: dict[str, Any]) -> Any:
    """The JSON in a model's answer, if it has the form asked for. Raises ValueError."""
    import jsonschema  # type: ignore[import-untyped]

    begin = min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=0)
    try:
        found, _ = json.JSONDecoder().raw_decode(text[begin:])
        jsonschema.validate(found, schema)
    except ValueError as wrong:
        raise ValueError(f"the model's answer is no JSON ({wrong}): {text[:200]!r}") from wrong
    except (jsonschema.ValidationError, jsonschema.SchemaError) as wrong:
        raise ValueError(f"the model's answer does not fit json_schema: {wrong.message}") from wrong
    return found
