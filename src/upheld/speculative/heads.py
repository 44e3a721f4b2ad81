"""The rivals that are trained too: an EAGLE-3-style head and Medusa heads, on the same responses, by the same trainer.

EAGLE-3 (Li et al. 2025): one decoder layer that reads each token beside the target's states before it, and goes on with its own
states where the target's do not exist yet. With g_t the fused feature of position t::

    x_t = W [E(y_(t+1)) ; g_t],    o_t = layer(x_t | x_1 ... x_(t-1)),    head(norm(o_t)) reads y_(t+2),    g_(t+1) <- o_t      (5)

It is trained the way it drafts ("training-time test"): B - 1 steps, the later ones on its own states. A step a token.

Medusa (Cai et al. 2024): B - 1 residual blocks on the target's last state, each reading one token further ahead::

    head(h + SiLU(W_k h)) reads y_(a+k)                                                                                          (6)

Its "typical acceptance" changes the text and is not used here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from upheld.speculative.blocks import Blocks
from upheld.speculative.configuration import DFlashConfig
from upheld.speculative.drafter import (
    ContextCache,
    DFlashAttention,
    DFlashMLP,
    RMSNorm,
    embedding_of,
    head_of,
    shape_of_target,
)
from upheld.speculative.taps import decoder_layers
from upheld.speculative.verification import Draft, Sampling, draw


class Head(nn.Module):
    """What both heads share: sizes, and which tokens they can propose.

    Attributes
    ----------
    draft_ids : (K,) tokens it can propose
    """

    draft_ids: Tensor

    def __init__(self, config: DFlashConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("draft_ids", torch.arange(config.draft_vocab_size or config.vocab_size))

    @property
    def taps(self) -> Sequence[int]:
        return tuple(self.config.target_layer_ids or ())

    @property
    def block_size(self) -> int:
        return self.config.block_size

    @property
    def module(self) -> nn.Module:
        return self

    def use_vocabulary(self, ids: Tensor) -> None:
        """Propose from these tokens."""
        self.config.draft_vocab_size = len(ids)
        self.draft_ids = ids.to(self.draft_ids.device)

    def _draw_weights(self, seed: int) -> None:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            for module in self.modules():
                if isinstance(module, nn.Linear):
                    nn.init.normal_(module.weight, std=0.02)


class EagleHead(Head):
    """One decoder layer, a token a step, equation (5)."""

    def __init__(self, config: DFlashConfig, seed: int = 0) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.tap_fc = nn.Linear(len(self.taps) * width, width, bias=False)
        self.tap_norm = RMSNorm(width, config.rms_norm_eps)
        self.fuse = nn.Linear(2 * width, width, bias=False)
        self.attention = DFlashAttention(config, 0)
        self.mlp = DFlashMLP(config)
        self.input_norm = RMSNorm(width, config.rms_norm_eps)
        self.mlp_norm = RMSNorm(width, config.rms_norm_eps)
        self.norm = RMSNorm(width, config.rms_norm_eps)
        self.rotary = LlamaRotaryEmbedding(config)  # type: ignore[arg-type]
        self._draw_weights(seed)

    @classmethod
    def from_target(
        cls,
        target: PreTrainedModel,
        *,
        block_size: int = 8,
        taps: int = 3,
        draft_vocab_size: int | None = None,
        seed: int = 0,
    ) -> EagleHead:
        """An untrained head of the target's widths, in its dtype and on its device."""
        config = shape_of_target(target, num_layers=1, taps=taps)
        config.block_size, config.draft_vocab_size, config.qk_norm = block_size, draft_vocab_size, False
        weight = embedding_of(target).weight
        return cls(config, seed).to(device=weight.device, dtype=weight.dtype)

    def feature(self, taps: Tensor) -> Tensor:
        """(..., m D) states -> (..., D): g_t."""
        found: Tensor = self.tap_norm(self.tap_fc(taps))
        return found

    def inputs(self, embedded: Tensor, features: Tensor) -> Tensor:
        """x_t of (5)."""
        found: Tensor = self.fuse(torch.cat([embedded, features], dim=-1))
        return found

    def layer(
        self,
        x: Tensor,
        context: Tensor,
        positions: Tensor,
        cache: ContextCache | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """(b, q, D) inputs and the (b, n, D) before them -> (b, q, D): o_t of (5); positions of the context stand first."""
        rotation = self.rotary(x, positions)
        x = x + self.attention(self.input_norm(x), self.input_norm(context), rotation, cache, mask, None)
        found: Tensor = x + self.mlp(self.mlp_norm(x))
        return found

    def states(self, embedding: nn.Module, blocks: Blocks, taps: Tensor) -> Tensor:
        """(S, A, B - 1, D): the steps from every anchor, teacher-forced in the tokens, on the head's own states from the second on."""
        texts, many = blocks.anchors.shape
        features = self.feature(taps[:, :-1])
        x = self.inputs(embedding(blocks.ids[:, 1:]).to(taps.dtype), features)
        length = x.shape[1]
        places = torch.arange(length, device=x.device)
        first = blocks.anchors - 1
        seen = (places < first[..., None])[:, None]
        own = torch.eye(many, dtype=torch.bool, device=x.device).expand(texts, 1, -1, -1)
        current = x.gather(1, first[..., None].expand(-1, -1, x.shape[-1]))
        context, at, found = x, places.expand(texts, -1), []
        for step in range(blocks.block_size - 1):
            seen, at = torch.cat([seen, own], dim=-1), torch.cat([at, first + step], dim=1)
            state = self.layer(current, context, at, mask=seen)
            found.append(self.norm(state))
            context = torch.cat([context, current], dim=1)
            current = self.inputs(embedding(blocks.labels[:, :, step]).to(taps.dtype), state)
        return torch.stack(found, dim=2)


class MedusaHeads(Head):
    """Residual blocks on the target's last state, equation (6)."""

    def __init__(self, config: DFlashConfig, norm: Tensor) -> None:
        super().__init__(config)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.blocks = nn.ModuleList(
            nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.block_size - 1)
        )
        with torch.no_grad():
            self.norm.weight.copy_(norm)
            # Nothing added yet: every head reads what the target itself would say next.
            for parameter in self.blocks.parameters():
                parameter.zero_()

    @classmethod
    def from_target(
        cls, target: PreTrainedModel, *, block_size: int = 8, draft_vocab_size: int | None = None
    ) -> MedusaHeads:
        """Untrained heads, which say what the target's own head says."""
        from upheld.speculative.drafter import final_norm

        config = shape_of_target(target, num_layers=1, taps=1)
        config.block_size, config.draft_vocab_size = block_size, draft_vocab_size
        config.target_layer_ids = [len(decoder_layers(target)) - 1]
        weight = embedding_of(target).weight
        return cls(config, final_norm(target).weight.detach().float().cpu()).to(
            device=weight.device, dtype=weight.dtype
        )

    def ahead(self, last: Tensor) -> Tensor:
        """(..., D) the target's last layer's output -> (..., B - 1, D)."""
        h = self.norm(last)
        return torch.stack([h + F.silu(block(h)) for block in self.blocks], dim=-2)

    def states(self, embedding: nn.Module, blocks: Blocks, taps: Tensor) -> Tensor:
        before = (blocks.anchors - 1)[..., None].expand(-1, -1, taps.shape[-1])
        return self.ahead(taps.gather(1, before))


class HeadProposer:
    """A trained head as what the decoder asks.

    Attributes
    ----------
    forwards : how often the head was run since `begin`
    """

    def __init__(self, target: PreTrainedModel, head: EagleHead | MedusaHeads) -> None:
        self.head, self.embedding = head.eval(), embedding_of(target)
        self.taps, self.block_size = head.taps, head.block_size
        rows = head_of(target).weight.detach()
        limited = len(head.draft_ids) < len(rows)
        self.ids = head.draft_ids.to(rows.device) if limited else None
        self.rows = rows[self.ids].contiguous() if self.ids is not None else rows
        self.begin(0)

    def begin(self, room: int) -> None:
        self.cache = ContextCache(1, room)
        self.forwards = 0

    def propose(
        self, ids: Tensor, states: Tensor | None, count: int, sampling: Sampling, generator: torch.Generator | None
    ) -> Draft:
        assert states is not None
        if isinstance(self.head, MedusaHeads):
            self.forwards += 1
            return self._drawn(self.head.ahead(states[:, -1])[:, :count] @ self.rows.T, sampling, generator)
        return self._chain(self.head, ids, states, count, sampling, generator)

    def nbytes(self) -> int:
        own = sum(p.numel() * p.element_size() for p in (*self.head.parameters(), *self.head.buffers()))
        rows = 0 if self.ids is None else self.rows.numel() * self.rows.element_size()
        return own + rows + self.cache.nbytes()

    def _chain(
        self,
        head: EagleHead,
        ids: Tensor,
        states: Tensor,
        count: int,
        sampling: Sampling,
        generator: torch.Generator | None,
    ) -> Draft:
        new, end = states.shape[1], ids.shape[1] - 1
        x = head.inputs(self.embedding(ids[:, end - new + 1 : end + 1]), head.feature(states))
        context, current = x[:, :-1], x[:, -1:]
        drafts: list[Draft] = []
        for step in range(count):
            first = end - new if step == 0 else end - 1 + step
            positions = torch.arange(first, end + step, device=ids.device)[None]
            state = head.layer(current, context, positions, self.cache)
            # The step's own key and value stand behind the context: the next step looks at them.
            self.cache.length += 1
            self.forwards += 1
            drafts.append(self._drawn(head.norm(state) @ self.rows.T, sampling, generator))
            current, context = head.inputs(self.embedding(drafts[-1].tokens), state), x[:, :0]
        # The first step read a committed token and stays; the others read drafts.
        self.cache.crop(1 - count)
        law = torch.cat([d.law for d in drafts if d.law is not None], 1) if sampling.do_sample else None
        return Draft(torch.cat([d.tokens for d in drafts], 1), law, self.ids)

    def _drawn(self, logits: Tensor, sampling: Sampling, generator: torch.Generator | None) -> Draft:
        law = sampling.law(logits) if sampling.do_sample else None
        places = logits.argmax(-1) if law is None else draw(law, generator)
        return Draft(places if self.ids is None else self.ids[places], law, self.ids)
