"""The tool as an agent sees it: through a client of the protocol."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("mcp")

import anyio
from mcp import Client, StdioServerParameters

from upheld.isotropy.semantic_isotropy import SemanticIsotropy
from upheld.isotropy.server import trust_server
from upheld.isotropy.trust import assess_trust

PERU, CHILE = "Lima lies in Peru.", "Lima lies in Chile."


def countries(texts):
    return np.array([[text.count("Peru"), text.count("Chile")] for text in texts], dtype=float)


def called(server, *calls):
    async def run():
        async with Client(server) as client:
            [tool] = (await client.list_tools()).tools
            return tool, [await client.call_tool(tool.name, arguments) for arguments in calls]

    return anyio.run(run)


def test_the_tool_gives_what_the_function_gives():
    scorer = SemanticIsotropy(countries)
    tool, [reply] = called(trust_server(scorer), {"prompt": "Where?", "responses": [PERU, CHILE, PERU + " "]})
    assert tool.name == "assess_trust"
    assert set(tool.input_schema["required"]) == {"prompt", "responses"}
    assert not reply.is_error
    expected = assess_trust("Where?", [PERU, CHILE, PERU + " "], scorer)
    assert json.loads(reply.content[0].text) == expected
    assert expected["score"] > 0.5


def test_what_is_wrong_is_told_to_the_agent_and_the_server_goes_on():
    _, [wrong, right] = called(
        trust_server(SemanticIsotropy(countries)),
        {"prompt": "Where?", "responses": [PERU]},
        {"prompt": "Where?", "responses": [PERU, CHILE]},
    )
    assert wrong.is_error
    assert "holds 1 answer: a spread needs at least 2" in wrong.content[0].text
    assert not right.is_error


@pytest.mark.slow
def test_over_standard_input_and_output_with_minilm():
    command = StdioServerParameters(command=sys.executable, args=["-m", "upheld.isotropy.server"])
    _, [reply] = called(command, {"prompt": "Where?", "responses": [PERU, CHILE, "Stock prices fell."]})
    found = json.loads(reply.content[0].text)
    assert found["response"] in (PERU, CHILE)
    assert found["influence"].index(max(found["influence"])) == 2


def test_without_the_package_the_line_that_installs_it_is_told():
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from upheld.isotropy.server import trust_server\n"
        "try:\n    trust_server()\nexcept ImportError as told:\n    print(told)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "pip install" in done.stdout, done.stderr
