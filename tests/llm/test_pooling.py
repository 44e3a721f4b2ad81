from __future__ import annotations

import pytest
import torch

from upheld.llm.pooling import POOLINGS, pool

STATES = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [9.0, 9.0]], [[2.0, 0.0], [4.0, 1.0], [6.0, 5.0]]])
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", [[2, -3], [4, 2]]),
        ("cls", [[1, -4], [2, 0]]),
        ("max", [[3, -2], [6, 5]]),
        ("last", [[3, -2], [6, 5]]),
        ("unmasked_mean", [[13 / 3, 1], [4, 2]]),
    ],
)
def test_by_hand(pooling, expected):
    torch.testing.assert_close(pool(STATES, MASK, pooling), torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("pooling", sorted(set(POOLINGS) - {"unmasked_mean"}))
def test_what_stands_in_the_padding_does_not_matter(pooling):
    other = STATES.clone()
    other[0, 2] = -1e6
    torch.testing.assert_close(pool(other, MASK, pooling), pool(STATES, MASK, pooling))
