"""Windows: they fit, they cover the text, they keep to sentences, and they cut what cannot be kept whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isotropy_toys import WordEmbedder

from upheld.isotropy.windows import room, window_spans


def words(texts):
    return np.array([len(text.split()) for text in texts])


def letters(texts):
    """A tokenizer to which every letter is a token, as to some models where words are unknown."""
    return np.array([len(text.replace(" ", "")) for text in texts])


def cut(text, size, count=words):
    return [text[start:end] for start, end in window_spans(text, size, count)]


def test_sentences_are_packed_whole():
    assert cut("A b c. D e. F g h. I.", 5) == ["A b c. D e.", "F g h. I."]
    assert cut("A b c. D e. F g h. I.", 100) == ["A b c. D e. F g h. I."]


def test_a_long_sentence_is_cut_between_words_and_a_long_word_inside():
    assert cut("One. a b c d e f g. Two.", 3) == ["One. a b", "c d e", "f g. Two."]
    assert cut("abcdefgh", 3, letters) == ["ab", "cd", "ef", "gh"]


def test_pieces_that_are_more_tokens_together_than_apart_still_fit():
    def joints_cost(texts):
        return words(texts) + np.array([text.count(". ") for text in texts])

    windows = cut("A b. C d. E f. G h.", 8, joints_cost)
    assert max(joints_cost(windows)) <= 8
    assert " ".join(windows) == "A b. C d. E f. G h."


@given(st.text(alphabet="abC. \n!", min_size=1).filter(str.strip), st.integers(1, 9), st.sampled_from([words, letters]))
def test_windows_fit_and_cover(text, size, count):
    windows = cut(text, size, count)
    assert max(count(windows)) <= size
    assert "".join("".join(windows).split()) == "".join(text.split())


def test_room_is_what_special_tokens_and_template_leave():
    assert room(WordEmbedder(limit=None)) is None
    assert room(WordEmbedder(limit=10)) == 8
    assert room(WordEmbedder(limit=10), "three words here") == 5
    with pytest.raises(ValueError, match="reads 5 tokens, and the template with its prompt fills them: 'a b c'"):
        room(WordEmbedder(limit=5), "a b c")
