"""Paths that lead out of an agent's folder, and what it may do within."""

from __future__ import annotations

import os

import pytest

from upheld.context.llm_agents.workspace import Workspace, only_files


@pytest.fixture
def root(tmp_path):
    root = tmp_path.resolve() / "run"
    (root / "iterations/01").mkdir(parents=True)
    (root / "iterations/01/train.json").write_text("one\ntwo\n")
    (root / "skills/02").mkdir(parents=True)
    (root / "run.json").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "run-beside").mkdir()
    return root


@pytest.fixture
def meta(root):
    return Workspace(root, root / "skills/02", ("iterations", "skills"))


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "iterations/../../outside.txt", "iterations/../run.json", "run.json", "../run-beside",
             "iterations/link", "skills/02/door/outside.txt", "~/x", "a\0b"],
)  # fmt: skip
def test_no_path_leads_out(meta, root, path):
    (root / "iterations/link").symlink_to(root.parent / "outside.txt")
    (root / "skills/02/door").symlink_to(root.parent)
    for call in (meta.read, meta.listing, lambda p: meta.write(p, "x"), lambda p: meta.edit(p, "secret", "x")):
        with pytest.raises(ValueError, match=r"lies outside|there is no|is no folder|cannot be written|zero byte"):
            call(path)
    assert (root.parent / "outside.txt").read_text() == "secret"


def test_it_writes_below_its_own_folder_only(meta, root):
    assert meta.write("skills/02/scripts/a.py", "x\ny\n") == "skills/02/scripts/a.py has 2 lines now"
    assert meta.write(str(root / "skills/02/b.md"), "b").endswith("1 lines now")
    for path in ("iterations/01/train.json", "skills/03/SKILL.md", "skills/02", "skills/021/x"):
        with pytest.raises(ValueError, match="cannot be written"):
            meta.write(path, "x")
    with pytest.raises(ValueError, match=r"skills/02/scripts is a folder"):
        meta.write("skills/02/scripts", "x")


def test_reading_from_a_line_on(meta, root):
    (root / "iterations/long").write_text("\n".join(map(str, range(1, 1001))))
    text = meta.read("iterations/long", 500)
    assert text.startswith("500\n501")
    assert text.endswith("899\n[101 more lines: read from line 900]")
    assert meta.read("iterations/01/train.json") == "one\ntwo"
    with pytest.raises(ValueError, match="there is no file iterations/nothing"):
        meta.read("iterations/nothing")


def test_editing_needs_a_passage_that_stands_there_once(meta):
    meta.write("skills/02/a.md", "to be or not to be")
    with pytest.raises(ValueError, match=r"stands in skills/02/a\.md 2 times"):
        meta.edit("skills/02/a.md", "to be", "x")
    with pytest.raises(ValueError, match="0 times"):
        meta.edit("skills/02/a.md", "", "x")
    meta.edit("skills/02/a.md", "not to be", "not")
    assert meta.read("skills/02/a.md") == "to be or not"


def test_a_list_shows_what_is_seen_and_nothing_else(meta, root):
    assert meta.listing() == "iterations/01/train.json  8 bytes"
    with pytest.raises(ValueError, match="is no folder"):
        meta.listing("iterations/01/train.json")


def test_whatever_is_no_file_is_taken_away(root):
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "iterations/pipe")
    (root / "iterations/gone").symlink_to("nowhere")
    assert only_files(root) == ["iterations/gone", "iterations/pipe", "link"]
    assert (root / "run.json").is_file()
