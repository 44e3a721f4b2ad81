"""The sources that a page speaks of: a module's equations as its docstring has them, and a page with its code."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Definition:
    """A public function or class at the top of a module, with its code."""

    name: str
    says: str
    code: str


@dataclass(frozen=True)
class Module:
    """A source file: what its docstring says, and what it defines."""

    path: Path
    says: str
    definitions: tuple[Definition, ...]
    code: str

    @property
    def page(self) -> str:
        return f"source/{self.path.relative_to(ROOT).with_suffix('.md')}"

    def equations(self, up: str) -> str:
        """Its docstring with its equations, and where each function stands; `up` leads to the site's root."""
        page = up + self.page
        names = ", ".join(f"[`{one.name}`]({page}#{anchor(one.name)})" for one in self.definitions)
        title, _, rest = self.says.partition("\n")
        text = f"### {title.strip()}\n\n[`{self.path.relative_to(ROOT)}`]({page}): {names}\n"
        return text + (f"\n```text\n{rest.strip(chr(10))}\n```\n" if rest.strip() else "")

    def source_page(self) -> str:
        """A page that shows the code, a heading a definition."""
        name = self.path.relative_to(ROOT)
        parts = [
            f"---\nsearch:\n  exclude: true\n---\n# {self.path.name}\n\n`{name}`, as it stands in the repository.\n"
        ]
        if not self.definitions:
            parts.append(_fenced(self.code, self.path.suffix))
        parts += [f"## {one.name} {{ #{anchor(one.name)} }}\n\n{_fenced(one.code, '.py')}" for one in self.definitions]
        return "\n".join(parts)


def _fenced(code: str, suffix: str) -> str:
    return f"``````{'python' if suffix == '.py' else 'text'}\n{code.rstrip()}\n``````\n"


def anchor(name: str) -> str:
    """Where a definition stands on its source page: apart from the names that Markdown gives to other headings."""
    return f"def-{name}"


@cache
def module(name: str) -> Module:
    """``hubs.eigenspaces`` of upheld, or a path in the repository.

    Raises
    ------
    ValueError
        If there is no such file, or it says nothing at its top.
    """
    path = ROOT / name if "/" in name else ROOT / "src" / "upheld" / f"{name.replace('.', '/')}.py"
    if path.is_dir():
        path = path / "__init__.py"
    if not path.is_file():
        raise ValueError(f"a page speaks of {name}, and there is no {path.relative_to(ROOT)}; mend the page")
    code = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return Module(path, "", (), code)
    tree = ast.parse(code)
    lines = code.splitlines()
    found = [
        Definition(node.name, ast.get_docstring(node) or "", "\n".join(lines[_first(node) - 1 : node.end_lineno]))
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    return Module(path, ast.get_docstring(tree) or "", tuple(found), code)


def _first(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])
