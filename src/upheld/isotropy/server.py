"""The tool `assess_trust` for agents, over the Model Context Protocol on standard input and output.

    python -m upheld.isotropy.server --embedder minilm

is the command that an agent's configuration names. It needs the package `mcp` (``pip install "mcp>=2.3,<3"``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from upheld.isotropy.adaptive import Scorer
from upheld.isotropy.semantic_isotropy import SemanticIsotropy
from upheld.isotropy.trust import assess_trust

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

DESCRIPTION = (
    "How far several independently sampled answers to one prompt agree: score 0 if all say the same, 1 if they have nothing "
    "in common. A high score warns that they may be invented; a low one is no proof. Give the prompt and at least two "
    "answers (five are better) that one model gave to it at a temperature above 0."
)


def trust_server(scorer: Scorer | None = None) -> MCPServer[Any]:
    """A server with the tool `assess_trust`.

    Parameters
    ----------
    scorer : a `SemanticIsotropy`; None takes its defaults

    Raises
    ------
    ImportError
        If `mcp` is not installed; the message holds the line that installs it.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as missing:
        raise ImportError('a tool server needs the package mcp; pip install "mcp>=2.3,<3"') from missing
    scorer = scorer or SemanticIsotropy()
    server: MCPServer[Any] = MCPServer("upheld-isotropy")
    alone = Lock()

    def assess(prompt: str, responses: list[str]) -> dict[str, Any]:
        with alone:  # calls come in threads; the record of warnings, and the embedder, are one for all
            try:
                return assess_trust(prompt, responses, scorer)
            except (ValueError, TypeError, OSError) as wrong:
                raise ToolError(str(wrong)) from wrong  # else its sentence would be withheld from the agent

    server.tool("assess_trust", description=DESCRIPTION)(assess)
    return server


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m upheld.isotropy.server", description=DESCRIPTION)
    parser.add_argument("--embedder", default="minilm", help="minilm, a folder, or openai:MODEL@URL")
    chosen = parser.parse_args(arguments)
    trust_server(SemanticIsotropy(chosen.embedder)).run("stdio")


if __name__ == "__main__":
    main()
