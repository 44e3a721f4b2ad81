"""What several folders of tests share: the worked example as an installed package, and the command as a subprocess."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "mom"
METADATA = "Metadata-Version: 2.1\nName: mom-upheld\nVersion: 0.1\n"
ENTRY_POINTS = "[upheld.methods]\nmom = mom_method:METHOD\n"
METHOD = """
from upheld.catalog import Method

METHOD = Method(
    "mom", title="Median of means", field="robust statistics", summary="a mean that a few wild values cannot move",
    paper="Nemirovsky and Yudin, 1983", package="mom")
"""
SINGLE_THREADED = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def install_example(folder: Path) -> Path:
    """Put the worked example into a folder of the module search path, as pip would leave it."""
    shutil.copytree(EXAMPLE, folder / "mom", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "mom_method.py").write_text(METHOD)
    declared = folder / "mom_upheld-0.1.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text(METADATA)
    (declared / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@dataclass(frozen=True)
class Command:
    """``upheld`` in a folder of its own, with further packages on its search path."""

    folder: Path
    site: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: object, **further: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.line(*arguments),
            cwd=self.folder,
            env=self.variables(**further),
            capture_output=True,
            text=True,
            timeout=200,
        )

    def start(self, *arguments: object, **further: str) -> subprocess.Popen[str]:
        """The same, not waited for; in a process group of its own."""
        return subprocess.Popen(
            self.line(*arguments), cwd=self.folder, env=self.variables(**further), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    @staticmethod
    def line(*arguments: object) -> list[str]:
        return [sys.executable, "-m", "upheld.cli", *map(str, arguments)]

    def variables(self, **further: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("UPHELD", "FORCE_COLOR"))}
        own = {"PYTHONPATH": str(self.site), "UPHELD_CACHE": str(self.folder / "cache"), "COLUMNS": "100"}
        return kept | SINGLE_THREADED | own | self.environment | further


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence with which bad input was refused; fails if it was not, or with more than a sentence."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[-1].startswith("upheld: ")
    return lines[-1].removeprefix("upheld: ")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example(tmp_path_factory.mktemp("site"))


@pytest.fixture
def upheld(tmp_path: Path, site: Path) -> Command:
    """The command, with the worked example among its methods."""
    return Command(tmp_path, site)
