"""``upheld run hubs X.csv ...``: a method on the user's own data. Each method's ``command.py`` says what it takes."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from upheld.catalog import find, methods


class MethodGroup(TyperGroup):
    """One subcommand a method, loaded when it is asked for: listing the methods imports none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [method.name for method in methods()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = self.list_commands(ctx)
        if cmd_name not in names:
            return None
        one = typer.Typer(pretty_exceptions_enable=False, add_completion=False, rich_markup_mode="rich")
        one.command(cmd_name, help=find(cmd_name).module("command").run.__doc__)(find(cmd_name).module("command").run)
        return get_command(one)


app = typer.Typer(
    cls=MethodGroup,
    help="Run a method on your own data: a table, files and a picture come out, rivals beside it.",
    no_args_is_help=True,
)


@app.callback()
def run() -> None:
    """Run a method on your own data: a table, files and a picture come out, rivals beside it."""
