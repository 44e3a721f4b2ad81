"""``upheld`` and what concerns every verb: the list, help, what is no verb, what is not installed, pipes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from installed import LISTED, Command, declare, install_example, refused

HIDES = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name == "gglasso" else find(name, path, target))
"""


def test_lists_every_method_with_what_it_is_for(upheld):
    done = upheld()
    assert (done.returncode, done.stderr) == (0, "")
    for name in LISTED.split(", "):
        assert re.search(rf"^{name} ", done.stdout, re.MULTILINE)
    assert "a mean that a few wild values cannot move" in done.stdout
    assert "\x1b" not in done.stdout


def test_json(upheld):
    document = json.loads(upheld("--json").stdout)
    assert document["schema"] == "upheld.methods/1"
    assert {method["name"] for method in document["methods"]} >= {"hubs", "bandits", "mom"}
    for method in document["methods"]:
        assert set(method) == {"name", "title", "field", "summary", "paper", "installed", "missing", "install"}
        assert (method["install"] is None) == method["installed"] == (method["missing"] == [])


def test_version(upheld):
    from upheld import __version__

    assert upheld("--version").stdout == f"upheld {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["check", "--help"], ["run", "--help"], ["run", "mom", "--help"]]
)
def test_help(upheld, arguments):
    done = upheld(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: upheld" in done.stdout
    assert "\x1b" not in done.stdout


def test_every_verb_is_in_the_help(upheld):
    help_text = upheld("--help").stdout
    assert all(f" {verb} " in help_text for verb in ("show", "run", "check", "data", "report"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "No such command 'nosuch'. (upheld --help tells how)"),
        (["--nosuch"], "No such option: --nosuch (upheld --help tells how)"),
        (["check", "--nosuch"], "No such option: --nosuch (upheld check --help tells how)"),
        (["show"], "Missing argument 'method'. (upheld show --help tells how)"),
        (["run"], "Missing command. (upheld run --help tells how)"),
        (["run", "mom"], "Missing argument 'file'. (upheld run mom --help tells how)"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_sentence(inside, arguments, message):
    assert refused(inside(*arguments)) == message


def test_what_is_not_installed_is_named_with_the_line_that_brings_it(tmp_path):
    site = install_example(tmp_path)
    (site / "sitecustomize.py").write_text(HIDES)
    upheld = Command(tmp_path, site)
    assert 'needs gglasso: pip install "upheld[hubs]"' in " ".join(upheld().stdout.split())
    [hubs] = [method for method in json.loads(upheld("--json").stdout)["methods"] if method["name"] == "hubs"]
    assert (hubs["installed"], hubs["missing"], hubs["install"]) == (False, ["gglasso"], 'pip install "upheld[hubs]"')
    skipped = upheld("check", "hubs", "--json")
    assert skipped.returncode == 0
    assert skipped.stderr.splitlines()[0] == 'hubs is skipped, it needs gglasso: pip install "upheld[hubs]"'
    assert json.loads(skipped.stdout)["methods"] == []


@pytest.mark.parametrize(
    ("value", "text", "message"),
    [
        ("nosuch_module:METHOD", None, "cannot be loaded (No module named 'nosuch_module'); mend or uninstall it"),
        ("odd:METHOD", "", "cannot be loaded (module 'odd' has no attribute 'METHOD'); mend or uninstall it"),
        ("odd:METHOD", "METHOD = (", "cannot be loaded ('(' was never closed (odd.py, line 1)); mend or uninstall it"),
        ("odd:METHOD", "METHOD = 1 / 0", "cannot be loaded (division by zero); mend or uninstall it"),
        (
            "odd:METHOD",
            "METHOD = 3",
            "which is no upheld.catalog.Method with name='odd' and its package; mend or uninstall it",
        ),
    ],
)
def test_a_package_that_declares_what_is_no_method_is_named(tmp_path, value, text, message):
    declare(tmp_path, "odd", value)
    if text is not None:
        (tmp_path / "odd.py").write_text(text)
    sentence = refused(Command(tmp_path, tmp_path)())
    assert sentence.startswith("the package odd-upheld declares ")
    assert message in sentence


def test_a_package_that_declares_a_name_that_is_taken(tmp_path):
    declare(tmp_path, "hubs", "odd:METHOD")
    (tmp_path / "odd.py").write_text(
        "from upheld.catalog import Method\nMETHOD = Method('hubs', title='', field='', summary='', paper='', package='odd')"
    )
    assert refused(Command(tmp_path, tmp_path)()).startswith(
        "the package hubs-upheld declares a method 'hubs', but there is one"
    )


@pytest.mark.parametrize("arguments", [["--json"], ["--help"], ["show", "mom"]])
def test_a_reader_that_has_seen_enough(upheld: Command, arguments):
    """`upheld | head`: the pipe is closed before anything is written to it."""
    going = subprocess.Popen(
        upheld.line(*arguments),
        cwd=upheld.folder,
        env=upheld.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert going.stdout is not None
    assert going.stderr is not None
    going.stdout.close()
    said = going.stderr.read().decode()
    assert (going.wait(timeout=60), said) == (0, "")
    going.stderr.close()


def test_a_traceback_is_to_be_had(upheld: Command):
    done = upheld("show", "nosuch", UPHELD_TRACEBACK="1")
    assert "Traceback" in done.stderr
    assert "ValueError: no method 'nosuch'" in done.stderr


def test_it_runs_in_a_folder_that_cannot_be_written(site: Path):
    done = Command(Path("/proc"), site)()
    assert done.returncode == 0


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_shell_closed(upheld: Command, closed):
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *upheld.line("show", "mom")]
    done = subprocess.run(shell, cwd=upheld.folder, env=upheld.variables(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("median" in done.stdout.lower()) == (">&- 2" not in closed and closed != ">&-")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_cannot_be_written(upheld: Command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            upheld.line("--json"),
            cwd=upheld.folder,
            env=upheld.variables(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert (
        done.stderr
        == "upheld: No space left on device, while reading or writing; is there room, and is the place yours?\n"
    )


def test_a_terminal_of_few_letters_gets_escapes(upheld: Command):
    done = upheld("show", "hubs", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def test_a_name_commands_no_terminal(upheld: Command):
    assert refused(upheld("show", "\x1b[2Jhubs")).startswith(r"no method '\x1b[2Jhubs'; there are hubs")
    assert refused(upheld("report", "--ledger", "\x1b[2Jno")).startswith(r"there is no ledger \x1b[2Jno yet")
