"""``upheld mcp``: the commands as tools of the Model Context Protocol, for agents."""

from __future__ import annotations

from typing import Annotated

import typer

EXTRA = 'pip install "upheld[mcp]"'


def mcp(
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            min=0,
            max=65535,
            help="Serve http://127.0.0.1:PORT/mcp to this machine, instead of standard input.",
        ),
    ] = None,
    limit: Annotated[float, typer.Option("--limit", min=1, help="Seconds that one call may take.")] = 3600.0,
) -> None:
    """Serve the commands as tools to agents: list and show methods, run them on files, check claims, read verdicts. A client's
    configuration names this command; it ends when the client does."""
    try:
        import mcp.server.lowlevel  # noqa: F401  (what is missing is told before anything begins)
    except ImportError as missing:
        raise ImportError(f"upheld mcp needs the package mcp; {EXTRA}") from missing
    from upheld.cli.mcp.server import serve_http, serve_stdio

    if http is None:
        serve_stdio(limit)
    else:
        serve_http(http, limit)
