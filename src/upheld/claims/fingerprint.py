"""Which sources shaped a measurement: their hash tells fresh results from stale ones.

What counts for a method: every file of its package except ``plots.py`` and ``command.py``, the shared layers it imports
(transitively), and ``trial.py``, which seeds it. What does not: comments and docstrings; the list ``CLAIMS``, since a
verdict is recomputed from stored measurements in a moment; and an experiment's conditions, repeats and time limits, which choose
*which* trials are run and are part of each trial's own key.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

PRESENTATION = {"plots.py", "command.py"}
CHOICE_OF_TRIALS = {"conditions", "repeats", "timeout_s"}
SEEDING = "upheld.claims.trial"


def fingerprint(method: str) -> str:
    """Twelve hexadecimal digits for a method, named as in the catalog or by its full package name.

    Raises
    ------
    ValueError
        If there is no such package.
    """
    return _fingerprint(package_of(method))


def package_of(method: str) -> str:
    """Full package name of a method: ``hubs`` is ``upheld.hubs``; a package outside upheld keeps its own name."""
    inside = f"upheld.{method}"
    if importlib.util.find_spec(inside) is not None:
        return inside
    if importlib.util.find_spec(method) is not None:
        return method
    raise ValueError(f"no method {method!r}: neither {inside} nor {method} can be imported")


@lru_cache
def _fingerprint(package: str) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(_sources(package).items()):
        digest.update(name.encode())
        digest.update(_content(path))
    return digest.hexdigest()[:12]


def _sources(package: str) -> dict[str, Path]:
    """Every file that shapes the measurements of `package`, by its name."""
    folder = _folder(package)
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.name not in PRESENTATION
        and "__pycache__" not in path.parts
        and path.suffix != ".pyc"
    ]
    sources = {f"{package}/{path.relative_to(folder).as_posix()}": path for path in files}
    waiting = [name for path in files if path.suffix == ".py" for name in _imports(path)]
    waiting.append(SEEDING)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name.startswith(package):
            continue
        seen.add(name)
        path = _module_file(name)
        if path is None or (name.startswith("upheld.claims") and name != SEEDING):
            continue
        sources[name] = path
        waiting.extend(_imports(path))
    return sources


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ValueError(f"{package} is not an importable package")
    return Path(spec.origin).parent


def _module_file(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin) if spec is not None and spec.origin else None


def _imports(path: Path) -> Iterable[str]:
    """Modules of upheld that a file imports, in whatever scope."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("upheld.") and _is_module(name):
                yield name


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _content(path: Path) -> bytes:
    if path.suffix != ".py":
        return path.read_bytes()
    return ast.unparse(_Essence().visit(ast.parse(path.read_text()))).encode()


class _Essence(ast.NodeTransformer):
    """Takes out of a module what cannot change a measurement."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._without_docstring(node)

    def _without_docstring(self, node: ast.Module | ast.ClassDef | ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if (node.module or "").startswith("upheld.claims") else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        named = [target.id for target in node.targets if isinstance(target, ast.Name)]
        return None if named == ["CLAIMS"] else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return None if isinstance(node.target, ast.Name) and node.target.id == "CLAIMS" else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "Experiment":
            node.keywords = [word for word in node.keywords if word.arg not in CHOICE_OF_TRIALS]
        return self.generic_visit(node)
