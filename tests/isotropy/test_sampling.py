"""Samples keep their seeds, their tags are taken off, and what would make the score 0 by construction is said."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.sampling import INSTRUCTION, between_tags, draw_responses, sample_responses
from upheld.llm import Answer, ModelError, Usage, language_model


def by_seed(request):
    return f"<answer>answer to {request.messages[-1].content} with seed {request.sampling.seed}</answer>"


@pytest.mark.parametrize(
    ("text", "answer", "truncated"),
    [
        ("<answer>Lima.</answer>", "Lima.", False),
        ("Here it is:\n<ANSWER>\nLima.\n</Answer>\nMore?", "Lima.", False),
        ("Lima.</answer>", "Lima.", False),
        ("<answer>Lima.</answer><answer>Quito.</answer>", "Lima.", False),
        ("<answer>Lima lies", "Lima lies", True),
        ("<answer>Lima lies </", "Lima lies", True),
        ("<answer>Lima lies </answer", "Lima lies", True),
        ("no tags at all", "no tags at all", True),
        ("<answer>5 < 6 and a </b> tag</answer>", "5 < 6 and a </b> tag", False),
        ("<answer></answer>", "", False),
        ("", "", True),
    ],
)
def test_tags_are_taken_off_and_a_missing_closing_tag_is_told(text, answer, truncated):
    assert between_tags(text) == (answer, truncated)


@given(st.text().filter(lambda text: "answer>" not in text.lower()), st.text(alphabet="abc <>\n"))
def test_whatever_stands_between_the_tags_comes_out(inside, before):
    assert between_tags(f"{before}<answer>{inside}</answer>") == (inside.strip(), False)


@given(st.integers(0, 8))
def test_a_closing_tag_cut_anywhere_leaves_no_trace(length):
    assert between_tags("<answer>Lima" + "</answer>"[:length]) == ("Lima", True)


def test_more_samples_never_change_the_earlier_ones():
    few, many = (sample_responses(ScriptedModel(by_seed), "Who?", n=n, seed=7) for n in (3, 6))
    assert many[:3] == few == [f"answer to Who? with seed {seed}" for seed in (7, 8, 9)]
    assert draw_responses(ScriptedModel(by_seed), "Who?", n=3, seed=7).seeds == (7, 8, 9)


def test_the_request_is_what_was_asked_for():
    model = ScriptedModel(lambda request: f"<answer>{len(model.asked)} {id(request)}</answer>")
    draw_responses(model, "Who?", n=2, temperature=0.3, max_tokens=50)
    for request in model.asked:
        assert [turn.role for turn in request.messages] == ["system", "user"]
        assert request.messages[0].content == INSTRUCTION.text
        assert (request.sampling.temperature, request.sampling.max_tokens, request.sampling.seed) == (0.3, 50, None)
    assert model.calls == 1, "all answers are asked for together"


def test_a_cut_answer_is_kept_and_marked_and_usage_is_summed():
    answers = iter(
        [
            Answer("<answer>one</answer>", "stop", "m", usage=Usage(5, 7, 0.25)),
            Answer("<answer>two and", "length", "m", usage=Usage(5, 9, 0.5)),
        ]
    )
    drawn = draw_responses(ScriptedModel(lambda _: next(answers)), "Who?", n=2)
    assert drawn.texts == ("one", "two and")
    assert drawn.truncated == (False, True)
    assert drawn.finishes == ("stop", "length")
    assert drawn.usage == Usage(10, 16, 0.75)
    assert (drawn.model, drawn.wording, len(drawn)) == ("m", INSTRUCTION.id, 2)


def test_identical_answers_are_remarked_on_and_different_ones_are_not():
    with pytest.warns(IsotropyWarning, match="answers 0 and 1 are identical byte for byte"):
        sample_responses(ScriptedModel(lambda _: "<answer>same</answer>"), "Who?", n=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample_responses(ScriptedModel(by_seed), "Who?", n=3, seed=0)


def test_an_empty_answer_is_named():
    model = ScriptedModel(lambda request: "<answer> </answer>" if request.sampling.seed == 2 else by_seed(request))
    with pytest.raises(ModelError, match=r"answer 2 of scripted to 'Who\?' is empty"):
        sample_responses(model, "Who?", n=4, seed=0)


def test_bad_input():
    model = ScriptedModel(by_seed)
    with pytest.raises(ValueError, match="temperature 0 gives the same answer each time"):
        sample_responses(model, "Who?", temperature=0)
    with pytest.raises(ValueError, match="temperature must lie between 0 and 2"):
        sample_responses(model, "Who?", temperature=3)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        sample_responses(model, "Who?", n=0)
    with pytest.raises(ValueError, match="the prompt is empty"):
        sample_responses(model, " \n")
    assert model.asked == []


def test_answers_of_different_prompts_do_not_add_up():
    one, other = (draw_responses(ScriptedModel(by_seed), prompt, n=1, seed=0) for prompt in ("Who?", "When?"))
    with pytest.raises(ValueError, match="keep them apart"):
        one + other
    assert (one + one).texts == one.texts * 2


@pytest.mark.slow
def test_samples_of_the_embedded_model_differ_and_keep_their_seeds():
    model = language_model("embedded")
    few, many = (draw_responses(model, "Who was Ada Lovelace?", n, max_tokens=24, seed=3) for n in (2, 4))
    assert many.texts[:2] == few.texts
    assert len(set(many.texts)) == 4
    assert all(many.truncated)
    assert many.usage.completion_tokens == 4 * 24
