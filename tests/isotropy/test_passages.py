"""Passages: offsets, what support and influence say, and planted errors with a real embedder."""

from __future__ import annotations

import numpy as np
import pytest
from isotropy_toys import WordEmbedder

from upheld.isotropy import von_neumann_entropy
from upheld.isotropy.data.bioworld import KINDS, VALUES, generate
from upheld.isotropy.passages import passages
from upheld.isotropy.sentences import sentence_spans

GROUP = [
    "The river is long. Boats sail there.",
    "Boats sail there often. The river is long indeed.",
    "The river is very long. Dragons guard gold.",
]


def test_the_passage_that_no_other_answer_holds_comes_first():
    found = passages(GROUP, WordEmbedder())
    assert (found[0].answer, found[0].text) == (2, "Dragons guard gold.")
    assert found[0].influence > 0
    assert len(found) == 6
    assert all(GROUP[one.answer][one.start : one.end] == one.text for one in found)
    assert [one.support for one in found] == sorted(one.support for one in found)


def test_support_and_influence_by_hand():
    vectors = {"A": [1, 0, 0], "B": [0, 1, 0], "C": [0.6, 0.8, 0], "D": [0, 0, 1]}
    found = passages(["Ax. Bx.", "Cx.", "Dx. Ax."], lambda texts: [vectors[text[0]] for text in texts])
    by_text = {(one.answer, one.text): one for one in found}
    # Bx of answer 0: 0.8 with Cx, 0 with the nearest of Dx and Ax.
    assert by_text[0, "Bx."].support == pytest.approx(0.4)
    assert by_text[0, "Ax."].support == pytest.approx((0.6 + 1) / 2)
    whole = von_neumann_entropy([[1, 1, 0], [0.6, 0.8, 0], [1, 0, 1]], normalize=True)
    less = von_neumann_entropy([[1, 0, 0], [0.6, 0.8, 0], [1, 0, 1]], normalize=True)
    assert by_text[0, "Bx."].influence == pytest.approx(whole - less)
    assert np.isnan(by_text[1, "Cx."].influence)


def test_passages_of_several_sentences():
    found = passages(["One a. Two b. Three c.", "One a. Two b. Four d."], WordEmbedder(), sentences=2)
    assert sorted(one.text for one in found if one.answer == 0) == ["One a. Two b.", "Three c."]
    assert found[-1].support == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("group", "error", "message"),
    [
        (["one"], ValueError, "group 0 holds 1 answer"),
        (["one", " "], ValueError, "answer 1 of group 0 is empty"),
        (np.eye(2), TypeError, "passages are found in texts"),
    ],
)
def test_bad_input(group, error, message):
    with pytest.raises(error, match=message):
        passages(group, WordEmbedder())
    with pytest.raises(ValueError, match="sentences must be at least 1, got 0"):
        passages(GROUP, WordEmbedder(), sentences=0)


@pytest.mark.slow
def test_minilm_finds_a_planted_falsehood():
    """One value of one sentence of one of five true biographies is altered; by chance it would be among the first three in 9 %."""
    rng = np.random.default_rng(3)
    found = 0
    for person in generate(rng, persons=12, mode="style"):
        statements = [
            [text[start:end] for start, end in sentence_spans(text) if any(value in text[start:end] for value in person.truth)]
            for text in person.answers
        ]  # fmt: skip
        attribute = int(rng.integers(len(person.truth)))
        true, kind = person.truth[attribute], KINDS[attribute]
        false = next(value for value in VALUES[kind] if value != true)
        place = next(q for q, sentence in enumerate(statements[0]) if true in sentence)
        statements[0][place] = statements[0][place].replace(true, false)
        first = passages([" ".join(one) for one in statements])[:3]
        found += any((one.answer, one.text) == (0, statements[0][place]) for one in first)
    assert found >= 6
