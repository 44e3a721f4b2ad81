"""From the states of a text's tokens to one vector.

With states h_1 .. h_L of a text and m_t = 1 where position t holds one of its tokens, 0 where it is padding::

    mean            sum_t m_t h_t / sum_t m_t
    cls             the first token's state
    max             component by component, the largest over the tokens
    last            the last token's state
    unmasked_mean   sum_t h_t / L, padding counted
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Pooling = Literal["mean", "cls", "max", "last", "unmasked_mean"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def pool(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """(B, D) vectors.

    Parameters
    ----------
    states : (B, L, D), texts padded on the right
    mask : (B, L), 1 at tokens, 0 at padding
    pooling : ``unmasked_mean`` gives other vectors in other company, since L is that of the longest text in the batch
    """
    if pooling == "mean":
        weights = mask.to(states.dtype) / mask.sum(dim=1, keepdim=True)
        return torch.bmm(weights[:, None], states)[:, 0]
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        return states[torch.arange(len(states), device=states.device), mask.sum(dim=1) - 1]
    if pooling == "max":
        return states.masked_fill(mask[:, :, None] == 0, -torch.inf).amax(dim=1)
    return states.mean(dim=1)
