"""Training blocks: many anchors of one text, packed into one forward, each seeing what it will see at decoding and no more.

The drafter's position k of the block at anchor a predicts token a + k. At decoding the target has read the tokens before the anchor and
not the anchor itself, so the block may look at context positions t < a, *strictly*: the feature at t = a already knows what follows::

    M[(a, i), t] = [t < a],        M[(a, i), (a', j)] = [a = a']                                                      (3)

    L = sum_blocks sum_k w_k m_k CE(logits_k, y_(a+k)) / sum w_k m_k,        w_k = exp(-(k - 1) / gamma)             (4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.responses import Response

GAMMA = {16: 7.0, 10: 5.0, 8: 4.0}
"""The decay of the loss weights, by block size (appendix A.1); elsewhere half the block."""


def loss_weights(block_size: int, gamma: float | None = None) -> Tensor:
    """(B - 1,) weights w_k of (4); `gamma` infinite weighs all positions alike.

    Examples
    --------
    >>> [round(float(w), 3) for w in loss_weights(8)]
    [1.0, 0.779, 0.607, 0.472, 0.368, 0.287, 0.223]
    """
    gamma = GAMMA.get(block_size, block_size / 2) if gamma is None else gamma
    if not gamma > 0:
        raise ValueError(f"gamma must be positive (inf weighs all positions alike), got {gamma}")
    return torch.tensor([math.exp(-(k - 1) / gamma) for k in range(1, block_size)])


def draw_anchors(
    response: Response,
    count: int,
    rng: np.random.Generator,
    *,
    block_size: int,
    at: Literal["random", "grid"] = "random",
) -> NDArray[np.int64]:
    """At most `count` anchors, increasing: response positions that have a response token after them.

    Uniform without replacement, or (``"grid"``, the ablation) every B-th position from the response's first.
    """
    places = np.arange(response.prompt_tokens, len(response.tokens) - 1)
    if at == "grid":
        return places[::block_size][:count]
    return np.sort(rng.choice(places, size=min(count, len(places)), replace=False))


MASK_BYTES = 256 * 2**20
"""What a mask may take: where it would be larger, fewer blocks are read at once."""


@dataclass(frozen=True)
class Blocks:
    """S texts of at most N tokens with A anchors each.

    Parameters
    ----------
    ids : (S, N) tokens, padded behind
    anchors : (S, A) positions; rows with fewer anchors repeat one, with nothing to predict
    labels : (S, A, B - 1) the tokens a + 1 ... a + B - 1
    valid : (S, A, B - 1) whether there is such a token
    """

    ids: Tensor
    anchors: Tensor
    labels: Tensor
    valid: Tensor

    @property
    def block_size(self) -> int:
        return self.labels.shape[2] + 1

    @classmethod
    def of(cls, responses: Sequence[Response], anchors: Sequence[NDArray[np.int64]], block_size: int) -> Blocks:
        rows = [torch.from_numpy(response.tokens) for response in responses]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        many = max(map(len, anchors))
        placed = torch.tensor([[*places, *[places[-1]] * (many - len(places))] for places in anchors])
        real = torch.tensor([[True] * len(places) + [False] * (many - len(places)) for places in anchors])
        ends = torch.tensor([len(row) for row in rows])
        at = placed[..., None] + torch.arange(1, block_size)
        valid = (at < ends[:, None, None]) & real[..., None]
        labels = ids[:, None].expand(-1, many, -1).gather(2, at.clamp(max=ids.shape[1] - 1))
        return cls(ids, placed, labels, valid)

    def some(self, start: int, stop: int) -> Blocks:
        """Those of the anchors `start` to `stop` alone."""
        return Blocks(self.ids, *(tensor[:, start:stop] for tensor in (self.anchors, self.labels, self.valid)))

    def to(self, device: torch.device) -> Blocks:
        return Blocks(*(tensor.to(device) for tensor in (self.ids, self.anchors, self.labels, self.valid)))


def packed_mask(anchors: Tensor, context: int, size: int, *, causal: bool = False, window: int | None = None) -> Tensor:
    """(S, 1, A size, context + A size) boolean, equation (3); `causal` looks back alone inside a block, `window` limits the context."""
    many = anchors.shape[1]
    places = torch.arange(context, device=anchors.device)
    at = anchors.repeat_interleave(size, dim=1)[..., None]
    before = places < at
    if window is not None:
        before &= places >= at - window
    inside = torch.ones(size, size, dtype=torch.bool, device=anchors.device)
    own = torch.kron(torch.eye(many, dtype=torch.bool, device=anchors.device), inside.tril() if causal else inside)
    return torch.cat([before, own.expand(len(anchors), -1, -1)], dim=2)[:, None]


def block_states(drafter: DFlashDrafter, embedding: nn.Module, blocks: Blocks, taps: Tensor) -> Tensor:
    """(S, A, B - 1, D) states that the target's head reads as the tokens a + 1 ... a + B - 1, all blocks in one forward.

    In several, where the mask of all would take more than `MASK_BYTES`: blocks do not see each other.

    Parameters
    ----------
    taps : (S, N, m D) the target's states at every token; what stands at an anchor or behind it is never looked at
    """
    many = blocks.anchors.shape[1]
    step = anchors_at_once(blocks.ids.shape[0], blocks.ids.shape[1], blocks.block_size)
    parts = [blocks.some(start, start + step) for start in range(0, many, step)]
    found = [_packed_states(drafter, embedding, part, taps) for part in parts]
    return found[0] if len(found) == 1 else torch.cat(found, dim=1)


def anchors_at_once(texts: int, context: int, size: int) -> int:
    """The most blocks of a text whose mask fits; at least one.

    Examples
    --------
    >>> anchors_at_once(2, 3072, 16)                      # 2 texts, 634 blocks of 16: a mask of 268 million bytes
    634
    """
    # texts * x * (context + x) <= MASK_BYTES for x = anchors * size
    x = (math.sqrt(context**2 + 4 * MASK_BYTES / texts) - context) / 2
    return max(1, int(x // size))


def _packed_states(drafter: DFlashDrafter, embedding: nn.Module, blocks: Blocks, taps: Tensor) -> Tensor:
    config = drafter.config
    texts, many = blocks.anchors.shape
    ahead = config.autoregressive
    size = blocks.block_size - 1 if ahead else blocks.block_size
    known = blocks.ids.gather(1, blocks.anchors)
    # Token after token, the drafter reads what it would have drafted; else one anchor, and masks.
    read = torch.cat([known[..., None], blocks.labels[..., :-1]], dim=2)
    inputs = embedding(read) if ahead else drafter.block_inputs(known, embedding, size)
    context = blocks.ids.shape[1]
    before = torch.arange(context, device=blocks.ids.device).expand(texts, -1)
    inside = (blocks.anchors[..., None] + torch.arange(size, device=blocks.ids.device)).flatten(1)
    states = drafter(
        inputs.to(taps.dtype).flatten(1, 2),
        drafter.context_inputs(taps, embedding(blocks.ids).to(taps.dtype)),
        torch.cat([before, inside], dim=1),
        attention_mask=packed_mask(blocks.anchors, context, size, causal=ahead, window=config.context_window),
    )
    found: Tensor = states.unflatten(1, (many, size))
    return found if ahead else found[:, :, 1:]
