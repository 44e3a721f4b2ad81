"""A judge's reply counts only if it is the answer cut in pieces; what cannot be read is unlabelled, never 0."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from upheld.isotropy.segments import (
    JUDGES,
    JudgedPrompt,
    Segment,
    SegmentScorer,
    Unreadable,
    read_segments,
)
from upheld.llm import Answer, Usage

ANSWER = "Ada was born in London. She died in 1900."
MARKED = [("Ada was born in London.", 1), ("She died in 1900.", 0)]


def reply(pairs=MARKED):
    return json.dumps([{"segment": text, "mark": mark} for text, mark in pairs])


# --- the parser -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        reply(),
        f"  {reply()}\n",
        f"```json\n{reply()}\n```",
        f"```\n{reply()}\n```",
        f"Here are the segments:\n\n```json\n{reply()}\n```\nDone.",
        json.dumps(json.loads(reply()), indent=2),
        reply([("Ada was\nborn   in London. ", 1), ("\tShe died in 1900.", 0)]),
    ],
)
def test_replies_that_count(text):
    assert [segment.mark for segment in read_segments(text, ANSWER)] == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("I cannot do this.", "is no JSON"),
        (reply()[:-3], "is no JSON"),
        (f"The list: {reply()}", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "no JSON list of segments"),
        ("[]", "no JSON list of segments"),
        ('"Ada"', "no JSON list of segments"),
        ("NaN", "no JSON list of segments"),
        ('[["Ada", 1]]', 'item 1 is no object with "segment" and "mark"'),
        ('[{"segment": "Ada"}]', "item 1 is no object"),
        ('[{"segment": "Ada", "mark": 1, "why": "so"}]', "nothing else"),
        ('[{"segment": "Ada", "segment": "x", "mark": 1}]', "the same key twice"),
        (reply([(ANSWER, 1), (" ", 0)]), "segment 2 is empty"),
        (reply([(ANSWER, True)]), "mark of segment 1 is true"),
        (reply([(ANSWER, 0.5)]), "mark of segment 1 is 0.5"),
        (reply([(ANSWER, 2)]), "mark of segment 1 is 2"),
        (reply([(ANSWER, "1")]), 'mark of segment 1 is "1"'),
        (reply([(ANSWER, 1.0)]), "mark of segment 1 is 1.0"),
        (reply(MARKED[:1]), "go on with '', the answer with 'Shediedin1900.'"),
        (reply(MARKED[::-1]), "are not the answer"),
        (reply([*MARKED, ("More.", 1)]), "go on with 'More.', the answer with ''"),
        (reply([("Ada was born in Paris.", 1), MARKED[1]]), "after 'Adawasbornin' they go on with 'Paris"),
        (reply([("ada was born in London.", 1), MARKED[1]]), "after '' they go on with 'adawas"),
    ],
)
def test_replies_that_do_not(text, message):
    with pytest.raises(Unreadable) as error:
        read_segments(text, ANSWER)
    assert message in str(error.value)


def test_an_answer_that_holds_a_code_fence_is_read():
    answer = "Write\n```python\nprint(1)\n```\nto print 1."
    assert read_segments(reply([(answer, 1)]), answer) == (Segment(answer, 1),)
    assert read_segments(f"```json\n{reply([(answer, 0)])}\n```", answer) == (Segment(answer, 0),)


@given(st.lists(st.tuples(st.text(min_size=1).filter(str.strip), st.integers(0, 1)), min_size=1), st.booleans())
def test_any_cut_of_any_text_is_read_back(pairs, fenced):
    text = f"```json\n{reply(pairs)}\n```" if fenced else reply(pairs)
    segments = read_segments(text, " ".join(part for part, _ in pairs))
    assert [(segment.text, segment.mark) for segment in segments] == pairs


@given(st.integers(0, len(ANSWER) - 1))
def test_one_letter_left_out_is_noticed(place):
    if ANSWER[place].isspace():
        return
    with pytest.raises(Unreadable, match="are not the answer"):
        read_segments(reply([(ANSWER[:place] + ANSWER[place + 1 :], 1)]), ANSWER)


# --- the judge --------------------------------------------------------------------------------------------------------


def test_factuality_is_the_mean_of_the_marks_not_of_the_letters():
    judge = ScriptedModel(lambda _: reply([("Ada was born in London. She died", 1), ("in 19", 0), ("00.", 1)]))
    judged = SegmentScorer(judge).judge_prompt([ANSWER], "reference")
    assert judged.factualities == (pytest.approx(2 / 3),)
    assert judged.nonfactuality == pytest.approx(1 / 3)


def test_the_judge_is_shown_reference_and_answer_under_the_instruction_chosen():
    judge = ScriptedModel(lambda _: reply())
    judged = SegmentScorer(judge, judge=JUDGES[2], max_tokens=99, seed=4).judge_prompt([ANSWER], "Ada: London, 1815.")
    [request] = judge.asked
    system, user = request.messages
    assert system.content == JUDGES[2].text
    assert "Ada: London, 1815." in user.content
    assert ANSWER in user.content
    assert (request.sampling.temperature, request.sampling.max_tokens, request.sampling.seed) == (0, 99, 4)
    assert judged.judge == JUDGES[2].id


def test_a_second_attempt_goes_on_with_the_conversation_and_says_what_is_wrong():
    judge = ScriptedModel(lambda request: reply() if len(request.messages) > 2 else reply(MARKED[:1]))
    [judged] = SegmentScorer(judge).judge_answers([ANSWER], ["reference"])
    assert (judged.factuality, judged.attempts, judged.reason) == (0.5, 2, None)
    assert len(judge.asked) == 2
    assert [turn.role for turn in judge.asked[1].messages] == ["system", "user", "assistant", "user"]
    assert judge.asked[1].messages[2].content == reply(MARKED[:1])
    assert "the answer with 'Shediedin1900.'" in judge.asked[1].messages[3].content
    assert judged.usage.prompt_tokens == 20, "both attempts cost"


def test_only_the_failed_ones_are_asked_again_and_all_of_them_at_once():
    other = "Bob was here."

    def script(request):
        if len(request.messages) > 2:
            return reply([(other, 0)])
        return reply() if ANSWER in request.messages[1].content else "?"

    judge = ScriptedModel(script)
    judged = SegmentScorer(judge).judge_answers([other, ANSWER, other], ["r"] * 3)
    assert [one.factuality for one in judged] == [0, 0.5, 0]
    assert [one.attempts for one in judged] == [2, 1, 2]
    assert (judge.calls, len(judge.asked)) == (2, 5)


def test_what_is_never_readable_is_unlabelled_counted_and_left_out():
    bad = "Bob was here."
    judge = ScriptedModel(lambda request: reply() if ANSWER in request.messages[1].content else "no")
    judged = SegmentScorer(judge).judge_prompt([ANSWER, bad, ANSWER], "reference")
    assert judged.factualities == (0.5, None, 0.5)
    assert judged.n_unlabelled == 1
    assert judged.factuality == 0.5, "not (0.5 + 0 + 0.5)/3"
    assert judged.answers[1].reason == "the reply is no JSON"
    assert judged.answers[1].attempts == 2
    assert len(judge.asked) == 4, "one retry, no more"
    none = SegmentScorer(judge).judge_prompt([bad], "reference")
    assert (none.factuality, none.nonfactuality, none.n_unlabelled) == (None, None, 1)


def test_a_reply_that_was_cut_off_says_so_and_an_empty_one_does_not_stop_the_second_attempt():
    cut = ScriptedModel(lambda _: Answer("", "length", "m", usage=Usage(1, 1)))
    [judged] = SegmentScorer(cut).judge_answers([ANSWER], ["r"])
    assert judged.reason == "the reply is no JSON (it was cut off)"
    assert all(turn.content for turn in cut.asked[1].messages)


def test_a_zero_is_a_label():
    judged = SegmentScorer(ScriptedModel(lambda _: reply([(ANSWER, 0)]))).judge_prompt([ANSWER], "r")
    assert (judged.factuality, judged.nonfactuality, judged.n_unlabelled) == (0, 1, 0)
    assert isinstance(judged, JudgedPrompt)


def test_three_wordings_ask_for_one_form():
    assert len({judge.text for judge in JUDGES}) == len({judge.id for judge in JUDGES}) == 3
    forms = {judge.text[judge.text.index("Reply with JSON") :] for judge in JUDGES}
    assert len(forms) == 1
    [form] = forms
    example = form[form.index("[{") :]
    assert [s.mark for s in read_segments(example, "Ada Lovelace was born in London in 1820.")] == [1, 0]


@pytest.mark.parametrize(
    ("answers", "references", "message"),
    [
        ([], [], "there are no answers"),
        ([" "], ["r"], "answer 1 is empty"),
        ([ANSWER, ANSWER], ["r", "\n"], "the reference of answer 2 is empty"),
        ([ANSWER], ["r", "s"], "2 references for 1 answers"),
    ],
)
def test_bad_input(answers, references, message):
    judge = ScriptedModel(lambda _: reply())
    with pytest.raises(ValueError, match=message):
        SegmentScorer(judge).judge_answers(answers, references)
    assert judge.asked == []


def test_one_text_for_a_list_is_refused():
    with pytest.raises(TypeError, match="answers is one text"):
        SegmentScorer(ScriptedModel(lambda _: reply())).judge_prompt(ANSWER, "r")
