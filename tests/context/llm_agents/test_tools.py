"""What the agents may call, over the real sandbox."""

from __future__ import annotations

import json

import pytest
from context_samples import hashed
from servers import chat, refusal, serving

from upheld.context.llm_agents.tools import Toolbox, as_json
from upheld.context.llm_agents.workspace import Workspace
from upheld.llm import Endpoint, Usage
from upheld.llm.retries import Retries


def toolbox(root, sandbox, url="http://127.0.0.1:9/v1", spent=None):
    root = root.resolve()
    (root / "context").mkdir(exist_ok=True)
    (root / "context/notes.md").write_text("heart: pulse\nskin: rash\n")
    model = Endpoint("m", url, retries=Retries(tries=1))
    box = Toolbox(Workspace(root, root), sandbox, model, hashed, (spent if spent is not None else []).append)
    return {tool.name: tool for tool in box.tools()}


def test_the_tools_have_schemas_and_names(tmp_path, sandbox):
    tools = toolbox(tmp_path, sandbox)
    assert list(tools) == ["read", "write", "edit", "list", "grep", "run_python", "call_llm", "embed_similarity"]
    assert tools["call_llm"].schema["required"] == ["prompt"]
    assert tools["embed_similarity"].schema["properties"]["queries"] == {"type": "array"}


def test_grep(tmp_path, sandbox):
    grep = toolbox(tmp_path, sandbox)["grep"]
    assert grep.answer('{"pattern": "^h.*t:"}') == "context/notes.md:1: heart: pulse"
    assert grep.answer('{"pattern": "rash", "path": "context/notes.md"}') == "context/notes.md:2: skin: rash"
    assert grep.answer('{"pattern": "z"}') == "no line matches"
    assert grep.answer('{"pattern": "("}').startswith("error: grep failed")
    assert grep.answer('{"pattern": "x", "path": "../"}').startswith("error: ../ lies outside your folder")


def test_programs_run_in_the_folder_and_leave_no_links(tmp_path, sandbox):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "home").mkdir()
    run = toolbox(tmp_path / "home", sandbox)["run_python"]
    program = "import os\nopen('new.txt', 'w').write(open('context/notes.md').read()[:5])\nos.symlink('/etc/passwd', 'p')\nprint('ok')"
    assert run.answer(json.dumps({"program": program})) == "ok\n[taken away, since only files and folders may stay: p]"
    assert (tmp_path / "home/new.txt").read_text() == "heart"
    for stolen in (
        f"print(open({str(tmp_path / 'secret')!r}).read())",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    ):
        told = run.answer(json.dumps({"program": stolen}))
        assert "error: " in told
        assert "secret\n" not in told
    assert run.answer('{"program": "x = 1"}') == "it printed nothing"
    assert "ZeroDivisionError" in run.answer('{"program": "1 / 0"}')


def test_similarities(tmp_path, sandbox):
    similar = toolbox(tmp_path, sandbox)["embed_similarity"]
    told = similar.answer(
        json.dumps({"queries": ["pulse chest"], "texts": ["rash", "pulse chest", "pulse itch"], "top": 2})
    )
    assert json.loads(told) == [[[1, 1.0], [2, 0.5]]]
    assert similar.answer('{"queries": [], "texts": ["a"]}') == "error: queries must be a list of 1 to 2000 texts"
    assert similar.answer('{"queries": ["a"], "texts": [3]}').startswith("error: texts must be")


def test_asking_a_model(tmp_path, sandbox):
    spent: list[Usage] = []
    schema = {"type": "array", "items": {"type": "object", "required": ["rule"]}}
    with serving(
        chat("Yes."), chat('Here: [{"rule": "r"}] as asked'), chat('[{"x": 1}]'), chat("no"), refusal(500)
    ) as server:
        ask = toolbox(tmp_path, sandbox, server.url, spent)["call_llm"]
        assert ask.answer('{"prompt": "Well?"}') == "Yes."
        asked = json.dumps({"prompt": "Rules?", "json_schema": schema})
        assert json.loads(ask.answer(asked)) == [{"rule": "r"}]
        assert ask.answer(asked) == "error: the model's answer does not fit json_schema: 'rule' is a required property"
        assert ask.answer(asked).startswith("error: the model's answer is no JSON")
        assert ask.answer(asked).startswith("error: call_llm: m at 127.0.0.1")
    assert '"required": ["rule"]' in server.seen[1].body["messages"][0]["content"]
    assert [one.completion_tokens for one in spent] == [3, 3, 3, 3]


def test_a_schema_that_is_none():
    with pytest.raises(ValueError, match="does not fit json_schema"):
        as_json("[]", {"type": "nothing"})
