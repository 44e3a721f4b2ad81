"""``upheld run effects`` as a user meets it: what it prints and writes, and what it says of bad input."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from installed import refused
from upheld.effects import StreamingBalancer
from upheld.effects.command import EXAMPLE
from upheld.effects.command.columns import Columns
from upheld.effects.command.journey import MOST_POINTS, FileRead, Journey, load, save
from upheld.effects.command.sources import Source
from upheld.effects.data import DriftStream

RUN = ("run", "effects")
COLUMNS = ("--treatment", "w", "--outcome", "y")
FAST = ("--pairing", "projection", "--coreset-size", "64")


def table_of(stream: DriftStream) -> pd.DataFrame:
    table = pd.DataFrame(stream.X.round(3), columns=[f"x{j + 1}" for j in range(stream.d)])
    return table.assign(w=stream.w, y=stream.y.round(3))


@pytest.fixture(scope="module")
def feed() -> pd.DataFrame:
    return table_of(DriftStream(2500, 4, "none", seed=3))


@pytest.fixture
def folder(tmp_path: Path, feed: pd.DataFrame) -> Path:
    feed.to_csv(tmp_path / "feed.csv", index=False)
    return tmp_path


def lines(text: str) -> list[dict]:
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


def report_of(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text(), parse_constant=pytest.fail)


def naive(feed: pd.DataFrame) -> float:
    return feed.loc[feed["w"] == 1, "y"].mean() - feed.loc[feed["w"] == 0, "y"].mean()


# -- what comes out


def test_a_run_prints_a_running_table_and_writes_everything(folder, inside, feed):
    done = inside(
        *RUN, "feed.csv", *COLUMNS, *FAST, "--every", "1000", "--compare", "--out", "out", "--json", "way.jsonl"
    )
    assert done.returncode == 0, done.stderr
    table = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [row[0] for row in table[:3]] == ["1,000", "2,000", "2,500"]
    assert f"the plain difference in means is {naive(feed):.4g}" in done.stdout
    for said in (
        "(SUTVA)",
        "(positivity)",
        "(ignorability)",
        "A reconstruction",
        "exact moments",
        "reservoir",
        "as described",
    ):
        assert said in done.stdout
    written = {f"{name}.{ending}" for name in ("estimate", "balance") for ending in ("png", "svg")}
    assert {path.name for path in (folder / "out").iterdir()} == written | {"report.json", "balance.csv", "coreset.csv"}

    report, truth = report_of(folder / "out"), DriftStream(2500, 4, "none", seed=3).effect
    assert report["files"] == [{"name": "feed.csv", "rows": 2500}]
    assert report["estimate"]["n_arm"] == {str(arm): int(count) for arm, count in feed["w"].value_counts().items()}
    assert report["difference_in_means"]["1"] == pytest.approx(naive(feed))
    (found,) = report["estimate"]["contrasts"]
    assert abs(found["ate"] - truth) < abs(naive(feed) - truth) / 3
    assert report["beside"]["exact moments"]["contrasts"][0]["ate"] == pytest.approx(truth, abs=0.4)

    way = lines((folder / "way.jsonl").read_text())
    assert [line["rows_read"] for line in way] == [1000, 2000, 2500]
    assert way[-1]["contrasts"] == report["estimate"]["contrasts"]
    assert {"x1", "arm", "outcome", "multiplicity", "weight"} <= set(
        pd.read_csv(folder / "out" / "coreset.csv").columns
    )
    balance = pd.read_csv(folder / "out" / "balance.csv").set_index("covariate")
    assert balance.loc["x1", "smd_after"] < balance.loc["x1", "smd_before"] / 4


def test_the_format_of_the_file_does_not_matter(folder, inside, feed):
    feed.to_parquet(folder / "feed.parquet", row_group_size=700)
    feed.to_json(folder / "feed.jsonl", orient="records", lines=True)
    (folder / "feed.csv.gz").write_bytes(gzip.compress((folder / "feed.csv").read_bytes()))
    feed.to_csv(folder / "feed.tsv", index=False, sep="\t")
    found = {}
    for name in ("feed.csv", "feed.parquet", "feed.jsonl", "feed.csv.gz", "feed.tsv"):
        done = inside(*RUN, name, *COLUMNS, *FAST, "--every", "1000", "--json", "-")
        assert done.returncode == 0, done.stderr
        last = lines(done.stdout)[-1]
        assert last["n"] == 2500
        found[name] = last["contrasts"][0]["ate"]
    # a Parquet file comes in other batches, which compress otherwise
    assert found.pop("feed.parquet") == pytest.approx(found["feed.csv"], abs=0.2)
    assert list(found.values()) == pytest.approx([found["feed.csv"]] * len(found), abs=1e-6)


def test_standard_input_is_read_as_it_comes(upheld, feed):
    text = feed.head(600).to_json(orient="records", lines=True)
    done = subprocess.run(
        upheld.line(*RUN, "-", *COLUMNS, "--every", "300", "--json", "-"), input=text, cwd=upheld.folder, env=upheld.variables(),
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line["rows_read"] for line in lines(done.stdout)] == [300, 600]


def test_words_as_arms_and_a_period_as_a_block(folder, inside, feed):
    when = pd.date_range("2026-01-01", periods=2500, freq="70s")
    feed.assign(w=np.where(feed["w"] == 1, "coupon", "control"), when=when).to_csv(folder / "named.csv", index=False)
    done = inside(*RUN, "named.csv", *COLUMNS, *FAST, "--time", "when", "--block", "1d", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "Effect of coupon against control" in done.stdout
    report = report_of(folder / "out")
    assert report["columns"]["covariates"] == ["x1", "x2", "x3", "x4"]
    assert report["blocks"]["closed"] == 2  # 1,234 rows a day, and each arm has 512 of them


def test_the_embedded_data_and_its_example(tmp_path, inside):
    assert inside("data", "effects", "--out", "nhefs.csv").returncode == 0
    assert len(pd.read_csv(tmp_path / "nhefs.csv")) == 1566
    done = inside(*shlex.split(EXAMPLE.format(file="nhefs.csv"))[1:])
    assert done.returncode == 0, done.stderr
    report = report_of(tmp_path / "out")
    assert report["difference_in_means"]["1"] == pytest.approx(2.5405814549, abs=1e-4)
    assert report["estimate"]["contrasts"][0]["ate"] == pytest.approx(3.4, abs=0.4)  # published: 3.4 to 3.5
    assert ".csv, .parquet or .jsonl" in refused(inside("data", "effects", "--out", "nhefs.xlsx"))


def test_an_effect_is_refused_in_words_where_overlap_is_lost(folder, inside, feed):
    pd.concat([feed[feed["w"] == 0], feed[feed["w"] == 1].head(12)]).to_csv(folder / "rare.csv", index=False)
    done = inside(*RUN, "rare.csv", *COLUMNS, *FAST, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "none is given, since overlap is lost" in done.stdout
    (found,) = report_of(folder / "out")["estimate"]["contrasts"]
    assert (found["ate"], found["reason"]) == (None, "overlap")


def test_one_arm_has_nothing_to_compare_with(folder, inside, feed):
    feed[feed["w"] == 0].to_csv(folder / "one.csv", index=False)
    done = inside(*RUN, "one.csv", *COLUMNS, *FAST, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "all rows so far have the same treatment" in done.stdout
    assert report_of(folder / "out")["estimate"]["contrasts"][0]["ate"] is None
    assert "estimate.png" not in {path.name for path in (folder / "out").iterdir()}


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"same": 1.0}, "constant in the first 500 rows and dropped: same"),
        ({"who": [f"person {i}" for i in range(2500)]}, "column 'who' holds 2,500 different words"),
    ],
)
def test_a_column_of_no_use_is_pointed_out(folder, inside, feed, column, said):
    feed.assign(**column).to_csv(folder / "more.csv", index=False)
    with pytest.warns(UserWarning, match=said):
        assert inside(*RUN, "more.csv", *COLUMNS, *FAST).returncode == 0


def test_as_described_is_the_plain_preset(folder, inside):
    done = inside(*RUN, "feed.csv", *COLUMNS, *FAST, "--as-described", "--sketch", "s.sketch")
    assert done.returncode == 0, done.stderr
    balancer = StreamingBalancer.from_bytes((folder / "s.sketch").read_bytes())  # a sketch as any other
    described = StreamingBalancer.as_described()
    for name in ("block_size", "outcomes", "augment", "loss", "constraints"):
        assert getattr(balancer, name) == getattr(described, name)


def test_a_sequence_is_wider_than_one_look(folder, inside):
    widths = {}
    for ci in ("fixed", "sequence"):
        (last,) = lines(inside(*RUN, "feed.csv", *COLUMNS, *FAST, "--ci", ci, "--json", "-").stdout)
        widths[ci] = last["contrasts"][0]["ci_high"] - last["contrasts"][0]["ci_low"]
    assert widths["sequence"] > 1.2 * widths["fixed"]


# -- bad rows


def with_gaps(feed: pd.DataFrame) -> pd.DataFrame:
    table = feed.astype({"x2": float})
    table.loc[[700, 701], "x2"] = np.nan
    table.loc[800, "y"] = np.inf
    table.loc[900, "w"] = np.nan
    return table


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_bad_row_is_named_or_skipped_and_counted(folder, inside, feed, ending):
    table, name = with_gaps(feed), f"gaps.{ending}"
    if ending == "csv":
        table.to_csv(folder / name, index=False)
    elif ending == "parquet":
        table.to_parquet(folder / name, row_group_size=600)
    else:
        table.replace(np.inf, np.nan).to_json(folder / name, orient="records", lines=True)
    sentence = refused(inside(*RUN, name, *COLUMNS, *FAST, "--json", "-"))
    assert f"column 'x2' is missing in row 701 of {name}" in sentence
    assert "--on-bad-rows skip" in sentence
    done = inside(*RUN, name, *COLUMNS, *FAST, "--on-bad-rows", "skip", "--out", "out")
    assert done.returncode == 0, done.stderr
    report = report_of(folder / "out")
    assert report["skipped"] == {"x2": 2, "y": 1, "w": 1}
    assert report["estimate"]["n"] == 2496
    assert report["files"] == [{"name": name, "rows": 2500}]


def test_a_word_among_numbers_is_a_bad_row(folder, inside, feed):
    table = feed.astype({"x1": object})
    table.loc[41, "x1"] = "n/k"
    table.to_csv(folder / "word.csv", index=False)
    sentence = refused(inside(*RUN, "word.csv", *COLUMNS, "--json", "-"))
    assert "column 'x1' is 'n/k', no number, in row 42 of word.csv" in sentence


def test_a_line_that_is_no_json(folder, inside, feed):
    rows = feed.head(600).to_json(orient="records", lines=True).splitlines()
    (folder / "torn.jsonl").write_text("\n".join([*rows[:10], rows[10][:15], *rows[11:]]))
    assert "line 11 of torn.jsonl is no JSON object" in refused(inside(*RUN, "torn.jsonl", *COLUMNS, "--json", "-"))
    done = inside(*RUN, "torn.jsonl", *COLUMNS, "--on-bad-rows", "skip", "--json", "-")
    assert lines(done.stdout)[-1]["n"] == 599


def test_what_can_hardly_be_meant_is_pointed_out(folder, inside, feed):
    feed.assign(copy=feed["w"], gain=feed["y"]).to_csv(folder / "copies.csv", index=False)
    with pytest.warns(UserWarning, match="is the same as") as noted:
        inside(*RUN, "copies.csv", *COLUMNS, *FAST)
    assert [str(one.message).split(";")[0] for one in noted] == [
        "column 'copy' is the same as 'w'", "column 'gain' is the same as 'y'",
    ]  # fmt: skip
    (folder / "twins.csv").write_text(feed.to_csv(index=False).replace("x1,x2", "x1,x1", 1))
    with pytest.warns(UserWarning, match="column 'x1.1' may be a second column of the name 'x1'"):
        inside(*RUN, "twins.csv", *COLUMNS, *FAST)


def test_a_confounder_in_no_column_is_spoken_of(folder, inside):
    done = inside(*RUN, "feed.csv", *COLUMNS, *FAST, "--out", "out")
    assert (
        "To explain the effect away, a confounder that is in no column would have to put weights off by a factor of"
        in done.stdout
    )
    [found] = report_of(folder / "out")["sensitivity"]
    assert found["e_value"] > found["e_value_interval"] > 1
    assert f"factor of {found['tipping']:.2g}" in done.stdout


def test_one_arm_and_no_row_have_no_effect(folder, inside, feed):
    feed.assign(w=1).to_csv(folder / "one.csv", index=False)
    assert (
        "There is no effect: all rows so far have the same treatment" in inside(*RUN, "one.csv", *COLUMNS, *FAST).stdout
    )
    feed.assign(x1=np.nan).to_csv(folder / "none.csv", index=False)
    done = inside(*RUN, "none.csv", *COLUMNS, *FAST, "--on-bad-rows", "skip")
    assert "There is no effect: no row could be used." in done.stdout


def test_the_unit_of_the_outcome_has_no_zero(folder, inside, feed):
    """Also before an arm has an outcome model: a coreset of 64 merges rows from its 128th on."""
    shifted = feed.assign(y=feed["y"] + 1e6)
    widths = []
    for name, table in (("near.csv", feed), ("far.csv", shifted)):
        table.to_csv(folder / name, index=False)
        [*_, last] = lines(inside(*RUN, name, *COLUMNS, *FAST, "--json", "-").stdout)
        widths.append(last["contrasts"][0]["se"])
    assert widths[1] == pytest.approx(widths[0], rel=1e-6)


# -- bad input

GOOD = "good.sketch"
BAD = [
    ("", "there is nothing to read"),
    ("nowhere.csv W", "nowhere.csv does not exist"),
    (". W", ". is a folder"),
    ("feed.csv feed.csv W", "feed.csv is named twice"),
    ("feed.csv --outcome y", "say which column is the treatment: --treatment NAME"),
    ("feed.csv --treatment w", "say which column is the outcome: --outcome NAME"),
    ("feed.csv --treatment z --outcome y", "feed.csv has no column 'z'; there are x1, x2, x3, x4, w, y"),
    ("feed.csv W --covariates x1,age", "feed.csv has no column 'age'"),
    ("feed.csv W --covariates x1,w", "column 'w' cannot be a covariate as well"),
    ("feed.csv W --covariates x1,x1", "--covariates names a column twice"),
    ("feed.csv W --covariates ,", "--covariates names none"),
    ("feed.csv --treatment y --outcome y", "must be three columns"),
    ("feed.csv --treatment x1 --outcome y", "column 'x1' is 2.041 in row 1 of feed.csv, but a continuous treatment is not supported"),
    ("levels.csv W", "rows 1 to 2,500 of levels.csv: the treatment has 25 levels, more than 20"),
    ("empty.csv W", "empty.csv is empty"),
    ("header.csv W", "header.csv has no rows"),
    ("constant.csv W", "all 1 covariates are constant in the first 500 rows"),
    ("alone.csv W", "alone.csv has no column besides treatment and outcome"),
    ("ragged.csv W", "ragged.csv cannot be read as CSV in UTF-8"),
    ("latin.csv W", "latin.csv cannot be read as CSV in UTF-8"),
    ("broken.parquet W", "broken.parquet cannot be read as Parquet"),
    ("broken.csv.gz W", "broken.csv.gz is not a whole gzip file"),
    ("flipped.csv.gz W", "flipped.csv.gz is not a whole gzip file"),
    ("dates.parquet W", "column 'when' of dates.parquet holds dates, which are no covariate"),
    ("dates.csv W", "column 'when' of dates.csv holds dates, which are no covariate"),
    ("lists.parquet W", "column 'x1' of lists.parquet holds lists"),
    ("commas.csv W", "column 'x1' of commas.csv holds numbers with commas, such as '2,041'"),
    ("trailing.csv W", "column 'Unnamed: 6' of trailing.csv is empty in rows 1 to 2,500; leave it out"),
    ("large.csv W", "column 'x1' is beyond 1e+100 (2.041e+150) in row 1 of large.csv"),
    ("nested.jsonl W", "line 2 of nested.jsonl holds more than one value under 'x1'"),
    ("deep.jsonl W", "line 1 of deep.jsonl is no JSON object"),
    ("long.jsonl W", "column 'x1' is not finite (inf) in row 1 of long.jsonl"),
    ("dates.csv W --time x2 --covariates when", "column 'when' of dates.csv holds dates"),
    ("american.csv W --time when", "column 'when' of american.csv is '01/01/2026' in row 1, neither a number nor a date in ISO 8601"),
    ("torn.csv W --time when", "column 'when' is '2026-13-45', no date, in row 3 of torn.csv"),
    ("dates.csv numbers.csv W --time when --covariates x1", "column 'when' held dates in earlier rows and holds numbers in numbers.csv"),
    ("feed.csv ./feed.csv W", "feed.csv is named twice"),
    ("feed.csv W --block 1e4", "--block 1e4 is neither a number of rows nor a time"),
    ("feed.csv W --estimand recent --block none", "--estimand recent is the effect over the last blocks"),
    ("feed.csv W --coreset-size 99999999999", "--coreset-size must be at most 1,000,000, got 99,999,999,999"),
    ("feed.csv W --sketch /dev/null", "/dev/null is a device or a pipe"),
    ("feed.csv W --block 1d", "name the column of time with --time"),
    ("feed.csv W --block soon --time x1", "--block soon is neither a number of rows nor a time"),
    ("feed.csv W --block 3", "--block must be at least 40 rows, got 3"),
    ("feed.csv W --block 99 --as-described", "leave out --block"),
    ("feed.csv W --coreset-size 3", "--coreset-size must be at least 16, got 3"),
    ("feed.csv W --estimand mean", "--estimand must be ate or att or atc or recent, got 'mean'"),
    ("feed.csv W --ci wide", "--ci must be fixed or sequence, got 'wide'"),
    ("feed.csv W --on-bad-rows mend", "--on-bad-rows must be skip or fail, got 'mend'"),
    ("feed.csv W --every 0", "Invalid value for '--every'"),
    ("feed.csv W --sketch feed.csv", "--sketch names feed.csv, which is read"),
    ("feed.csv W --sketch no/s.sketch", "the folder no does not exist"),
    ("feed.csv W --out feed.csv/out", "feed.csv is a file, so nothing can be written"),
    ("feed.csv W --json no/way.jsonl", "the folder no does not exist"),
    ("feed.csv W --resume nowhere.sketch", "nowhere.sketch"),
    ("feed.csv --resume damaged.sketch", "damaged.sketch: these"),
    ("feed.csv --resume changed.sketch", "changed.sketch: "),
    ("feed.csv --resume good.sketch --outcome x1", "good.sketch was made with --outcome y"),
    ("feed.csv --resume good.sketch --block none", "good.sketch was made with --block 2048, not None"),
    ("feed.csv --resume good.sketch --compare", "--compare reads all rows anew"),
    ("feed.csv --resume good.sketch --like good.sketch", "give one of them"),
    ("feed.csv --resume other.sketch", "feed.csv is not the file of that name of which 600 rows were read before"),
    ("feed.csv --resume longer.sketch", "feed.csv has 2,500 rows, fewer than the 9,999 read before"),
    ("feed.csv W --workers 2", "cannot be read in parts"),
    ("- W --workers 2", "standard input cannot be read in parts"),
    ("feed.csv W --workers 2 --estimand recent", "name the column with --time"),
    ("merge good.sketch", "merge needs at least two sketches"),
    ("merge good.sketch nowhere.sketch", "nowhere.sketch"),
    ("merge good.sketch damaged.sketch", "damaged.sketch: these"),
    ("merge good.sketch good.sketch --treatment w", "--treatment does not go with merge"),
    ("merge good.sketch seeded.sketch", "balance different features"),
    ("merge good.sketch blocks.sketch", "the sketches differ in block_size"),
    ("merge good.sketch question.sketch", "they are of two questions"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "said"), BAD, ids=[typed or "nothing" for typed, _ in BAD])
def test_bad_input_is_refused_in_a_sentence(bad_files, inside, monkeypatch, typed, said):
    monkeypatch.chdir(bad_files)
    before = set(bad_files.iterdir())
    arguments = [word for one in typed.split() for word in (COLUMNS if one == "W" else (one,))]
    sentence = refused(inside(*RUN, *arguments, *(() if "--json" in arguments else ("--json", "-"))))
    assert said in sentence
    assert set(bad_files.iterdir()) == before


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory, feed: pd.DataFrame) -> Path:
    """Files of every kind of badness, and sketches that are good, damaged, or of other questions."""
    folder = tmp_path_factory.mktemp("bad")
    feed.to_csv(folder / "feed.csv", index=False)
    feed.assign(w=np.arange(len(feed)) % 25).to_csv(folder / "levels.csv", index=False)
    feed.assign(x1=1.0)[["x1", "w", "y"]].to_csv(folder / "constant.csv", index=False)
    feed[["w", "y"]].to_csv(folder / "alone.csv", index=False)
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("x1,w,y\n")
    (folder / "ragged.csv").write_text("x1,w,y\n1,0,2\n1,0,2,7\n")
    (folder / "latin.csv").write_bytes("name,w,y\nJosé,0,2\n".encode("latin-1"))
    (folder / "broken.parquet").write_bytes(b"PAR1 no more of it")
    packed = gzip.compress(feed.to_csv(index=False).encode())
    (folder / "flipped.csv.gz").write_bytes(packed[:5000] + b"\xff" * 200 + packed[5200:])
    (folder / "broken.csv.gz").write_bytes(gzip.compress(feed.to_csv().encode())[:-200])
    feed.assign(when=pd.date_range("2026-01-01", periods=len(feed), freq="h")).to_parquet(folder / "dates.parquet")
    when = pd.Series(pd.date_range("2026-01-01", periods=len(feed), freq="h"))
    feed.assign(when=when).to_csv(folder / "dates.csv", index=False)
    feed.assign(when=when.dt.strftime("%m/%d/%Y")).to_csv(folder / "american.csv", index=False)
    feed.assign(when=when.astype(str).where(when.index != 2, "2026-13-45")).to_csv(folder / "torn.csv", index=False)
    feed.assign(when=np.arange(len(feed))).to_csv(folder / "numbers.csv", index=False)
    feed.assign(x1=feed["x1"].map(lambda value: [value, 1.0])).to_parquet(folder / "lists.parquet")
    feed.assign(x1=feed["x1"].map(lambda value: f"{value:.3f}".replace(".", ","))).to_csv(
        folder / "commas.csv", index=False
    )
    feed.assign(x1=feed["x1"] * 1e150).to_csv(folder / "large.csv", index=False)
    (folder / "trailing.csv").write_text("\n".join(f"{line}," for line in feed.to_csv(index=False).splitlines()))
    record = '{"x1": %s, "w": 0, "y": 1.5}'
    (folder / "nested.jsonl").write_text("\n".join([record % "1", record % "[1, 2]"]))
    (folder / "long.jsonl").write_text(record % ("9" * 400))
    (folder / "deep.jsonl").write_text("[" * 100_000)
    read = FileRead("feed.csv", 600, *Source(str(folder / "feed.csv")).head())
    sketched(folder / GOOD, feed, read)
    sketched(folder / "seeded.sketch", feed, read, random_state=1)
    sketched(folder / "blocks.sketch", feed, read, block_size=None)
    sketched(folder / "question.sketch", feed, read, outcome="x1")
    sketched(folder / "other.sketch", feed, replace(read, head="of another file"))
    sketched(folder / "longer.sketch", feed, replace(read, rows=9999))
    good = (folder / GOOD).read_bytes()
    middle = len(good) // 2
    (folder / "damaged.sketch").write_bytes(good[:middle])
    (folder / "changed.sketch").write_bytes(good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :])
    return folder


def sketched(path: Path, feed: pd.DataFrame, read: FileRead, outcome: str = "y", **parameters) -> None:
    """What a run over 600 rows would have saved."""
    balancer = StreamingBalancer(64, pairing="projection", **{"random_state": 0, **parameters})
    rows = feed.head(600)
    X = rows[["x1", "x2", "x3", "x4"]]
    balancer.partial_fit(X, rows["y"], treatment=rows["w"])
    save(path, balancer, Columns("w", outcome, None, tuple(X.columns), False, (False,) * 4), Journey([read]))


# -- going on, merging, parts


def test_a_killed_run_goes_on_where_its_sketch_was_saved(upheld):
    table_of(DriftStream(24_000, 4, "none", seed=5)).to_csv(upheld.folder / "feed.csv", index=False)
    how = (*COLUMNS, *FAST, "--every", "1000")
    whole = upheld(*RUN, "feed.csv", *how, "--json", "whole.jsonl")
    assert whole.returncode == 0, whole.stderr

    running = upheld.start(*RUN, "feed.csv", *how, "--sketch", "s.sketch", "--json", "way.jsonl")
    way = upheld.folder / "way.jsonl"
    deadline = time.monotonic() + 120
    while not (way.exists() and way.read_text().count("\n") >= 2):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    balancer, _, journey = load(upheld.folder / "s.sketch")
    (record,) = journey.files
    reported = way.read_text().count("\n") * 1000
    assert record.rows in (reported, reported + 1000)  # at most the current batch is lost
    assert balancer.n_seen_ == record.rows < 24_000

    resumed = upheld(
        *RUN, "feed.csv", "--resume", "s.sketch", "--every", "1000", "--sketch", "s.sketch", "--json", "rest.jsonl"
    )
    assert resumed.returncode == 0, resumed.stderr
    assert f"has seen rows 1 to {record.rows:,} of feed.csv" in resumed.stdout
    first, second = (lines((upheld.folder / name).read_text()) for name in ("whole.jsonl", "rest.jsonl"))
    assert second[0]["rows_read"] == record.rows + 1000
    for name in ("n", "n_arm", "contrasts", "mu"):
        assert second[-1][name] == first[-1][name]  # the same stream to the last bit, not only in distribution


def test_a_sketch_goes_on_with_the_next_day_s_file(folder, inside, feed):
    feed.iloc[:1200].to_csv(folder / "monday.csv", index=False)
    feed.iloc[1200:].to_csv(folder / "tuesday.csv", index=False)
    done = inside(*RUN, "monday.csv", *COLUMNS, *FAST, "--every", "500", "--sketch", "s.sketch")
    assert done.returncode == 0, done.stderr
    done = inside(*RUN, "monday.csv", "tuesday.csv", "--resume", "s.sketch", "--sketch", "s.sketch", "--json", "-")
    assert done.returncode == 0, done.stderr
    last = lines(done.stdout)[-1]
    assert (last["n"], last["rows_read"]) == (2500, 2500)
    _, _, journey = load(folder / "s.sketch")
    assert [(one.name, one.rows) for one in journey.files] == [("monday.csv", 1200), ("tuesday.csv", 1300)]


def test_sketches_of_two_places_are_merged(folder, inside, feed):
    feed.iloc[:1200].to_csv(folder / "here.csv", index=False)
    feed.iloc[1200:].to_csv(folder / "there.csv", index=False)
    assert inside(*RUN, "here.csv", *COLUMNS, *FAST, "--sketch", "here.sketch").returncode == 0
    assert inside(*RUN, "there.csv", "--like", "here.sketch", "--seed", "7", "--sketch", "there.sketch").returncode == 0
    done = inside(*RUN, "merge", "here.sketch", "there.sketch", "--sketch", "both.sketch", "--out", "out")
    assert done.returncode == 0, done.stderr
    report, truth = report_of(folder / "out"), DriftStream(2500, 4, "none", seed=3).effect
    assert report["estimate"]["n"] == 2500
    assert report["difference_in_means"]["1"] == pytest.approx(naive(feed))
    (found,) = report["estimate"]["contrasts"]
    assert abs(found["ate"] - truth) < abs(naive(feed) - truth) / 3
    assert load(folder / "both.sketch")[0].n_seen_ == 2500
    with pytest.warns(UserWarning, match=r"here\.csv was read for more than one"):
        assert inside(*RUN, "merge", "here.sketch", "here.sketch", "--json", "-").returncode == 0


def test_four_row_groups_are_read_by_two_workers(folder, inside, feed):
    feed.to_parquet(folder / "feed.parquet", row_group_size=625)
    for place, more in (("one", ()), ("parts", ("--workers", "2"))):
        done = inside(*RUN, "feed.parquet", *COLUMNS, *FAST, "--block", "none", "--out", place, *more)
        assert done.returncode == 0, done.stderr
    one, parts = (report_of(folder / place) for place in ("one", "parts"))
    assert parts["files"] == one["files"] == [{"name": "feed.parquet", "rows": 2500}]
    assert parts["estimate"]["n_arm"] == one["estimate"]["n_arm"]
    assert parts["difference_in_means"]["1"] == pytest.approx(one["difference_in_means"]["1"])
    se = one["estimate"]["contrasts"][0]["se"]
    assert parts["estimate"]["contrasts"][0]["ate"] == pytest.approx(one["estimate"]["contrasts"][0]["ate"], abs=4 * se)


def test_a_bad_row_in_a_part_is_named(folder, inside, feed):
    table = feed.copy()
    table.loc[2100, "x3"] = np.nan
    table.to_parquet(folder / "gaps.parquet", row_group_size=600)
    sentence = refused(inside(*RUN, "gaps.parquet", *COLUMNS, *FAST, "--workers", "1", "--json", "-"))
    assert "column 'x3' is missing in row 2,101 of gaps.parquet" in sentence


def test_the_way_of_the_estimates_is_thinned(stream):
    balancer = StreamingBalancer(64, random_state=0)
    balancer.partial_fit(stream.X[:600], stream.y[:600], treatment=stream.w[:600])
    estimate, journey = balancer.estimate(), Journey()
    for n in range(1, 3000):
        journey.note(replace(estimate, n=n))
    at = [one.n for one in journey.way]
    assert MOST_POINTS / 2 <= len(at) <= MOST_POINTS
    assert at[0] == 1
    assert len(set(np.diff(at))) == 1
    assert Journey.from_state(json.loads(json.dumps(journey.state()))) == journey


def test_a_renamed_file_is_known_by_its_first_bytes_and_a_copy_is_another(tmp_path):
    first, renamed = tmp_path / "day.csv", tmp_path / "old-day.csv"
    first.write_text("w,y\n1,2.5\n0,1.5\n")
    journey = Journey()
    record = journey.begun(Source(str(first)))
    record.rows = 2
    renamed.write_bytes(first.read_bytes())
    assert journey.begun(Source(str(renamed))).rows == 0  # both are there
    first.unlink()
    journey.files.pop()
    assert journey.begun(Source(str(renamed))) is record
    assert record.name == str(renamed)
    other = tmp_path / "next-day.csv"
    other.write_text("w,y\n1,9.5\n0,1.5\n")
    renamed.unlink()
    assert journey.begun(Source(str(other))).rows == 0
    assert len(journey.files) == 2
