"""Jaccard and ROUGE-L: equal to the packages that users know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from upheld.isotropy.rivals.overlap import common_subsequence, jaccard, rouge_l

TEXTS = [
    "Ada Lovelace was born in London and wrote the first program.",
    "Ada Lovelace, born in London, wrote the first computer program.",
    "Ada was a mathematician who was born in Paris and taught at a university.",
    "The first program was written by Ada Lovelace in London",
    "Grace Hopper built the compiler at Harvard.",
]

VOCABULARY = [
    *["the", "The", "running", "runner", "ran,", "born-in", "1815", "1815."],
    *["city", "Cities", "universities", "é", "猫"],
]
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=70)


def test_jaccard_equals_lm_polygraph():
    # lm-polygraph 0.7.0, estimators/common.py on these texts
    expected = [
        [1.0, 0.5, 0.2777777777777778, 0.5, 0.058823529411764705],
        [0.5, 1.0, 0.15789473684210525, 0.25, 0.0625],
        [0.2777777777777778, 0.15789473684210525, 1.0, 0.15789473684210525, 0.05555555555555555],
        [0.5, 0.25, 0.15789473684210525, 1.0, 0.0625],
        [0.058823529411764705, 0.0625, 0.05555555555555555, 0.0625, 1.0],
    ]
    np.testing.assert_allclose(jaccard(TEXTS), expected, atol=1e-15)


def test_rouge_equals_lm_polygraph():
    # lm-polygraph 0.7.0, LexicalSimilarity() (rougeL) on these texts gives minus this
    assert rouge_l(TEXTS) == pytest.approx(0.28964052287581704, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS)
def test_rouge_equals_rouge_score(a, b):
    texts = [" ".join(a), " ".join(b)]
    expected = RougeScorer(["rougeL"], use_stemmer=True).score(*texts)["rougeL"].fmeasure
    assert rouge_l(texts) == pytest.approx(expected, abs=1e-12)


def test_rouge_is_the_mean_over_pairs():
    assert rouge_l(["a b", "a b", "c d"]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("a", "b", "length"), [("", "abc", 0), ("abcbdab", "bdcaba", 4), ("aaaa", "aa", 2), ("x" * 200, "x" * 130, 130)]
)
def test_common_subsequence(a, b, length):
    # "abcbdab" and "bdcaba" are the worked example of Cormen et al., section 15.4
    assert common_subsequence(a, b) == common_subsequence(b, a) == length
