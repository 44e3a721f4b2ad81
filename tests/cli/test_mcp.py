"""``upheld mcp`` as an agent's client sees it, over standard input and output."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
import jsonschema
from mcp import Client, MCPError, StdioServerParameters

from installed import Command, alive, declare

SLEEPY = '''
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "upheld run sleepy {file}"


def run(
    file: Annotated[Path, typer.Argument(help="Where to write who runs.")],
    seconds: Annotated[float, typer.Option("--seconds", min=0)] = 600.0,
    json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Sleep, and have a child that sleeps; at a request to end, say so in the file."""
    import os

    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    file.write_text(f"{os.getpid()} {child.pid}")
    sys.stderr.write("half asleep\\n")
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        Path(f"{file}.ended").touch()
        raise
    child.kill()
    print('{"schema": "upheld.sleepy.run/1"}')
'''
METHOD = """
from upheld.catalog import Method

METHOD = Method("sleepy", title="Sleepy", field="tests", summary="sleeps", paper="none", package="sleepy")
"""


@pytest.fixture
def served(tmp_path: Path, site: Path) -> Command:
    """The command in a folder of its own, with a method that sleeps among the others."""
    own = tmp_path / "site"
    (own / "sleepy").mkdir(parents=True)
    (own / "sleepy" / "__init__.py").write_text("")
    (own / "sleepy" / "command.py").write_text(SLEEPY)
    (own / "sleepy_method.py").write_text(METHOD)
    declare(own, "sleepy", "sleepy_method:METHOD")
    folder = tmp_path / "work"
    folder.mkdir()
    return Command(folder, site, {"PYTHONPATH": f"{site}:{own}"})


def with_client(served: Command, ask: Callable[[Client], Awaitable[Any]], *options: str) -> Any:
    """What a client finds that starts the server."""
    server = StdioServerParameters(
        command=sys.executable, args=served.line("mcp", *options)[1:], env=served.variables(), cwd=served.folder
    )

    async def asked() -> Any:
        async with Client(server) as client:
            return await ask(client)

    return anyio.run(asked)


def gone(pids: list[int]) -> bool:
    """Whether they end soon."""
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


async def written(path: Path) -> list[int]:
    """The processes that a sleepy run names, as soon as it does."""
    with anyio.fail_after(60):
        while not path.is_file() or len(path.read_text().split()) < 2:
            await anyio.sleep(0.05)
    return [int(pid) for pid in path.read_text().split()]


def test_tools_and_their_schemas(served):
    async def ask(client):
        return (await client.list_tools()).tools

    found = {tool.name: tool for tool in with_client(served, ask)}
    assert {"list_methods", "show_method", "check", "read_verdicts", "write_data", "doctor", "run_mom"} <= set(found)
    for tool in found.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description
        assert "json" not in tool.input_schema["properties"]
    hubs = found["run_hubs"].input_schema
    assert hubs["required"] == ["files"]
    assert hubs["properties"]["files"]["type"] == "array"
    assert hubs["properties"]["groups"] == {
        "type": "string",
        "description": "Column of the group labels, for one table.",
    }
    assert hubs["properties"]["stability"]["minimum"] == 0
    assert (hubs["properties"]["stability"]["type"], hubs["properties"]["stability"]["default"]) == ("integer", 100)
    assert (hubs["properties"]["compare"]["type"], hubs["properties"]["compare"]["default"]) == ("boolean", False)
    assert "sqrt|INTEGER" in hubs["properties"]["n_components"]["description"]
    assert found["check"].input_schema["properties"]["scale"]["enum"] == ["smoke", "quick"]
    assert found["run_sleepy"].input_schema["required"] == ["file"]


def test_a_method_is_run_on_a_file_and_a_wrong_call_is_refused_in_a_sentence(served):
    assert served("data", "hubs", "--out", "khan.csv").returncode == 0
    (served.folder / "odd.csv").write_text("a,b,group\n1,x,u\n2,3,u\n1,2,v\n2,1,v\n")
    few = {"stability": 0, "bootstrap": 0, "null": 0, "groups": "subtype"}

    async def ask(client):
        calls = {
            "whole": ("run_hubs", {"files": ["khan.csv"], **few}),
            "a cell": ("run_hubs", {"files": ["odd.csv"], "groups": "group"}),
            "like an option": ("run_hubs", {"files": ["--out=elsewhere"], "groups": "--compare"}),
            "no such parameter": ("run_hubs", {"files": ["khan.csv"], "group": "subtype"}),
            "no such scale": ("check", {"methods": ["mom"], "scale": "full"}),
            "methods": ("list_methods", {}),
        }
        found = {name: await client.call_tool(*call) for name, call in calls.items()}
        with pytest.raises(MCPError, match="no tool 'rm'; there are list_methods, "):
            await client.call_tool("rm", {})
        return found

    found = with_client(served, ask)
    whole = found["whole"]
    assert not whole.is_error
    assert whole.structured_content["schema"] == "upheld.hubs.run/1"
    assert json.loads(whole.content[0].text) == whole.structured_content
    assert {method["name"] for method in found["methods"].structured_content["methods"]} >= {"hubs", "mom", "sleepy"}
    sentences = {
        "a cell": "odd.csv: column 'b' holds 'x' in row 1, which is no number; mend or drop it",
        "like an option": "there is no file --out=elsewhere; check the path",
        "no such parameter": "run_hubs: Additional properties are not allowed ('group' was unexpected); its schema says what it takes",
        "no such scale": "check: scale: 'full' is not one of ['smoke', 'quick']; its schema says what it takes",
    }
    for name, sentence in sentences.items():
        assert found[name].is_error, name
        assert found[name].content[0].text == sentence
    assert not (served.folder / "elsewhere").exists()


def test_progress_is_told_and_a_call_that_is_cancelled_ends_with_its_children(served):
    note = served.folder / "who"
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def ask(client):
        async with anyio.create_task_group() as calling:

            async def call() -> None:
                await client.call_tool("run_sleepy", {"file": str(note)}, progress_callback=hear)

            calling.start_soon(call)
            pids = await written(note)
            with anyio.fail_after(60):
                while not heard:
                    await anyio.sleep(0.05)
            calling.cancel_scope.cancel()
        ended = await anyio.to_thread.run_sync(gone, pids)
        still = await client.call_tool("list_methods", {})  # the server goes on
        return ended, still.is_error

    assert with_client(served, ask) == (True, False)
    assert heard[0][0] > 0
    assert heard[0][1] == "half asleep"
    assert Path(f"{note}.ended").exists(), "it was asked to end before it was killed"


def test_a_call_that_takes_too_long_is_ended(served):
    note = served.folder / "who"

    async def ask(client):
        return await client.call_tool("run_sleepy", {"file": str(note)})

    found = with_client(served, ask, "--limit", "6")
    assert found.is_error
    assert found.content[0].text == (
        "run_sleepy was ended after 6 s; ask for less, or start upheld mcp with --limit; it said last: half asleep"
    )
    assert gone([int(pid) for pid in note.read_text().split()])


@pytest.mark.parametrize("how", ["it hangs up", "the server is killed"])
def test_nothing_outlives_a_client_that_goes_away(served: Command, how):
    note = served.folder / "who"
    going = subprocess.Popen(
        served.line("mcp"), cwd=served.folder, env=served.variables(),
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert going.stdin is not None
    assert going.stderr is not None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    call = {"name": "run_sleepy", "arguments": {"file": str(note)}}
    for message in (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ):
        going.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    going.stdin.flush()
    pids = anyio.run(written, note)
    if how == "it hangs up":
        going.stdin.close()
        assert going.wait(timeout=60) == 0
    else:
        going.kill()
        going.wait()
        going.stdin.close()
    going.stderr.close()
    assert gone(pids)


def test_without_the_package_the_line_that_installs_it_is_told(tmp_path, site):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None\n")
    done = Command(tmp_path, site, {"PYTHONPATH": f"{tmp_path}:{site}"})("mcp")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'upheld: upheld mcp needs the package mcp; pip install "upheld[mcp]"\n'


def test_over_http_to_this_machine(served: Command):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    going = served.start("mcp", "--http", port)
    assert going.stderr is not None
    assert going.stdout is not None

    async def ask() -> Any:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            return await client.call_tool("show_method", {"method": "nosuch"})

    try:
        assert going.stderr.readline() == f"serving http://127.0.0.1:{port}/mcp\n"
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        found = anyio.run(ask)
    finally:
        going.send_signal(signal.SIGTERM)
        going.wait(timeout=60)
        going.stdout.close()
        going.stderr.close()
    assert found.is_error
    assert found.content[0].text.startswith("no method 'nosuch'; there are hubs")
