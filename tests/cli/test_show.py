"""``upheld show``."""

from __future__ import annotations

import json

from installed import LISTED, refused

CLAIMS = ["mom.bound", "mom.far-below-bound", "mom.beats-mean-on-normal"]


def test_what_it_does_and_what_is_claimed(upheld):
    done = upheld("show", "mom")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for text in (
        "Median of means",
        "Nemirovsky and Yudin, 1983",
        ">>> x = np.r_[np.zeros(999), 1e6]",
        "upheld check mom measures them",
    ):
        assert text in done.stdout
    for claim in CLAIMS:
        assert claim in done.stdout
    assert done.stdout.count("not measured here") == len(CLAIMS)
    assert not (upheld.folder / ".upheld").exists()


def test_verdicts_where_it_was_measured(measured):
    printed = measured("show", "mom").stdout
    assert "not measured here" not in printed
    assert "upheld check mom measures them" not in printed
    other_scale = measured("show", "mom", "--scale", "standard").stdout
    assert other_scale.count("inconclusive") == len(CLAIMS)


def test_what_is_only_reported_has_no_rule(inside):
    printed = " ".join(inside("show", "bandits").stdout.split())
    assert "no rule" in printed
    assert "upheld if no rule" not in printed
    assert "upheld if" in printed


def test_json(measured):
    document = json.loads(measured("show", "mom", "--json").stdout)
    assert (document["schema"], document["name"], document["scale"]) == ("upheld.method/1", "mom", "quick")
    assert [claim["id"] for claim in document["claims"]] == CLAIMS
    saved = json.loads((measured.folder / "verdicts.json").read_text())
    assert [claim["verdict"] for claim in document["claims"]] == [
        claim["outcome"] for claim in saved["methods"][0]["claims"]
    ]
    assert [claim["ours"] for claim in document["claims"]] == [False, True, True]


def test_markup_in_names_is_shown_as_it_is(upheld):
    assert "Brittle [bold]thing[/]" in upheld("show", "brittle").stdout


def test_bad_input(inside, tmp_path):
    assert refused(inside("show", "nosuch")) == f"no method 'nosuch'; there are {LISTED}"
    assert refused(inside("show", "mom", "--scale", "x")) == "no scale 'x'; there are smoke, quick, standard, full"
    assert "is a folder: name a file with --ledger" in refused(inside("show", "mom", "--ledger", "."))
    (tmp_path / "values.csv").write_text("value\n" * 500)
    assert "is damaged or no ledger: move it away" in refused(inside("show", "mom", "--ledger", "values.csv"))


def test_bad_input_from_a_shell(upheld):
    assert refused(upheld("show", "nosuch")) == f"no method 'nosuch'; there are {LISTED}"
