"""Streams end before a stop text, however the server cuts them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from upheld.llm.replies import before


@given(
    st.lists(st.text("ab<", max_size=4), max_size=8),
    st.lists(st.text("ab<", min_size=1, max_size=3), max_size=2).map(tuple),
)
@example(["a", "a", "b"], ("aab",))
@example(["aa", "ab"], ("aab",))
def test_a_text_is_cut_where_it_would_be_cut_in_one_piece(pieces, stops):
    whole = "".join(pieces)
    ends = [whole.index(stop) for stop in stops if stop in whole]
    found = list(before(iter(pieces), stops))
    # Cut at the stop text that is complete first: a stream cannot wait for one that begins earlier and may never come to its end.
    complete = [(whole.index(stop) + len(stop), whole.index(stop)) for stop in stops if stop in whole]
    text = "".join(found)
    assert all(found)
    assert whole.startswith(text)
    if not ends:
        assert text == whole
    elif len(set(complete)) == 1:
        assert text == whole[: ends[0]]
    assert not any(stop in text for stop in stops)


def test_nothing_is_held_back_without_need():
    pieces = before(iter(["one ", "two<", "three<en", "d> four"]), ("<end>",))
    assert next(pieces) == "one "
    assert next(pieces) == "two"
    assert next(pieces) == "<three"
    assert list(pieces) == []
