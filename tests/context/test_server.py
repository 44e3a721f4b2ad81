"""The context as a client of the protocol sees it."""

from __future__ import annotations

import subprocess
import sys
from urllib.parse import quote

import pytest

pytest.importorskip("mcp")

import anyio
from context_samples import hashed
from mcp import Client, MCPError, StdioServerParameters

from upheld.context import Context, ContextFunction, Genes, Line
from upheld.context.server import context_server, main

QUESTION = "Is a rash / mole on 100% of a knee?\n#2"


@pytest.fixture
def function(tmp_path) -> ContextFunction:
    context = Context.from_prompt("Be brief.", tmp_path / "c", 100)
    context.write(
        [Line("case", "skin", "a rash"), Line("case", "bone", "a knee")], Genes(k=1, budget=100, retrieve="lexical")
    )
    return ContextFunction(context, hashed, 100)


async def asked(server):
    async with Client(server) as client:
        return {
            "files": sorted(str(one.uri) for one in (await client.list_resources()).resources),
            "prompt": (await client.get_prompt("with_context", {"question": QUESTION})).messages[0].content.text,
            "own": (await client.get_prompt("with_context", {"question": QUESTION, "own_context": "O"}))
            .messages[0]
            .content.text,
            "context": (await client.read_resource(f"context://for/{quote(QUESTION, safe='')}")).contents[0].text,
            "store": (await client.read_resource("context://files/lines.csv")).contents[0].text,
        }


def test_prompt_resources_and_files(function):
    found = anyio.run(asked, context_server(function))
    assert found["context"] == function(QUESTION)
    assert found["context"].startswith("Be brief.\n- ")
    assert found["prompt"] == f"{function(QUESTION)}\n\n{QUESTION}"
    assert found["own"] == f"{function(QUESTION)}\n\nO\n\n{QUESTION}"
    assert found["files"] == [f"context://files/{name}" for name in ("lines.csv", "parameters.yaml", "prompt.md")]
    assert found["store"] == (function.context.root / "context/lines.csv").read_text()


def test_a_context_that_fails_is_said(function):
    (function.context.root / "context/lines.csv").write_text("kind\ncase\n")

    async def read():
        async with Client(context_server(function)) as client:
            with pytest.raises(MCPError, match="no context could be made: get_context failed: KeyError"):
                await client.read_resource("context://for/x")

    anyio.run(read)


@pytest.mark.parametrize(
    ("budget", "why"), [(None, "holds no interfaces/get_context.py"), ("k: 1\n", "has no line 'budget: N'")]
)
def test_a_folder_that_is_no_context_is_said_in_a_sentence(function, tmp_path, capsys, budget, why):
    root = function.context.root if budget else tmp_path / "nowhere"
    if budget:
        (root / "context/parameters.yaml").write_text(budget)
    with pytest.raises(SystemExit, match="2"):
        main([str(root)])
    assert why in capsys.readouterr().err


@pytest.mark.slow
def test_over_standard_input_and_output(function):
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "upheld.context.server", str(function.context.root)]
    )
    assert anyio.run(asked, command)["context"] == function(QUESTION)


def test_without_the_package_the_line_that_installs_it_is_told():
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from upheld.context.server import context_server\n"
        "try:\n    context_server(None)\nexcept ImportError as told:\n    print(told)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert 'pip install "mcp' in done.stdout, done.stderr
