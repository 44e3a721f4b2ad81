"""From a command to a tool: its JSON Schema, and its line, are read from the parameters that Typer knows of the command."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from typer.core import TyperArgument
from typer.main import get_command

from upheld.catalog import Method, methods
from upheld.cli import check, data, doctor, overview, show, verdicts

OUTPUT = "json"  # the parameter that every command has, and that no client gives
NOT_FOR_CLIENTS = ("help", "version", "open_it")
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}


@dataclass(frozen=True)
class Parameter:
    """One argument or option of a command.

    Parameters
    ----------
    name : as the command line spells it, without dashes before and with underscores within
    options : ways to write it, the longest first; none for an argument
    off : ways to write that a switch is off
    kind : bool, int, float, str, Path or an Enum
    many : whether it takes several values
    """

    name: str
    options: tuple[str, ...]
    off: tuple[str, ...]
    kind: type
    many: bool
    required: bool
    default: Any
    help: str
    least: float | None
    most: float | None

    def schema(self) -> dict[str, Any]:
        """What values there may be."""
        one: dict[str, Any] = (
            {"enum": [member.value for member in self.kind]}
            if issubclass(self.kind, Enum)
            else {"type": TYPES[self.kind]}
        )
        if self.least is not None:
            one["minimum"] = self.least
        if self.most is not None:
            one["maximum"] = self.most
        found: dict[str, Any] = {"type": "array", "items": one} if self.many else one
        if self.many and self.required:
            found["minItems"] = 1
        if self.help:
            found["description"] = self.help
        if self.default is not None:
            found["default"] = str(self.default) if isinstance(self.default, Path) else self.default
        return found

    def words(self, value: Any) -> list[str]:
        """The words of a command line that say so; a value that begins with a dash stays a value."""
        if not self.options:
            return [str(one) for one in (value if self.many else [value])]
        if self.kind is bool:
            said = self.options if value else self.off
            return [said[0]] if said and value != self.default else []
        return [f"{self.options[0]}={one}" for one in (value if self.many else [value])]


@dataclass(frozen=True)
class Tool:
    """A command, as clients call it.

    Parameters
    ----------
    name : of the tool
    words : of the command: ``("run", "hubs")``
    function : the command's own
    reads_only : whether it leaves everything as it is
    narrowed : further keywords of the schema, by parameter
    """

    name: str
    words: tuple[str, ...]
    function: Callable[..., Any]
    description: str
    reads_only: bool = False
    narrowed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameters(self.function))

    def schema(self) -> dict[str, Any]:
        """JSON Schema of what the tool takes."""
        asked = [one for one in self.parameters if one.name != OUTPUT]
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {one.name: {**one.schema(), **self.narrowed.get(one.name, {})} for one in asked},
            "required": [one.name for one in asked if one.required],
            "additionalProperties": False,
        }

    def line(self, given: Mapping[str, Any]) -> list[str]:
        """The command line, its output in JSON.

        Raises
        ------
        ValueError
            If what is given does not fit the schema.
        """
        import jsonschema  # type: ignore[import-untyped]

        given = {name: value for name, value in given.items() if value is not None}
        wrong = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(self.schema()).iter_errors(given))
        if wrong is not None:
            where = f"{'/'.join(map(str, wrong.absolute_path))}: " if wrong.absolute_path else ""
            raise ValueError(f"{self.name}: {where}{wrong.message}; its schema says what it takes")
        options = [word for one in self._given(given) if one.options for word in one.words(given[one.name])]
        arguments = [word for one in self._given(given) if not one.options for word in one.words(given[one.name])]
        return [*self.words, *options, *self._output(), *(["--", *arguments] if arguments else [])]

    def _given(self, given: Mapping[str, Any]) -> Iterator[Parameter]:
        return (one for one in self.parameters if one.name in given)

    def _output(self) -> list[str]:
        """A command that writes JSON to a file writes it to standard output when the file is ``-``."""
        return [
            one.options[0] if one.kind is bool else f"{one.options[0]}=-"
            for one in self.parameters
            if one.name == OUTPUT
        ]


def parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """The parameters of a command, as Typer would read them from a command line."""
    import typer

    app = typer.Typer(add_completion=False)
    app.command()(function)
    hints = typing.get_type_hints(function, include_extras=True)
    for one in get_command(app).params:
        if one.name is None or one.name in NOT_FOR_CLIENTS:
            continue
        kind, info = _told(hints[one.name])
        argument = isinstance(one, TyperArgument)
        options = () if argument else tuple(sorted(one.opts, key=len, reverse=True))
        name = one.name if argument else options[0].lstrip("-").replace("-", "_")
        yield Parameter(
            name, options, tuple(one.secondary_opts), kind, one.nargs == -1 or bool(getattr(one, "multiple", False)),
            one.required, None if one.required else one.default, _help(one), info.min, info.max,
        )  # fmt: skip


def _told(hint: Any) -> tuple[type, Any]:
    """The type of one value, and what Typer was told of the parameter."""
    annotation, info = typing.get_args(hint)[:2]
    while typing.get_origin(annotation) is not None:  # list[Path] | None: what is in it
        inner = [one for one in typing.get_args(annotation) if one is not types.NoneType]
        [annotation] = inner
    return annotation, info


def _help(parameter: Any) -> str:
    """Its help, with the forms that a placeholder tells of: ``sqrt|INTEGER``."""
    forms = f" ({parameter.metavar})" if parameter.metavar and "|" in parameter.metavar else ""
    return f"{parameter.help or ''}{forms}"


@cache
def tools() -> dict[str, Tool]:
    """Every tool by its name: the verbs that leave no server running, and a tool for each method that is installed."""
    verbs = [
        Tool("list_methods", (), overview.overview, _doc(overview), reads_only=True),
        Tool("show_method", ("show",), show.show, _doc(show), reads_only=True),
        Tool(
            "check", ("check",), check.check,
            f"{_doc(check)} Scale smoke takes seconds a method and shows that everything runs; quick takes minutes a method and is the "
            "least whose verdicts mean something. Greater scales are for the command line.",
            narrowed={"scale": {"enum": ["smoke", "quick"]}},
        ),
        Tool("read_verdicts", ("verdicts",), verdicts.verdicts, _doc(verdicts), reads_only=True),
        Tool("write_data", ("data",), data.data, _doc(data)),
        Tool("doctor", ("doctor",), doctor.doctor, _doc(doctor), reads_only=True),
    ]  # fmt: skip
    return {tool.name: tool for tool in (*verbs, *(_method(one) for one in methods() if not one.missing()))}


def _method(method: Method) -> Tool:
    function = method.module("command").run
    return Tool(f"run_{method.name}", ("run", method.name), function, f"{method.title}. {_first(function)}")


def _doc(verb: Any) -> str:
    return _first(getattr(verb, verb.__name__.rpartition(".")[2]))


def _first(function: Callable[..., Any]) -> str:
    return " ".join((inspect.getdoc(function) or "").split())
