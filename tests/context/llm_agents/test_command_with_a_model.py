"""The command with an endpoint that plays consumer and agents: what it writes, how it fails, and how it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import typer
from context_samples import WORDS, drawn, hashed
from scripted_agent import acting, all_parts
from servers import chat, refusal
from typer.testing import CliRunner

from upheld.context import ContextFunction, Skill, dspy_rival, package_ace_rival
from upheld.context.command import run, running
from upheld.llm import ModelError
from upheld.sandbox import Sandbox

APP = typer.Typer()
APP.command()(run)
SHORT = ("--iterations", "2", "--train-limit", "12", "--batch", "6", "--val-size", "6", "--budget", "60")
REFUSE = "def get_context(question, *, root, embed):\n    {body}\n"


def written(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Training and test files; vectors come from words, so that no model is loaded."""
    patch.setattr(running, "minilm", lambda cache: hashed)
    for name, n, seed in (("train", 30, 0), ("test", 9, 7)):
        rows = [{"id": one.id, "question": one.question, "target": one.target} for one in drawn(n, seed)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def files(tmp_path, monkeypatch):
    return written(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, sandbox):
    """The folder of a run that nothing interrupted, and how many requests it took."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch, acting(all_parts) as server:
        written(folder, patch)
        assert call(folder, *models(server)).exit_code == 0
        return folder / "work", len(server.seen)


def call(files: Path, *arguments: str, out: str = "work"):
    data = ("--train", str(files / "train.jsonl"), "--test", str(files / "test.jsonl"), "--out", str(files / out))
    return CliRunner().invoke(APP, [*data, *SHORT, *arguments])


def models(server) -> tuple[str, ...]:
    return "--endpoint", server.url, "--consumer-model", "small", "--agent-model", "large"


def test_both_models(files, sandbox):
    with acting(all_parts) as server:
        done = call(
            files, *models(server), "--task", "Sort complaints by organ.", "--agent-skill", str(files / "learned")
        )
    assert done.exit_code == 0, done.exception
    assert "Agents: large, with tools." in done.stdout
    result = json.loads((files / "work/result.json").read_text())
    assert result["test"] > 0.8
    assert result["tokens"]["agents"]["written"] > 0
    assert result["tokens"]["consumer"]["read"] > 0
    assert result["problems"] == []
    named = {one.body["model"] for one in server.seen}
    assert named == {"small", "large"}
    assert Skill.load(files / "work/skills/01").overview == "Write notes."
    assert "Sort complaints by organ." in (files / "learned/SKILL.md").read_text()
    assert not (files / "work/genes.png").exists()
    context = ContextFunction.load(files / "work/context", embed=hashed)
    assert "- heart: pulse chest" in context("pulse")
    context.confined.close()


def test_an_endpoint_that_fails_stops_the_run_which_goes_on(files, sandbox, whole):
    finished, needed = whole
    left = [25]

    def failing(messages):
        left[0] -= 1
        return all_parts(messages) if left[0] >= 0 else refusal(401, "no such key")

    with acting(failing) as server:
        done = call(files, *models(server))
        assert isinstance(done.exception, ModelError)
        assert "answered 401" in str(done.exception)
        assert str(done.exception).endswith(
            f"what was done is kept in {files / 'work'}, give the same command again to go on"
        )
        before = len(server.seen)
        left[0] = 10**6
        assert call(files, *models(server)).exit_code == 0
        again = len(server.seen) - before
    assert again < needed
    one, other = (json.loads((out / "result.json").read_text()) for out in (finished, files / "work"))
    assert [row["val"] for row in one["iterations"]] == [row["val"] for row in other["iterations"]]
    assert one["test"] == other["test"]


def test_without_walls_nothing_is_run_unless_it_is_allowed(files, monkeypatch, sandbox):
    bare = partial(Sandbox, without=("namespaces", "landlock", "seccomp"))
    for place in ("upheld.context.command.running", "upheld.context.engineer", "upheld.context.confined"):
        monkeypatch.setattr(f"{place}.Sandbox", bare)
    with acting(all_parts) as server:
        done = call(files, *models(server))
        assert isinstance(done.exception, ValueError)
        assert str(done.exception).endswith("(--allow-weak-sandbox)")
        assert "programs written by a model are not run here" in str(done.exception)
        assert server.seen == []
        allowed = call(files, *models(server), "--allow-weak-sandbox")
    assert allowed.exit_code == 0, allowed.exception


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return 3", "returned int instead of text"),
        ("while True: pass", "get_context failed"),
        ("return open('/etc/passwd').read()", "get_context failed"),
    ],
)
def test_contexts_that_cannot_be_made_count_as_empty_and_are_told(files, sandbox, body, why):
    (files / "seed/interfaces").mkdir(parents=True)
    (files / "seed/interfaces/get_context.py").write_text(REFUSE.format(body=body))
    few = ("--iterations", "1", "--val-size", "2", "--train-limit", "1")  # a question may take its two seconds
    (files / "test.jsonl").write_text((files / "test.jsonl").read_text().splitlines()[0])
    done = call(files, "--seed-context", str(files / "seed"), *few)
    assert done.exit_code == 0, done.exception
    first = json.loads((files / "work/result.json").read_text())["iterations"][0]
    assert first["tokens"] == 0
    assert sum(int(told.split()[0]) for told in first["failed"]) == 2
    assert all(why in told for told in first["failed"])
    assert "iteration 0: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--endpoint", "http://127.0.0.1:9/v1"), "--endpoint http://127.0.0.1:9/v1 is asked for nothing; name a model there with"),
        (("--endpoint", "ftp://x", "--consumer-model", "m"), "there is no language model 'openai:m@ftp://x'"),
        (("--consumer", "tfidf", "--consumer-model", "m"), "--consumer tfidf is no language model"),
        (("--consumer-model", "/nowhere"), "there is no language model '/nowhere'"),
        (("--consumer", "llm", "--endpoint", "http://127.0.0.1:9/v1", "--agent-model", "m"), "name one as --consumer-model"),
        (("--seed-context", "/nowhere"), "is neither a file with a prompt nor a folder"),
        (("--skill", "/nowhere"), "holds no SKILL.md"),
        (("--accept", "never"), "--accept is 'never'; choose"),
        (("--init-skill", "best"), "--init-skill is 'best'; choose few-shot or naive"),
        (("--val-size", "30"), "--val-size is 30 of 30 samples"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(files, arguments, message):
    done = call(files, *arguments)
    assert isinstance(done.exception, ValueError), done.exception
    assert message in str(done.exception)
    assert not (files / "work").exists()


def test_one_class_only(files):
    (files / "train.jsonl").write_text(
        "".join(json.dumps({"question": f"q{n}", "target": "a"}) + "\n" for n in range(12))
    )
    for arguments in ((), ("--endpoint", "http://127.0.0.1:9/v1", "--consumer-model", "m")):
        done = call(files, *arguments)
        assert "the samples have one label only, 'a'" in str(done.exception)
        assert not (files / "work").exists()


def test_a_place_for_the_agents_skill_that_is_taken_is_refused_before_anything_is_done(files):
    done = call(files, "--agent-skill", str(files))
    assert "is no empty folder; name another one with --agent-skill" in str(done.exception)
    assert not (files / "work").exists()


KILLED = """
import sys
sys.path[:0] = {paths!r}
import typer
from context_samples import hashed
from upheld.context.command import run, running
running.minilm = lambda cache: hashed
app = typer.Typer()
app.command()(run)
app()
"""


@pytest.mark.slow
@pytest.mark.parametrize("at", [4, 26])
def test_killed_without_warning_it_goes_on(files, sandbox, whole, at):
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
    requests: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def lethal(messages):
        requests.append(1)
        if len(requests) == at:
            child[0].send_signal(signal.SIGKILL)
        return all_parts(messages)

    with acting(lethal) as server:
        data = (
            "--train",
            str(files / "train.jsonl"),
            "--test",
            str(files / "test.jsonl"),
            "--out",
            str(files / "work"),
        )
        line = [sys.executable, "-c", KILLED.format(paths=paths), *data, *SHORT, *models(server)]
        child.append(subprocess.Popen(line, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        assert child[0].wait(200) == -signal.SIGKILL
        assert not (files / "work/result.json").exists()
        requests.extend([1] * 1000)
        assert call(files, *models(server)).exit_code == 0
    outs = (whole[0], files / "work")
    one, other = (json.loads((out / "result.json").read_text()) for out in outs)
    for result in (one, other):
        assert result["test"] > 0.8
    assert [row["val"] for row in one["iterations"]] == [row["val"] for row in other["iterations"]]
    kept = [sorted((out / "context").rglob("*.*")) for out in outs]
    assert [path.read_text() for path in kept[0]] == [path.read_text() for path in kept[1]]


ONLINE = ("--online", "--batch", "3", "--budget", "60")


@pytest.mark.slow
def test_a_stream_killed_without_warning_goes_on_and_pays_nothing_twice(files, sandbox):
    at = 40
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
    requests: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def lethal(messages):
        requests.append(1)
        if len(requests) == at:
            child[0].send_signal(signal.SIGKILL)
        return all_parts(messages)

    def streamed(server, out: str) -> int:
        before = len(server.seen)
        data = ("--train", str(files / "train.jsonl"), "--out", str(files / out))
        done = CliRunner().invoke(APP, [*data, *ONLINE, *models(server)])
        assert done.exit_code == 0, done.exception
        return len(server.seen) - before

    with acting(lethal) as server:
        data = ("--train", str(files / "train.jsonl"), "--out", str(files / "work"))
        line = [sys.executable, "-c", KILLED.format(paths=paths), *data, *ONLINE, *models(server)]
        child.append(subprocess.Popen(line, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        assert child[0].wait(200) == -signal.SIGKILL
        assert not (files / "work/result.json").exists()
        requests.extend([1] * 1000)
        needed = streamed(server, "whole")
        left = streamed(server, "work")
        nothing = streamed(server, "work")
    assert left <= needed - at + 20  # one batch anew: answers to three items, the base agent's conversation
    assert nothing == 0
    one, other = (json.loads((files / out / "result.json").read_text()) for out in ("whole", "work"))
    assert one["prequential"] == other["prequential"] > 0.3
    kept = [sorted((files / out / "context").rglob("*.*")) for out in ("whole", "work")]
    assert [path.read_text() for path in kept[0]] == [path.read_text() for path in kept[1]]


def test_rivals_beside_it_are_reflected_for_by_the_same_model(files, sandbox):
    """ACE's reflector and GEPA's proposer are asked for what they write down."""
    asked: list[str] = []

    def reflecting(messages):
        first = messages[0]["content"]
        if first.startswith("You keep a playbook"):
            asked.append("ACE")
            return chat(json.dumps({"bullets": [{"section": "heart", "text": "pulse chest beat artery"}]}))
        if messages[-1]["content"].startswith("I provided an assistant"):
            asked.append("GEPA")
            return chat("```\n- skin: rash itch blister mole\n```")
        if "ReflectorOutput" in first or "SkillManagerOutput" in first:
            return chat("I fill in no forms.")  # for ACE's package, where it is installed
        if any(len(line.split()) > 8 for line in messages[-1]["content"].splitlines() if line.startswith("- ")):
            return chat("<answer>none</answer>")  # to GEPA's first prompt, of eight words a label
        return all_parts(messages)

    with acting(reflecting) as server:
        done = call(files, *models(server), "--compare", "--iterations", "1")
    assert done.exit_code == 0, done.exception
    assert set(asked) == {"ACE", "GEPA"}
    rivals = json.loads((files / "work/result.json").read_text())["rivals"]
    assert 0.2 < rivals["ACE"]["test"] < 0.8  # one label of three is known
    assert rivals["base"]["test"] == 0
    left_out = json.loads((files / "work/result.json").read_text())["rivals_left_out"]
    packaged = {"DSPy KNNFewShot": dspy_rival, "ace-framework": package_ace_rival}
    assert left_out == {name: rival.MISSING for name, rival in packaged.items() if not rival.installed()}
    assert set(packaged) - set(left_out) == set(packaged) & set(rivals)


def test_a_sample_s_own_context_reaches_the_model_and_is_part_of_the_run(files):
    """The words that tell the organ stand in the context of each sample alone."""

    def rows(n: int, seed: int) -> list[dict[str, str]]:
        return [
            {"id": one.id, "question": f"Which organ has patient {seed}-{one.id}?", "context": one.question, "ground_truth": one.target}
            for one in drawn(n, seed)
        ]  # fmt: skip

    def write(name: str, told: list[dict[str, str]]) -> None:
        (files / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))

    def reading(messages):
        own = set(messages[-1]["content"].rpartition("Text: ")[2].split("\n\n")[0].split())
        return chat(f"<answer>{max(WORDS, key=lambda label: len(own & set(WORDS[label])))}</answer>")

    train, test = rows(30, 0), rows(9, 7)
    write("train", train)
    write("test", test)
    with acting(reading) as server:
        consumer = ("--endpoint", server.url, "--consumer-model", "small")
        done = call(files, *consumer)
        assert done.exit_code == 0, done.exception
        assert json.loads((files / "work/result.json").read_text())["test"] == 1.0
        asked = {one.body["messages"][-1]["content"] for one in server.seen}
        for row in test:
            assert sum(f"Text: {row['context']}\n\n{row['question']}\n" in prompt for prompt in asked) == 1
        streamed = call(files, *consumer, "--online", "--json", out="stream")
        assert json.loads(streamed.stdout)["prequential"] == 1.0
        n = len(server.seen)
        assert call(files, *consumer).exit_code == call(files, *consumer, "--online", out="stream").exit_code == 0
        assert len(server.seen) == n  # all is kept
        write("train", [{**train[0], "context": "something else"}, *train[1:]])
        assert "holds a run on other data" in str(call(files, *consumer).exception)
        assert "batch 1 is another" in str(call(files, *consumer, "--online", out="stream").exception)
