"""``upheld run hubs`` and ``upheld data hubs`` as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from upheld.cli import main
from upheld.hubs import DegenerateJointNullSpaceError, JointHubs, command, hub_table, stability_selection
from upheld.hubs.data import load_khan, make_hub_networks

FAST = ("--stability", "10", "--bootstrap", "10", "--null", "10")
NOTHING = ("--stability", "0", "--bootstrap", "0", "--null", "0")
FILES = ["hubs.csv", "hubs.json", "hubs.png", "hubs.svg"]


@dataclass(frozen=True)
class Shell:
    """The command in a folder of its own: in this process, or as a subprocess."""

    folder: Path

    def __call__(self, *arguments):
        printed, complained = StringIO(), StringIO()
        with (
            chdir(self.folder),
            redirect_stdout(printed),
            redirect_stderr(complained),
            pytest.raises(SystemExit) as ended,
        ):
            main([*map(str, arguments)])
        return subprocess.CompletedProcess(arguments, ended.value.code, printed.getvalue(), complained.getvalue())

    def subprocess(self, *arguments):
        with self.started(*arguments) as process:
            printed, complained = process.communicate(timeout=250)
        return subprocess.CompletedProcess(arguments, process.returncode, printed, complained)

    def started(self, *arguments):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("UPHELD", "FORCE_COLOR"))}
        return subprocess.Popen(
            [sys.executable, "-m", "upheld.cli", *map(str, arguments)], cwd=self.folder, text=True, start_new_session=True,
            env=kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


def refused(done):
    """The one sentence of exit code 2."""
    assert (done.returncode, done.stdout) == (2, ""), (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    *_, last = done.stderr.splitlines()
    assert last.startswith("upheld: ")
    return last.removeprefix("upheld: ")


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


def sites(n=12, p=8, seed=0):
    """Three sites, p columns a, b, ...: small, and good."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((3 * n, p)), columns=list("abcdefghijklmnop"[:p]))
    table.insert(0, "site", np.repeat(["x", "y", "z"], n))
    return table


@pytest.fixture(scope="module")
def hubby():
    """Three groups with planted common hubs."""
    networks = make_hub_networks(36, 150, n_common=2, n_individual=1, random_state=0)
    X, groups = networks.stacked()
    table = pd.DataFrame(X, columns=[f"v{j}" for j in range(36)])
    table.insert(0, "site", np.array(["x", "y", "z"])[groups])
    return table, {f"v{j}" for j in networks.common}


@pytest.fixture(scope="module")
def answered(tmp_path_factory, hubby):
    """A whole run, once: the folder, and what was printed; not to be written to."""
    folder = tmp_path_factory.mktemp("answered")
    table, _ = hubby
    table.to_csv(folder / "data.csv", index=False)
    (folder / "sets.gmt").write_text(
        "planted\t\t" + "\t".join([*sorted(hubby[1]), "v0", "v1", "v2", "v3"]) + "\nrest\t\tv10\tv11\tv12\tv13\tv14\n"
    )
    done = Shell(folder).subprocess(
        "run", "hubs", "data.csv", "--groups", "site", *FAST, "--gmt", "sets.gmt", "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    return folder, done


# -- what it finds


def test_finds_planted_hubs_and_writes_everything(answered, hubby):
    folder, done = answered
    assert sorted(os.listdir(folder / "out")) == FILES
    document = json.loads((folder / "out" / "hubs.json").read_text())
    assert set(document["hubs"]) == hubby[1]
    assert "wrote out: hubs.csv (all variables), hubs.json, hubs.png, hubs.svg" in done.stdout
    assert (folder / "out" / "hubs.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "out" / "hubs.svg").read_text()


def test_table_is_that_of_the_library(answered, hubby):
    table, _ = hubby
    X, groups = table.drop(columns="site"), table["site"]
    hubs = JointHubs().fit(X, groups=groups)
    stability = stability_selection(hubs, X, groups=groups, n_resamples=10, random_state=0)
    expected = hub_table(hubs, stability=stability)
    found = pd.read_csv(answered[0] / "out" / "hubs.csv")
    assert len(found) == 36
    assert set(found.columns) == {*expected.columns, "low", "high", "p_value_permutation", "p_value_rotation"}
    assert list(found["variable"]) == list(expected["variable"])
    assert found["influence"].to_numpy() == pytest.approx(expected["influence"].to_numpy())
    assert found["stability"].to_numpy() == pytest.approx(expected["stability"].to_numpy())


def test_document(answered):
    document = json.loads((answered[0] / "out" / "hubs.json").read_text())
    assert document["schema"] == "upheld.hubs.run/1"
    assert document["settings"]["seed"] == 0
    assert document["settings"]["files"] == ["data.csv"]
    certificate = document["certificate"]
    assert certificate["certified"]
    assert certificate["lower_bound"] <= certificate["optimum"] * (1 + 1e-12)
    assert certificate["n_components"] == 6
    assert sum(document["group_weights"].values()) == pytest.approx(1)
    assert document["data"] == {"variables": 36, "variables_ranked": 36, "samples": {"x": 150, "y": 150, "z": 150}}
    assert set(document["versions"]) >= {"upheld", "python", "numpy"}
    assert document["not_computed"] == {}
    assert document["enrichment"][0]["set"] == "planted"


def test_prints_plain_text_to_a_pipe(answered, hubby):
    _, done = answered
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr.splitlines() == [
        "stability, 10 half-samples",
        "intervals, 10 resamples",
        "permutation null, 10 draws",
        "rotation null, 10 draws",
    ]
    lines = done.stdout.splitlines()
    assert lines[0] == "36 variables; samples: x 150, y 150, z 150."
    assert lines[1].startswith("Common hubs: 2 above the line of mean + 2 sd, ")
    rows = [line for line in lines if line.split()[:1] in [["v" + str(j)] for j in range(36)]]
    assert len(rows) == 20
    assert {row.split()[0] for row in rows if "common" in row} == hubby[1]
    assert any(line.startswith("Certified: ") and " binds most, then " in line for line in lines)


def test_json_is_the_same_as_the_file(shell):
    sites().to_csv(shell.folder / "data.csv", index=False)
    done = shell("run", "hubs", "data.csv", "--groups", "site", *FAST, "--json", "--out", "out")
    assert done.returncode == 0
    assert done.stdout == (shell.folder / "out" / "hubs.json").read_text()


def test_one_file_a_group_is_the_same_as_one_file(shell):
    table = sites()
    table.to_csv(shell.folder / "data.csv", index=False)
    for site, part in table.drop(columns="site").groupby(table["site"]):
        part.to_csv(shell.folder / f"{site}.tsv", index=False, sep="\t")
    one = json.loads(shell("run", "hubs", "data.csv", "--groups", "site", *FAST, "--json").stdout)
    several = json.loads(shell("run", "hubs", "x.tsv", "y.tsv", "z.tsv", *FAST, "--json").stdout)
    # To the solver's tolerance: how the samples lie in memory moves the last digits.
    pd.testing.assert_frame_equal(pd.DataFrame(one["variables"]), pd.DataFrame(several["variables"]), rtol=1e-3)
    assert several["settings"]["files"] == ["x.tsv", "y.tsv", "z.tsv"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_seed_decides_and_jobs_do_not(shell, jobs):
    sites().to_csv(shell.folder / "data.csv", index=False)
    call = (
        "run",
        "hubs",
        "data.csv",
        "--groups",
        "site",
        "--stability",
        "10",
        "--bootstrap",
        "0",
        "--null",
        "0",
        "--json",
    )
    first = json.loads(shell(*call).stdout)["variables"]
    assert json.loads(shell(*call, "--jobs", jobs).stdout)["variables"] == first
    assert json.loads(shell(*call, "--seed", "1").stdout)["variables"] != first


def test_settings_reach_the_detector(shell):
    table = sites(p=12)
    table.to_csv(shell.folder / "data.csv", index=False)
    done = shell("run", "hubs", "data.csv", "--groups", "site", *NOTHING, "--json",
                 "--n-components", "2", "--covariance", "spearman", "--screen", "9", "--at-least", "2")  # fmt: skip
    found = pd.DataFrame(json.loads(done.stdout)["variables"]).set_index("variable")
    hubs = JointHubs(2, covariance="spearman", screen=9, at_least=2).fit(
        table.drop(columns="site"), groups=table["site"]
    )
    expected = hub_table(hubs).set_index("variable")
    assert found["influence"].to_dict() == pytest.approx(expected["influence"].to_dict())
    assert (found["kind"] == "screened out").sum() == 3


@pytest.mark.slow
def test_rivals_beside(shell, hubby):
    hubby[0].to_csv(shell.folder / "data.csv", index=False)
    done = shell("run", "hubs", "data.csv", "--groups", "site", *NOTHING, "--compare", "--out", "out")
    assert done.returncode == 0, done.stderr
    document = json.loads((shell.folder / "out" / "hubs.json").read_text())
    rivals = {rival["name"]: rival for rival in document["rivals"]}
    assert set(rivals) >= {
        "average-ipc",
        "graphical-lasso",
        "group-lasso",
        "fused-lasso",
        "hub-weighted-lasso",
        "hub-lasso",
    }
    table = pd.read_csv(shell.folder / "out" / "hubs.csv").set_index("variable")
    for name, rival in rivals.items():
        assert rival["seconds"] > 0
        chosen = set(rival["selected"])
        assert set(table.index[table[f"selected_{name}"]]) == chosen
        assert table[f"rank_{name}"].min() == 1
        union = chosen | set(document["hubs"])
        assert rival["jaccard_with_ours"] == pytest.approx(len(chosen & set(document["hubs"])) / len(union))
    assert rivals["average-ipc"]["jaccard_with_ours"] == 1, "with groups alike in size the average does as well"
    assert rivals["fused-lasso"]["tuning"] == "cv"
    assert "Joint graphical lasso, fused" in done.stdout
    assert "Ranks side by side" in done.stdout


# -- what the data do not allow


def test_stability_that_is_impossible_is_said_with_its_remedy(shell):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 45)), columns=[f"v{j}" for j in range(45)])
    table.insert(0, "site", np.repeat(["x", "y"], 30))
    table.to_csv(shell.folder / "data.csv", index=False)
    call = ("run", "hubs", "data.csv", "--groups", "site", "--stability", "10", "--bootstrap", "0", "--null", "10")
    done = shell(*call, "--out", "out")
    assert done.returncode == 0
    # Halves of 15 and 15 samples have 28 degrees of freedom.
    assert "Not computed: stability: half-samples have joint rank 28, too few for p=45" in done.stdout
    assert "Keep at most 28 variables (--screen 28, or choose them beforehand)" in done.stdout.replace("\n", " ")
    found = pd.read_csv(shell.folder / "out" / "hubs.csv")
    assert found["stability"].isna().all()
    assert found["p_value_permutation"].between(0, 1).all()
    assert "half-samples" in json.loads((shell.folder / "out" / "hubs.json").read_text())["not_computed"]["stability"]
    done = shell(*call, "--screen", "28", "--json")
    assert json.loads(done.stdout)["not_computed"] == {}


def test_warnings_are_remarks(shell):
    table = sites(n=5, p=14)
    table.to_csv(shell.folder / "data.csv", index=False)
    done = shell("run", "hubs", "data.csv", "--groups", "site", *NOTHING)
    assert done.returncode == 0
    assert "Warning" not in done.stderr
    assert "Note: 2 of the 3 joint components lie in the joint null space" in done.stdout
    assert "consider --screen 9" in done.stdout.replace("\n", " ")


@pytest.mark.slow
def test_rivals_that_are_impossible_are_said(shell):
    sites(n=5, p=6).to_csv(shell.folder / "data.csv", index=False)
    done = shell("run", "hubs", "data.csv", "--groups", "site", *NOTHING, "--compare")
    assert done.returncode == 0
    assert (
        "Not computed: Graphical lasso: group 0 has 5 samples; cross-validation in three folds needs 6" in done.stdout
    )


# -- bad input


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A folder of files, each wrong in one way but ``good.csv``; not to be written to."""
    folder = tmp_path_factory.mktemp("bad")
    good = sites()

    def write(name, table):
        table.to_csv(folder / name, index=False)

    def changed(row, column, value):
        table = good.astype({column: object}) if isinstance(value, str) else good.copy()
        table.loc[row, column] = value
        return table

    write("good.csv", good)
    write("nan.csv", changed(4, "c", np.nan))
    write("nans.csv", changed([4, 7], "c", np.nan))
    write("inf.csv", changed(4, "c", np.inf))
    write("text.csv", changed(4, "c", "low"))
    write("texts.csv", changed(slice(None), "c", "low"))
    write("unlabelled.csv", changed(7, "site", np.nan))
    write("constant.csv", changed(good["site"] == "y", "c", 1.0))
    write("one.csv", good[:12])
    write("few.csv", good[:-10])
    write("twice.csv", good.rename(columns={"b": "c"}))
    write("labels.csv", good[["site"]])
    write("header.csv", good[:0])
    named = changed(4, "c", np.nan)
    named.insert(0, "sample", [f"T{i}" for i in range(len(named))])
    write("named.csv", named)
    write("x.csv", good[["a", "b"]])
    write("y.csv", good[["a", "c"]])
    for name, content in {
        "empty.csv": b"", "binary.csv": b"\xff\xfe\x00", "quote.csv": b'a,b\n1,"2\n', "no.parquet": b"nope", "no.xls": b"",
        "no.gmt": b"A\tonly a name\n",
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    return folder


def refusal(run, folder, arguments):
    before = sorted(os.listdir(folder))
    sentence = refused(run("run", "hubs", *arguments.split(), *([] if "--out" in arguments else ["--out", "out"])))
    assert sorted(os.listdir(folder)) == before
    return sentence.removeprefix(f"{folder.resolve()}/")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nosuch.csv --groups site", "there is no file nosuch.csv; check the path"),
        ("good.csv --groups sit", "good.csv has no group column 'sit'; did you mean 'site'?"),
        ("nan.csv --groups site", "nan.csv: column 'c' holds no value (NaN) in row 5; impute it, or drop the row or the column"),
        ("text.csv --groups site", "text.csv: column 'c' holds 'low' in row 5, which is no number; mend or drop it"),
        ("constant.csv --groups site", "column 'c' is constant in group 'y' (12 samples; 1 such columns); drop it"),
        ("one.csv --groups site", "one.csv: all rows belong to one group, 'x' in column 'site', and common hubs take two"),
        ("few.csv --groups site", "too few samples in group 'z': n_samples = 2, at least 3 are needed"),
        ("twice.csv --groups site", "column 'c' occurs more than once in twice.csv"),
        ("empty.csv --groups site", "empty.csv is empty; expected a header line and one sample a row below it"),
        ("header.csv --groups site", "header.csv holds no rows; expected one sample a row below a header line"),
        ("x.csv y.csv", "the columns differ across groups: group 'y' lacks 'b', compared with group 'x'"),
        ("good.csv --groups site --n-components 8", "--n-components 8 must lie between 1 and p - 1 = 7"),
        ("good.csv --groups site --out good.csv", "good.csv is a file, so nothing can be written to good.csv"),
        ("good.csv --groups site --out good.csv/deep", "good.csv is a file, so nothing can be written to good.csv/deep"),
        ("good.csv --groups site --out /proc/out", "/proc cannot be written to ("),
    ],
)  # fmt: skip
def test_bad_input_on_the_command_line(bad, arguments, message):
    assert refusal(Shell(bad).subprocess, bad, arguments).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("inf.csv --groups site", "inf.csv: column 'c' holds an infinite value in row 5; impute it, or drop the row or the column"),
        ("nans.csv --groups site", "nans.csv: column 'c' holds no value (NaN) in row 5 (and 1 more row of this column); impute it"),
        ("texts.csv --groups site", "texts.csv: column 'c' is not numeric; drop it, or name it with --groups"),
        ("named.csv --groups site", "named.csv: column 'c' holds no value (NaN) in row 5 (sample 'T4');"),
        ("named.csv --groups site --index sample", "named.csv: column 'c' holds no value (NaN) in row 5 (sample 'T4');"),
        ("unlabelled.csv --groups site", "unlabelled.csv: row 8 has no label in the group column 'site'; drop such rows or label them"),
        ("labels.csv --groups site", "labels.csv holds no variables beside the group column 'site'"),
        ("binary.csv --groups site", "binary.csv is no text in UTF-8"),
        ("quote.csv --groups site", "quote.csv is not a table separated by ','"),
        ("no.parquet --groups site", "no.parquet is no Parquet file"),
        ("no.xls --groups site", "cannot tell the format of no.xls from its ending '.xls'; use .csv"),
        (". --groups site", "there is no file .; check the path"),
        ("good.csv", "good.csv is one file: name its group column with --groups, or give one file a group"),
        ("good.csv good.csv --groups site", "2 files are one group each; leave out --groups, or name one file"),
        ("x.csv x.csv", "two files are named 'x'; the file name labels the group"),
        ("good.csv --groups site --index name", "good.csv has no index column 'name'"),
        ("good.csv --groups site --layer raw", "good.csv has no layers, only .h5ad files do; leave out --layer raw"),
        ("good.csv --groups site --n-components many", "--n-components must be 'sqrt' or a whole number, got 'many'"),
        ("good.csv --groups site --screen few", "--screen must be 'auto' or a whole number, got 'few'"),
        ("good.csv --groups site --screen 1", "--screen must be"),
        ("good.csv --groups site --covariance kendall", "--covariance must be one of 'correlation'"),
        ("good.csv --groups site --at-least 4", "--at-least must lie between 1 and the number of groups 3, got 4"),
        ("good.csv --groups site --stability -1", "Invalid value for '--stability'"),
        ("good.csv --groups site --gmt nosuch.gmt", "there is no gene-set file nosuch.gmt"),
        ("good.csv --groups site --gmt no.gmt", "no.gmt, line 1: a gene set is a name, a description and its genes"),
        ("--groups site", "Missing argument 'FILE...'"),
    ],
)  # fmt: skip
def test_bad_input(bad, arguments, message):
    assert refusal(Shell(bad), bad, arguments).startswith(message)


def test_the_good_file_is_good(bad):
    assert Shell(bad)("run", "hubs", "good.csv", "--groups", "site", *NOTHING).returncode == 0


def test_far_more_variables_than_samples(shell):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((20, 40))).add_prefix("v")
    table.insert(0, "site", ["x", "y"] * 10)
    table.to_csv(shell.folder / "data.csv", index=False)
    sentence = refused(shell.subprocess("run", "hubs", "data.csv", "--groups", "site", "--out", "out"))
    assert sentence.startswith("p=40 variables exceed the joint degrees of freedom sum(n_k - 1)=18 by 22")
    assert "Use --screen 14 " in sentence
    assert "--covariance threshold" in sentence
    assert os.listdir(shell.folder) == ["data.csv"]
    for remedy in (("--screen", "14"), ("--screen", "auto"), ("--covariance", "threshold")):
        assert shell("run", "hubs", "data.csv", "--groups", "site", *NOTHING, *remedy).returncode == 0


def test_a_folder_with_other_files_keeps_them(shell):
    sites().to_csv(shell.folder / "data.csv", index=False)
    out = shell.folder / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    (out / "hubs.csv").write_text("of an earlier run")
    assert shell("run", "hubs", "data.csv", "--groups", "site", *NOTHING, "--out", "out").returncode == 0
    assert sorted(os.listdir(out)) == [*FILES, "mine.txt"]
    assert (out / "mine.txt").read_text() == "mine"
    assert len(pd.read_csv(out / "hubs.csv")) == 8


def test_a_picture_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    sites().to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(OSError, match="No space left"):
        command.run([tmp_path / "data.csv"], groups="site", stability=0, bootstrap=0, null=0, out=tmp_path / "out")
    assert os.listdir(tmp_path) == ["data.csv"]


def test_missing_rivals_are_told_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as refusal:
        command.run([tmp_path / "data.csv"], groups="site", compare=True)
    assert refusal.value.name == "gglasso"


def test_stopped_by_control_c(shell):
    sites(n=40, p=16).to_csv(shell.folder / "data.csv", index=False)
    call = ("run", "hubs", "data.csv", "--groups", "site", "--stability", "1000000", "--out", "out")
    with shell.started(*call) as process:
        try:
            assert process.stderr.readline() == "stability, 1000000 half-samples\n"
            time.sleep(0.2)
            os.killpg(process.pid, signal.SIGINT)
            printed, complaint = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, printed) == (130, "")
    assert "Traceback" not in complaint
    assert os.listdir(shell.folder) == ["data.csv"]


# -- the embedded data


def test_embedded_data_run_without_another_option(shell):
    done = shell("data", "hubs", "--out", "khan.csv")
    assert done.returncode == 0
    _, call, more = done.stdout.splitlines()
    assert call.strip() == "upheld run hubs khan.csv --groups subtype --compare --out out"
    assert more.strip().startswith("# these are 30 of 2,308 genes, ")
    table = pd.read_csv(shell.folder / "khan.csv")
    X, subtype = load_khan(30)
    assert list(table.columns) == ["sample", "subtype", *X.columns]
    done = shell("run", "hubs", "khan.csv", "--groups", "subtype", *FAST, "--json")
    document = json.loads(done.stdout)
    assert document["not_computed"] == {}
    assert document["data"]["samples"] == {str(k): int(n) for k, n in subtype.value_counts().sort_index().items()}


def test_sixty_genes_are_too_many_to_halve():
    X, subtype = load_khan(60)
    with pytest.raises(DegenerateJointNullSpaceError, match="Keep at most 36 variables"):
        stability_selection(JointHubs(), X, groups=subtype, n_resamples=1)


# -- the sentence about the certificate


def certificate(weights, **known):
    facts = {"certified": True, "status": "certified", "optimum": 0.2050, "lower_bound": 0.2049, "relative_gap": 5e-5,
             "n_components": 5}  # fmt: skip
    return command._certificate({"certificate": facts | known, "group_weights": weights})


def test_certificate_in_a_sentence():
    assert certificate({"a": 0.25, "b": 0.75}) == (
        "Certified: 0.205 is the optimum to within 0.005 % (dimension 5). By weight b (0.75) binds most, then a (0.25)."
    )
    assert certificate({"a": 0.0, "b": 1.0}).endswith("By weight b (1.00) binds alone; a made no difference.")
    open_gap = {"certified": False, "status": "not certified", "optimum": 0.75, "lower_bound": 0.5, "relative_gap": 0.5}
    unsure = certificate({"a": 0.5, "b": 0.5}, **open_gap)
    assert unsure.startswith("NOT certified: the optimum lies between 0.5 and 0.75 (a gap of 50 %)")
    assert "not the only solution" in certificate({"a": 1.0}, status="certified, not unique")


def test_the_command_imports_nothing_heavy():
    heavy = ("matplotlib", "gglasso", "numba", "anndata")
    line = f"import sys, upheld.hubs.command; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
