"""``upheld check``."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from installed import LISTED, Command, alive, committed, descendants, refused
from upheld.cli.check import _lost

SMOKE = ("check", "brittle", "--scale", "smoke", "--jobs", "1")
CLAIM = {
    "id",
    "statement",
    "reported",
    "ours",
    "timed",
    "rule",
    "outcome",
    "findings",
    "trials",
    "reasons",
    "note",
    "change",
    "earlier",
}


@pytest.fixture
def again(measured: Command, tmp_path: Path, site: Path) -> Command:
    """A folder of one's own where the worked example was measured."""
    shutil.copytree(measured.folder, tmp_path / "again")
    return Command(tmp_path / "again", site)


def trials_in(folder: Path, ledger: str = ".upheld/ledger.sqlite") -> int:
    book = sqlite3.connect(folder / ledger)
    count = int(book.execute("SELECT count(*) FROM trial").fetchone()[0])
    book.close()
    return count


# -- what it prints


def test_verdicts_as_plain_text_and_progress_beside_them(measured):
    printed, progress = ((measured.folder / name).read_text() for name in ("printed", "progress"))
    assert "\x1b" not in printed + progress
    for claim in ("bound", "far-below-bound", "beats-mean-on-normal"):
        assert re.search(rf"(upheld|inconclusive|not upheld) +{claim} ", printed), claim
    assert progress.splitlines()[0] == "quick scale: 400 trials to measure"


def test_nothing_is_measured_again(again):
    done = again("check", "mom")
    assert (done.returncode, done.stderr) == (0, "quick scale: 0 trials to measure, 400 are there already\n")
    assert done.stdout == (again.folder / "printed").read_text()


def test_json_is_strict_whole_and_alone(again):
    done = again("check", "mom", "--json", "--save", "other.json")
    assert done.returncode == 0
    document = json.loads(done.stdout, parse_constant=pytest.fail)
    assert document["schema"] == "upheld.verdicts/1"
    [method] = document["methods"]
    assert (method["name"], method["scale"], len(method["fingerprint"])) == ("mom", "quick", 12)
    for claim in method["claims"]:
        assert set(claim) >= CLAIM
        assert claim["trials"] == {"wanted": 400, "done": 400, "failed": 0, "not_run": 0, "missing": 0}
        assert claim["findings"]
    assert json.loads((again.folder / "other.json").read_text()) == document
    assert (again.folder / "other.json").read_text() == (again.folder / "verdicts.json").read_text()


def test_a_narrow_pipe_does_not_fold_sentences(upheld):
    done = upheld(*SMOKE, COLUMNS="40", BRITTLE_FAILS="1")
    assert re.search(
        r"^failed: brittle.race\(\) seed 1: RuntimeError: seed 1 broke \[red\]here\[/\] \(.*\)$",
        done.stderr,
        re.MULTILINE,
    )


# -- failed trials


@pytest.mark.slow
def test_failed_trials_are_said_counted_and_measured_again_on_request(upheld):
    broken = upheld(*SMOKE, BRITTLE_FAILS="0 2")
    assert broken.returncode == 1  # at smoke scale, a failed trial is the result
    assert "2 trials failed; --retry-failed measures them again" in broken.stderr
    assert "2 of 3 trials failed" in " ".join(broken.stdout.split())
    unchanged = upheld(*SMOKE)
    assert (unchanged.returncode, unchanged.stderr) == (0, "smoke scale: 0 trials to measure, 3 are there already\n")
    mended = upheld(*SMOKE, "--retry-failed", "--json")
    assert (mended.returncode, mended.stderr) == (0, "smoke scale: 2 trials to measure, 1 are there already\n")
    assert json.loads(mended.stdout)["methods"][0]["claims"][0]["trials"]["done"] == 3


@pytest.mark.slow
def test_fresh_measures_again_at_this_scale_only(again):
    assert again(*SMOKE).returncode == 0
    fresh = again(*SMOKE, "--fresh")
    assert fresh.stderr == "smoke scale: 3 trials to measure\n"
    assert trials_in(again.folder) == 403


# -- compared with a file


def edited(again: Command, outcome: dict[str, str], **method: str) -> str:
    document = json.loads((again.folder / "verdicts.json").read_text())
    document["methods"][0] |= method
    for claim in document["methods"][0]["claims"]:
        claim["outcome"] = outcome.get(claim["id"], claim["outcome"])
    (again.folder / "edited.json").write_text(json.dumps(document))
    return "edited.json"


def test_baseline_that_stands(again):
    assert again("check", "mom", "--baseline", "verdicts.json").returncode == 0


def test_baseline_of_which_a_claim_is_lost(again):
    document = json.loads((again.folder / "verdicts.json").read_text())
    now = {claim["id"]: claim["outcome"] for claim in document["methods"][0]["claims"]}
    lost = next(claim for claim, outcome in now.items() if outcome != "upheld")
    done = again("check", "mom", "--baseline", edited(again, {lost: "upheld"}))
    assert done.returncode == 1
    assert f"{lost} was upheld, now it is {now[lost]}\n" in done.stderr
    won = next(claim for claim, outcome in now.items() if outcome == "upheld")
    assert again("check", "mom", "--baseline", edited(again, {won: "inconclusive"})).returncode == 0


def test_reproduce_measures_only_what_changed(again):
    done = again("check", "mom", "--reproduce", "verdicts.json", "--ledger", "new.sqlite")
    assert (done.returncode, done.stdout) == (0, "nothing to check: no source was changed since verdicts.json\n")
    assert trials_in(again.folder, "new.sqlite") == 0


@pytest.mark.slow
def test_reproduce_accepts_the_same_verdicts_and_no_others(again):
    same = again("check", "mom", "--reproduce", edited(again, {}, fingerprint="0123456789ab"))
    assert same.returncode == 0
    assert "mom" in same.stdout
    other = again(
        "check",
        "mom",
        "--reproduce",
        edited(again, {"mom.bound": "reported", "mom.gone": ""}, fingerprint="0123456789ab"),
    )
    assert other.returncode == 1
    assert "mom.bound was reported, now it is upheld\n" in other.stderr


@pytest.mark.parametrize(
    ("before", "now", "timed", "differs"),
    [
        ("upheld", "inconclusive", True, False),
        ("inconclusive", "not upheld", True, False),
        ("upheld", "not upheld", True, True),
        ("upheld", "not run", True, True),
        ("upheld", "inconclusive", False, True),
    ],
)
def test_a_verdict_by_the_clock_may_waver_but_not_turn_round(before, now, timed, differs):
    claim = {"id": "mom.quick", "outcome": now, "timed": timed}
    known = {"mom": {"outcomes": {"mom.quick": before}}}
    sentences = _lost({"methods": [{"name": "mom", "claims": [claim]}]}, known, any_change=True)
    assert sentences == ([f"mom.quick was {before}, now it is {now}"] if differs else [])


def test_a_claim_lost_to_the_clock_is_still_lost_from_a_baseline():
    claim = {"id": "mom.quick", "outcome": "inconclusive", "timed": True}
    known = {"mom": {"outcomes": {"mom.quick": "upheld"}}}
    assert _lost({"methods": [{"name": "mom", "claims": [claim]}]}, known, any_change=False)


@pytest.mark.parametrize("option", ["--baseline", "--reproduce"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no verdicts file file.json; write one with upheld check --save file.json"),
        ("", "file.json is no verdicts file (Expecting value"),
        ('{"schema": "upheld.verdicts/1", "methods": [{"name": "mom", "cla', "file.json is no verdicts file ("),
        ("[]", "file.json is no verdicts file ("),
        ("{}", "file.json is no verdicts file (it lacks 'schema')"),
        ('{"schema": "upheld.verdicts/9", "methods": []}', "its schema is 'upheld.verdicts/9', not 'upheld.verdicts/1'"),
        ('{"schema": "upheld.verdicts/1", "methods": [{"name": "mom"}]}', "file.json is no verdicts file (it lacks 'fingerprint')"),
        ('{"schema": "upheld.verdicts/1", "methods": [{"name": "mom", "scale": "full", "fingerprint": "", "claims": []}]}',
         "file.json holds verdicts of full scale, not of quick; add --scale full"),
        (b"\xff\xfe\x00", "file.json is no verdicts file ("),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_compared_with(inside, tmp_path, option, content, message):
    if content is not None:
        (tmp_path / "file.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused(inside("check", "mom", option, "file.json"))
    assert not (tmp_path / ".upheld").exists()


# -- what it refuses, before anything is measured


def test_bad_input(inside, tmp_path):
    (tmp_path / "damaged.json").write_text('{"schema": ')
    for arguments, message in [
        (["nosuch"], f"no method 'nosuch'; there are {LISTED}"),
        (["mom", "--scale", "huge"], "no scale 'huge'; there are smoke, quick, standard, full"),
        (["mom", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["mom", "--baseline", "damaged.json"], "damaged.json is no verdicts file"),
        (
            ["mom", "--baseline", "a", "--reproduce", "b"],
            "--baseline and --reproduce ask different questions; give one of them",
        ),
        (
            ["mom", "--save", "no/verdicts.json"],
            "the folder no does not exist; make it first, or name another with --save",
        ),
        (["mom", "--save", "."], ". is a folder; --save names the file to write"),
        (["mom", "--ledger", "."], "is a folder: name a file with --ledger"),
    ]:
        assert message in refused(inside("check", *arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.json"]


def test_bad_input_from_a_shell(upheld):
    assert (
        refused(upheld("check", "mom", "--scale", "huge")) == "no scale 'huge'; there are smoke, quick, standard, full"
    )


def test_a_truncated_ledger(again):
    path = again.folder / ".upheld" / "ledger.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    sentence = refused(again("check", "mom"))
    assert "is damaged or no ledger: move it away (a new one is made), or name another file with --ledger" in sentence


def test_verdicts_that_could_not_be_saved_are_not_measured(upheld):
    assert refused(upheld(*SMOKE, "--save", "/proc/verdicts.json")).startswith("/proc cannot be written to (")
    assert not (upheld.folder / ".upheld").exists()


# -- while it runs


def started(upheld: Command, *arguments: str, trials: int = 2, seconds: float = 0.5):
    """A run of trials that take a while, and a moment in its middle."""
    going = upheld.start("check", "brittle", "--jobs", "2", *arguments, BRITTLE_SECONDS=str(seconds))
    ledger = upheld.folder / ".upheld" / "ledger.sqlite"
    end = time.monotonic() + 120
    while not (ledger.exists() and committed(ledger) >= trials):
        assert going.poll() is None, going.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    return going


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_a_request_to_end(upheld, blow):
    going = started(upheld)
    workers = descendants(going.pid)
    assert workers
    os.killpg(going.pid, blow)  # as a terminal does
    stdout, stderr = going.communicate(timeout=60)
    assert going.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr
    kept = committed(upheld.folder / ".upheld" / "ledger.sqlite")
    assert re.search(rf"^stopped; {kept} results are kept, the same command goes on from there$", stderr, re.MULTILINE)
    assert not [pid for pid in workers if alive(pid)]
    rest = upheld("check", "brittle", "--jobs", "2")
    assert rest.stderr == f"quick scale: {40 - kept} trials to measure, {kept} are there already\n"
    assert trials_in(upheld.folder) == 40


@pytest.mark.slow
def test_two_at_once(upheld):
    """The second neither waits nor measures what the first measures; whoever only reads is not kept out."""
    going = started(upheld, seconds=2.0)
    try:
        sentence = refused(upheld("check", "brittle"))
        assert sentence == (
            "another run is measuring into .upheld/ledger.sqlite: wait for it, or name another file with --ledger"
        )
        assert upheld("show", "brittle").returncode == 0
    finally:
        os.kill(going.pid, signal.SIGINT)
        stderr = going.communicate(timeout=60)[1]
    assert "Traceback" not in stderr
    assert going.returncode == 130
