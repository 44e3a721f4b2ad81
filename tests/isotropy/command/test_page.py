"""The page: whole, self-contained, hostile text shown as text, and what it says is what was found."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
from isotropy_toys import WordEmbedder

from upheld.isotropy.command.document import run_document
from upheld.isotropy.command.page import cosines_svg, map_labels, map_svg, page, shown, strip_svg
from upheld.isotropy.command.survey import Digest, Reading, scored
from upheld.isotropy.data.responses import Responses
from upheld.isotropy.passages import Passage, passages

VOID = {"meta", "link", "br", "img", "input", "hr"}
HOSTILE = '<script>alert(1)</script> & "q" \'</style> {{ 7 * 7 }} \u202e&lt;b&gt;'


class Page(HTMLParser):
    """Elements with their attributes, and the text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def tags(self, name: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def found(items, **reading):
    digest = Digest(10)
    for one in scored(((item, None) for item in items), Reading(WordEmbedder(), **reading)):
        digest.add(one)
    return digest


def written(items, *, pictures=(), **document) -> str:
    digest = found(items)
    said = {
        "source": "answers.jsonl",
        "settings": {"embedder": "words", "n": 3, "template": None},
        "titles": {},
        "not_run": {},
    }
    text = run_document(digest, **{**said, "remarks": [], **document})
    differing = {one.item.id: passages(list(one.item.responses), WordEmbedder()) for one in digest.worst}
    return page(
        json.loads(json.dumps(text)),
        digest.worst,
        differing,
        pictures=dict(pictures),
        command="upheld run isotropy a.jsonl",
    )


def item(id_="q1", **other):
    answers = ["Lima lies in Peru. It is large.", "Lima lies in Peru. It is old.", "Quito hates fish. It is large."]
    return Responses(id_, "Where is Lima?", answers, **other)


def test_it_shows_the_answers_the_odd_one_and_the_passage():
    text = written([item()])
    seen = Page(text)
    for answer in item().responses:
        assert answer in seen.text
    classes = [section["class"].split() for section in seen.tags("section")]
    assert classes[0] == ["answer", "medoid"]
    assert classes[1] == ["answer", "odd"]
    assert "Answer 3 odd one out" in " ".join(seen.text.split())
    assert re.search(r'<mark class="first"[^>]*>Quito hates fish\.</mark>', text)
    assert "a falsehood that all responses share scores low" in seen.text
    assert "no probability of an error" in seen.text
    assert "upheld run isotropy a.jsonl" in seen.text


def test_whatever_a_text_holds_is_text():
    hostile = Responses(
        f"id {HOSTILE[:-10]}",
        f"prompt {HOSTILE}",
        [f"first {HOSTILE}. Lima.", f"second {HOSTILE}. Quito.", "third </div>. Peru."],
    )
    text = written([hostile], remarks=[f"remark {HOSTILE}"], source=f"file {HOSTILE}", not_run={"x": HOSTILE}, titles={"x": HOSTILE},
                   settings={"embedder": HOSTILE, HOSTILE: HOSTILE})  # fmt: skip
    seen = Page(text)
    assert seen.tags("script") == []
    assert "<script" not in text
    assert f"prompt {HOSTILE}" in seen.text
    assert f"first {HOSTILE}." in seen.text
    assert "third </div>." in seen.text
    assert "49" not in re.sub(r"\d*\.\d+", "", seen.text)


def test_it_loads_nothing_and_its_links_lead_somewhere():
    text = written([item(), item("q2")], pictures={"A picture": b"<svg/>"})
    seen = Page(text)
    policy = next(tag["content"] for tag in seen.tags("meta") if tag.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert seen.tags("link") == []
    assert all(image["src"].startswith("data:image/svg+xml;base64,") and image["alt"] for image in seen.tags("img"))
    assert not re.search(r"""(?:src|href)=["']?(?:https?:|//)|@import|url\(""", text)
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"].removeprefix("#") for link in seen.tags("a")} <= set(ids)


def test_labels_expectation_and_mixed_numbers_are_shown_where_they_are():
    plain = Page(written([item()])).text
    assert "Factuality" not in plain
    items = [Responses(f"q{k}", "", ["red green", "red blue", f"w{k} v{k}"], factuality=k / 7) for k in range(7)]
    text = " ".join(Page(written(items, mixed=True)).text.split())
    assert "How well the score foretells factuality here" in text
    assert "7 labelled prompts" in text
    assert "Unbiasedpurity" in text


def test_two_answers_have_no_error_and_no_odd_one():
    text = Page(written([Responses("q", "", ["red green", "blue"])])).text
    assert "n/a" in text
    assert "not known for two answers" in text


def test_many_answers_are_folded():
    many = Responses("q", "", [f"word{k} red" for k in range(12)])
    seen = Page(written([many]))
    assert "The other 6 answers" in seen.text
    assert len([section for section in seen.tags("section") if "answer" in section["class"]]) == 12


def test_the_medoid_comes_first_then_the_odd_one():
    [one] = found([item()]).worst
    answers = shown(one, [])
    assert [answer.number for answer in answers][1] == 3
    assert answers[0].medoid
    assert answers[1].odd
    assert "".join(piece.text for piece in answers[1].pieces) == item().responses[2]


def test_marks_cut_the_text_and_lose_nothing():
    [one] = found([item()]).worst
    text = item().responses[2]
    marked = [
        Passage(2, 18, 30, text[18:30], 0.2, 0.1),
        Passage(2, 0, 17, text[:17], 0.1, 0.1),
        Passage(0, 0, 18, "", 0.99, 0.0),
    ]
    odd = shown(one, sorted(marked, key=lambda passage: passage.support))[1]
    assert [(piece.text, piece.mark) for piece in odd.pieces] == [
        ("Quito hates fish.", "first"), (" ", ""), ("It is large.", "differs"),
    ]  # fmt: skip


def test_the_map_places_answers_by_their_cosines():
    [one] = found([Responses("q", "", ["red", "red", "blue"])]).worst
    dots = re.findall(r'<(?:circle|rect) class="\w+" (?:cx|x)="([\d.-]+)" (?:cy|y)="([\d.-]+)"', map_svg(one))
    assert len(dots) == 3
    assert dots[0] == dots[1] != dots[2]
    assert "1, 2" in map_svg(one)  # the same place, one label


def test_labels_never_cover_each_other():
    rng = np.random.default_rng(0)
    for _ in range(50):
        at = np.column_stack([rng.uniform(0.6, 1, 9), rng.uniform(-0.4, 0.4, 9)])
        labels = map_labels(at, range(1, 10))
        assert sorted(int(n) for _, text in labels for n in text.split(", ")) == list(range(1, 10))
        for k, ((x, y), _) in enumerate(labels):
            for (other_x, other_y), _ in labels[k + 1 :]:
                assert abs(x - other_x) > 0.04 or abs(y - other_y) > 0.02


def test_the_heat_map_holds_every_cosine_once_each_way():
    [one] = found([item()]).worst
    svg = cosines_svg(one)
    assert svg.count('class="cell"') == 9
    written_cosines = re.findall(r'class="cosine"[^>]*>([^<]+)<', svg)
    K = one.result.cosines
    expected = [f"{K[i, j]:.2f}".replace("0.", ".", 1) for i in range(3) for j in range(3) if i != j]
    assert written_cosines == [text.replace("-", "−") for text in expected]


def test_a_score_without_error_has_no_bar():
    assert 'class="bar"' in strip_svg(0.5, 0.1)
    assert 'class="bar"' not in strip_svg(0.5, float("nan"))


def test_labels_of_the_map_end_inside_it():
    [one] = found([Responses("q", "", [f"the river is long {k % 2}" for k in range(20)])]).worst
    svg = map_svg(one)
    width = float(re.search(r'viewBox="0 0 (\d+)', svg)[1])
    labels = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)', svg)
    assert max(len(label) for _, label in labels) > 20
    assert all(float(x) + 7 * len(label) <= width for x, label in labels)


def test_long_ids_are_cut_and_numbers_are_called_prompts():
    text = Page(written([Responses("x" * 2000, "p", ["a b", "c d"]), Responses("7", "p", ["a b", "a c"])])).text
    assert "x" * 121 not in text
    assert "Prompt 7" in text
