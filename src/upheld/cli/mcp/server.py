"""The server: lists the tools, and answers a call with what the command prints."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as Listed

from upheld import __version__
from upheld.cli.mcp.child import Ended, run_command
from upheld.cli.mcp.tools import Tool, tools

INSTRUCTIONS = """Methods of new machine-learning papers, for the user's own files, and tests of what their authors claim.
list_methods tells what each is for; run_<method> applies one to files (paths as on the command line, relative to the folder that the
server runs in; rivals run beside it with compare or rivals); read_verdicts and show_method tell which claims held. Say the verdict when
you recommend a method: a claim that is not upheld or inconclusive is no reason to trust it, and verdicts hold at the scale measured.
Every answer is JSON with a schema name."""
LAST_LINES = 20


def make_server(limit_s: float) -> Server[Any]:
    """The server; limit_s : seconds that a call may take."""

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        known = await anyio.to_thread.run_sync(tools)  # methods' commands are imported
        return ListToolsResult(tools=[listed(tool) for tool in known.values()])

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        known = await anyio.to_thread.run_sync(tools)
        if params.name not in known:
            raise MCPError(INVALID_PARAMS, f"no tool {params.name!r}; there are {', '.join(known)}")
        tool = known[params.name]
        try:
            words = tool.line(params.arguments or {})
        except ValueError as error:
            return refusal(str(error))

        async def told(seconds: float, line: str) -> None:
            await context.session.report_progress(seconds, None, line or f"{seconds:.0f} s")

        return answer(tool, await run_command(words, limit_s, told), limit_s)

    return Server(
        "upheld", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def listed(tool: Tool) -> Listed:
    """A tool as clients see it."""
    return Listed(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=ToolAnnotations(read_only_hint=tool.reads_only, open_world_hint=False),
    )


def answer(tool: Tool, ended: Ended, limit_s: float) -> CallToolResult:
    """What the command printed; where it failed, its sentence."""
    remarks = "\n".join(ended.stderr.strip().splitlines()[-LAST_LINES:])
    if ended.code is None:
        last = f"; it said last: {remarks.splitlines()[-1]}" if remarks else ""
        return refusal(
            f"{tool.name} was ended after {limit_s:g} s; ask for less, or start upheld mcp with --limit{last}"
        )
    if not ended.stdout.strip():
        said = remarks if ended.code != 2 else remarks.rpartition("\n")[2].removeprefix("upheld: ")
        return refusal(said or f"{tool.name} ended with exit code {ended.code} and without a word")
    texts = [ended.stdout, *([remarks] if remarks else [])]
    return CallToolResult(
        content=[TextContent(text=text) for text in texts],
        structured_content=_document(ended.stdout),
        is_error=ended.code != 0,
    )


def refusal(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


def _document(text: str) -> dict[str, Any] | None:
    """The one JSON object that was printed; lines of several are text alone."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def serve_stdio(limit_s: float) -> None:
    """Serve until standard input ends."""

    async def serve() -> None:
        server = make_server(limit_s)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def serve_http(port: int, limit_s: float) -> None:
    """Serve this machine until stopped."""
    import uvicorn

    sys.stderr.write(f"serving http://127.0.0.1:{port}/mcp\n")
    uvicorn.run(make_server(limit_s).streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
