from __future__ import annotations

import json

import pytest
import typer
from context_samples import drawn
from typer.testing import CliRunner

from upheld.context import ContextFunction, Skill
from upheld.context.command import run, write_data

APP = typer.Typer()
APP.command()(run)
NAMES = {"heart": "tolvu", "skin": "bamel", "bone": "zirak"}
"""Words that no model knows."""


@pytest.fixture
def files(tmp_path):
    for name, n, seed in (("train", 48, 0), ("test", 12, 7)):
        rows = [{"id": one.id, "question": one.question, "target": NAMES[one.target]} for one in drawn(n, seed)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def call(files, *arguments: str):
    return CliRunner().invoke(APP, ["--train", str(files / "train.jsonl"), "--out", str(files / "work"), *arguments])


def test_it_writes_a_context_that_can_be_loaded_and_goes_on_when_called_again(files):
    arguments = ("--test", str(files / "test.jsonl"), "--iterations", "2", "--budget", "60", "--compare")
    first = call(files, *arguments)
    assert first.exit_code == 0, first.exception
    assert "knn few-shot" in first.stdout
    assert "GEPA" in first.stdout
    assert "test accuracy" in first.stdout
    result = json.loads((files / "work" / "result.json").read_text())
    assert [row["iteration"] for row in result["iterations"]] == [0, 1, 2]
    context = ContextFunction.load(files / "work" / "context")
    assert context.budget == 60
    assert 0 < context.tokens("pulse and chest") <= 60
    assert Skill.load(files / "work" / "skills" / "01").genes is not None
    assert {path.name for path in (files / "work").glob("*.png")} == {"rollouts.png", "tokens.png", "genes.png"}
    again = call(files, *arguments)
    assert again.stdout == first.stdout


def test_a_stream(files):
    done = call(files, "--online", "--batch", "12", "--json")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["items"] == 48


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target-field", "tag"), "line 1 has no 'tag'; it has id, question, target"),
        (("--consumer", "gpt"), "consumer is 'gpt'"),
        (("--metric", "bleu"), "there is no metric 'bleu'"),
        (("--test", "train.jsonl"), "48 of 48 test questions stand in the training file too"),
    ],
)
def test_what_is_wrong_is_said(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    done = call(files, *arguments)
    assert isinstance(done.exception, ValueError)
    assert message in str(done.exception)
    assert not (files / "work").exists()


def test_the_embedded_data_are_in_the_format_of_own_files(tmp_path):
    write_data(tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(rows) > 500
    assert set(rows[0]) == {"id", "question", "target"}
