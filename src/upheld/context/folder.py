"""A context: files and the operators that assemble a prompt from them, in one folder that may be moved.

::

    c(x) = (F_m o ... o F_1)(x; rho)        rho: context/*, F: interfaces/get_context.py
"""

from __future__ import annotations

import csv
import difflib
import io
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

from upheld.context import assembly
from upheld.context.files import write_whole
from upheld.context.signatures import Signature
from upheld.context.skill import Genes
from upheld.context.vectors import Embed

BUDGET = 1500
PARTS = ("context", "interfaces", "data")
"""What belongs to a context: its files, its programs, and what it was learned from."""
PROMPT = "prompt.md"
FIELDS = ("kind", "label", "text", "helpful", "harmful", "born")


@dataclass(frozen=True)
class Line:
    """One line of a store. `kind` is case, glossary, contrast or rule; `born` counts the batches before it was written."""

    kind: str
    label: str
    text: str
    helpful: int = 0
    harmful: int = 0
    born: int = 0


@dataclass(frozen=True)
class Context:
    """A context as its folder; an empty folder is the empty context."""

    root: Path

    @property
    def operator(self) -> Path:
        return self.root / "interfaces" / "get_context.py"

    def copy(self, root: Path) -> Context:
        """The same in another folder, which is replaced."""
        if root.exists():
            shutil.rmtree(root)
        root.mkdir(parents=True)
        for part in PARTS:
            if (self.root / part).is_dir():
                shutil.copytree(self.root / part, root / part, ignore=_links)
        return Context(root)

    @classmethod
    def from_prompt(cls, text: str, root: Path, budget: int = BUDGET) -> Context:
        """A context that begins with the user's own prompt, whatever is learned after it.

        Raises
        ------
        ValueError
            If the prompt is empty, or exceeds the budget.
        """
        tokens = assembly.count_tokens(text)
        if not 0 < tokens <= budget:
            raise ValueError(
                f"the prompt to start from has {tokens} tokens, the budget is {budget} a query; raise the budget, or shorten it"
            )
        write_whole(root / "context" / PROMPT, text)
        context = cls(root)
        context.write([], Genes(budget=budget))
        return context

    def lines(self) -> list[Line]:
        """The store. Raises ValueError when a row of lines.csv is malformed."""
        try:
            return [
                Line(row["kind"], row["label"], row["text"], int(row["helpful"]), int(row["harmful"]), int(row["born"]))
                for row in assembly.read_store(self.root)
            ]
        except (KeyError, TypeError, ValueError) as wrong:
            raise ValueError(
                f"{self.root / 'context' / 'lines.csv'} has a row without {', '.join(FIELDS)} ({wrong}); mend or drop it"
            ) from wrong

    def write(self, lines: Sequence[Line], genes: Genes) -> None:
        """Store, parameters, and the operator that reads them."""
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows([getattr(line, name) for name in FIELDS] for line in lines)
        write_whole(self.root / "context" / "lines.csv", table.getvalue())
        wanted = ("retrieve", "k", "order", "format", "budget")
        parameters = "".join(f"{name}: {getattr(genes, name)}\n" for name in wanted)
        write_whole(self.root / "context" / "parameters.yaml", parameters)
        write_whole(self.operator, template())

    def size(self) -> int:
        """Tokens of all files of the context."""
        return sum(assembly.count_tokens(line.label + " " + line.text) for line in self.lines())


def _links(folder: str, names: list[str]) -> list[str]:
    """Links are not followed: one that a program left may lead anywhere."""
    return [name for name in names if (Path(folder) / name).is_symlink()]


@cache
def template() -> str:
    """Source of the operator that program agents write."""
    return Path(assembly.__file__).read_text(encoding="utf-8")


def shortened(text: str, budget: int) -> str:
    """The first lines of a text that are `budget` words and marks together."""
    kept, left = [], budget
    for line in text.strip().splitlines():
        left -= assembly.count_tokens(line)
        if left < 0:
            break
        kept.append(line)
    return "\n".join(kept)


@dataclass(frozen=True)
class Made:
    """A context for one question; `problem` says why it is empty though it should not be."""

    text: str
    tokens: int
    problem: str = ""


class Confined(Protocol):
    """Runs the operators of a folder, in a sandbox."""

    def __call__(self, root: Path, questions: Sequence[str], embed: Embed) -> Sequence[Made]: ...

    def call(self, name: str, root: Path, arguments: Sequence[list[Any]], embed: Embed) -> Sequence[Made]: ...


@dataclass(frozen=True)
class ContextFunction:
    """A context that can be called: ``c(x) -> str``, of at most `budget` tokens for every x.

    Parameters
    ----------
    context : the folder
    embed : served to the operators
    budget : tokens a query; what an operator gives beyond it is cut at the end of a line
    confined : runs operators that are not the program agents' own; without one they are refused (`load` takes a sandbox)

    Examples
    --------
    >>> c = ContextFunction.load("work/context")                               # doctest: +SKIP
    >>> c("which window for the spectrum?")                                    # doctest: +SKIP
    '- signal: Design a window ...'
    """

    context: Context
    embed: Embed
    budget: int = BUDGET
    confined: Confined | None = None

    @classmethod
    def load(
        cls, folder: str | Path, *, embed: Embed | None = None, confined: Confined | None = None
    ) -> ContextFunction:
        """The context in a folder. Raises ValueError when there is none, or its budget is not named."""
        from upheld.context.confined import InSandbox
        from upheld.context.vectors import minilm_when_asked

        context = Context(Path(folder))
        if not context.operator.is_file():
            raise ValueError(f"{folder} holds no interfaces/get_context.py; a context is a folder with that file")
        named = context.root / "context" / "parameters.yaml"
        try:
            budget = int(assembly.read_parameters(folder)["budget"]) if named.is_file() else BUDGET
        except (KeyError, ValueError) as wrong:
            raise ValueError(f"{named} has no line 'budget: N', the tokens a query may have; add it") from wrong
        return cls(context, embed or minilm_when_asked(), budget, confined or InSandbox())

    def save(self, folder: str | Path) -> None:
        self.context.copy(Path(folder))

    def __call__(self, question: str) -> str:
        return self.many([question])[0].text

    def tokens(self, question: str) -> int:
        return self.many([question])[0].tokens

    def interface(self, signature: str) -> Callable[..., str]:
        """A further interface, to be called with what its signature names.

        Raises
        ------
        ValueError
            If the folder has no such interface, or there is no sandbox. A call raises TypeError for arguments of another kind, and
            ValueError where the interface fails or returns something else than text.

        Examples
        --------
        >>> plan = c.interface("get_plan(question: str, steps: int) -> str")               # doctest: +SKIP
        >>> plan("which window for the spectrum?", 3)                                       # doctest: +SKIP
        '1. ...'
        """
        wanted = Signature.parse(signature)
        if problem := wanted.missing(self.context.root):
            raise ValueError(f"{self.context.root}: {problem}")
        if (confined := self.confined) is None:
            raise ValueError(f"{wanted.file(self.context.root)} runs in a sandbox only; give one")

        def called(*arguments: object) -> str:
            [made] = confined.call(wanted.name, self.context.root, [wanted.checked(arguments)], self.embed)
            if made.problem:
                raise ValueError(made.problem)
            return self._bounded(made).text

        return called

    def many(self, questions: Sequence[str]) -> list[Made]:
        """One context a question."""
        if not self.context.operator.is_file():
            return [Made("", 0)] * len(questions)
        if self.own:
            try:
                texts = assembly.get_contexts(list(questions), root=self.context.root, embed=self.embed)
            except (KeyError, ValueError, csv.Error) as wrong:  # a store or parameters that somebody wrote by hand
                problem = f"get_context failed: {type(wrong).__name__}: {wrong}"
                return [Made("", 0, problem)] * len(questions)
            bounded = {text: self._bounded(Made(text, 0)) for text in dict.fromkeys(texts)}
            return [bounded[text] for text in texts]
        if self.confined is None:
            raise ValueError(
                f"{self.context.operator} is a program of somebody else's; give a sandbox to run it in, or restore the file"
            )
        return [self._bounded(made) for made in self.confined(self.context.root, list(questions), self.embed)]

    @cached_property
    def own(self) -> bool:
        """Whether its operator is the one that program agents write, which runs here and not in the sandbox."""
        operator = self.context.operator
        return operator.is_file() and operator.read_text(encoding="utf-8") == template()

    def _bounded(self, made: Made) -> Made:
        tokens = assembly.count_tokens(made.text)
        lines = made.text.splitlines()
        while tokens > self.budget:
            tokens -= assembly.count_tokens(lines.pop())
        return (
            Made("\n".join(lines), tokens, made.problem)
            if len(lines) < len(made.text.splitlines())
            else Made(made.text, tokens, made.problem)
        )

    def diff(self, other: ContextFunction) -> str:
        """What is in the other context and not here (+), and the reverse (-)."""
        mine, theirs = ([f"{one.kind} {one.label}: {one.text}" for one in c.context.lines()] for c in (self, other))
        return "\n".join(difflib.unified_diff(mine, theirs, "this", "other", lineterm="", n=0))
