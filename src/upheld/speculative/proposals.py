"""Who proposes: the block drafter, or the same one token after another.

A proposer is told, before every block, the text so far and the target's states at its newly committed positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from upheld.speculative.drafter import ContextCache, DFlashDrafter, embedding_of
from upheld.speculative.verification import Draft, Sampling, draw


class Proposer(Protocol):
    """Anything that drafts. The text that comes out is the target's whatever it proposes.

    Attributes
    ----------
    taps : the target's layers whose states it wants to be told
    block_size : B, one more than it can draft
    """

    @property
    def taps(self) -> Sequence[int]: ...

    @property
    def block_size(self) -> int: ...

    def begin(self, room: int) -> None:
        """A new text, of at most `room` tokens, begins."""

    def propose(
        self, ids: Tensor, states: Tensor | None, count: int, sampling: Sampling, generator: torch.Generator | None
    ) -> Draft:
        """Draft `count` tokens.

        Parameters
        ----------
        ids : (1, n) the text so far; its last token, the anchor, was not read by the target yet
        states : (1, new, m D) the target's states at the last `new` of the n - 1 positions it has read
        """

    def nbytes(self) -> int:
        """Bytes held beyond the target's own."""


class BlockProposer:
    """The method: one forward of the drafter gives the laws of all B - 1 tokens after the anchor.

    Attributes
    ----------
    forwards : how often the drafter was run since `begin`
    """

    def __init__(self, target: PreTrainedModel, drafter: DFlashDrafter) -> None:
        self.drafter = drafter
        drafter.eval()  # type: ignore[no-untyped-call]
        self.embedding = embedding_of(target)
        self.taps = tuple(drafter.config.target_layer_ids or ())
        self.block_size = drafter.config.block_size
        self.head = drafter.head_rows(target).contiguous()
        self.lends_head = drafter.config.draft_vocab_size is None
        self.ids = None if self.lends_head else drafter.draft_ids.to(self.head.device)
        self.begin(0)

    def begin(self, room: int) -> None:
        self.cache = ContextCache(self.drafter.config.num_hidden_layers, room)
        self.forwards = 0

    def propose(
        self, ids: Tensor, states: Tensor | None, count: int, sampling: Sampling, generator: torch.Generator | None
    ) -> Draft:
        logits = self.logits(ids, states, count)
        return self._drawn(logits, sampling, generator)

    def logits(self, ids: Tensor, states: Tensor | None, count: int) -> Tensor:
        """(1, count, K) logits of the tokens after the anchor."""
        assert states is not None
        new, end = states.shape[1], ids.shape[1] - 1
        features = self.drafter.context_inputs(states, self._embeddings(ids, new))
        block = self.drafter.block_inputs(ids[:, -1], self.embedding, count + 1)
        positions = torch.arange(end - new, end + count + 1, device=ids.device)[None]
        hidden: Tensor = self.drafter(block, features, positions, self.cache)
        self.forwards += 1
        return hidden[:, 1:] @ self.head.T

    def nbytes(self) -> int:
        own: int = sum(p.numel() * p.element_size() for p in (*self.drafter.parameters(), *self.drafter.buffers()))
        head = 0 if self.lends_head else self.head.numel() * self.head.element_size()
        return own + head + self.cache.nbytes()

    def _embeddings(self, ids: Tensor, new: int) -> Tensor:
        """(1, new, D) of the last committed tokens; nothing is looked up where the features are the states alone."""
        if self.drafter.config.injection == "kv":
            return self.head[:0]
        found: Tensor = self.embedding(ids[:, ids.shape[1] - 1 - new : -1])
        return found

    def _drawn(self, logits: Tensor, sampling: Sampling, generator: torch.Generator | None) -> Draft:
        law = sampling.law(logits) if sampling.do_sample else None
        places = logits.argmax(-1) if law is None else draw(law, generator)
        return Draft(places if self.ids is None else self.ids[places], law, self.ids)


class StepProposer(BlockProposer):
    """The ablation: the same layers, causal, one token a forward (DFlash-AR); its keys and values live for one block."""

    def propose(
        self, ids: Tensor, states: Tensor | None, count: int, sampling: Sampling, generator: torch.Generator | None
    ) -> Draft:
        assert states is not None
        end, held = ids.shape[1] - 1, self.cache.length + states.shape[1]
        features = self.drafter.context_inputs(states, self._embeddings(ids, states.shape[1]))
        token, drafts = ids[:, -1:], []
        for step in range(count):
            positions = torch.arange(end - features.shape[1] + step, end + 1 + step, device=ids.device)[None]
            # From the second step on the tokens drafted so far are context to this one, and are taken back below.
            if step:
                positions = positions[:, -1:]
            hidden = self._step(token, features if not step else features[:, :0], positions)
            drafts.append(self._drawn(hidden @ self.head.T, sampling, generator))
            token = drafts[-1].tokens
        self.cache.crop(held - self.cache.length)
        law = torch.cat([d.law for d in drafts if d.law is not None], 1) if sampling.do_sample else None
        return Draft(torch.cat([d.tokens for d in drafts], 1), law, self.ids)

    def _step(self, token: Tensor, features: Tensor, positions: Tensor) -> Tensor:
        self.forwards += 1
        before = self.cache.length
        hidden: Tensor = self.drafter(self.embedding(token), features, positions, self.cache)
        # The step's own key and value were written behind the context; the next step may look at them.
        self.cache.length = before + features.shape[1] + 1
        return hidden


def proposer_of(target: PreTrainedModel, drafter: DFlashDrafter | Proposer) -> Proposer:
    """A drafter as what the decoder asks."""
    if isinstance(drafter, DFlashDrafter):
        kind = StepProposer if drafter.config.autoregressive else BlockProposer
        return kind(target, drafter)
    return drafter
