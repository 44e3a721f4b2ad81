from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from upheld.speculative.adaptive import BlockLength


@given(st.integers(2, 33), st.lists(st.floats(0, 1), max_size=60))
def test_never_above_the_training_block_nor_without_a_draft(block, shares):
    length = BlockLength(block)
    for share in shares:
        drafted = length.current - 1
        length.told(accepted=round(share * drafted), drafted=drafted)
        assert 2 <= length.current <= block


def test_recovers_when_drafts_stand_again():
    length = BlockLength(16)
    for _ in range(60):
        length.told(accepted=0, drafted=length.current - 1)
    assert length.current == 2
    for _ in range(60):
        length.told(accepted=length.current - 1, drafted=length.current - 1)
    assert length.current == 16


def test_between_the_bounds_nothing_moves():
    length = BlockLength(9)
    for _ in range(50):
        length.told(accepted=4, drafted=8)
    assert length.current == 9
