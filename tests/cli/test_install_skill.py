"""The skill for agents: it is true, it is put where it was asked for, and nobody's changes are lost."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress

import pytest
import typer
from typer.main import get_command

from installed import refused
from upheld.catalog import METHODS
from upheld.cli import VERBS, app
from upheld.cli.install_skill import as_installed, signed, skill_text

TEXT = skill_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]
VERBS_NOT_TOLD = {"install-skill"}  # whoever reads it has done that
PLACE = ".agents/skills/upheld/SKILL.md"


def parse(words: list[str]) -> None:
    """Read a command line as the command would, and do nothing; a wrong one raises."""
    command, context, rest = get_command(app), None, words
    while True:
        context = command.make_context(command.name or "upheld", rest, parent=context)
        if not hasattr(command, "resolve_command") or not context._protected_args:
            return
        _, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_is_one(line):
    words = shlex.split(line, comments=True)
    assert words[0] == "upheld"
    with suppress(typer.Exit):  # --help
        parse(words[1:])


@pytest.mark.parametrize(
    "wrong", ["upheld check --nosuch", "upheld run hubs --nosuch 1", "upheld nosuch", "upheld run nosuch"]
)
def test_a_wrong_one_would_be_noticed(wrong):
    with pytest.raises(Exception, match=r"[Nn]o such|no method"):
        parse(wrong.split()[1:])


def test_every_method_and_verb_is_told():
    rows = re.findall(r"^\| (\w+) \|", TEXT.partition("## Which method")[2].partition("## Run")[0], re.MULTILINE)
    assert set(rows) - {"method"} == {method.name for method in METHODS}
    told = {shlex.split(line, comments=True)[1] for line in LINES}
    assert {method.name for method in METHODS} <= {words[2] for line in LINES if len(words := line.split()) > 2}
    assert set(VERBS) - VERBS_NOT_TOLD - {"mcp"} <= told
    assert "`upheld mcp`" in TEXT


def test_its_header_is_in_the_form_of_agent_skills():
    header = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", TEXT)
    assert header is not None
    assert header[1] == "upheld"
    assert len(header[2]) <= 1024
    assert ": " not in header[2], "YAML would take it for a key"


def test_it_is_installed_where_agents_look_and_again_when_nobody_changed_it(inside, tmp_path):
    place = tmp_path / PLACE
    assert inside("install-skill").stdout == f"wrote {PLACE}\n"
    assert place.read_text().startswith(TEXT)
    place.write_text(signed("of an older version\n"))
    done = inside("install-skill", "--json")
    assert json.loads(done.stdout) == {"schema": "upheld.skill/1", "path": PLACE, "replaced": True}
    assert place.read_text().startswith(TEXT)
    assert [path.name for path in place.parent.iterdir()] == ["SKILL.md"]


@pytest.mark.parametrize(
    "change", [lambda text: text.replace("Begin", "Commence"), lambda text: text + "Mine.\n", lambda text: "all mine"]
)
def test_what_somebody_changed_is_kept_unless_forced(inside, tmp_path, change):
    folder = tmp_path / "skills"
    assert inside("install-skill", "--to", folder).returncode == 0
    place = folder / "upheld" / "SKILL.md"
    place.write_text(changed := change(place.read_text()))
    assert not as_installed(changed)
    assert "was changed by somebody; name another folder with --to, or add --force" in refused(
        inside("install-skill", "--to", folder)
    )
    assert place.read_text() == changed
    assert inside("install-skill", "--to", folder, "--force").returncode == 0
    assert place.read_text().startswith(TEXT)


def test_a_place_that_is_none(inside, tmp_path):
    (tmp_path / "file").write_text("")
    assert "file" in refused(inside("install-skill", "--to", "file"))
