"""The block-diffusion drafter: one forward proposes a whole block.

Context feature of every committed position t, from the target's states at the taps (Chen, Liang & Liu 2026, section 4)::

    h_t = RMSNorm(W_c [H^(l_1)_t; ...; H^(l_m)_t])                                                     (1)

In each of the drafter's layers, with the normed states H_d of the block (the anchor's embedding, then B - 1 masks) and the
same context features H_t::

    Q = W_Q H_d,   K = [W_K H_t ; W_K H_d],   V = [W_V H_t ; W_V H_d]                                  (2)

full attention inside the block and onto the context, absolute rotary positions, residual, gated MLP. After the last norm the
target's own frozen head reads the token AT each masked position.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.activations import ACT2FN
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from upheld.speculative.configuration import DFlashConfig
from upheld.speculative.taps import decoder_layers, tap_layers, target_digest

SMALL_TARGET = 1_000_000_000
"""Below so many weights a target gets the small drafter: 2 layers, 3 taps, blocks of 8."""

HEAD_SHARE = 0.1
"""Where the head is more than this share of the target, the drafter proposes from a part of the vocabulary."""

DRAFT_VOCABULARY = 8192


class RMSNorm(nn.Module):
    """x / rms(x), weighted; the mean square is taken in float32 at least, as the targets do."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * normed.to(x.dtype)


class ContextCache:
    """Keys and values of the context, per layer: appended to once a cycle, never holding the block's own.

    Attributes
    ----------
    length : context positions held
    last_feature : (b, D) h of the last position held, which `injection="input"` fuses into the block
    """

    def __init__(self, layers: int, room: int = 0) -> None:
        self.length = 0
        self.last_feature: Tensor | None = None
        self._room = room
        self._keys: list[Tensor | None] = [None] * layers
        self._values: list[Tensor | None] = [None] * layers

    def extend(self, layer: int, keys: Tensor, values: Tensor, context: int) -> tuple[Tensor, Tensor]:
        """Write (b, heads, context + block, d) keys and values behind what is held; returns all of them.

        Only the first `context` of them stay: the next call writes over the block's.
        """
        until = self.length + keys.shape[2]
        self._keys[layer] = held = self._with_room(self._keys[layer], keys, until)
        self._values[layer] = worth = self._with_room(self._values[layer], values, until)
        held[:, :, self.length : until] = keys
        worth[:, :, self.length : until] = values
        if layer == len(self._keys) - 1:
            self.length += context
        return held[:, :, :until], worth[:, :, :until]

    def keep_rows(self, rows: Tensor) -> None:
        """Keep these rows of the batch alone."""
        self._keys = [None if held is None else held[rows] for held in self._keys]
        self._values = [None if held is None else held[rows] for held in self._values]
        self.last_feature = None if self.last_feature is None else self.last_feature[rows]

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last positions; a negative number, as the caches of transformers take it."""
        if not -self.length <= tokens_to_remove <= 0:
            raise ValueError(f"crop takes 0 to -{self.length} here, got {tokens_to_remove}")
        self.length += tokens_to_remove

    def nbytes(self) -> int:
        """Bytes of the positions held."""
        held = [t for t in (*self._keys, *self._values) if t is not None]
        return sum(t[:, :, : self.length].numel() * t.element_size() for t in held)

    def _with_room(self, held: Tensor | None, like: Tensor, until: int) -> Tensor:
        if held is not None and held.shape[2] >= until:
            return held
        batch, heads, _, width = like.shape
        grown = like.new_empty(batch, heads, max(self._room, until + until // 2 + 64), width)
        if held is not None:
            grown[:, :, : self.length] = held[:, :, : self.length]
        return grown


class DFlashAttention(nn.Module):
    """Equation (2) and the attention over it."""

    def __init__(self, config: DFlashConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        self.grouped = config.num_attention_heads != config.num_key_value_heads
        wide, narrow = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, wide, bias=config.attention_bias)
        self.k_proj = nn.Linear(config.hidden_size, narrow, bias=config.attention_bias)
        self.v_proj = nn.Linear(config.hidden_size, narrow, bias=config.attention_bias)
        self.o_proj = nn.Linear(wide, config.hidden_size, bias=config.attention_output_bias)
        norm = RMSNorm if config.qk_norm else None
        self.q_norm = norm(config.head_dim, config.rms_norm_eps) if norm else nn.Identity()
        self.k_norm = norm(config.head_dim, config.rms_norm_eps) if norm else nn.Identity()

    def forward(
        self,
        block: Tensor,
        context: Tensor,
        rotation: tuple[Tensor, Tensor],
        cache: ContextCache | None,
        mask: Tensor | None,
        window: int | None,
    ) -> Tensor:
        size, new = block.shape[1], context.shape[1]
        queries = self._heads(self.q_proj(block))
        seen = torch.cat([context, block], dim=1)
        keys, values = self._heads(self.k_proj(seen)), self._heads(self.v_proj(seen))
        cos, sin = (part[:, None] for part in rotation)
        queries = rotate(self.q_norm(queries), cos[:, :, -size:], sin[:, :, -size:])
        keys = rotate(self.k_norm(keys), cos, sin)
        if cache is not None:
            keys, values = cache.extend(self.layer, keys, values, context=new)
        if window is not None and mask is None:
            keys, values = keys[:, :, -window - size :], values[:, :, -window - size :]
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=self.grouped)
        return cast(Tensor, self.o_proj(mixed.transpose(1, 2).flatten(2)))

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.head_dim).transpose(1, 2)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions, in the two-halves layout of Llama and Qwen."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class DFlashMLP(nn.Module):
    def __init__(self, config: DFlashConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)
        self.activation = ACT2FN[config.hidden_act]

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x)))


class DFlashLayer(nn.Module):
    """A pre-norm layer; the context features do not pass its input norm."""

    def __init__(self, config: DFlashConfig, layer: int) -> None:
        super().__init__()
        self.self_attn = DFlashAttention(config, layer)
        self.mlp = DFlashMLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, block: Tensor, context: Tensor, *rest: Any) -> Tensor:
        block = block + self.self_attn(self.input_layernorm(block), context, *rest)
        return cast(Tensor, block + self.mlp(self.post_attention_layernorm(block)))


class DFlashDrafter(PreTrainedModel):  # type: ignore[no-untyped-call]
    """A drafter for one target; the target's embedding and head are lent to it, never copied into it.

    ``save_pretrained`` and ``from_pretrained`` as for any model of transformers.

    Attributes
    ----------
    draft_ids : (K,) the tokens it can propose, increasing
    mask_embedding : (D,) the learned mask, where the configuration names no mask token

    Examples
    --------
    >>> drafter = DFlashDrafter.from_target(target)                            # doctest: +SKIP
    >>> SpeculativeDecoder(target, drafter).generate(ids)                       # doctest: +SKIP
    """

    config_class = DFlashConfig
    base_model_prefix = "dflash"
    config: DFlashConfig
    draft_ids: Tensor

    def __init__(self, config: DFlashConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        read = width if config.injection == "input" else config.context_width
        self.fc = nn.Linear(read, width, bias=False)
        self.hidden_norm = RMSNorm(width, config.rms_norm_eps)
        if config.injection == "input":
            self.tap_fc = nn.Linear(config.context_width - width, width, bias=False)
            self.tap_norm = RMSNorm(width, config.rms_norm_eps)
            self.fuse = nn.Linear(2 * width, width, bias=False)
        self.layers = nn.ModuleList(DFlashLayer(config, i) for i in range(config.num_hidden_layers))
        self.norm = RMSNorm(width, config.rms_norm_eps)
        self.rotary_emb = LlamaRotaryEmbedding(config)  # type: ignore[arg-type]
        if config.mask_token_id is None:
            self.mask_embedding = nn.Parameter(torch.zeros(width))
        self.register_buffer("draft_ids", torch.arange(config.draft_vocab_size or config.vocab_size), persistent=True)
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def from_target(
        cls,
        target: PreTrainedModel,
        *,
        block_size: int | Literal["auto"] = "auto",
        num_layers: int | Literal["auto"] = "auto",
        taps: int | Literal["auto"] = "auto",
        init: Literal["aligned", "random"] = "aligned",
        injection: str = "kv",
        draft_vocab_size: int | Literal["auto"] | None = "auto",
        mask_token_id: int | None = None,
        autoregressive: bool = False,
        context_window: int | None = None,
        seed: int = 0,
    ) -> DFlashDrafter:
        """An untrained drafter of the target's shape.

        Parameters
        ----------
        target : any causal language model of transformers whose decoder layers can be reached
        block_size, num_layers, taps : B, n_d and m; "auto" takes 8, 2 and 3 below a billion weights, else 16, 5 and 5
        init : "aligned" copies the target's last n_d layers, so that the first layer's context keys and values are the
            target's own; "random" draws everything
        draft_vocab_size : K; "auto" takes 8,192 where the head is more than a tenth of the target, else all (None)
        seed : draws what is random

        Raises
        ------
        ValueError
            If the target shows no decoder layers, is too shallow, or cannot be copied from (then take ``init="random"``).
        """
        small = sum(p.numel() for p in target.parameters()) < SMALL_TARGET
        blocks = (8 if small else 16) if block_size == "auto" else block_size
        layers = (2 if small else 5) if num_layers == "auto" else num_layers
        config = shape_of_target(target, num_layers=layers, taps=(3 if small else 5) if taps == "auto" else taps)
        config.block_size, config.injection, config.mask_token_id = blocks, injection, mask_token_id
        config.autoregressive, config.context_window = autoregressive, context_window
        if draft_vocab_size == "auto":
            share = config.vocab_size * config.hidden_size / sum(p.numel() for p in target.parameters())
            draft_vocab_size = min(DRAFT_VOCABULARY, config.vocab_size) if share > HEAD_SHARE else None
        config.draft_vocab_size = draft_vocab_size
        if init == "aligned":
            align_shape(config, target)
        elif init != "random":
            raise ValueError(f"init must be aligned or random, got {init!r}")
        config.check()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            drafter = cls(config)
            drafter.reset(target)
        if init == "aligned":
            drafter.align(target)
        embedding = embedding_of(target).weight
        drafter.to(device=embedding.device, dtype=embedding.dtype)  # type: ignore[call-arg]
        return drafter

    @torch.no_grad()
    def reset(self, target: PreTrainedModel) -> None:
        """Draw all matrices anew; the mask becomes the mean embedding with a little noise."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=self.config.initializer_range)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, RMSNorm):
                nn.init.ones_(module.weight)
        if self.config.mask_token_id is None:
            embedding: Tensor = embedding_of(target).weight.detach().float().cpu()
            noise = torch.randn(embedding.shape[1]) * 0.1 * embedding.std()
            self.mask_embedding.copy_(embedding.mean(0) + noise)

    @torch.no_grad()
    def align(self, target: PreTrainedModel) -> None:
        """The warm start: the target's last n_d layers, W_c the identity on the tap below them and 0 elsewhere."""
        source = decoder_layers(target)
        own, width = len(self.layers), self.config.hidden_size
        first: Any = source[len(source) - own]
        for layer, copied in zip(self.layers, source[-own:], strict=True):
            layer.load_state_dict({name: copied.state_dict()[name] for name in layer.state_dict()})
        self.norm.weight.copy_(final_norm(target).weight)
        self.hidden_norm.weight.copy_(first.input_layernorm.weight)
        self.fc.weight.zero_()
        taps = self.config.target_layer_ids or []
        start = taps.index(len(source) - own - 1) * width if self.config.injection == "kv" else 0
        self.fc.weight[:, start : start + width] = torch.eye(width)
        if self.config.injection == "input":
            self.fuse.weight.zero_()
            self.fuse.weight[:, :width] = torch.eye(width)

    def _init_weights(self, module: nn.Module) -> None:
        # Weights come from `reset` or from a file; transformers restores the rotary frequencies alone.
        if isinstance(module, LlamaRotaryEmbedding):
            super()._init_weights(module)  # type: ignore[no-untyped-call]

    def context_inputs(self, taps: Tensor, embeddings: Tensor) -> Tensor:
        """(b, n, m D) states at the taps and (b, n, D) embeddings of the same tokens -> `context_features` of the injection."""
        if self.config.injection == "kv":
            return taps
        return embeddings if self.config.injection == "none" else torch.cat([embeddings, taps], dim=-1)

    def block_inputs(self, anchors: Tensor, embedding: nn.Module, size: int | None = None) -> Tensor:
        """(...,) anchor tokens -> (..., B, D): the anchor's embedding, then masks; `embedding` is the target's."""
        size = size or self.config.block_size
        masked = self.config.mask_token_id
        mask = self.mask_embedding if masked is None else embedding(torch.tensor(masked, device=anchors.device))
        first = embedding(anchors)[..., None, :]
        return torch.cat([first, mask.to(first.dtype).expand(*first.shape[:-2], size - 1, -1)], dim=-2)

    def head_rows(self, target: PreTrainedModel) -> Tensor:
        """(K, D): the rows of the target's head that the drafter can propose."""
        rows: Tensor = head_of(target).weight.detach()
        return rows if self.config.draft_vocab_size is None else rows[self.draft_ids.to(rows.device)]

    def use_vocabulary(self, ids: Tensor) -> None:
        """Propose from these K tokens; their number becomes `draft_vocab_size`."""
        ids = torch.unique(ids)
        if not len(ids) or int(ids[0]) < 0 or int(ids[-1]) >= self.config.vocab_size:
            raise ValueError(f"draft tokens must be ids from 0 to {self.config.vocab_size - 1}, and not none at all")
        self.config.draft_vocab_size = len(ids)
        self.draft_ids = ids.to(self.draft_ids.device)

    def forward(
        self,
        inputs_embeds: Tensor,
        context_features: Tensor,
        position_ids: Tensor,
        past_key_values: ContextCache | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """The last hidden state of a block, or of many independent blocks packed in one row.

        Parameters
        ----------
        inputs_embeds : (b, q, D) `block_inputs`
        context_features : (b, n, width) `context_inputs` of the context positions that are not in the cache yet
        position_ids : (b, n + q) absolute positions, of the context first
        past_key_values : holds earlier context, and is given this one; None: `context_features` is all there is
        attention_mask : broadcastable to (b, 1, q, held + n + q), True where a query may look, context first; None: everywhere

        Returns
        -------
        (b, q, D), after the final norm; position j is read by the target's head as the token AT position j
        """
        features = self.hidden_norm(self.fc(context_features[..., : self.fc.in_features]))
        rotation = self.rotary_emb(inputs_embeds, position_ids)
        mask = attention_mask[:, None] if attention_mask is not None and attention_mask.dim() == 3 else attention_mask
        states = inputs_embeds
        if self.config.injection == "input":
            states = self._fused(states, context_features[..., self.fc.in_features :], past_key_values, mask)
        elif self.config.autoregressive and mask is None:
            mask = self._causal(states, context_features, past_key_values)
        for layer in self.layers:
            states = layer(states, features, rotation, past_key_values, mask, self.config.context_window)
        return cast(Tensor, self.norm(states))

    def _fused(self, block: Tensor, taps: Tensor, cache: ContextCache | None, mask: Tensor | None) -> Tensor:
        """x <- W_f [x; h_(a-1)], the feature of the last context position that a query may look at."""
        features = self.tap_norm(self.tap_fc(taps))
        if cache is not None:
            if features.shape[1]:
                cache.last_feature = features[:, -1]
            if cache.last_feature is None:
                raise ValueError("a block needs at least one context position before it")
            last = cache.last_feature[:, None].expand_as(block)
        elif mask is None:
            last = features[:, -1:].expand_as(block)
        else:
            seen = mask[..., : features.shape[1]].expand(len(block), 1, block.shape[1], -1)[:, 0]
            places = torch.arange(1, features.shape[1] + 1, device=seen.device)
            nearest = ((seen * places).amax(-1) - 1).clamp(min=0)
            last = features.gather(1, nearest[..., None].expand(-1, -1, features.shape[-1]))
        return cast(Tensor, self.fuse(torch.cat([block, last], dim=-1)))

    @staticmethod
    def _causal(block: Tensor, context: Tensor, cache: ContextCache | None) -> Tensor | None:
        size = block.shape[1]
        if size == 1:
            return None
        held = (cache.length if cache is not None else 0) + context.shape[1]
        return torch.ones(size, held + size, dtype=torch.bool, device=block.device).tril(held)[None, None]


def shape_of_target(target: PreTrainedModel, *, num_layers: int, taps: int) -> DFlashConfig:
    """The configuration of a drafter with the target's widths, heads and rotary positions."""
    config = target.config.get_text_config()
    layers = len(decoder_layers(target))
    width, heads = config.hidden_size, config.num_attention_heads
    # transformers 5 keeps the rotary base in rope_parameters; the old field is None there.
    rope = getattr(config, "rope_parameters", None) or {
        "rope_type": "default",
        "rope_theta": getattr(config, "rope_theta", None) or 10000.0,
    }
    return DFlashConfig(
        hidden_size=width,
        intermediate_size=getattr(config, "intermediate_size", None) or 4 * width,
        num_hidden_layers=num_layers,
        num_attention_heads=heads,
        num_key_value_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or width // heads,
        hidden_act="silu",
        rms_norm_eps=getattr(config, "rms_norm_eps", 1e-5),
        rope_parameters=dict(rope),
        max_position_embeddings=config.max_position_embeddings,
        vocab_size=head_of(target).weight.shape[0],
        target_layer_ids=tap_layers(layers, taps),
        num_target_layers=layers,
        target_digest=target_digest(target),
    )


def align_shape(config: DFlashConfig, target: PreTrainedModel) -> None:
    """Norms and biases of the layers that will be copied; layer L - n_d - 1 becomes a tap.

    Raises
    ------
    ValueError
        If the target has no layer below those to copy, or its layers are not built like Llama's.
    """
    layers = decoder_layers(target)
    below = len(layers) - config.num_hidden_layers - 1
    if below < 0:
        raise ValueError(
            f"an aligned drafter of {config.num_hidden_layers} layers needs a target of {config.num_hidden_layers + 1}, "
            f"this one has {len(layers)}; take num_layers={max(1, len(layers) - 1)} or init='random'"
        )
    names = set(layers[-1].state_dict())
    needed = {"self_attn.q_proj.weight", "mlp.gate_proj.weight", "input_layernorm.weight", "self_attn.o_proj.weight"}
    known = needed | {"post_attention_layernorm.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"}
    if not known <= names or "pre_feedforward_layernorm.weight" in names:
        raise ValueError(
            f"the layers of {type(target).__name__} are not built like Llama's or Qwen3's, so none can be copied; take init='random'"
        )
    config.qk_norm = "self_attn.q_norm.weight" in names
    config.attention_bias = "self_attn.q_proj.bias" in names
    config.attention_output_bias = "self_attn.o_proj.bias" in names
    config.mlp_bias = "mlp.gate_proj.bias" in names
    taps = set(config.target_layer_ids or [])
    if below not in taps:
        taps -= {min(taps, key=lambda tap: abs(tap - below))}
    config.target_layer_ids = sorted(taps | {below})


def final_norm(target: PreTrainedModel) -> Any:
    """The norm between the last layer and the head."""
    base = target.base_model
    for name in ("norm", "ln_f", "final_layer_norm"):
        if isinstance(found := getattr(base, name, None), nn.Module):
            return found
    raise ValueError(f"{type(target).__name__} shows no final norm; take init='random'")


def embedding_of(target: PreTrainedModel) -> Any:
    """The matrix that turns tokens into the target's first states."""
    return target.get_input_embeddings()


def head_of(target: PreTrainedModel) -> Any:
    """The matrix that reads tokens off the target's states.

    Raises
    ------
    ValueError
        If the model has none.
    """
    head = target.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is None:
        raise ValueError(f"{type(target).__name__} has no language-model head; load it with AutoModelForCausalLM")
    return head
