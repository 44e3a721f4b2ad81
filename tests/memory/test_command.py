"""``upheld run memory`` as a user meets it: what it prints and writes, and what it says of bad input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from upheld.memory.command import run, write_data
from upheld.memory.command.phase import COLUMNS, Request, finite_time_load, lifetime, lines, numbers, scored
from upheld.memory.command.vectors import read_vectors, write_vectors


def call(**arguments):
    """The command's function with its defaults, in this process."""
    import inspect

    given = {name: one.default for name, one in inspect.signature(run).parameters.items()} | arguments
    run(**given)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 24))
    np.save("keys.npy", X)
    rows = np.arange(0, 60, 2)
    cues = pd.DataFrame(X[rows] + 0.1 * rng.normal(size=(30, 24))).assign(row=rows)
    foreign = pd.DataFrame(rng.normal(size=(10, 24))).assign(row=-1)
    pd.concat([cues, foreign]).to_csv("cues.csv", index=False)
    return tmp_path


def report(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("kernel", ["lsr", "lse"])
@pytest.mark.slow
def test_cues_are_recalled_and_written(folder, kernel, capsys):
    call(
        patterns=Path("keys.npy"),
        cues=Path("cues.csv"),
        truth="row",
        kernel=kernel,
        compare=kernel == "lsr",
        out=Path("out"),
    )
    found = report(folder / "out")
    assert found["summary"]["recalled_right"] > 0.95
    assert (found["summary"]["refused"] > 0.2) == (kernel == "lsr")
    assert found["boundaries"]
    recalls = pd.read_parquet("out/recalls.parquet")
    assert len(recalls) == 40
    assert {"cue", "pattern", "refused", "iterations", "support", "score", "truth"} == set(recalls)
    assert (folder / "out" / "recall.png").stat().st_size > 5000
    printed = capsys.readouterr().out
    assert "60 patterns of width 24" in printed
    assert ("nearest neighbour, cut-off" in printed) == (kernel == "lsr")


def test_without_cues_the_patterns_are_damaged_and_json_is_strict(folder, capsys):
    call(patterns=Path("keys.npy"), noise=0.1, json=True)
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert document["schema"] == "upheld.memory.run/1"
    assert document["summary"]["recalled_right"] > 0.9
    call(patterns=Path("keys.npy"), noise=0.1)
    share = f"{document['summary']['recalled_right']:.1%}"  # a share, not a count of cues
    assert re.search(rf"recalled right, of cues that have a pattern +{share}", capsys.readouterr().out)
    assert document["recall_by_noise"][0]["noise"] == 0


def test_the_curve_is_measured_whatever_becomes_of_cues_without_support(folder):
    curves = []
    for on_empty in ("abstain", "error"):
        call(patterns=Path("keys.npy"), beta="0.1", noise=0.1, on_empty=on_empty, out=Path(on_empty))
        curves.append(report(folder / on_empty)["recall_by_noise"])
    assert curves[0] == curves[1]
    assert curves[1][-1]["right"] < 1


def test_the_noise_is_not_the_numbers_the_patterns_were_drawn_from(folder):
    np.save("same.npy", np.random.default_rng(0).normal(size=(60, 24)))
    call(patterns=Path("same.npy"), beta="50", noise=1.0, out=Path("out"))  # supports of radius 0.2
    assert report(folder / "out")["summary"]["refused"] == 1


def asked(**different) -> Request:
    """A phase diagram as the command line asks for it."""
    usual = {
        "kernel": "lsr", "alpha": "0.1:0.5:3", "temp": "0.1:0.5:2", "scheme": "full", "move": "pair", "protocol": "heat", "count": None,
        "dimension": None, "b": None, "beta_net": 1.0, "trials": 2, "sweeps": 1000, "seed": 0,
    }  # fmt: skip
    return Request(**(usual | different))


PHASE = {
    "what": "phase",
    "kernel": "lsr",
    "alpha": "0.1:0.5:2",
    "temp": "0.1:1:2",
    "trials": 2,
    "sweeps": 60,
    "count": 60.0,
}


@pytest.mark.parametrize("protocol", ["heat", "restart"])
def test_a_phase_diagram_goes_on_where_it_stopped(folder, protocol, capsys):
    call(**PHASE, protocol=protocol, out=Path("phase"))
    whole = pd.read_csv("phase/phase.csv")
    assert list(whole) == COLUMNS
    assert len(whole) == 8
    assert {one["theory"] for one in report(folder / "phase")["theories"]} >= {"paper", "collective"}
    assert "trials on the wrong side" in capsys.readouterr().out
    text = (folder / "phase" / "phase.csv").read_text().splitlines()
    cut = [text[0], *text[1:4], text[4][:20]]  # killed while it wrote the fourth row
    (folder / "phase" / "phase.csv").write_text("\n".join(cut))
    call(**PHASE, protocol=protocol, out=Path("phase"))
    assert pd.read_csv("phase/phase.csv").equals(whole)


def test_what_is_there_is_not_run_again(folder, monkeypatch):
    call(**PHASE, out=Path("phase"))
    monkeypatch.setattr("upheld.memory.montecarlo.SphereSampler.run", lambda self: pytest.fail("run again"))
    call(**PHASE, out=Path("phase"))
    with pytest.raises(ValueError, match="holds a phase diagram of other settings"):
        call(**(PHASE | {"sweeps": 61}), out=Path("phase"))


@pytest.mark.slow
def test_a_diagram_that_is_killed_goes_on_to_the_same_rows(folder):
    long = PHASE | {"trials": 10, "sweeps": 5000, "count": 148.0}
    call(**long, out=Path("whole"))
    words = [word for name, value in long.items() if name != "what" for word in (f"--{name}", f"{value}")]
    line = [sys.executable, "-m", "upheld", "run", "memory", "phase", *words, "--out", "killed"]
    going = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        rows, until = Path("killed/phase.csv"), time.monotonic() + 120
        while not rows.is_file() or rows.read_text().count("\n") < 4:
            assert going.poll() is None, "ended before it could be killed"
            assert time.monotonic() < until, "no row in two minutes"
            time.sleep(0.01)
    finally:
        going.kill()
    assert going.wait() == -signal.SIGKILL
    left = rows.read_text().count("\n") - 1
    assert 0 < left < 40
    call(**long, out=Path("killed"))
    assert Path("killed/phase.csv").read_bytes() == Path("whole/phase.csv").read_bytes()


def test_the_theory_of_finite_time_is_scored_at_the_cells_and_drawn_between_loads():
    """LSR, load 0.1: kept for ever; load 0.24 at N = 21: lost before 10,000 sweeps at T = 2, as measured (claim lsr-any-temperature)."""
    request = asked(alpha="0.1:0.24:2", temp="0.05:2:2", sweeps=10_000)
    found = pd.DataFrame([
        {"alpha": alpha, "N": N, "T": T, "retrieved": kept, "trials": 4}
        for alpha, N, T, kept in ((0.1, 50, 0.05, 1.0), (0.1, 50, 2.0, 1.0), (0.24, 21, 0.05, 1.0), (0.24, 21, 2.0, 0.0))
    ])  # fmt: skip
    scores = scored(found, request).set_index("theory")["misplaced"]
    assert scores["channels"] == 0
    assert scores["collective"] == 0.25
    drawn_at = finite_time_load(request, np.array([0.05, 2.0]))
    assert np.isnan(drawn_at[0])
    assert 0.1 < drawn_at[1] < 0.24
    kramers = asked(kernel="lse", alpha="0.1:0.5:3", temp="0.1:2:2")
    load = finite_time_load(kramers, np.array([0.5]))[0]
    outlives = [float(lifetime(kramers, alpha, np.array(0.5))) > 1000 for alpha in (0.8 * load, 1.2 * load)]
    assert outlives == [True, False]


@pytest.mark.parametrize("different", [{"b": 0.9}, {"dimension": 4}])
def test_no_lifetime_no_line(different):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of b below 1
        assert "channels" not in lines(asked(**different))


def test_two_jobs_give_what_one_gives(folder):
    call(**PHASE, out=Path("one"))
    call(**PHASE, jobs=2, out=Path("two"))
    assert pd.read_csv("one/phase.csv").equals(pd.read_csv("two/phase.csv"))


def test_cone_and_bulk(folder, capsys):
    for scheme in ("cone", "bulk"):
        call(**(PHASE | {"kernel": "lse", "scheme": scheme, "alpha": "0.3", "count": 2000.0, "temp": "0.1"}))
    assert "equal depth" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "parquet"])
def test_formats(folder, ending):
    X = np.random.default_rng(0).normal(size=(5, 3))
    write_vectors(Path(f"x.{ending}"), X)
    assert np.allclose(read_vectors(Path(f"x.{ending}"))[0], X)


def test_the_embedded_data_are_digits(folder):
    write_data(Path("digits.npy"))
    assert np.load("digits.npy").shape == (1797, 64)
    with pytest.raises(ValueError, match="ends in no known format"):
        write_data(Path("digits.txt"))


def broken(folder: Path) -> None:
    X = np.load("keys.npy")
    pd.DataFrame(np.where(np.arange(24) == 3, np.nan, X)).to_csv("gaps.csv", index=False)
    pd.DataFrame(X).assign(name="x").to_csv("words.csv", index=False)
    np.save("zero.npy", np.vstack([X, np.zeros(24)]))
    np.save("cube.npy", X.reshape(5, 12, 24))
    np.save("narrow.npy", X[:, :5])
    np.savez("two.npz", a=X, b=X)
    (folder / "half.parquet").write_bytes(b"PAR1 and no more")
    pd.DataFrame(X).assign(row=99).to_csv("far.csv", index=False)
    (folder / "junk.safetensors").write_bytes(b"no")


@pytest.mark.parametrize(("arguments", "message"), [
    ({}, "name the file of vectors with --patterns"),
    ({"what": "faze"}, "'faze' is neither recall nor phase"),
    ({"patterns": "none.npy"}, "there is no file none.npy"),
    ({"patterns": "gaps.csv"}, "row 0 of gaps.csv has nan in column '3' \\(60 such cells\\)"),
    ({"patterns": "words.csv"}, "column 'name' of words.csv is not numeric"),
    ({"patterns": "zero.npy"}, "row 60 of zero.npy is zero and has no direction"),
    ({"patterns": "cube.npy"}, "cube.npy holds an array of shape \\(5, 12, 24\\)"),
    ({"patterns": "two.npz"}, "two.npz holds 2 arrays \\(a, b\\)"),
    ({"patterns": "half.parquet"}, "half.parquet cannot be read as .parquet"),
    ({"patterns": "junk.safetensors"}, "junk.safetensors cannot be read as .safetensors"),
    ({"patterns": "keys.npy", "cues": "narrow.npy"}, "narrow.npy is 5 columns wide, keys.npy 24"),
    ({"patterns": "keys.npy", "cues": "cues.csv", "truth": "index"}, "cues.csv has no column 'index'"),
    ({"patterns": "keys.npy", "cues": "far.csv", "truth": "row"}, "row 0 of far.csv has .*99.* in column 'row'"),
    ({"patterns": "keys.npy", "truth": "row"}, "name their file with --cues"),
    ({"patterns": "keys.npy", "beta": "big"}, "--beta must be auto, separation or a number, got 'big'"),
    ({"patterns": "keys.npy", "beta": "inf"}, "--beta must be a finite number above 0, got inf"),
    ({"patterns": "keys.npy", "beta": "50", "on_empty": "error"}, "60 of 60 cues lie outside every support"),
    (PHASE | {"b": 0.0}, "b and beta_net must be above 0, got 0"),
    (PHASE | {"count": 0.0}, "--count must be a number above 1, got 0"),
    (PHASE | {"count": float("nan")}, "--count must be a number above 1, got nan"),
    (PHASE | {"alpha": "nan"}, "--alpha must be loads of at least 0, got 'nan'"),
    (PHASE | {"alpha": "0.1:0.5"}, "--alpha must be one number or FIRST:LAST:COUNT"),
    (PHASE | {"scheme": "all"}, "--scheme must be full, cone, bulk"),
    (PHASE | {"alpha": "2"}, "patterns at alpha = 2 make N = 2"),
    (PHASE | {"alpha": "0.5", "dimension": 60}, "take scheme='bulk' or a smaller load"),
])  # fmt: skip
def test_bad_input_is_called_by_its_name(folder, arguments, message):
    broken(folder)
    paths = {name: Path(value) if name in ("patterns", "cues") else value for name, value in arguments.items()}
    with pytest.raises(ValueError, match=message):
        call(**paths)


def test_numbers():
    assert numbers("--temp", "0.5") == [0.5]
    assert numbers("--temp", "0:1:3") == [0, 0.5, 1]


def test_recalls_tell_the_names_of_patterns(folder):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(8, 12)))
    X.assign(doc=[f"é {i}" for i in range(8)]).to_csv("named.csv", index=False)
    X.iloc[[5, 2]].assign(doc="?").to_csv("asked.csv", index=False)
    call(patterns=Path("named.csv"), cues=Path("asked.csv"), ids="doc", out=Path("out"))
    assert list(pd.read_parquet("out/recalls.parquet")["pattern_id"]) == ["é 5", "é 2"]
    with pytest.raises(ValueError, match=r"'doc' of named\.csv is not numeric; drop it, or name it with --id"):
        call(patterns=Path("named.csv"))
