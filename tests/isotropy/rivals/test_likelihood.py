"""Perplexity and token entropy from log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.isotropy.rivals.likelihood import perplexity, token_entropy


def test_perplexity_of_a_fair_die_is_log_six():
    assert perplexity([[-np.log(6)] * 10, [-np.log(6)] * 3]) == pytest.approx(np.log(6))


def test_every_answer_counts_alike_whatever_its_length():
    assert perplexity([[-1.0] * 100, [-3.0]]) == pytest.approx(2)


def test_entropy_of_a_fair_die_is_log_six():
    die = {str(face): -np.log(6) for face in range(6)}
    assert token_entropy([[die, die], [die]]) == pytest.approx(np.log(6))


def test_the_rest_of_the_probability_is_one_more_alternative():
    # two alternatives with 1/2 and 1/4 leave 1/4
    place = {"a": np.log(0.5), "b": np.log(0.25)}
    assert token_entropy([[place]]) == pytest.approx(0.5 * np.log(2) + 2 * 0.25 * np.log(4))


def test_a_certain_model_has_neither():
    assert perplexity([[0.0, 0.0]]) == 0
    assert token_entropy([[{"a": 0.0}]]) == 0


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        ([[-1.0], []], "answer 1 has no tokens"),
        ([[-1.0, 0.7]], "token 1 of answer 0 is 0.7; it must be finite and at most 0"),
        ([[-np.inf]], "token 0 of answer 0 is -inf"),
        ([[float("nan")]], "is nan"),
    ],
)
def test_what_is_no_log_probability_is_named(logprobs, message):
    with pytest.raises(ValueError, match=message):
        perplexity(logprobs)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([[{"a": -0.1, "b": -0.1}]], "token 0 of answer 0 have probability 1.810 together"),
        ([[{"a": -0.1}, {}]], "token 1 of answer 0 must be a non-empty mapping"),
        ([[-0.5]], "token 0 of answer 0 must be a non-empty mapping"),
        ([[]], "answer 0 has no tokens"),
    ],
)
def test_what_are_no_alternatives_is_named(places, message):
    with pytest.raises(ValueError, match=message):
        token_entropy(places)
