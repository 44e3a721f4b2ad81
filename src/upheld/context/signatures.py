"""Interfaces of a context: what each is called, and what it takes. The first one is `get_context`; further ones serve the steps of a
workflow, or an agent's tools."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FIRST = "get_context(question: str) -> str"
KINDS = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


@dataclass(frozen=True)
class Signature:
    """One interface: a function ``name(..., *, root, embed) -> str`` in interfaces/name.py.

    Parameters
    ----------
    parameters : (name, type) of each, as its caller gives them; types are str, int, float, bool, list and dict
    """

    name: str
    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """A signature as it is written.

        Raises
        ------
        ValueError
            If it is none, an argument has no type or one that is no JSON, or it does not return text.

        Examples
        --------
        >>> Signature.parse("get_plan(question: str, steps: int) -> str").parameters
        (('question', 'str'), ('steps', 'int'))
        """
        try:
            [function] = ast.parse(f"def {text}: ...").body
        except (SyntaxError, ValueError):
            function = None
        if not isinstance(function, ast.FunctionDef) or function.name.startswith("_"):
            raise ValueError(f"{text!r} is no signature; write it like {FIRST!r}")
        if function.returns is None or ast.unparse(function.returns) != "str":
            raise ValueError(f"the interface {function.name} must return text; end its signature with '-> str'")
        given = function.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
            raise ValueError(f"the interface {function.name} takes plain arguments only, such as question: str")
        parameters = tuple((one.arg, ast.unparse(one.annotation) if one.annotation else "") for one in given.args)
        for name, kind in parameters:
            if kind not in KINDS or name in ("root", "embed"):
                raise ValueError(
                    f"argument {name} of {function.name} has the type {kind or 'of nothing'!r}; give one of {', '.join(KINDS)}, and a name "
                    "that is neither root nor embed"
                )
        return cls(function.name, parameters)

    def checked(self, arguments: Sequence[object]) -> list[object]:
        """Arguments of a call. Raises TypeError unless they are as many as there are parameters, each of its type."""
        kinds = [KINDS[kind] for _, kind in self.parameters]
        if len(arguments) != len(kinds) or not all(map(isinstance, arguments, kinds)):
            wanted = ", ".join(f"{name}: {kind}" for name, kind in self.parameters)
            raise TypeError(
                f"{self.name} takes ({wanted}), got {', '.join(type(one).__name__ for one in arguments) or 'nothing'}"
            )
        return list(arguments)

    def file(self, root: Path) -> Path:
        return root / "interfaces" / f"{self.name}.py"

    def missing(self, root: Path) -> str:
        """Why a folder has no such interface, or nothing. The file is read, not run."""
        path, written = self.file(root), f"interfaces/{self.name}.py"
        if not path.is_file():
            return f"there is no {written}; write it with a function {self.name}"
        try:
            functions = [
                one for one in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(one, ast.FunctionDef)
            ]
        except (SyntaxError, ValueError) as wrong:
            return f"{written} is no Python ({wrong})"
        found = [one for one in functions if one.name == self.name]
        if not found:
            return f"{written} defines no function {self.name}"
        taken = [one.arg for one in found[-1].args.args]
        wanted = [name for name, _ in self.parameters]
        if taken[: len(wanted)] != wanted:
            return f"{self.name} in {written} takes ({', '.join(taken)}); it must take ({', '.join([*wanted, '*', 'root', 'embed'])})"
        return ""


def signatures(texts: Sequence[str]) -> tuple[Signature, ...]:
    """All interfaces of a task. Raises ValueError unless the first is `get_context` of a question, and no two bear one name."""
    found = tuple(map(Signature.parse, texts))
    if not found or found[0] != Signature("get_context", (("question", "str"),)):
        raise ValueError(f"the first interface of a task is {FIRST!r}; put it before the others")
    if len({one.name for one in found}) < len(found):
        raise ValueError("two interfaces bear the same name; give each its own")
    return found
