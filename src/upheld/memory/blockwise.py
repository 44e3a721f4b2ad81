"""Kernel attention that never forms its weights: ``flex_attention`` with the energy as score, blocks without support left out.

Scores are what a softmax needs to give the kernel's weights, with q . k as flex_attention hands it over::

    |q - k|^2 = |q|^2 + |k|^2 - 2 q . k
    LSE    score = -beta/2 |q - k|^2                                                                                 (1)
    LSR    score = 0 where |q - k|^2 < 2/beta, else -inf: the softmax is the mean over the support                   (2)

A block of queries and a block of keys have no pair within the radius sqrt(2/beta) of LSR if their centres are further apart than the
radius and both blocks' own radii together; such pairs of blocks are skipped. Compiled on a GPU; on a processor it runs as it is, to the
same result without the saving.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

BLOCK = 128


def blockwise_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    kernel: str,
    beta: float,
    allowed: Tensor | None = None,
    added: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Mixed values (B, H, L, D), zeros where there is no support, and the rows (B, H, L, 1) without one.

    Parameters
    ----------
    q : (B, H, L, D); k : (B, H, S, D); v : (B, H, S, D)
    allowed : (B, 1 or H, L, S), True where a key may be seen; None for everywhere
    added : of that shape, to the scores of LSE; None for nothing
    """
    from torch.nn.attention.flex_attention import AuxRequest, flex_attention

    q_norms, k_norms = q.square().sum(-1), k.square().sum(-1)

    def score(dot: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        distance = q_norms[b, h, i] + k_norms[b, h, j] - 2 * dot
        if kernel == "lse" and added is not None:
            return -beta / 2 * distance + added[b, h if added.shape[1] > 1 else torch.zeros_like(h), i, j]
        if kernel == "lse":
            return -beta / 2 * distance
        return torch.where(1 - beta / 2 * distance > 0, 0.0, -math.inf)

    flex: Any = torch.compile(flex_attention, dynamic=False) if q.is_cuda else flex_attention
    mask = blocks(q, k, None if kernel == "lse" else math.sqrt(2 / beta), allowed)
    mixed, aux = flex(q, k, v, score_mod=score, block_mask=mask, scale=1.0, return_aux=AuxRequest(lse=True))
    empty = torch.isneginf(aux.lse)[..., None]
    return torch.where(empty, 0.0, mixed), empty


def blocks(q: Tensor, k: Tensor, radius: float | None, allowed: Tensor | None, size: int = BLOCK) -> Any:
    """Which blocks of keys each block of queries may have support in (a ``BlockMask``); all where `radius` is None."""
    from torch.nn.attention.flex_attention import BlockMask

    near = touching(q, k, radius, size)
    heads = 1 if allowed is None else allowed.shape[1]

    def seen(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if allowed is None:
            return torch.ones_like(b, dtype=torch.bool)
        return allowed[b, h if heads > 1 else torch.zeros_like(h), i, j]

    order = near.to(torch.int8).argsort(dim=-1, descending=True, stable=True)
    return BlockMask.from_kv_blocks(
        near.sum(-1).to(torch.int32), order.to(torch.int32), BLOCK_SIZE=size, mask_mod=seen,
        seq_lengths=(q.shape[-2], k.shape[-2]),
    )  # fmt: skip


def touching(q: Tensor, k: Tensor, radius: float | None, size: int = BLOCK) -> Tensor:
    """(B, H, blocks of queries, blocks of keys), False only where no query of the one is within `radius` of a key of the other."""
    (q_centres, q_reach), (k_centres, k_reach) = _balls(q, size), _balls(k, size)
    apart = torch.cdist(q_centres, k_centres)
    if radius is None:
        return torch.ones_like(apart, dtype=torch.bool)
    slack = 1e-4 * (1 + apart)  # of rounding: a block too many costs time, one too few a wrong answer
    return apart <= q_reach[..., :, None] + k_reach[..., None, :] + radius + slack


def _balls(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Centres (B, H, blocks, D) of blocks of rows, and the radius round each that holds its rows; a last row fills the last block."""
    missing = -x.shape[-2] % size
    x = torch.cat([x, x[..., -1:, :].expand(*x.shape[:-2], missing, x.shape[-1])], dim=-2)
    parts = x.reshape(*x.shape[:-2], -1, size, x.shape[-1])
    centres = parts.mean(-2)
    return centres, (parts - centres[..., None, :]).norm(dim=-1).amax(-1)
