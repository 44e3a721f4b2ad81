"""Where sentences end, and where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.isotropy.sentences import sentence_spans


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. J. R. Oppenheimer met Mr. Fermi. They talked.", ["Dr. J. R. Oppenheimer met Mr. Fermi.", "They talked."]),
        ("It rose 3.5 points in 1815. Then it fell.", ["It rose 3.5 points in 1815.", "Then it fell."]),
        ('He said "Go." She went.', ['He said "Go."', "She went."]),
        ("Tests (e.g. Fisher's) exist. so do others.", ["Tests (e.g. Fisher's) exist. so do others."]),
        ("Works:\n1. First book\n2. Second book\n\nThe end", ["Works:", "1. First book", "2. Second book", "The end"]),
        ("a line\nthat goes on. Next", ["a line\nthat goes on.", "Next"]),
        ("東京は首都。人口は多い。", ["東京は首都。", "人口は多い。"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_sentences(text, sentences):
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@given(st.text(alphabet="aB1.!?。 \n-\t\"'", max_size=60))
def test_spans_hold_everything_but_white_space_in_order(text):
    spans = sentence_spans(text)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    assert "".join(text[start:end] for start, end in spans).split() == [] or all(
        text[start:end] == text[start:end].strip() != "" for start, end in spans
    )
    between = "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    assert between.strip() == ""
