from __future__ import annotations

import numpy as np
import pytest

from upheld.llm import CallableEmbedder, ModelError


def lengths(texts):
    return [[len(text), text.count("e")] for text in texts]


def test_the_function_gets_the_texts_in_batches_and_its_vectors_keep_their_order():
    batches, told = [], []

    def embed(texts):
        batches.append(len(texts))
        return lengths(texts)

    texts = ["x" * size for size in range(1, 8)]
    vectors = CallableEmbedder(embed, batch_size=3).embed(texts, told=lambda done, of: told.append((done, of)))
    assert vectors[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert vectors.dtype == np.float32
    assert batches == [3, 3, 1]
    assert told == [(3, 7), (6, 7), (7, 7)]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda texts: [1.0] * len(texts), r"gave an array of shape \(2,\) for 2 texts; it must be \(2, D\)"),
        (lambda texts: [[1.0, 2.0]], r"shape \(1, 2\) for 2 texts"),
        (lambda texts: np.empty((len(texts), 0)), r"shape \(2, 0\) for 2 texts"),
        (lambda texts: [[1.0], [np.nan]], r"not finite for text 1 \(1 of 2 in all\)"),
        (lambda texts: [[1.0], [2.0, 3.0]], "gave no array of numbers for 2 texts"),
        (lambda texts: [[1j], [2.0]], "gave no array of numbers for 2 texts: they are complex"),
        (lambda texts: [["one"], ["two"]], "gave no array of numbers for 2 texts"),
    ],
)
def test_what_is_no_vectors_is_refused(function, said):
    with pytest.raises(ModelError, match=said):
        CallableEmbedder(function).embed(["one", "two"])


def test_vectors_of_two_lengths_in_two_batches_are_refused():
    with pytest.raises(ModelError, match="gave vectors of 1 and 2 numbers for texts of one call"):
        CallableEmbedder(lambda texts: np.ones((len(texts), len(texts))), batch_size=2).embed(["a", "b", "c"])


def test_two_functions_are_never_taken_for_one_another_unless_they_are_named_alike():
    assert CallableEmbedder(lengths).id != CallableEmbedder(lengths).id
    assert CallableEmbedder(lengths, name="v1").id == CallableEmbedder(len, name="v1").id == "callable:v1"


def test_bad_input():
    with pytest.raises(TypeError, match="a list of texts, got a single one"):
        CallableEmbedder(lengths).embed("Oslo")
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        CallableEmbedder(lengths, batch_size=0)


def test_no_text_no_vector_and_words_for_tokens():
    model = CallableEmbedder(lengths)
    assert model.embed([]).shape == (0, 0)
    assert model.count_tokens(["one two", " x\ty "]).tolist() == [2, 2]
    assert model.token_spans(" x\ty ") == [(1, 2), (3, 4)]
