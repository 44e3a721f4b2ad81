"""A method is added without touching upheld: the worked example, installed beside it, goes through every verb."""

from __future__ import annotations

import doctest
import json
import shutil
import sqlite3

import pytest

from installed import EXAMPLE, Command, declare, refused


@pytest.mark.slow
def test_from_the_list_to_the_report(tmp_path, site):
    upheld = Command(tmp_path, site)
    assert "mom" in [method["name"] for method in json.loads(upheld("--json").stdout)["methods"]]
    assert "the error never exceeds the bound at all" in upheld("show", "mom").stdout

    assert upheld("data", "mom", "--out", "values.csv").returncode == 0
    ours, mean = upheld("run", "mom", "values.csv", "--column", "value").stdout.splitlines()
    assert ours.startswith("median of means ")
    assert abs(float(ours.split()[-1])) < 0.5 > abs(float(mean.split()[-1]))  # 1,000 values of mean 0 and variance 1

    checked = upheld("check", "mom", "--save", "verdicts.json")
    assert checked.returncode == 0, checked.stderr
    claims = {
        claim["id"]: claim for claim in json.loads((tmp_path / "verdicts.json").read_text())["methods"][0]["claims"]
    }
    # With its bound at 95 %, 400 samples of which none exceeds it are decisive; on normal data the mean is the best there is.
    assert {name: claim["outcome"] for name, claim in claims.items()} == {
        "mom.bound": "upheld",
        "mom.far-below-bound": "upheld",
        "mom.beats-mean-on-normal": "not upheld",
    }
    assert upheld("report", "mom").returncode == 0
    page = (tmp_path / "report" / "mom.html").read_text()
    assert all(name in page for name in claims)
    assert "<svg" in page


@pytest.mark.slow
def test_a_rival_is_added_in_one_file(tmp_path, site):
    """A line in rivals.py; what was measured before is stale then, and the rival is raced."""
    shutil.copytree(site, tmp_path / "site")
    rivals = tmp_path / "site" / "mom" / "rivals.py"
    added = rivals.read_text().replace("trimmed_mean}", 'trimmed_mean, "median": lambda x, rng: float(np.median(x))}')
    assert added != rivals.read_text()
    upheld = Command(tmp_path, tmp_path / "site")
    assert upheld("check", "mom", "--scale", "smoke").returncode == 0
    rivals.write_text(added)
    again = upheld("check", "mom", "--scale", "smoke")
    assert again.stderr == "smoke scale: 5 trials to measure, 5 of older sources are not used\n"
    book = sqlite3.connect(tmp_path / ".upheld" / "ledger.sqlite")
    raced = {method for (method,) in book.execute("SELECT DISTINCT method FROM measurement")}
    book.close()
    assert raced == {"mean", "median", "mom", "trimmed mean"}


@pytest.mark.slow
def test_a_package_inside_another(tmp_path):
    """`acme.mom` is the method `mom`: its entry says where it lies, in the main process and in the workers."""
    site = tmp_path / "site"
    shutil.copytree(EXAMPLE, site / "acme" / "mom", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "acme" / "__init__.py").write_text("")
    for path in (site / "acme" / "mom").glob("*.py"):
        path.write_text(path.read_text().replace("from mom", "from acme.mom"))
    (site / "acme_method.py").write_text(
        "from upheld.catalog import Method\n"
        "METHOD = Method('mom', title='Median of means', field='', summary='', paper='', package='acme.mom')\n"
    )
    declare(site, "mom", "acme_method:METHOD")
    upheld = Command(tmp_path, site)
    done = upheld("check", "mom", "--scale", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["methods"][0]["claims"][0]["trials"]["done"] == 5
    assert "(acme.mom)" in upheld("show", "mom").stdout


def test_without_what_it_needs_it_is_skipped(tmp_path, site):
    shutil.copytree(site, tmp_path / "site")
    method = tmp_path / "site" / "mom_method.py"
    method.write_text(method.read_text().replace('package="mom"', 'package="mom", needs=("nosuch-package",)'))
    upheld = Command(tmp_path, tmp_path / "site")
    done = upheld("check", "mom")
    assert (done.returncode, done.stdout) == (0, "nothing to check\n")
    assert done.stderr.splitlines()[0] == "mom is skipped, it needs nosuch-package: pip install nosuch-package"


def test_claims_that_cannot_be_imported_are_named(tmp_path, site):
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site" / "mom" / "claims.py").write_text("import nosuch_package\n")
    sentence = refused(Command(tmp_path, tmp_path / "site")("check", "mom"))
    assert sentence == "nosuch_package is not installed; it comes with: pip install nosuch_package"


def test_its_example_is_true(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    import mom

    assert doctest.testmod(mom).attempted == 4
    assert doctest.testmod(mom).failed == 0
