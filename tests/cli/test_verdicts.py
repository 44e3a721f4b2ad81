"""``upheld verdicts``: what was measured before, without measuring."""

from __future__ import annotations

import json

from installed import Command, committed, refused


def test_the_same_document_as_check_saved(measured: Command):
    before = committed(measured.folder / ".upheld" / "ledger.sqlite")
    done = measured("verdicts", "mom", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads((measured.folder / "verdicts.json").read_text())
    assert committed(measured.folder / ".upheld" / "ledger.sqlite") == before


def test_the_same_table_as_check_printed(measured: Command):
    assert measured("verdicts", "mom").stdout == (measured.folder / "printed").read_text()


def test_what_was_not_measured_is_told(inside, tmp_path):
    assert refused(inside("verdicts", "mom")).startswith("there is no ledger .upheld/ledger.sqlite yet; measure first")
    assert not (tmp_path / ".upheld").exists()
