"""Packages as pip would leave them, and the command as a subprocess that finds them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from upheld.catalog import METHODS
from warm import Warm

EXAMPLE = Path(__file__).parents[1] / "examples" / "mom"
LISTED = ", ".join([*(method.name for method in METHODS), "brittle", "mom"])  # as a refusal lists what there is
METHOD = """
from upheld.catalog import Method

METHOD = Method(
    "mom", title="Median of means", field="robust statistics", summary="a mean that a few wild values cannot move",
    paper="Nemirovsky and Yudin, 1983", package="mom")
"""
BRITTLE = {
    "__init__.py": '"""A brittle thing."""',
    "claims.py": '''
"""Trials that fail, last or wait as the environment says."""

import os
import time

from upheld.claims import AtMost, Claim, Experiment, Mean, Measurement, Scale


def measure(trial):
    time.sleep(float(os.environ.get("BRITTLE_SECONDS", "0")))
    if str(trial.seed) in os.environ.get("BRITTLE_FAILS", "").split():
        raise RuntimeError(f"seed {trial.seed} broke [red]here[/]")
    yield Measurement("brittle", "error", trial.rng().random())


RACE = Experiment(
    "brittle.race", measure, {Scale.SMOKE: [{}], Scale.QUICK: [{}]}, {Scale.SMOKE: 3, Scale.QUICK: 40},
    {Scale.SMOKE: 60, Scale.QUICK: 60})
CLAIMS = [Claim("brittle.small", "its error is below 1", None, RACE, AtMost(Mean("error", "brittle"), 1.0))]
''',
    "plots.py": "PICTURES = {}",
    "command.py": '''
EXAMPLE = "upheld run brittle {file}"


def run() -> None:
    """Run it."""
    import nosuch_package


def write_data(out) -> None:
    out.write_text("half")
    raise ValueError("the other half is missing")
''',
}
BRITTLE_METHOD = """
from upheld.catalog import Method

METHOD = Method("brittle", title="Brittle [bold]thing[/]", field="tests", summary="breaks when told", paper="none", package="brittle")
"""
NOT_A_USERS = ("UPHELD", "FORCE_COLOR")  # what may stand in a developer's shell
# As the tests were started: torch, Ray and others set variables of their own when they are imported, which no user's shell has.
SHELL = {name: value for name, value in os.environ.items() if not name.startswith(NOT_A_USERS)}
SINGLE_THREADED = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def install_example(folder: Path) -> Path:
    """Put the worked example into a folder of the module search path, as pip would leave it."""
    shutil.copytree(EXAMPLE, folder / "mom", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "mom_method.py").write_text(METHOD)
    declare(folder, "mom", "mom_method:METHOD")
    return folder


def install_brittle(folder: Path) -> Path:
    """A method whose trials do what the environment tells them."""
    (folder / "brittle").mkdir()
    for name, text in BRITTLE.items():
        (folder / "brittle" / name).write_text(text)
    (folder / "brittle_method.py").write_text(BRITTLE_METHOD)
    declare(folder, "brittle", "brittle_method:METHOD")
    return folder


def declare(folder: Path, name: str, value: str) -> None:
    """What pip leaves of a distribution that declares a method."""
    declared = folder / f"{name}_upheld-0.1.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-upheld\nVersion: 0.1\n")
    (declared / "entry_points.txt").write_text(f"[upheld.methods]\n{name} = {value}\n")


@dataclass(frozen=True)
class Command:
    """``upheld`` in a folder of its own, with further packages on its search path."""

    folder: Path
    site: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: object, fed: str | None = None, **further: str) -> subprocess.CompletedProcess[str]:
        """Runs it to its end, with a text on its standard input: forked where no test could tell it from one started anew."""
        variables = self.variables(**further)
        if not warm().can(variables):
            return self.cold(*arguments, fed=fed, **further)
        return warm().run("upheld.cli", [str(argument) for argument in arguments], self.folder, variables, fed=fed)

    def cold(self, *arguments: object, fed: str | None = None, **further: str) -> subprocess.CompletedProcess[str]:
        """The same in an interpreter of its own, for what is a matter of starting and importing."""
        return subprocess.run(
            self.line(*arguments),
            cwd=self.folder,
            env=self.variables(**further),
            input=fed,
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

    def share(self, name: str, folder: Path) -> None:
        """Have what the cache holds under `name` in a folder that others use, too."""
        folder.mkdir(exist_ok=True)
        (self.folder / "cache").mkdir(exist_ok=True)
        (self.folder / "cache" / name).symlink_to(folder)

    @staticmethod
    def line(*arguments: object) -> list[str]:
        return [sys.executable, "-m", "upheld.cli", *map(str, arguments)]

    def variables(self, **further: str) -> dict[str, str]:
        own = {"PYTHONPATH": str(self.site), "UPHELD_CACHE": str(self.folder / "cache"), "COLUMNS": "100"}
        return SHELL | SINGLE_THREADED | own | self.environment | further


@cache
def warm() -> Warm:
    """The process that this process of tests forks its commands from."""
    return Warm(Command(Path(), Path()).variables())


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence with which bad input was refused; fails if it was not, or with more than a sentence."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[-1].startswith("upheld: ")
    return lines[-1].removeprefix("upheld: ")


def committed(ledger: Path) -> int:
    book = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        return int(book.execute("SELECT count(*) FROM trial").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # it is being made
    finally:
        book.close()


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that these started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    children = [child for child, parent in parents.items() if parent == pid]
    return children + [grandchild for child in children for grandchild in descendants(child)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
