"""The site builds without a warning and needs no network; what its pages show is what their examples print."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from upheld.catalog import METHODS

ROOT = Path(__file__).parents[1]
VERDICTS = json.loads((ROOT / "verdicts/quick.json").read_text(encoding="utf-8"))
PAGES = {str(path.relative_to(ROOT / "docs").with_suffix("")): path for path in sorted((ROOT / "docs").rglob("*.md"))}


def _script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where a dataclass looks its annotations up
    spec.loader.exec_module(module)
    return module


runner = _script("run_examples")
WITH_EXAMPLES = [
    name
    for name, path in PAGES.items()
    if any(one.checked for one in runner.examples(path.read_text(encoding="utf-8")))
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site, built as CI builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site):
    fetched = re.compile(
        r'<(?:script|img|iframe|source)\b[^>]*\bsrc="((?:https?:)?//[^"]+)"|<link\b[^>]*href="(https?://[^"]+)"'
    )
    assert {name: found for name, page in site.items() if (found := fetched.findall(page))} == {}


@pytest.mark.slow
def test_addresses_elsewhere_are_well_formed(site):
    addresses = {address for page in site.values() for address in re.findall(r'href="(https?:[^"]*)"', page)}
    for address in addresses:
        parts = urlsplit(address)
        assert parts.scheme == "https", address
        assert "." in parts.netloc, address
        assert " " not in address


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_page_a_method(site, method):
    page = site[f"methods/{method.name}.html"]
    for heading in ("when-not-to-use-it", "example", "the-verdicts", "options"):
        assert f'id="{heading}"' in page
    assert re.findall(r'href="\.\./source/src/upheld/\w+/\w+\.html#def-\w+"', page)
    assert "--json" in page.split('id="options"')[1]
    committed = next(one for one in VERDICTS["methods"] if one["name"] == method.name)
    for claim in committed["claims"]:
        assert " ".join(claim["statement"].split()[:3]).replace("<", "&lt;") in page
    assert "<!-- upheld:" not in page
    assert "{{" not in page


@pytest.mark.slow
def test_formulas_are_drawn(site):
    page = site["bandits-theory.html"]
    text = re.sub(r"<[^>]*>", "", page.split("<article")[1].split("</article>")[0])
    assert page.count('<svg class="formula') > 150
    assert "$" not in text
    assert "formula-" not in text
    used = set(re.findall(r'<use href="#(g-[^"]+)"', page))
    assert used == set(re.findall(r'<path id="(g-[^"]+)"', page))


@pytest.mark.slow
def test_the_drawing_shows_every_layer(site):
    for name in ("cli", "catalog", "storage", *(method.name for method in METHODS)):
        assert f">{name}</text>" in site["architecture.html"]


def test_pictures_stay_small():
    sizes = [path.stat().st_size for path in (ROOT / "docs").rglob("*.png")]
    assert sum(sizes) < 1_500_000


def test_every_page_of_a_method_says_when_not_to_use_it():
    for method in METHODS:
        page = PAGES[f"methods/{method.name}"].read_text(encoding="utf-8")
        assert (
            f"<!-- upheld: against {method.name} -->" in page.split("## When not to use it")[1].split("## Example")[0]
        )


def test_no_figure_of_a_verdict_is_typed():
    """An interval on a method's page comes from verdicts/quick.json alone."""
    for method in METHODS:
        assert not re.search(
            r"\[[-−]?\d[\d.]*, [-−]?\d[\d.]*\] from", PAGES[f"methods/{method.name}"].read_text("utf-8")
        )


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples(page, tmp_path):
    for example in runner.examples(PAGES[page].read_text(encoding="utf-8")):
        if example.checked:
            shown = example.code if example.language == "console" else example.shown
            assert runner.differs(shown, runner.printed(example, tmp_path)) == ""


def test_every_method_has_an_example_that_is_run():
    assert {f"methods/{method.name}" for method in METHODS} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("a 0.31", "a  0.314"),
        ("3 of 1,024", "3 of 1,024"),
        ("took …", "took 3.2 s"),
        ("one\n…", "one\ntwo\nthree"),
        ("x −0.5", "x −0.52"),
    ],
)
def test_alike(shown, found):
    assert runner.differs(shown, found) == ""


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("a 0.31", "a 0.33"),
        ("a 3", "a 4"),
        ("a 3", "b 3"),
        ("one", "one\ntwo"),
        ("one\ntwo", "one"),
        ("x −0.5", "x 0.5"),
    ],
)
def test_different(shown, found):
    assert runner.differs(shown, found) != ""


def test_an_example_that_fails_says_so(tmp_path):
    with pytest.raises(RuntimeError, match="no group called x"):
        runner.printed(runner.Example("python", "raise ValueError('no group called x')", "1\n"), tmp_path)
