from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from upheld.llm.batching import batches


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 120), st.none() | st.integers(1, 9))
def test_every_text_once_within_the_bounds_and_with_its_like(lengths, tokens, rows):
    found = batches(lengths, tokens=tokens, rows=rows)
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    for batch in found:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert rows is None or len(batch) <= rows
    order = [lengths[place] for batch in found for place in batch]
    assert order == sorted(order, reverse=True)


def test_a_batch_is_filled_before_the_next_begins():
    assert batches([5] * 7, tokens=20) == [[0, 1, 2, 3], [4, 5, 6]]
    assert batches([5] * 7, tokens=20, rows=3) == [[0, 1, 2], [3, 4, 5], [6]]
