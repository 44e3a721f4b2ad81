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
from dataclasses import dataclass
from functools import cache, lru_cache
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
    for level, source, names in _parsed(path, path.read_bytes()).imports:
        if source is None:
            yield from (name for name in names if _within(name, "upheld"))
            continue
        above = module.rsplit(".", level)[0] if level else ""
        full = ".".join(filter(None, (above, source)))
        if _within(full, "upheld"):
            yield full
            yield from (inner for name in names if _module_file(inner := f"{full}.{name}"))


def _content(path: Path) -> bytes:
    source = path.read_bytes()
    return source if path.suffix != ".py" else _parsed(path, source).essence


@dataclass(frozen=True)
class _Parsed:
    """What a module's source comes to: its text without what cannot change a measurement, and what it imports.

    An import is (level, source, names), its source None for ``import names``.
    """

    essence: bytes
    imports: tuple[tuple[int, str | None, tuple[str, ...]], ...]


@cache
def _parsed(path: Path, source: bytes) -> _Parsed:
    """Parsed once a process, though several methods stand on the file; by its bytes, so that a file that changed is read anew."""
    essence = _Essence()
    text = essence.text(ast.parse(source, str(path)))
    return _Parsed((text or "").encode(), tuple(essence.imports))


class _Essence:
    """A syntax tree as text, the same under every version of Python, which `ast.dump` and `ast.unparse` are not.

    Leaves out what cannot change a measurement, and notes the imports on its way: one walk, since every method's every file is
    read at each start.
    """

    def __init__(self) -> None:
        self.imports: list[tuple[int, str | None, tuple[str, ...]]] = []

    def text(self, node: object) -> str | None:
        """None for what is left out."""
        if isinstance(node, ast.AST):
            return self._of_node(node)
        if isinstance(node, list):
            return f"[{','.join([text for one in node if (text := self.text(one)) is not None])}]"
        return repr(node)

    def _of_node(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._note(node)
        if _is_left_out(node):
            return None
        fields = [
            f"{name}={text}"
            for name in node._fields
            if (value := _kept(node, name)) is not None and (text := self.text(value)) not in (None, "[]")
        ]
        return f"{type(node).__name__}({','.join(fields)})"

    def _note(self, node: ast.Import | ast.ImportFrom) -> None:
        names = tuple(alias.name for alias in node.names)
        level, source = (node.level, node.module or "") if isinstance(node, ast.ImportFrom) else (0, None)
        self.imports.append((level, source, names))


def _is_left_out(node: ast.AST) -> bool:
    """What is imported of `upheld.claims`, and the list ``CLAIMS``."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith("upheld.claims")
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)] == ["CLAIMS"]
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "CLAIMS"


def _kept(node: ast.AST, field: str) -> object:
    """A field of a node without docstrings, nor the choice of an experiment's trials; None if there is none."""
    value = getattr(node, field, None)
    if field == "body" and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return value if ast.get_docstring(node, clean=False) is None else node.body[1:] or [ast.Pass()]
    if field == "keywords" and isinstance(node, ast.Call) and _is_experiment(node.func):
        return [word for word in node.keywords if word.arg not in CHOICE_OF_TRIALS]
    return value


def _is_experiment(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id == "Experiment"
