"""What a model says of its own answers is read strictly, and what cannot be read is NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from upheld.isotropy.confidence import (
    p_true,
    p_true_each,
    read_percentage,
    verbalised_confidence,
    verbalised_confidence_each,
)
from upheld.llm import Answer, ModelError, Token, language_model


def with_tokens(drawn, alternatives):
    """A model whose first token has these probabilities."""
    pairs = tuple((text, math.log(p)) for text, p in alternatives.items())
    token = Token(drawn[0], math.log(drawn[1]), pairs)
    return ScriptedModel(lambda _: Answer(drawn[0], "length", "m", (token,)))


def test_p_true_is_the_share_of_true_in_what_true_and_false_have():
    found = p_true(with_tokens((" True", 0.3), {" True": 0.3, "False": 0.1, "The": 0.6}), "Where?", "Here.")
    assert found.value == pytest.approx(0.75)
    assert found.read == pytest.approx(0.4)
    assert found.source == "logprobs"


def test_all_beginnings_of_a_word_count_and_no_other():
    alternatives = {
        "True": 0.2,
        " true": 0.1,
        "TRUE": 0.05,
        "T": 0.05,
        "Fal": 0.1,
        "Truth": 0.2,
        "\n": 0.1,
        "Falsehood": 0.2,
    }
    found = p_true(with_tokens(("True", 0.2), alternatives), "Where?", "Here.")
    assert found.value == pytest.approx(0.4 / 0.5)
    assert found.read == pytest.approx(0.5)


def test_the_drawn_token_counts_once_whether_it_is_among_the_alternatives_or_not():
    assert p_true(with_tokens(("True", 0.1), {"False": 0.3}), "Where?", "Here.").value == pytest.approx(0.25)
    assert p_true(with_tokens(("True", 0.1), {"False": 0.3, "True": 0.1}), "Where?", "Here.").value == pytest.approx(
        0.25
    )


def test_a_model_that_says_neither_word_has_no_p_true():
    found = p_true(with_tokens(("Well", 0.9), {"Well": 0.9, "Hm": 0.1}), "Where?", "Here.")
    assert math.isnan(found.value)
    assert (found.read, found.source) == (0, "logprobs")


def test_an_endpoint_without_log_probabilities_can_be_sampled():
    replies = {0: "True", 1: " true.", 2: "False", 3: "**True**", 4: "Truly", 5: "I think so"}
    model = ScriptedModel(lambda request: replies[request.sampling.seed])
    found = p_true(model, "Where?", "Here.", by="samples", n_samples=6, seed=0)
    assert found.value == pytest.approx(3 / 4)
    assert found.read == pytest.approx(4 / 6)
    assert found.source == "samples"
    assert all(request.sampling.temperature == 1 and request.sampling.logprobs is None for request in model.asked)
    silent = p_true(ScriptedModel(lambda _: "?"), "Where?", "Here.", by="samples")
    assert math.isnan(silent.value)
    assert silent.read == 0
    with pytest.raises(
        ModelError, match=r"scripted gave no log-probabilities though they were asked for; take by='samples'"
    ):
        p_true(model := ScriptedModel(lambda _: "True"), "Where?", "Here.")
    assert len(model.asked) == 1


def test_a_model_that_ends_at_once_says_nothing():
    found = p_true(ScriptedModel(lambda _: Answer("", "stop", "m")), "Where?", "Here.")
    assert math.isnan(found.value)
    assert found.read == 0


def test_each_answer_has_its_own_samples():
    model = ScriptedModel(lambda request: "False" if "second" in request.messages[-1].content else "True")
    found = p_true_each(model, "Where?", ["first", "second", "third"], by="samples", n_samples=2)
    assert [one.value for one in found] == [1, 0, 1]
    assert (model.calls, len(model.asked)) == (1, 6)


def test_the_model_is_shown_question_and_answer():
    model = ScriptedModel(lambda _: "90")
    verbalised_confidence(model, "Where is Lima?", "In Peru.")
    with pytest.raises(ModelError):
        p_true(model, "Where is Lima?", "In Peru.")
    for request in model.asked:
        assert "Where is Lima?" in request.messages[-1].content
        assert "In Peru." in request.messages[-1].content
    assert model.asked[1].sampling.logprobs == 20
    assert model.asked[1].sampling.max_tokens == 1


@pytest.mark.parametrize(
    ("reply", "share"),
    [("85", 0.85), (" 85 %\n", 0.85), ("0", 0.0), ("100%", 1.0), ("Confidence: 7", 0.07), ("42.", 0.42), ("007", 0.07)],
)
def test_a_whole_number_of_percent_is_read(reply, share):
    assert read_percentage(reply) == share


@pytest.mark.parametrize(
    "reply", ["", "101", "-5", "0.85", "85.5", "about 85", "85 of 100", "8 5", "I am 90% sure", "85\n90", "٨٥", "%"]
)
def test_anything_else_is_not(reply):
    assert read_percentage(reply) is None


@given(st.text())
def test_no_reply_breaks_the_parser_or_leaves_the_unit_interval(reply):
    share = read_percentage(reply)
    assert share is None or 0 <= share <= 1


def test_an_unreadable_percentage_is_nan_and_counted():
    model = ScriptedModel(lambda request: "80" if "one" in request.messages[-1].content else "very sure")
    one, two = verbalised_confidence_each(model, "Where?", ["one", "two"])
    assert (one.value, one.read, one.source) == (0.8, 1, "stated")
    assert math.isnan(two.value)
    assert two.read == 0


@pytest.mark.parametrize("ask", [p_true, verbalised_confidence])
def test_bad_input(ask):
    model = ScriptedModel(lambda _: "50")
    with pytest.raises(ValueError, match="the answer is empty"):
        ask(model, "Where?", " ")
    with pytest.raises(ValueError, match="the prompt is empty"):
        ask(model, "", "Here.")
    assert model.asked == []
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        p_true(model, "Where?", "Here.", n_samples=0)
    with pytest.raises(ValueError, match="by must be 'logprobs' or 'samples', got 'words'"):
        p_true(model, "Where?", "Here.", by="words")


@pytest.mark.slow
def test_the_embedded_model_is_surer_of_a_truth_than_of_nonsense_and_obeys_no_other_instruction():
    """SmolLM2 (135M parameters) puts most of the probability on the two words, but states no percentage when asked for one."""
    model = language_model("embedded")
    truth, nonsense = p_true_each(model, "Where is Paris?", ["Paris lies in France.", "Paris is a fish."])
    assert 1 > truth.value > nonsense.value > 0
    assert min(truth.read, nonsense.read) > 0.5
    stated = verbalised_confidence(model, "Where is Paris?", "Paris lies in France.")
    assert math.isnan(stated.value)
    assert stated.read == 0
