"""What a page does not say itself: sections made of the catalog, the docstrings, the verdicts and the command's help.

A page asks for one by a comment on a line of its own, ``<!-- upheld: verdicts hubs -->``, which other readers do not see.
In a sentence, ``{{hubs.beats-tuned}}`` is that claim's verdict.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

import drawing
from sources import ROOT, module
from typer.main import get_command

from upheld import catalog, cli
from upheld.report.export import markdown_claims, markdown_table

VERDICT = re.compile(r"\{\{([\w.-]+)\}\}")
ASKED = re.compile(r"^<!-- upheld: (\w+) ?(.*?) -->$", re.MULTILINE)


def filled(markdown: str, up: str) -> str:
    """The page with its sections; `up` leads from it to the site's root.

    Raises
    ------
    ValueError
        If it asks for a section that there is not.
    """

    def section(match: re.Match[str]) -> str:
        if match[1] not in SECTIONS:
            raise ValueError(f"a page asks for {match[0]}; there are {', '.join(SECTIONS)}")
        return SECTIONS[match[1]](match[2], up)

    return VERDICT.sub(lambda match: f"**{_outcome(match[1])}**", ASKED.sub(section, markdown))


def _outcome(claim: str) -> str:
    for method in _committed()["methods"]:
        for one in method["claims"]:
            if one["id"] == claim:
                return str(one["outcome"])
    raise ValueError(f"a page shows the verdict of {claim}, and verdicts/quick.json has none; mend the page")


def _purpose(name: str, up: str) -> str:
    """The method's own docstring, without its example, and the line that installs it."""
    method = catalog.find(name)
    prose = re.split(r"^>>>", inspect.getdoc(method.module()) or "", maxsplit=1, flags=re.MULTILINE)[0]
    return f"{prose.strip()}\n\n**Install.** `{method.install}`\n"


def _equations(names: str, up: str) -> str:
    return "\n".join(module(name).equations(up) for name in names.split())


def _verdicts(name: str, up: str) -> str:
    document = _of(name)
    lines = markdown_claims(document).splitlines()[2:]
    table = markdown_table(document)
    after = f"`upheld check {name}` measures them again; `upheld report` draws them, with every rule and interval."
    return "\n".join([table, *lines, "", after, ""])


def _against(name: str, up: str) -> str:
    """What did not hold, so that nobody has to look for it among what did."""
    document = _of(name)
    for method in document["methods"]:
        method["claims"] = [claim for claim in method["claims"] if claim["outcome"] == "not upheld"]
    lines = markdown_claims(document).splitlines()[4:]
    return "\n".join(["What was claimed and did not hold here:", "", *lines, ""]) if any(lines) else ""


def _of(name: str) -> dict[str, Any]:
    """The committed verdicts of one method.

    Raises
    ------
    ValueError
        If there are none.
    """
    document = _committed()
    document["methods"] = [method for method in document["methods"] if method["name"] == name]
    if not document["methods"]:
        raise ValueError(f"verdicts/quick.json has no verdicts of {name}; measure them with: make verdicts")
    return document


def _tally(_: str, up: str) -> str:
    return markdown_table(_committed())


def _committed() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "verdicts" / "quick.json").read_text(encoding="utf-8"))
    return document


def _options(name: str, up: str) -> str:
    """A table of what ``upheld run NAME --help`` prints."""
    command = get_command(cli.run.app).resolve_command(None, [name])[1]  # type: ignore[attr-defined]
    context = command.make_context(name, [], resilient_parsing=True)
    rows = [record for one in command.params if (record := one.get_help_record(context))]
    table = [f"| {_cell(names)} | {_words(text)} |" for names, text in rows]
    says = " ".join(inspect.cleandoc(command.help or "").split())
    return "\n".join([f"`upheld run {name}`: {says}", "", "| option | what it does |", "| --- | --- |", *table, ""])


def _cell(text: str) -> str:
    return f"`{text.replace('|', ' or ')}`"


def _words(text: str) -> str:
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return text


def _catalog(_: str, up: str) -> str:
    rows = [
        f"| [{one.name}]({up}methods/{one.name}.md) | {one.field} | {one.summary} |"
        for one in catalog.METHODS
    ]  # fmt: skip
    return "\n".join(["| method | field | what you get |", "| --- | --- | --- |", *rows, ""])


def _verbs(_: str, up: str) -> str:
    """What the command can do, in its own words."""
    command = get_command(cli.app)
    verbs = [(name, " ".join(inspect.cleandoc(one.help or "").split())) for name, one in command.commands.items()]  # type: ignore[attr-defined]
    rows = [f"| `upheld {name}` | {_words(says)} |" for name, says in verbs]
    return "\n".join(["| verb | what it does |", "| --- | --- |", *rows, ""])


def _layers(_: str, up: str) -> str:
    """The layers as the import linter enforces them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return drawing.layers([[name.strip() for name in layer.split("|")] for layer in contract["layers"]])


SECTIONS: dict[str, Callable[[str, str], str]] = {
    "purpose": _purpose,
    "equations": _equations,
    "against": _against,
    "verdicts": _verdicts,
    "tally": _tally,
    "options": _options,
    "catalog": _catalog,
    "verbs": _verbs,
    "layers": _layers,
}
