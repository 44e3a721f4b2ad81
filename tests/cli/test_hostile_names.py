"""Names that a page would run: as columns, labels, arms, prompts, answers, groups and files, through commands that draw and write pages.

The report's own pages are in `tests/report/test_pages.py`, what a key may be written into in `tests/llm/test_keys.py`.
"""

from __future__ import annotations

import json
import sqlite3
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from readings import prepare

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
COMMENT = "--><script>alert(2)</script><!--"
KEY = "planted-key-0123456789"


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check_harmless(folder: Path) -> int:
    """No page or drawing below `folder` runs anything; returns how many there are."""
    pages = [path for path in folder.rglob("*") if path.suffix in (".html", ".svg")]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        found = Elements(text).found
        assert {"script", "iframe", "object"}.isdisjoint(tag for tag, _ in found), path
        assert all((one["src"] or "").startswith("data:image/") for tag, one in found if tag == "img"), path
        assert not [name for _, attributes in found for name in attributes if name.startswith("on")], path
        assert not [value for _, one in found for value in one.values() if (value or "").startswith("javascript:")], (
            path
        )
        if path.suffix == ".svg":
            ElementTree.fromstring(text)
    return len(pages)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "models"


def test_columns_and_groups(inside, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(24, 4)), columns=[SCRIPT, IMAGE, COMMENT, "$x_1^2$"])
    table["g"] = [SCRIPT, IMAGE] * 12
    table.to_csv(tmp_path / f"t{IMAGE.replace('/', '')}.csv", index=False)
    done = inside("run", "hubs", next(tmp_path.glob("t*.csv")).name, "--groups", "g", "--stability", 0, "--bootstrap", 0, "--null", 0,
                  "--out", "out")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert check_harmless(tmp_path / "out") == 1


def test_arms(inside, tmp_path):
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"arm": rng.choice([SCRIPT, IMAGE, COMMENT], 600), "reward": rng.random(600)})
    log.to_csv(tmp_path / "log.csv", index=False)
    done = inside("run", "bandits", "log.csv", "--threshold", 0.5, "--runs", 4, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert check_harmless(tmp_path / "out") >= 1


@pytest.mark.slow
def test_prompts_answers_and_files_of_isotropy(inside, tmp_path, models):
    prepare("isotropy", tmp_path / "made")
    rows = [
        {"id": f"{name} {k}", "prompt": name, "responses": [f"{name} one", f"two {COMMENT}", f"three {SCRIPT}"]}
        for k, name in enumerate((SCRIPT, IMAGE, COMMENT))
    ]
    (tmp_path / f"{IMAGE}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = inside("run", "isotropy", f"{IMAGE}.jsonl", "--embedder", models / "bert", "--no-cache", "--html", "page.html",
                  "--pictures", "pictures")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "page.html").rename(tmp_path / "out" / "page.html")
    (tmp_path / "pictures").rename(tmp_path / "out" / "pictures")
    assert check_harmless(tmp_path / "out") >= 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_prompts_families_and_files_of_speculative(inside, tmp_path, models):
    import torch

    threads = torch.get_num_threads()
    prepare("speculative", tmp_path / "made")
    rows = [{"prompt": name, "family": name} for name in (SCRIPT, IMAGE)]
    (tmp_path / f"{IMAGE}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "out").mkdir()
    done = inside("run", "speculative", "--model", models / "llama", "--drafter", models / "drafter", "--prompts", f"{IMAGE}.jsonl",
                  "--max-tokens", 4, "--dtype", "float32", "--rivals", "plain", "--html", "out/page.html")  # fmt: skip
    torch.set_num_threads(threads)
    assert done.returncode == 0, done.stderr
    assert check_harmless(tmp_path / "out") == 1


# -- names that lead elsewhere


@pytest.mark.parametrize(
    "name", ["../hubs", "hubs/../hubs", "/etc/passwd", "hubs.command", "..", "hubs\0", "__main__", "claims"]
)
@pytest.mark.parametrize("verb", ["show", "run", "check", "report", "data"])
def test_a_method_is_one_of_the_list_and_no_path(inside, tmp_path, verb, name):
    book = sqlite3.connect(tmp_path / "book.sqlite")
    book.close()
    options = {"run": [], "data": ["--out", "x.csv"]}.get(verb, ["--ledger", "book.sqlite"])
    done = inside(verb, name, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"book.sqlite", "book.sqlite-wal", "book.sqlite-shm"}


# -- secrets


def test_a_key_is_in_nothing_that_a_command_says_or_leaves(inside, tmp_path, monkeypatch):
    """An address that nobody answers, with keys in the environment for every host that might be meant."""
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path / "cache"))
    for variable in ("OPENAI_API_KEY", "UPHELD_API_KEY_127_0_0_1", "HF_TOKEN"):
        monkeypatch.setenv(variable, KEY)
    (tmp_path / "prompts.txt").write_text("Where is Lima?\n")
    done = inside("run", "isotropy", "--prompts", "prompts.txt", "--model", "m", "--endpoint", f"http://127.0.0.1:1/v1?key={KEY}", "--out",
                  "scores.jsonl")  # fmt: skip
    assert done.returncode == 2
    assert KEY not in done.stdout + done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
