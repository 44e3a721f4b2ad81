"""What every verb prints as JSON is what its schema says, and docs/json.md tells of each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import upheld
from installed import Command

SOURCE = Path(upheld.__file__).parent
SCHEMAS = {
    json.loads(path.read_text())["title"]: json.loads(path.read_text())
    for path in (SOURCE / "cli" / "schemas").glob("*.json")
}
NOT_PRINTED = {"upheld.bandits.state/1", "upheld.isotropy.calibrator/1"}  # files of a method's own, to go on from
DOCS = (SOURCE.parents[1] / "docs" / "json.md").read_text(encoding="utf-8")


def valid(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The document, which is of that schema."""
    assert next(iter(document)) == "schema"
    assert document["schema"] == name
    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(document)
    return document


def printed(done: Any, name: str) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return valid(json.loads(done.stdout), name)


def data(upheld: Command, method: str, name: str, lines: int | None = None) -> str:
    """The embedded data, no more lines of them than show that it runs."""
    assert upheld("data", method, "--out", name).returncode == 0
    if lines is not None:
        path = upheld.folder / name
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]), encoding="utf-8")
    return name


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["properties"]["schema"] == {"const": name}
    assert SCHEMAS[name]["required"][0] == "schema"
    assert (SOURCE / "cli" / "schemas" / f"{name.replace('/', '.')}.json").is_file()


def test_every_name_in_the_sources_has_a_schema_and_a_line_in_the_docs():
    named = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r'"(upheld\.[a-z.]+/\d+)"', path.read_text(encoding="utf-8"))
    }
    assert named - NOT_PRINTED == set(SCHEMAS)
    assert set(re.findall(r"^\| `(upheld\.\S+)` \|", DOCS, re.MULTILINE)) == set(SCHEMAS)


def test_a_document_that_lacks_what_is_promised_is_noticed():
    with pytest.raises(jsonschema.ValidationError, match="'path' is a required property"):
        valid({"schema": "upheld.skill/1", "replaced": False}, "upheld.skill/1")


def test_the_methods_and_one_of_them(measured: Command):
    printed(measured("--json"), "upheld.methods/1")
    shown = printed(measured("show", "mom", "--json"), "upheld.method/1")
    assert any(claim["verdict"] for claim in shown["claims"])


def test_verdicts(measured: Command):
    saved = valid(json.loads((measured.folder / "verdicts.json").read_text()), "upheld.verdicts/1")
    assert printed(measured("verdicts", "mom", "--json"), "upheld.verdicts/1") == saved
    valid(json.loads((SOURCE.parents[1] / "verdicts" / "quick.json").read_text()), "upheld.verdicts/1")


def test_data_skill_and_doctor(inside):
    told = printed(inside("data", "mom", "--out", "x.csv", "--json"), "upheld.data/1")
    assert (told["path"], "x.csv" in told["example"]) == ("x.csv", True)
    printed(inside("install-skill", "--json"), "upheld.skill/1")
    printed(inside("doctor", "--json"), "upheld.doctor/1")


@pytest.mark.slow
def test_hubs(upheld: Command):
    file = data(upheld, "hubs", "khan.csv")
    few = ("--groups", "subtype", "--stability", 2, "--bootstrap", 2, "--null", 2)
    document = printed(upheld("run", "hubs", file, *few, "--out", "out", "--json"), "upheld.hubs.run/1")
    assert json.loads((upheld.folder / "out" / "hubs.json").read_text())["variables"] == document["variables"]


@pytest.mark.slow
def test_bandits(upheld: Command):
    file = data(upheld, "bandits", "choices.csv", 8000)
    printed(upheld("run", "bandits", file, "--threshold", 0.9, "--runs", 2, "--json"), "upheld.bandits.run/1")


@pytest.mark.slow
def test_effects(upheld: Command):
    columns = ("--treatment", "quit_smoking", "--outcome", "weight_gain_kg", "--every", 800)
    done = upheld(
        "run", "effects", data(upheld, "effects", "nhefs.csv"), *columns, "--compare", "--out", "out", "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    lines = [valid(json.loads(line), "upheld.effects.report/1") for line in done.stdout.splitlines()]
    assert [line["rows_read"] for line in lines] == [800, 1566]
    report = valid(json.loads((upheld.folder / "out" / "report.json").read_text()), "upheld.effects.run/1")
    assert report["estimate"]["contrasts"] == lines[-1]["contrasts"]


@pytest.mark.slow
def test_memory(upheld: Command):
    import numpy as np

    np.save(upheld.folder / "keys.npy", np.random.default_rng(0).normal(size=(40, 8)))
    printed(upheld("run", "memory", "--patterns", "keys.npy", "--json"), "upheld.memory.run/1")
    cells = ("--alpha", 0.3, "--temp", "0.2:1:2", "--trials", 2, "--sweeps", 8)
    printed(upheld("run", "memory", "phase", "--kernel", "lse", *cells, "--json"), "upheld.memory.phase/1")


@pytest.mark.slow
def test_lagrangian(upheld: Command):
    folder = data(upheld, "lagrangian", "days")
    for past in sorted((upheld.folder / folder / "past").glob("*"))[2:]:
        past.unlink()
    days = ("--train", f"{folder}/past/*.mps", "--test", f"{folder}/today.mps", "--coupling", "demand_.*|reserve_.*")
    printed(upheld("run", "lagrangian", *days, "--steps", 2, "--json"), "upheld.lagrangian.run/1")


@pytest.mark.slow
def test_isotropy(upheld: Command):
    file = data(upheld, "isotropy", "responses.jsonl", 6)
    printed(upheld("run", "isotropy", file, "--rivals", "jaccard", "--json"), "upheld.isotropy.run/1")


@pytest.mark.slow
def test_flows(upheld: Command):
    import torch

    class Flow(torch.nn.Module):
        def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            return -x

    for name, network in {"flow": Flow(), "guide": torch.nn.Linear(4, 3)}.items():
        torch.jit.script(network).save(str(upheld.folder / f"{name}.pt"))
    models = ("--velocity", "flow.pt", "--likelihood", "guide.pt", "--shape", 4, "--target", 1)
    few = ("-n", 2, "--particles", 2, "--steps", 8, "--compare")
    printed(upheld("run", "flows", *models, *few, "--json"), "upheld.flows.run/1")


@pytest.mark.slow
def test_speculative(with_smollm2: Command):
    from importlib import resources

    file = data(with_smollm2, "speculative", "prompts.txt", 1)
    done = with_smollm2("run", "speculative", "--prompts", file, "--max-tokens", 4, "--rivals", "plain", "--json")
    printed(done, "upheld.speculative.run/1")
    [shipped] = (resources.files("upheld.speculative") / "weights").glob("*/provenance.json")
    valid(
        {"schema": "upheld.speculative.train/1", "path": "drafter", **json.loads(shipped.read_text())},
        "upheld.speculative.train/1",
    )


@pytest.mark.slow
def test_context(upheld: Command):
    file = data(upheld, "context", "train.jsonl", 60)
    done = upheld("run", "context", "--train", file, "--iterations", 1, "--out", "work", "--json")
    printed(done, "upheld.context.run/2")
