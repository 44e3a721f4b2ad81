from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import warnings
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_toys import HOSTILE

from upheld.claims import Claim, Outcome
from upheld.report.pages import anchor, counted, method_page, page_name, pages, write_report
from upheld.report.results import MethodResults

VOID = {"meta", "link", "br", "img", "input", "hr"}
BLOCKS = {"dt", "dd", "td", "th", "p", "li", "h1", "h2", "h3", "h4", "summary", "caption", "figcaption"}


class Page(HTMLParser):
    """A page taken apart: its elements, their attributes, and the text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.text += " " * (tag == "br")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"
        self.text += " " * (tag in BLOCKS)

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def all(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]

    def tags(self, name: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag == name]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def texts(results: Sequence[MethodResults]) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the toy picture that cannot be drawn, see below
        return pages(results)


@pytest.fixture(scope="module")
def parsed(texts: dict[str, str]) -> dict[str, Page]:
    return {name: Page(text) for name, text in texts.items()}


def test_an_index_and_a_page_a_method(texts: dict[str, str]) -> None:
    assert list(texts) == ["toymethod.html", "plainmethod.html", "index.html"]


# -- safe, self-contained


def test_hostile_names_are_text_everywhere(parsed: dict[str, Page]) -> None:
    for page in parsed.values():
        assert {"script", "i", "iframe", "object", "img"}.isdisjoint(tag for tag, _ in page.elements)
        assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    words = parsed["toymethod.html"].words
    assert words.count(HOSTILE) >= 10
    for place in (
        f"Median of means {HOSTILE}",  # title
        f"It costs no more than the mean {HOSTILE}",  # statement
        "“negligible” <b>overhead</b>",  # what the authors report
        f"{HOSTILE} & co",  # a method's name
        f"MemoryError: cannot allocate {HOSTILE}",  # why a trial failed
        f"name it with --data {HOSTILE}",  # why one did not run
        f"Superior(margin=0.0, {HOSTILE})",  # an earlier rule
        f'KeyError: "no column {HOSTILE}"',  # why a picture could not be drawn
    ):
        assert place in words, place


def test_nothing_is_loaded_from_anywhere(texts: dict[str, str], parsed: dict[str, Page]) -> None:
    for name, page in parsed.items():
        assert not page.all("src")
        assert not page.tags("link")
        for reference in page.all("href") + page.all("xlink:href"):
            assert reference.startswith("#") or reference.partition("#")[0] in texts, reference
        addresses = re.findall(r"https?://[^\s\"'<>)]+", texts[name])
        assert {address for address in addresses if not address.startswith("http://www.w3.org/")} == set()
        assert not re.search(r"@import|url\((?!#)", texts[name])
        (policy,) = [
            meta["content"] for meta in page.tags("meta") if meta.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policy.startswith("default-src 'none'")


def test_every_link_leads_somewhere(parsed: dict[str, Page]) -> None:
    for name, page in parsed.items():
        for reference in page.all("href") + page.all("xlink:href"):
            target, _, fragment = reference.partition("#")
            if fragment:
                assert fragment in parsed[target or name].all("id"), reference


def test_no_identifier_stands_twice(parsed: dict[str, Page]) -> None:
    for page in parsed.values():
        assert [name for name, n in Counter(page.all("id")).items() if n > 1] == []


def test_every_element_is_closed(parsed: dict[str, Page]) -> None:
    assert all(page.open == [] for page in parsed.values())


# -- for everyone


def test_headings_descend_one_step_at_a_time(parsed: dict[str, Page]) -> None:
    for page in parsed.values():
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_headers_have_a_scope_and_signs_a_name(parsed: dict[str, Page]) -> None:
    for page in parsed.values():
        assert all("scope" in header for header in page.tags("th"))
        for drawing in page.tags("svg"):
            assert drawing.get("aria-hidden") == "true" or drawing.get("aria-label")


def test_keyboard_and_screen_reader_find_their_way(parsed: dict[str, Page], texts: dict[str, str]) -> None:
    for name, page in parsed.items():
        assert page.elements[[tag for tag, _ in page.elements].index("a")] == (
            "a",
            {"class": "skip", "href": "#content"},
        )
        assert page.tags("html")[0]["lang"] == "en"
        assert all(
            box["tabindex"] == "0" and box["aria-label"] for box in page.tags("div") if box.get("class") == "scroll"
        )
        for needed in (":focus-visible", "prefers-color-scheme: dark", "@media print", "width=device-width"):
            assert needed in texts[name]


# -- what a reader needs


def test_the_index_shows_every_verdict_first(parsed: dict[str, Page], results: Sequence[MethodResults]) -> None:
    page = parsed["index.html"]
    signs = [svg["aria-label"] for svg in page.tags("svg") if svg.get("role") == "img"]
    for one in results:
        for claim, verdict in zip(one.claims, one.verdicts, strict=True):
            assert f"{verdict.outcome}: {claim.statement}" in signs
    assert (
        page.words.index("Its authors’ claims")
        < page.words.index("Our own checks")
        < page.words.index("How to read a verdict")
    )
    assert "12 claims of their authors put to the test at quick scale" in page.words
    assert "numpy2.4.1" in page.words.replace(" ", "")
    assert "workbench" in page.words
    assert "upheld check toymethod plainmethod --scale quick" in page.words
    assert "1 rule was changed after results existed." in page.words


def test_every_page_says_how_to_read_a_verdict(parsed: dict[str, Page]) -> None:
    for page in parsed.values():
        assert "fixed before anything was measured" in page.words
        assert "The intervals aim at 2.5 % either way" in page.words


def article(text: str, claim: Claim) -> Page:
    start = text.index(f'<article class="claim" id="{anchor(claim)}">')
    return Page(text[start : text.index("</article>", start) + len("</article>")])


def test_each_claim_has_all_its_evidence(texts: dict[str, str], results: Sequence[MethodResults]) -> None:
    for one in results:
        for claim, verdict in zip(one.claims, one.verdicts, strict=True):
            page = article(texts[f"{one.name}.html"], claim)
            words = page.words
            assert claim.statement[1:] in words
            assert " ".join(claim.rule.words().split())[1:] in words
            assert verdict.rule in page.text
            assert f"upheld check {one.name} --scale quick" in words
            assert verdict.change in words
            assert claim.reported is None or claim.reported in words
            for finding in verdict.findings:
                assert finding.label.split(",")[0] in words
            assert sum(svg.get("role") == "img" and "interval" in svg["aria-label"] for svg in page.tags("svg")) >= len(
                verdict.findings
            )


def test_the_decisive_estimate_and_n(texts: dict[str, str], results: Sequence[MethodResults]) -> None:
    words = article(texts["toymethod.html"], results[0].claims[1]).words
    assert re.search(
        r"Estimate −0\.4\d+ \[−0\.\d+, −0\.\d+\] slope of log error in log n of mom n 11 seeds Trials 118 of 120 done, 2 failed",
        words,
    )


def test_a_changed_rule_is_said_with_the_earlier_verdict(
    texts: dict[str, str], results: Sequence[MethodResults]
) -> None:
    page = article(texts["toymethod.html"], results[0].claims[3])
    assert "changed" in [attributes.get("class") for attributes in page.tags("p")]
    assert "The rule was changed after results existed." in page.words
    assert "with the verdict upheld" in page.words


def test_sixty_findings_are_folded(texts: dict[str, str], results: Sequence[MethodResults]) -> None:
    page = article(texts["toymethod.html"], results[0].claims[0])
    assert "60 estimates:" in page.words
    assert "All 60 estimates, in the order of the rule" in page.words
    assert len(page.tags("tr")) == (1 + 8 + 1) + (1 + 60 + 1)
    assert all("open" not in fold for fold in page.tags("details"))


def test_a_methods_own_picture_stands_beside_the_forest(
    texts: dict[str, str], results: Sequence[MethodResults]
) -> None:
    page = article(texts["toymethod.html"], results[0].claims[0])
    assert [figure.get("class") for figure in page.tags("figure")] == [None, "own"]


def test_lost_trials_are_named(parsed: dict[str, Page]) -> None:
    words = parsed["toymethod.html"].words
    assert "n = 3000, law = pareto 3 failed: timed out after 10 s" in words
    assert f"p = 400 1, 3, 5, 7 failed: MemoryError: cannot allocate {HOSTILE}" in words
    assert "missing: not measured yet" in words


def test_a_picture_that_cannot_be_drawn_is_reported_and_loses_nothing(results: Sequence[MethodResults]) -> None:
    def broken(frame: pd.DataFrame) -> Figure:
        raise RuntimeError("no such column")

    one = dataclasses.replace(results[1], pictures={"plainmethod.wins": broken})
    with pytest.warns(
        RuntimeWarning, match=r"plainmethod\.wins: its picture could not be drawn: RuntimeError: no such column"
    ):
        text = method_page(one)
    assert "The picture of these measurements could not be drawn: RuntimeError: no such column" in Page(text).words


@pytest.mark.filterwarnings("ignore:toymethod:RuntimeWarning")
def test_a_smoke_run_is_said_to_decide_nothing(smoke_results: Sequence[MethodResults]) -> None:
    texts = pages(smoke_results)
    for text in texts.values():
        assert "It decides nothing." in text
    assert all(
        verdict.outcome not in (Outcome.UPHELD, Outcome.NOT_UPHELD) for one in smoke_results for verdict in one.verdicts
    )


def test_counted() -> None:
    assert (counted(1, "seed"), counted(1200, "seed/item"), counted(10, "file")) == (
        "1 seed",
        "1,200 items of all seeds",
        "10 values of file",
    )


# -- writing


@pytest.mark.filterwarnings("ignore:toymethod:RuntimeWarning")
def test_the_report_is_written_whole_and_again(results: Sequence[MethodResults], tmp_path: Path) -> None:
    index = write_report(results, tmp_path / "report")
    assert index == tmp_path / "report" / "index.html"
    first = {path.name: path.read_bytes() for path in index.parent.iterdir()}
    assert set(first) == {"index.html", "toymethod.html", "plainmethod.html", "verdicts.json"}
    write_report(results, tmp_path / "report")
    assert {
        path.name: path.read_bytes() for path in index.parent.iterdir()
    } == first  # the same results, the same bytes


def test_a_folder_that_cannot_be_written(results: Sequence[MethodResults], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match=r"cannot write .*taken"):
        write_report(results[1:], tmp_path / "taken" / "report")


@pytest.mark.parametrize("name", ["../etc", "index", "", "a/b", ".hidden", HOSTILE])
def test_a_name_that_cannot_name_a_page(results: Sequence[MethodResults], name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a page"):
        page_name(dataclasses.replace(results[1], name=name))


def test_no_method_and_the_same_method_twice(results: Sequence[MethodResults], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no method to report on"):
        write_report([], tmp_path)
    with pytest.raises(ValueError, match="two methods of the same name"):
        pages([results[1], results[1]])


# -- in a browser

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MEASURE = """<pre id="wide"></pre><script>
const width = document.documentElement.clientWidth;
document.getElementById("wide").textContent = [...document.querySelectorAll("body *")].filter(one =>
    one.getBoundingClientRect().right > width + 1 && !one.closest(".scroll, .own, .hidden, .sprite, thead, #wide"))
  .map(one => one.outerHTML.slice(0, 80)).join("\\n")
  + "|" + document.documentElement.scrollWidth + "|" + width;
</script></body>"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("name", ["index.html", "toymethod.html"])
def test_nothing_is_wider_than_a_phone(texts: dict[str, str], name: str, tmp_path: Path) -> None:
    text = re.sub(r"<meta http-equiv.*?>", "", texts[name]).replace("</body>", MEASURE)
    (tmp_path / "inner.html").write_text(text)
    frame = "document.body.textContent = document.querySelector('iframe').contentDocument.getElementById('wide').textContent"
    (tmp_path / "frame.html").write_text(
        f'<body><iframe src="inner.html" width="380" height="900" onload="{frame}"></iframe></body>'
    )
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               "--allow-file-access-from-files",
               f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", (tmp_path / "frame.html").as_uri()]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    wide, scrolled, width = re.search(r"<body>(.*)\|(\d+)\|(\d+)</body>", found, re.DOTALL).groups()  # type: ignore[union-attr]
    assert int(width) <= 380
    assert wide == ""
    assert int(scrolled) <= int(width)
