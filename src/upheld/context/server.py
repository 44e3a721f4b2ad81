"""A learned context for any client of the Model Context Protocol: resources to read, and a prompt for a question.

    python -m upheld.context.server work/context

is the command that a client's configuration names. It needs the package `mcp` (``pip install "mcp>=2.3,<3"``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from upheld.context.folder import ContextFunction, Made
from upheld.context.task import with_own

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

DESCRIPTION = (
    "What was learned from labelled examples and bears on a question: cases, rules or notes, with their labels."
)


def context_server(function: ContextFunction) -> MCPServer[Any]:
    """A server with a prompt `with_context` (question, and what belongs to it alone -> context and both), a resource
    ``context://for/{question}`` with the context alone, and a resource a file, ``context://files/...``.

    Raises
    ------
    ImportError
        If `mcp` is not installed; the message holds the line that installs it.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ResourceError
    except ImportError as missing:
        raise ImportError('a context server needs the package mcp; pip install "mcp>=2.3,<3"') from missing
    server: MCPServer[Any] = MCPServer("upheld-context")
    alone = Lock()

    def made(question: str) -> Made:
        with alone:  # calls come in threads; embedder and sandbox are one for all
            found = function.many([question])[0]
        if found.problem:
            raise ResourceError(f"no context could be made: {found.problem}")
        return found

    @server.prompt("with_context", description=DESCRIPTION)
    def with_context(question: str, own_context: str = "") -> str:
        return f"{made(question).text}\n\n{with_own(question, own_context)}".strip()

    @server.resource("context://for/{+question}", name="context", description=DESCRIPTION, mime_type="text/plain")
    def for_question(question: str) -> str:
        return made(question).text

    for path in files_of(function):
        _add_file(server, function.context.root / "context", path)
    return server


def files_of(function: ContextFunction) -> list[Path]:
    """The context's own files, whatever reads them."""
    files = function.context.root / "context"
    return sorted(path for path in files.rglob("*") if path.is_file() and not path.is_symlink())


def _add_file(server: MCPServer[Any], root: Path, path: Path) -> None:
    name = path.relative_to(root).as_posix()

    @server.resource(f"context://files/{name}", name=name, mime_type="text/plain")
    def text() -> str:
        return path.read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m upheld.context.server", description=DESCRIPTION)
    parser.add_argument("folder", help="of a context: context/ and interfaces/")
    parser.add_argument(
        "--allow-weak-sandbox", action="store_true", help="run learned programs though they can only be limited"
    )
    chosen = parser.parse_args(arguments)
    from upheld.context.confined import InSandbox

    try:
        function = ContextFunction.load(chosen.folder, confined=InSandbox(allow_weak=chosen.allow_weak_sandbox))
        server = context_server(function)
    except (ValueError, ImportError) as wrong:
        parser.error(str(wrong))
    server.run("stdio")


if __name__ == "__main__":
    main()
