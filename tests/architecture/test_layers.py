"""Arrows run one way: the contracts of import-linter in pyproject.toml hold, and would notice if they did not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from upheld.catalog import METHODS

ROOT = Path(__file__).parents[2]
VIOLATIONS = {
    "a method imports another": ("hubs/data.py", "import upheld.bandits"),
    "a shared layer imports a method": ("claims/trial.py", "def f():\n    import upheld.hubs"),
    "something imports the command line": ("report/results.py", "import upheld.cli.output"),
    "the report imports what is not its business": ("report/results.py", "import upheld.compute"),
    "the catalog is imported by a method": ("bandits/theory.py", "import upheld.catalog"),
    "a package that no layer is given": ("utils/__init__.py", ""),
}


def lint(folder: Path, source: Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).with_name("lint-imports")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return subprocess.run(
        [linter, "--no-cache"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_contracts_hold(tmp_path):
    done = lint(tmp_path, ROOT / "src")
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.slow
def test_the_contracts_would_notice(tmp_path):
    """Each violation alone, in a copy."""
    for number, (violation, (file, line)) in enumerate(VIOLATIONS.items()):
        source = tmp_path / str(number)
        shutil.copytree(ROOT / "src" / "upheld", source / "upheld", ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "upheld" / file
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as end:
            end.write(f"\n{line}\n")
        done = lint(tmp_path, source)
        assert done.returncode == 1, violation
        assert re.search(r"[12] broken|Missing layers|missing from the layers", done.stdout, re.IGNORECASE), (
            violation,
            done.stdout,
        )


def test_every_method_stands_in_the_contract():
    """What is not named there is not checked. In brackets: what is being built, and not yet in the catalog."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    [methods] = [layer.split(" | ") for layer in layers if "hubs" in layer]
    assert sorted(name for name in methods if name[0] != "(") == sorted(method.name for method in METHODS)
