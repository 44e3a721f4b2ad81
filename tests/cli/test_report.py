"""``upheld report``. What stands on the pages is tested with the report."""

from __future__ import annotations

import json

from installed import LISTED, refused


def test_writes_pages_and_verdicts(measured, tmp_path):
    done = measured("report", "mom", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"wrote {tmp_path / 'out' / 'index.html'}\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.html", "mom.html", "verdicts.json"]
    assert "mom.bound" in (tmp_path / "out" / "mom.html").read_text()


def test_json_is_what_it_writes(measured, tmp_path):
    done = measured("report", "mom", "--out", tmp_path / "out", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    saved = json.loads((measured.folder / "verdicts.json").read_text())
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "verdicts.json").read_text()) == saved


def test_a_method_that_was_not_measured(measured, tmp_path):
    assert measured("report", "brittle", "--out", tmp_path / "out").returncode == 0
    [method] = json.loads((tmp_path / "out" / "verdicts.json").read_text())["methods"]
    assert [claim["outcome"] for claim in method["claims"]] == ["inconclusive"]


def test_bad_input(inside, measured, tmp_path):
    assert refused(inside("report")) == (
        "there is no ledger .upheld/ledger.sqlite yet; measure first with upheld check, or name one with --ledger"
    )
    ledger = measured.folder / ".upheld" / "ledger.sqlite"
    assert refused(inside("report", "nosuch", "--ledger", ledger)) == f"no method 'nosuch'; there are {LISTED}"
    assert refused(inside("report", "mom", "--scale", "x", "--ledger", ledger)).startswith(
        "no scale 'x'; there are smoke"
    )
    (tmp_path / "file").write_text("mine")
    assert "cannot write" in refused(inside("report", "brittle", "--ledger", ledger, "--out", "file"))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_truncated_ledger(inside, measured, tmp_path):
    whole = (measured.folder / ".upheld" / "ledger.sqlite").read_bytes()
    (tmp_path / "ledger.sqlite").write_bytes(whole[: len(whole) // 2])
    sentence = refused(inside("report", "mom", "--ledger", "ledger.sqlite", "--out", "out"))
    assert "is damaged or no ledger: move it away (a new one is made), or name another file with --ledger" in sentence
    assert not (tmp_path / "out").exists()


def test_a_ledger_that_cannot_be_written_is_read(inside, measured, tmp_path, monkeypatch):
    """Somebody else's, or on a disk that is mounted to be read: see the tests of the ledger for when that is."""
    monkeypatch.setattr("upheld.claims.ledger._can_be_written", lambda path: False)
    ledger = tmp_path / "theirs.sqlite"
    ledger.write_bytes((measured.folder / ".upheld" / "ledger.sqlite").read_bytes())
    before = ledger.read_bytes()
    done = inside("report", "mom", "--ledger", ledger, "--out", "out", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads((measured.folder / "verdicts.json").read_text())
    shown = inside("show", "mom", "--ledger", ledger)
    assert shown.returncode == 0
    assert "not measured here" not in shown.stdout
    assert ledger.read_bytes() == before
    assert not list(tmp_path.glob("theirs.sqlite?*"))
