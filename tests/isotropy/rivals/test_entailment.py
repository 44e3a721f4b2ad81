"""Semantic entropy, LUQ and SelfCheckGPT: against uqlm, lm-polygraph and selfcheckgpt, on a hand-made table of judgements."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.isotropy.rivals.entailment import (
    answer_entailment,
    best_sentence_support,
    entailment_similarity,
    luq,
    luq_pair,
    selfcheck,
    semantic_clusters,
    semantic_entropy,
    sentence_entailment,
    sentence_pairs,
    support,
)

ANSWERS = ["A one. A two.", "B one.", "C one. C two. C three."]

# Logits of contradiction, neutral, entailment of (premise, hypothesis), drawn once.
SENTENCE_LOGITS = {
    ("B one.", "A one."): [0.1, 2.7, 2.4],
    ("C one. C two. C three.", "A one."): [-1.0, -0.6, -1.1],
    ("B one.", "A two."): [1.1, -0.1, 1.5],
    ("C one. C two. C three.", "A two."): [-3.7, 3.1, -0.2],
    ("A one. A two.", "B one."): [1.4, -0.3, -0.8],
    ("C one. C two. C three.", "B one."): [0.9, 1.6, -0.4],
    ("A one. A two.", "C one."): [-0.3, 1.4, -1.7],
    ("B one.", "C one."): [-3.0, 0.8, -1.3],
    ("A one. A two.", "C two."): [-3.8, -1.6, -0.9],
    ("B one.", "C two."): [-2.4, -3.0, 0.1],
    ("A one. A two.", "C three."): [1.8, -0.5, -1.5],
    ("B one.", "C three."): [0.8, 1.4, -0.6],
    ("C one.", "A one."): [1.1, 2.1, -0.4],
    ("C two.", "A one."): [-1.6, 0.7, 0.5],
    ("C three.", "A one."): [2.2, -2.6, -1.3],
    ("C one.", "A two."): [-1.7, -3.5, 0.3],
    ("C two.", "A two."): [1.1, -1.5, 2.8],
    ("C three.", "A two."): [1.6, 1.3, 0.8],
    ("A one.", "B one."): [1.9, -2.7, 1.2],
    ("A two.", "B one."): [1.2, -3.5, 0.7],
    ("C one.", "B one."): [-0.5, 1.6, -0.9],
    ("C two.", "B one."): [-0.0, 0.7, -1.8],
    ("C three.", "B one."): [1.2, -0.2, 1.0],
    ("A one.", "C one."): [-1.0, 2.2, 1.2],
    ("A two.", "C one."): [-0.4, 1.3, 2.5],
    ("A one.", "C two."): [3.6, -3.1, 1.8],
    ("A two.", "C two."): [0.9, -0.2, -2.0],
    ("A one.", "C three."): [2.5, -2.5, 1.1],
    ("A two.", "C three."): [2.6, -3.2, -0.6],
}


class Table:
    """Judges the pairs of a table, and remembers what it was asked."""

    def __init__(self, logits):
        self.logits, self.asked = logits, []

    def log_probabilities(self, pairs):
        self.asked += pairs
        logits = np.array([self.logits[pair] for pair in pairs])
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def classes(likeliest):
    """(N, N, 3) log-probabilities with the given likeliest classes."""
    return np.log(np.full((*np.shape(likeliest), 3), 0.1) + 0.7 * np.eye(3)[np.asarray(likeliest)])


def test_luq_equals_uqlm():
    # uqlm 0.6.7, UnitResponseScorer: contrasted entailment of each answer's sentences by the other answers
    by_sentence = sentence_entailment(ANSWERS, Table(SENTENCE_LOGITS))
    np.testing.assert_allclose(
        support(by_sentence[0]),
        [[0.9088770389851439, 0.47502081252106], [0.5986876601124519, 0.9706877692486436]],
        atol=1e-12,
    )
    np.testing.assert_allclose(support(by_sentence[1]), [[0.09975048911968513, 0.2141650169574414]], atol=1e-12)
    assert luq(by_sentence) == pytest.approx(0.5266453975830774, abs=1e-12)


def test_luq_pair_equals_uqlm():
    # uqlm 0.6.7, MatchedUnitScorer(consistency_functions=["nli"])
    assert luq_pair(best_sentence_support(ANSWERS, Table(SENTENCE_LOGITS))) == pytest.approx(0.4079431262290595)


def test_selfcheck_equals_selfcheckgpt():
    # selfcheckgpt 0.1.7, SelfCheckNLI.predict on the sentences of the first answer, with the logits of entailment and contradiction
    first = sentence_entailment(ANSWERS, Table(SENTENCE_LOGITS))[0]
    np.testing.assert_allclose(1 - support(first).mean(axis=1), [0.3080510742468981, 0.21531228531945215], atol=1e-12)
    assert selfcheck(first) == pytest.approx(0.26168167978317514)


def test_luq_is_selfcheck_of_every_answer():
    by_sentence = sentence_entailment(ANSWERS, Table(SENTENCE_LOGITS))
    assert luq(by_sentence) == pytest.approx(np.mean([selfcheck(log_p) for log_p in by_sentence]))


def test_semantic_entropy_equals_lm_polygraph():
    # lm-polygraph 0.7.0: SemanticClassesCalculator and SemanticEntropy(class_probability_estimation="frequency")
    log_p = classes([[2, 2, 1, 2, 0], [2, 2, 2, 2, 0], [1, 1, 2, 1, 1], [2, 2, 2, 2, 0], [0, 0, 0, 0, 2]])
    assert semantic_clusters(log_p) == [[0, 1, 3], [2], [4]]
    assert semantic_entropy(log_p) == pytest.approx(0.9502705392332345, abs=1e-12)


def test_entailment_one_way_is_not_the_same_meaning():
    assert semantic_clusters(classes([[2, 2], [1, 2]])) == [[0], [1]]
    assert semantic_entropy(classes([[2, 2], [1, 2]])) == pytest.approx(np.log(2))


def test_semantic_entropy_of_one_meaning_is_zero():
    assert semantic_entropy(classes(np.full((4, 4), 2))) == 0


def test_support_where_neutral_swallows_all():
    # Probabilities of 1e-200 and 1e-201: their softmax in float64 is far from exact, their ratio is 10/11.
    log_p = np.array([np.log(1e-200) - np.log(10), 0.0, np.log(1e-200)])
    assert support(log_p) == pytest.approx(10 / 11)


def test_similarity_is_the_mean_of_both_directions():
    P = np.array([[[0.0, 0.0, 1.0], [0.3, 0.1, 0.6]], [[0.7, 0.1, 0.2], [0.0, 0.0, 1.0]]])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(entailment_similarity(np.log(P)), [[1, 0.4], [0.4, 1]])


def test_premise_comes_first():
    model = Table({("x", "y"): [0, 0, 5.0], ("y", "x"): [5.0, 0, 0]})
    log_p = answer_entailment(["x", "y"], model)
    assert log_p[0, 1].argmax() == 2
    assert log_p[1, 0].argmax() == 0


def test_equal_texts_are_certain_and_nothing_is_asked_twice():
    model = Table({("x", "y"): [1, 2, 3], ("y", "x"): [3, 2, 1]})
    log_p = answer_entailment(["x", "y", "x"], model)
    assert sorted(model.asked) == [("x", "y"), ("y", "x")]
    np.testing.assert_array_equal(log_p[0, 2], [-np.inf, -np.inf, 0])
    np.testing.assert_array_equal(log_p[1, 0], log_p[1, 2])


def test_number_of_pairs_is_what_is_asked():
    model = Table(SENTENCE_LOGITS)
    sentence_entailment(ANSWERS, model)
    assert len(model.asked) == sentence_pairs(ANSWERS) == 2 * (2 + 1 + 3)


@pytest.mark.parametrize("order", [[1, 0, 2], [2, 1, 0], [1, 2, 0]])
def test_order_of_answers_does_not_matter_to_luq(order):
    answers = [ANSWERS[i] for i in order]
    assert luq(sentence_entailment(answers, Table(SENTENCE_LOGITS))) == pytest.approx(0.5266453975830774)
    assert luq_pair(best_sentence_support(answers, Table(SENTENCE_LOGITS))) == pytest.approx(0.4079431262290595)
