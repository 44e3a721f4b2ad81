from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.llm.loading import load_tokenizer
from upheld.llm.transcript import Transcript


@pytest.fixture(scope="module")
def tokenizer(causal):
    return load_tokenizer(causal)


def written(tokenizer, text, stop=()):
    transcript, settled = Transcript(tokenizer, stop), []
    for token in tokenizer(text)["input_ids"]:
        transcript.add(token)
        settled.append(transcript.settled)
        if transcript.stopped:
            break
    transcript.end()
    return transcript, settled


@given(text=st.text(max_size=30))
def test_pieces_joined_are_the_text(tokenizer, text):
    transcript, _ = written(tokenizer, text)
    assert transcript.text == text == "".join(transcript.pieces)
    assert len(transcript.pieces) == len(text.encode())


@given(text=st.text("abc é", max_size=30), stop=st.lists(st.text("abc é", min_size=1, max_size=3), max_size=3))
def test_the_text_ends_before_the_stop_string_that_ends_first_and_what_is_settled_stays(tokenizer, text, stop):
    transcript, settled = written(tokenizer, text, stop)
    ended = [end for end in range(len(text) + 1) if any(text[:end].endswith(s) for s in stop)]
    known = text[: ended[0]] if ended else text
    expected = min((known[: known.find(s)] for s in stop if s in known), key=len, default=text)
    assert transcript.text == expected == "".join(transcript.pieces)
    assert transcript.stopped == bool(ended)
    assert all(expected.startswith(part) for part in settled)


def test_what_may_begin_a_stop_string_is_not_settled(tokenizer):
    transcript, settled = written(tokenizer, "abXXc", ["XXX"])
    assert settled == ["a", "ab", "ab", "ab", "abXXc"]
    assert transcript.text == "abXXc"


def test_a_character_that_is_never_finished_is_shown_as_one(tokenizer):
    transcript = Transcript(tokenizer)
    for token in tokenizer("a日")["input_ids"][:-1]:
        transcript.add(token)
    assert transcript.text == "a"
    transcript.end()
    assert transcript.text == "a\ufffd" == "".join(transcript.pieces)
    assert len(transcript.pieces) == 3
