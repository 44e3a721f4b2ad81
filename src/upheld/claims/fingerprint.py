"""Which sources shaped a measurement: their hash tells fresh results from stale ones.

What counts for a method: every file of its package except its rooms ``plots`` and ``command``, the shared layers it imports
(transitively), and ``trial.py``, which seeds it. What does not: comments and docstrings; the list ``CLAIMS``, since a
verdict is recomputed from stored measurements in a moment; and an experiment's conditions, repeats and time limits, which choose
*which* trials are run and are part of each trial's own key.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path

import upheld

PRESENTATION = {"plots", "command"}
CHOICE_OF_TRIALS = {"conditions", "repeats", "timeout_s"}
SEEDING = "upheld.claims.trial"
ROOT = Path(upheld.__file__).parent


@lru_cache
def fingerprint(method: str) -> str:
    """Twelve hexadecimal digits for a method, named as in the catalog or by its full package name.

    Sources are read once: a process goes on with the hash of what it started with.

    Raises
    ------
    ValueError
        If there is no such package.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_sources(*_found(method)).items()):
        content = _content(path)
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _found(method: str) -> tuple[str, Path]:
    """Full name and folder of a method's package: ``hubs`` is ``upheld.hubs``; another distribution's entry says where it lies."""
    declared = [str(entry.load().package) for entry in entry_points(group="upheld.methods", name=method)]
    for package in (f"upheld.{method}", *declared, method):
        with suppress(ModuleNotFoundError):  # a part of a dotted name is no package
            spec = importlib.util.find_spec(package)
            if spec is not None and spec.submodule_search_locations and spec.origin:
                return package, Path(spec.origin).parent
    raise ValueError(f"no method {method!r}: neither upheld.{method} nor {method} is a package that can be imported")


def _sources(package: str, folder: Path) -> dict[str, Path]:
    """Every file that shapes the measurements of a package, by its name."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    own = {short: path for short, path in files.items() if _shapes(short)}
    imported = {
        name
        for short, path in own.items()
        if path.suffix == ".py"
        for name in _imports(path, ".".join((package, *short.with_suffix("").parts)))
    }
    return {f"{package}/{short.as_posix()}": path for short, path in own.items()} | _shared(imported, package)


def _shapes(path: Path) -> bool:
    """Whether a file of a method's package can shape a measurement."""
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return not hidden and path.parts[0].removesuffix(".py") not in PRESENTATION and path.suffix != ".pyc"


def _shared(imported: set[str], package: str) -> dict[str, Path]:
    """Files of upheld's shared layers that these modules need, whatever they import in turn, and the data beside them."""
    sources: dict[str, Path] = {}
    waiting = {SEEDING, *imported}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        path = _module_file(name)
        if path is None or _within(name, package) or (_within(name, "upheld.claims") and name != SEEDING):
            continue
        sources[name] = path
        inner = f"{name}.__init__" if path.name == "__init__.py" else name
        waiting |= {*_imports(path, inner), name.rpartition(".")[0]} - seen
        if path.name == "__init__.py":
            sources |= {f"{name}/{data.name}": data for data in path.parent.iterdir() if _is_data(data)}
    return sources


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _is_data(path: Path) -> bool:
    return path.is_file() and path.suffix not in {".py", ".pyc"} and not path.name.startswith(".")


def _module_file(name: str) -> Path | None:
    """File of a module of upheld. Looked for, not imported: a hash must not depend on which extras are installed."""
    top, *parts = name.split(".")
    if top != "upheld" or not parts:
        return None
    place = ROOT.joinpath(*parts)
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def _imports(path: Path, module: str) -> Iterator[str]:
    """Modules of upheld that a file imports, in whatever scope; `module` is its name, with ``__init__`` where that is the file."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _within(alias.name, "upheld"))
        elif isinstance(node, ast.ImportFrom):
            above = module.rsplit(".", node.level)[0] if node.level else ""
            source = ".".join(filter(None, (above, node.module)))
            if _within(source, "upheld"):
                yield source
                yield from (name for alias in node.names if _module_file(name := f"{source}.{alias.name}"))


def _content(path: Path) -> bytes:
    if path.suffix != ".py":
        return path.read_bytes()
    return _text(_Essence().visit(ast.parse(path.read_bytes(), str(path)))).encode()


def _text(node: object) -> str:
    """A syntax tree as text, the same under every version of Python, which `ast.dump` and `ast.unparse` are not."""
    if isinstance(node, ast.AST):
        fields = [
            f"{name}={_text(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    return repr(node)


class _Essence(ast.NodeTransformer):
    """Takes out of a module what cannot change a measurement."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._without_docstring(node)

    def _without_docstring(self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
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
