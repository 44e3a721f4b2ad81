"""What makes results stale, and what does not."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import upheld
from upheld.claims.fingerprint import fingerprint

sources = importlib.import_module("upheld.claims.fingerprint")

FILES = {
    "__init__.py": '"""A toy."""\n',
    "estimator.py": '''"""The estimator."""

import numpy as np
from upheld.shared.training import train

BLOCKS = 8


def estimate(x):
    """Mean of the blocks."""
    # the blocks are equal
    return np.mean(x) * BLOCKS


async def wait():
    """Wait."""


class Estimator:
    """An estimator."""

    k = 3
''',
    "claims.py": """from upheld.claims import AtMost, Claim, Experiment, Mean, Scale, grid
from toyfp.estimator import estimate


def race(trial):
    yield estimate([trial.seed])


RACE = Experiment(
    "toyfp.race", race, conditions={Scale.QUICK: grid(n=[30])}, repeats={Scale.QUICK: 5}, timeout_s={Scale.QUICK: 1}, units="seed"
)
CLAIMS = [Claim("toyfp.small", "it is small", reported=None, experiment=RACE, rule=AtMost(Mean("e", "toy"), 1.0))]
""",
    "plots.py": "COLOUR = 'red'\n",
    "command/__init__.py": "EXAMPLE = 'upheld run toyfp'\n",
    "command/page.html": "<p>red</p>\n",
    "table.csv": "a,b\n1,2\n",
    "sub/__init__.py": "from . import inner\n",
    "sub/inner.py": "from ...upheld import nothing  # leads out of the package: no module of upheld\nINNER = 1\n",
}
SHARED = {
    "__init__.py": "__version__ = '1'\n",
    "shared/__init__.py": "from . import schedules\n",
    "shared/schedules.py": "STEPS = 10\n",
    "shared/training.py": "from .optimiser import step\nimport a_package_that_is_not_installed\n\ndef train():\n    return step()\n",
    "shared/optimiser.py": "def step():\n    return 1\n",
    "shared/tokens.txt": "a b c\n",
    "other/__init__.py": "X = 1\n",
    "report/__init__.py": "X = 1\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A method's package, found beside a copy of upheld with a shared layer."""
    write(tmp_path / "site" / "toyfp", FILES)
    root = tmp_path / "upheld"
    write(root, SHARED)
    shutil.copytree(Path(upheld.__file__).parent / "claims", root / "claims")
    monkeypatch.setattr(sources, "ROOT", root)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path


def now() -> str:
    fingerprint.cache_clear()
    return fingerprint("toyfp")


@pytest.fixture(autouse=True)
def _forget():
    yield
    fingerprint.cache_clear()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


LEFT = {
    "a comment": ("site/toyfp/estimator.py", "# the blocks are equal", "# all blocks are of one size"),
    "a comment more": ("site/toyfp/estimator.py", "BLOCKS = 8", "BLOCKS = 8  # as in the paper"),
    "layout": ("site/toyfp/estimator.py", "np.mean(x) * BLOCKS", "(\n        np.mean(x) * BLOCKS\n    )"),
    "a module's docstring": ("site/toyfp/estimator.py", '"""The estimator."""', '"""An estimator."""'),
    "a function's docstring": ("site/toyfp/estimator.py", '    """Mean of the blocks."""\n', ""),
    "a coroutine's docstring": ("site/toyfp/estimator.py", '"""Wait."""', '"""Wait a little."""'),
    "a class's docstring": ("site/toyfp/estimator.py", '"""An estimator."""', '"""The estimator."""'),
    "plots.py": ("site/toyfp/plots.py", "red", "blue"),
    "the command": ("site/toyfp/command/__init__.py", "run toyfp", "run toyfp x.csv"),
    "the command's page": ("site/toyfp/command/page.html", "red", "blue"),
    "a claim": ("site/toyfp/claims.py", "it is small", "it is tiny"),
    "a rule": ("site/toyfp/claims.py", "1.0)", "2.0)"),
    "another rule": ("site/toyfp/claims.py", "AtMost", "AtLeast"),
    "conditions": ("site/toyfp/claims.py", "grid(n=[30])", "grid(n=[30, 60])"),
    "repeats": ("site/toyfp/claims.py", "repeats={Scale.QUICK: 5}", "repeats={Scale.QUICK: 50}"),
    "time": ("site/toyfp/claims.py", "timeout_s={Scale.QUICK: 1}", "timeout_s={Scale.QUICK: 9}"),
    "the rules": ("upheld/claims/rules.py", "FEWEST_UNITS = 5", "FEWEST_UNITS = 6"),
    "the runner": ("upheld/claims/runner.py", "import contextlib", "import contextlib, os"),
    "a layer that is not imported": ("upheld/other/__init__.py", "X = 1", "X = 2"),
    "the report": ("upheld/report/__init__.py", "X = 1", "X = 2"),
    "upheld's version": ("upheld/__init__.py", "'1'", "'2'"),
}
CHANGED = {
    "a constant": ("site/toyfp/estimator.py", "BLOCKS = 8", "BLOCKS = 9"),
    "a function": ("site/toyfp/estimator.py", "np.mean(x)", "np.median(x)"),
    "a class": ("site/toyfp/estimator.py", "k = 3", "k = 4"),
    "an import": ("site/toyfp/estimator.py", "import numpy as np", "import scipy as np"),
    "a data file": ("site/toyfp/table.csv", "1,2", "1,3"),
    "a module below": ("site/toyfp/sub/inner.py", "INNER = 1", "INNER = 2"),
    "the measurement": ("site/toyfp/claims.py", "[trial.seed]", "[trial.seed + 1]"),
    "the units": ("site/toyfp/claims.py", 'units="seed"', 'units="item"'),
    "a shared layer": ("upheld/shared/training.py", "return step()", "return step() + 1"),
    "what it imports by a relative import": ("upheld/shared/optimiser.py", "return 1", "return 2"),
    "the package around it": ("upheld/shared/schedules.py", "STEPS = 10", "STEPS = 20"),
    "data of a shared layer": ("upheld/shared/tokens.txt", "a b c", "a b d"),
    "how trials are seeded": ("upheld/claims/trial.py", '"big"', '"little"'),
}


@pytest.mark.parametrize(("file", "old", "new"), LEFT.values(), ids=LEFT)
def test_left_alone_by(toy, file, old, new):
    before = now()
    edit(toy / file, old, new)
    assert now() == before


@pytest.mark.parametrize(("file", "old", "new"), CHANGED.values(), ids=CHANGED)
def test_changed_by(toy, file, old, new):
    before = now()
    edit(toy / file, old, new)
    assert now() != before


def test_a_file_is_parsed_once_and_again_when_it_changed(toy, monkeypatch):
    now()
    parsed = []
    monkeypatch.setattr(
        sources.ast, "parse", lambda source, name, plain=sources.ast.parse: parsed.append(name) or plain(source, name)
    )
    now()
    edit(toy / "site/toyfp/estimator.py", "BLOCKS = 8", "BLOCKS = 9")
    now()
    assert parsed == [str(toy / "site/toyfp/estimator.py")]


def test_changed_by_a_new_a_renamed_and_a_removed_file(toy):
    seen = {now()}
    (toy / "site/toyfp/new.py").write_text("")
    seen.add(now())
    (toy / "site/toyfp/new.py").rename(toy / "site/toyfp/newer.py")
    seen.add(now())
    (toy / "site/toyfp/newer.py").unlink()
    (toy / "site/toyfp/table.csv").unlink()
    seen.add(now())
    assert len(seen) == 4


def test_left_alone_by_what_editors_and_python_leave_behind(toy):
    before = now()
    write(
        toy / "site/toyfp",
        {".claims.py.swp": "x", ".ipynb_checkpoints/claims.py": "x =", "__pycache__/claims.pyc": "x"},
    )
    write(toy / "upheld/shared", {".hidden": "x", "__pycache__/training.pyc": "x"})
    assert now() == before


def test_where_it_lies_does_not_matter(toy, tmp_path, monkeypatch):
    before = now()
    shutil.copytree(toy / "site", toy / "elsewhere")
    shutil.rmtree(toy / "site")
    monkeypatch.syspath_prepend(toy / "elsewhere")
    assert now() == before


def test_a_file_that_is_not_python_counts_byte_by_byte(toy):
    (toy / "site/toyfp/table.csv").write_bytes(b"a,b\r\n1,2\r\n")
    windows = now()
    (toy / "site/toyfp/table.csv").write_bytes(b"a,b\n1,2\n")
    assert now() != windows


def test_nothing_is_imported_to_find_out(toy):
    """The shared layer cannot even be imported here, and yet counts: the hash must not depend on installed extras."""
    now()
    assert "toyfp.estimator" not in sys.modules
    assert "upheld.shared" not in sys.modules


def test_a_name_that_begins_alike_is_another_package(toy):
    """For a method `upheld.share`, the layer `upheld.shared` is no part of its own package."""
    assert "upheld.shared.training" in sources._shared({"upheld.shared.training"}, "upheld.share")


def test_every_method_and_the_same_in_another_process():
    from upheld.catalog import METHODS

    here = [fingerprint(method.name) for method in METHODS]
    assert all(len(one) == 12 for one in here)
    code = f"from upheld.claims import fingerprint; print([fingerprint(name) for name in {[m.name for m in METHODS]}])"
    there = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(here)


@pytest.mark.parametrize("name", ["nosuch", "json.decoder", "antigravity", "acme.nosuch"])
def test_what_is_no_package(name):
    with pytest.raises(ValueError, match=f"no method '{name}'"):
        fingerprint(name)
