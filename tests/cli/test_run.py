"""``upheld run``: from the command line to a method's own command. What a method prints is tested with the method."""

from __future__ import annotations

import pytest

from installed import LISTED, refused


@pytest.fixture(autouse=True)
def values(tmp_path):
    (tmp_path / "x.csv").write_text("seconds,name\n" + "1,a\n" * 60)


def test_prints_what_the_method_finds(upheld):
    done = upheld("run", "mom", "x.csv", "--column", "seconds")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "median of means 1\nmean            1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch", "x.csv"], f"no method 'nosuch'; there are {LISTED}"),
        (["mom", "no.csv", "--column", "seconds"], "no.csv: No such file or directory; name another file or folder, or mend this one"),
        (["mom", ".", "--column", "seconds"], ".: Is a directory; name another file or folder, or mend this one"),
        (["mom", "x.csv", "--column", "minutes"], "x.csv has no column 'minutes'; it has seconds, name"),
        (["mom", "x.csv", "--column", "name"], "x.csv, column 'name': line 2 is no number; mend or drop it"),
        (["mom", "x.csv"], "Missing option '--column'. (upheld run mom --help tells how)"),
        (["mom", "x.csv", "--column", "seconds", "--nosuch"], "No such option: --nosuch (upheld run mom --help tells how)"),
        (["mom", "x.csv", "--column", "seconds", "--delta", "2"], "delta must lie strictly between 0 and 1, got 2.0"),
        (["brittle"], "nosuch_package is not installed; it comes with: pip install nosuch_package"),
    ],
)  # fmt: skip
def test_bad_input(inside, arguments, message):
    assert refused(inside("run", *arguments)) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.csv is no CSV file (No columns to parse from file); save it as comma-separated text in UTF-8"),
        (b"seconds\n", "x.csv, column 'seconds' holds no values; name a file that has some"),
        (b"\xff\xfe\x00seconds\n1\n", "x.csv is no CSV file ('utf-8' codec can't decode"),
        (b"seconds\n1\n2\n", "2 values cannot fill 24 blocks; take delta >= 0.779"),
    ],
)
def test_odd_files(inside, tmp_path, content, message):
    (tmp_path / "x.csv").write_bytes(content)
    assert message in refused(inside("run", "mom", "x.csv", "--column", "seconds"))


def test_listing_the_methods_loads_none_of_them(upheld):
    done = upheld.cold("run", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "upheld.cli.run" in imported
    assert not {"upheld.hubs", "upheld.bandits", "mom", "numpy"} & imported
