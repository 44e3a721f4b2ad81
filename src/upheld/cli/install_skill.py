"""``upheld install-skill``: what an agent should know of upheld, where agents look for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from upheld import __version__
from upheld.cli.options import JsonOption
from upheld.cli.output import print_json, results, written

NAME, FILE = "upheld", "SKILL.md"
SIGNATURE = re.compile(r"\n<!-- upheld (\S+), as installed: ([0-9a-f]{64}) -->\n\Z")


def install_skill(
    to: Annotated[
        Path, typer.Option("--to", help="The folder of skills; upheld/SKILL.md is put there.")
    ] = Path(".agents/skills"),
    force: Annotated[bool, typer.Option("--force", help="Replace a skill that somebody has changed.")] = False,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Write a skill for agents (SKILL.md): when to use which method, and how to read verdicts. An older one is replaced, but not one
    that somebody has changed."""
    path = to / NAME / FILE
    before = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
    if before is not None and not force and not as_installed(before):
        raise ValueError(f"{path} was changed by somebody; name another folder with --to, or add --force to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with written(path) as unfinished:
        unfinished.write_text(signed(skill_text()), encoding="utf-8")
    if json:
        print_json({"schema": "upheld.skill/1", "path": str(path), "replaced": before is not None})
    else:
        results().print(f"wrote {path}", markup=False, soft_wrap=True)


def skill_text() -> str:
    """The skill that comes with this version."""
    from importlib import resources

    return resources.files("upheld.cli").joinpath("skill", FILE).read_text(encoding="utf-8")


def signed(text: str) -> str:
    """With a last line by which a change will be seen."""
    return f"{text}\n<!-- upheld {__version__}, as installed: {_digest(text)} -->\n"


def as_installed(text: str) -> bool:
    """Whether some version of upheld wrote it, and nobody changed it since."""
    found = SIGNATURE.search(text)
    return found is not None and _digest(text[: found.start()]) == found[2]


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8")).hexdigest()
