"""What the README shows is run: every block of Python, and every line of a console that does not take a machine of its own."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from installed import Command

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
CONSOLE = [
    re.split(r" {2,}|\s+#", line)[0]
    for language, text in BLOCKS
    for line in text.splitlines()
    if not language and re.match(r"upheld( |$)", line)
]
NOT_RUN = {
    "upheld run hubs expression.csv --groups subtype --compare --out out/": "the reader's own table, run as khan.csv",
    "upheld check hubs": "minutes of measuring",
    "upheld check [hubs …] --scale quick": "minutes of measuring",
    "upheld check --ray auto": "minutes of measuring",
    "upheld report --open": "opens a browser on what was measured",
    "upheld verdicts hubs": "tells what was measured before",
    "upheld mcp": "serves until its client ends",
}
DATA = {  # the embedded data under the name that the README gives them
    "hubs": "khan.csv",
    "bandits": "choices.csv",
    "isotropy": "responses.jsonl",
    "effects": "nhefs.csv",
    "lagrangian": "days",
    "memory": "keys.npy",
    "flows": "models",
    "speculative": "prompts.jsonl",
    "context": "train.jsonl",
}


@pytest.fixture
def ready(request, upheld):
    """The command, with the models that a text needs: made once, and not for every block and line again."""

    def prepare(text: str) -> Command:
        for word, fixture in (("speculative", "with_smollm2"), ("flows|models/", "with_digits")):
            if re.search(rf"\b(?:{word})", text):
                request.getfixturevalue(fixture)
        write_data(upheld, text)
        return upheld

    return prepare


MOST = 6_000  # lines of a table, so that a test takes seconds
MOST_OF = {"responses.jsonl": 8, "days": 2, "prompts.jsonl": 2, "train.jsonl": 200}  # lines, and past days


def write_data(upheld: Command, text: str) -> None:
    """The data that a block or a line reads, written as a reader would; no more of it than shows that it runs."""
    for method, name in DATA.items():
        if re.search(rf"\b{re.escape(name)}\b", text) and f"--out {name}" not in text.split("#")[0]:
            done = upheld("data", method, "--out", name)
            assert done.returncode == 0, done.stderr
            shorten(upheld.folder / name, MOST_OF.get(name, MOST))


def shorten(data: Path, most: int) -> None:
    if data.is_dir():
        for past in sorted(data.glob("past/*"))[most:]:
            past.unlink()
    elif data.suffix != ".npy":
        lines = data.read_text(encoding="utf-8").splitlines(keepends=True)
        data.write_text("".join(lines[:most]), encoding="utf-8")


def named(text: str) -> str:
    """What a block is about, for the name of its test."""
    found = re.search(r"from upheld\.(\w+) import", text)
    return found[1] if found else "python"


@pytest.mark.slow
@pytest.mark.parametrize("block", PYTHON, ids=named)
def test_python(ready, block):
    """It runs as it stands, and where a comment says what is printed, prints that."""
    upheld = ready(block)
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", block],
        cwd=upheld.folder, env=upheld.variables(), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"^print\(.*\)  # ([-\d. ]+)$", block, re.MULTILINE)
    assert [line for line in done.stdout.splitlines() if line in promised] == promised
    assert done.stdout.strip() or "print(" not in block


def test_what_is_not_run_is_still_in_the_readme():
    assert set(NOT_RUN) <= set(CONSOLE)


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in dict.fromkeys(CONSOLE) if line not in NOT_RUN], ids=str)
def test_console(ready, line):
    upheld = ready(line)
    before = {path.name for path in upheld.folder.iterdir()}
    done = upheld(*shlex.split(line)[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    for out in re.findall(r"--(?:out|html) (\S+)", line):
        place = upheld.folder / out
        assert place.name not in before
        assert any(place.iterdir()) if place.is_dir() else place.stat().st_size
