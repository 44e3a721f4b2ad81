from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.hubs.files import load_files, load_table


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((6, 3)), columns=["g1", "g2", "g3"], index=[f"s{i}" for i in range(6)])
    return table.rename_axis("sample")


@pytest.fixture
def labels(frame):
    return pd.Series(["a", "a", "a", "b", "b", "b"], index=frame.index, name="arm")


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.csv.xz", "x.parquet"])
def test_formats_agree(tmp_path, frame, labels, name):
    whole = pd.concat([labels, frame], axis=1).reset_index()
    path = tmp_path / name
    if name.endswith("parquet"):
        whole.to_parquet(path)
    else:
        whole.to_csv(path, sep="\t" if "tsv" in name else ",", index=False)
    X, groups = load_table(path, groups="arm", index="sample")
    pd.testing.assert_frame_equal(X, frame)
    assert list(groups) == list(labels)


def test_anndata_layer(tmp_path, frame, labels):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(frame.to_numpy(), obs=pd.DataFrame({"arm": labels}), var=pd.DataFrame(index=frame.columns))
    adata.layers["scaled"] = 2 * adata.X
    adata.write_h5ad(tmp_path / "x.h5ad")
    X, groups = load_table(tmp_path / "x.h5ad", groups="arm", layer="scaled")
    np.testing.assert_allclose(X, 2 * frame)
    assert list(X.columns) == ["g1", "g2", "g3"]
    assert list(groups) == list(labels)
    with pytest.raises(ValueError, match="no layer 'counts'; it has 'scaled'"):
        load_table(tmp_path / "x.h5ad", groups="arm", layer="counts")
    with pytest.raises(ValueError, match=r"sample names of its own, as \.h5ad files do; leave out index='sample'"):
        load_table(tmp_path / "x.h5ad", groups="arm", index="sample")
    with pytest.raises(ValueError, match="no group column 'arms'; did you mean 'arm'"):
        load_table(tmp_path / "x.h5ad", groups="arms")


def test_r_style_row_names_are_taken_for_the_index(tmp_path, frame, labels):
    pd.concat([labels, frame], axis=1).rename_axis(None).to_csv(tmp_path / "r.csv")
    X, _ = load_table(tmp_path / "r.csv", groups="arm")
    assert list(X.columns) == ["g1", "g2", "g3"]
    assert list(X.index) == list(frame.index)


def test_one_file_per_group(tmp_path, frame):
    frame.to_csv(tmp_path / "tumour.csv")
    frame.to_csv(tmp_path / "normal.tsv.gz", sep="\t")
    tables = load_files([tmp_path / "tumour.csv", tmp_path / "normal.tsv.gz"], index="sample")
    assert list(tables) == ["tumour", "normal"]
    pd.testing.assert_frame_equal(tables["normal"], frame)
    frame.to_csv(tmp_path / "tumour.tsv", sep="\t")
    with pytest.raises(ValueError, match="two files are named 'tumour'"):
        load_files([tmp_path / "tumour.csv", tmp_path / "tumour.tsv"], index="sample")


def test_one_anndata_or_parquet_file_per_group(tmp_path, frame):
    anndata = pytest.importorskip("anndata")
    scipy_sparse = pytest.importorskip("scipy.sparse")
    for name, X in {"dense": frame.to_numpy(), "sparse": scipy_sparse.csr_matrix(frame.to_numpy())}.items():
        names = {"obs": pd.DataFrame(index=frame.index), "var": pd.DataFrame(index=frame.columns)}
        anndata.AnnData(X, **names).write_h5ad(tmp_path / f"{name}.h5ad")
    frame.to_parquet(tmp_path / "flat.parquet")
    tables = load_files([tmp_path / "dense.h5ad", tmp_path / "sparse.h5ad", tmp_path / "flat.parquet"])
    assert list(tables) == ["dense", "sparse", "flat"]
    for table in tables.values():
        np.testing.assert_array_equal(table.to_numpy(), frame.to_numpy())
        assert list(table.index) == list(frame.index)
        assert list(table.columns) == ["g1", "g2", "g3"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("arm,g1,g1\na,1,2\n", {}, "column 'g1' occurs more than once"),
        ("arm,g1\na,1\n", {"groups": "Arm"}, "no group column 'Arm'; did you mean 'arm'"),
        ("arm,g1\na,1\n", {"groups": "zzz"}, "its first columns are 'arm', 'g1'"),
        ("arm,g1\na,1\n", {"index": "id"}, "no index column 'id'"),
        ("arm,g1\n", {}, "holds no rows"),
        ("", {}, "is empty; expected a header line"),
        ("arm;g1;g2\na;1,5;2\n", {}, r"separated by ';', but its ending says ','; save it as CSV with commas"),
        ("arm\tg1\na\t1\n", {}, r"separated by '\\t', but its ending says ','"),
        ("arm,g1\na,1,2,3\n", {}, "row 1 of .* has 2 cells more than the header"),
        ("arm,\x1b[31mg1\na,1\n", {}, r"column '\\x1b\[31mg1' of .* holds a control character; rename it"),
        ("arm,g1\n\x1b[2J,1\n", {}, r"group '\\x1b\[2J' of .* holds a control character; rename it"),
        ("arm," + 200_000 * "g" + "\na,1\n", {}, "field larger than field limit"),
        ("arm,g1\na,1\n", {"index": "arm"}, "cannot hold the groups and the sample names"),
        ("arm,g1\na,1\nb,2,3,4\n", {}, "is not a table separated by ','"),
        ("arm\na\n", {}, "no variables beside the group column 'arm'"),
        ("arm,g1\na,1\n", {"layer": "raw"}, "only .h5ad files do"),
    ],
)
def test_bad_files_are_named(tmp_path, text, options, message):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_table(path, **{"groups": "arm", **options})


def test_missing_file_and_unknown_ending(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_table(tmp_path / "none.csv", groups="arm")
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"ending '.xlsx'; use .csv"):
        load_table(tmp_path / "x.xlsx", groups="arm")


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_an_archive_that_was_cut_short_is_named(tmp_path, frame, labels, ending):
    path = tmp_path / f"x.csv{ending}"
    pd.concat([labels, frame], axis=1).to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"x\.csv{ending} is cut short or no {ending} file"):
        load_table(path, groups="arm")
