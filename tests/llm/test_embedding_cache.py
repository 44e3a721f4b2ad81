"""A text is embedded once, whatever it is embedded beside."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.llm import Embedder, ModelError
from upheld.llm.cache_file import CacheError
from upheld.llm.embedding_cache import BLOCK, CachedEmbedder


class Lengths(Embedder):
    """A text's length, its number of e's, and a third that float32 has to round."""

    def __init__(self, id: str = "lengths", fails_at: int | None = None) -> None:
        self.id = id
        self.limit = 40
        self.asked: list[list[str]] = []
        self.fails_at = fails_at

    def embed(self, texts: Sequence[str], told=None) -> np.ndarray:
        if len(self.asked) + 1 == self.fails_at:
            self.fails_at = None
            raise ModelError("no more")
        self.asked.append(list(texts))
        return np.array([[len(text), text.count("e"), len(text) / 3] for text in texts], dtype=np.float32).reshape(
            len(texts), 3
        )

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) for text in texts])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def test_a_text_is_embedded_once(file):
    model = Lengths()
    first = CachedEmbedder(model, file).embed(["one", "eleven", "one"])
    again = CachedEmbedder(model, file).embed(["eleven", "three", "one"])
    assert model.asked == [["one", "eleven"], ["three"]]
    np.testing.assert_array_equal(first, Lengths().embed(["one", "eleven", "one"]))
    np.testing.assert_array_equal(again, Lengths().embed(["eleven", "three", "one"]))
    assert again.dtype == np.float32


@pytest.mark.parametrize("other", [{"embedder": Lengths("other")}, {"embedder": Lengths(), "template": "excerpt"}])
def test_other_embedders_and_templates_have_vectors_of_their_own(file, other):
    CachedEmbedder(Lengths(), file).embed(["one"])
    CachedEmbedder(path=file, **other).embed(["one"])
    assert other["embedder"].asked == [["one"]]


def test_what_was_embedded_before_a_failure_is_kept(file):
    texts = [str(i) for i in range(2 * BLOCK + 3)]
    model = Lengths(fails_at=3)
    told = []
    with pytest.raises(ModelError):
        CachedEmbedder(model, file).embed(texts, lambda done, n: told.append((done, n)))
    assert told == [(0, len(texts)), (BLOCK, len(texts)), (2 * BLOCK, len(texts))]
    CachedEmbedder(model, file).embed(texts, lambda done, n: told.append((done, n)))
    assert model.asked[2:] == [texts[2 * BLOCK :]]
    assert told[-1] == (len(texts), len(texts))


def test_more_texts_than_sqlite_has_variables(file):
    texts = [str(i) for i in range(40_000)]
    CachedEmbedder(Lengths(), file).embed(texts)
    model = Lengths()
    assert CachedEmbedder(model, file).embed(texts).shape == (40_000, 3)
    assert not model.asked


def test_it_is_the_embedder_in_all_else(file):
    cached = CachedEmbedder(Lengths(), file)
    assert (cached.id, cached.limit) == ("lengths", 40)
    np.testing.assert_array_equal(cached.count_tokens(["ab"]), [2])
    assert cached.embed([]).shape == (0, 0)
    with pytest.raises(TypeError, match="put it into a list"):
        cached.embed("ab")


@pytest.mark.parametrize(
    ("blob", "said"),
    [(b"", "a vector that is none"), (b"\0" * 7, "a vector that is none"), (b"\0" * 4, "vectors of different lengths"),
     (np.float32([1, np.nan, 2]).tobytes(), "a vector that is not finite"), ("text", "a vector that is none")],
)  # fmt: skip
def test_a_damaged_vector_is_not_handed_out(file, blob, said):
    CachedEmbedder(Lengths(), file).embed(["one", "two"])
    with sqlite3.connect(file) as db:
        db.execute("UPDATE vector SET vector = ? WHERE rowid = 1", (blob,))
    with pytest.raises(CacheError, match=f"holds {said} for lengths"):
        CachedEmbedder(Lengths(), file).embed(["one", "two"])


def test_an_embedder_that_gives_too_few_vectors_is_not_believed(file):
    model = Lengths()
    model.embed = lambda texts: np.ones((1, 3), dtype=np.float32)
    with pytest.raises(ModelError, match="lengths gave an array of shape"):
        CachedEmbedder(model, file).embed(["one", "two"])
    assert CachedEmbedder(Lengths(), file).embed(["one"])[0, 0] == 3


@given(st.lists(st.lists(st.text(st.characters(codec=None), max_size=3), max_size=6), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_vectors_do_not_depend_on_what_was_cached_before(tmp_path_factory, calls):
    cached = CachedEmbedder(Lengths(), tmp_path_factory.mktemp("cache") / "cache.sqlite")
    for texts in calls:
        if texts:
            np.testing.assert_array_equal(cached.embed(texts), Lengths().embed(texts))
    cached.close()


def test_a_cached_embedder_leaves_windows_the_room_that_the_embedder_leaves(tmp_path):
    """A text that is cut to fit must fit whether or not vectors are cached."""

    class Limited(Embedder):
        id, limit, extra_tokens = "limited", 12, 2

        def embed(self, texts, told=None):
            return np.ones((len(texts), 2), dtype=np.float32)

        def token_spans(self, text):
            return [(place, place + 1) for place in range(len(text))]

    cached = CachedEmbedder(Limited(), tmp_path / "vectors.sqlite")
    assert (cached.limit, cached.extra_tokens) == (12, 2)
    assert cached.token_spans("abc") == [(0, 1), (1, 2), (2, 3)]
    assert cached.count_tokens(["abc"]).tolist() == [3]
