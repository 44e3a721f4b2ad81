"""``upheld run hubs X.csv ...``: a method on the user's own data. Each method's ``command.py`` says what it takes."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from upheld.catalog import find, methods


class MethodGroup(TyperGroup):
    """One subcommand a method, loaded when it is called: listing the methods imports none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [method.name for method in methods()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What a list shows of a method."""
        found = [method for method in methods() if method.name == cmd_name]
        return TyperCommand(cmd_name, help=found[0].summary) if found else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The method's own command."""
        return args[0], _loaded(args[0]), args[1:]


def _loaded(name: str) -> Any:
    run = find(name).module("command").run
    one = typer.Typer(pretty_exceptions_enable=False, add_completion=False, rich_markup_mode="rich")
    one.command(name, help=run.__doc__)(run)
    return get_command(one)


app = typer.Typer(
    cls=MethodGroup,
    help="Run a method on your own data: a table, files and a picture come out, rivals beside it.",
)


@app.callback()
def run() -> None:
    """Run a method on your own data: a table, files and a picture come out, rivals beside it."""
