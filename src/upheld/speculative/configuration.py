"""The shape of a block-diffusion drafter, as a Hugging Face configuration."""

from __future__ import annotations

from typing import Any, Literal

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

Injection = Literal["kv", "input", "none"]
INJECTIONS = ("kv", "input", "none")


@strict
class DFlashConfig(PreTrainedConfig):
    """Sizes of a drafter, and which target it belongs to (Chen, Liang & Liu 2026, section 4).

    Parameters
    ----------
    block_size : B, the anchor and the B - 1 tokens drafted after it
    num_hidden_layers : n_d, layers of the drafter
    target_layer_ids : the taps l_1 < ... < l_m, zero-based: the outputs of these layers of the target are read
    draft_vocab_size : K, how many tokens the drafter can propose; None means all of the target's
    mask_token_id : a token the target never writes; None where it has none, then the mask is a learned vector
    injection : ``"kv"`` the features are keys and values of every layer (the method); ``"input"`` the feature before the
        anchor is fused into the block's input, keys and values come from the committed tokens' embeddings; ``"none"`` the
        embeddings alone
    autoregressive : propose one token a forward, causally (the ablation "DFlash-AR")
    context_window : how many context positions a block sees at most; None means all
    qk_norm : normalise queries and keys per head before the rotation
    num_target_layers, target_digest : L, and a hash of the target's configuration and of three of its weights

    Raises
    ------
    ValueError
        If a size is impossible, or the taps do not increase.
    """

    model_type = "dflash"

    hidden_size: int = 576
    intermediate_size: int = 1536
    num_hidden_layers: int = 2
    num_attention_heads: int = 9
    num_key_value_heads: int = 3
    head_dim: int = 64
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-5
    attention_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = True
    rope_parameters: dict[str, Any] | None = None
    max_position_embeddings: int = 8192
    initializer_range: float = 0.02
    vocab_size: int = 49152

    block_size: int = 8
    target_layer_ids: list[int] | None = None
    draft_vocab_size: int | None = None
    mask_token_id: int | None = None
    injection: str = "kv"
    autoregressive: bool = False
    context_window: int | None = None
    num_target_layers: int = 30
    target_digest: str | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        if self.rope_parameters is None:
            self.rope_parameters = {"rope_type": "default", "rope_theta": 10000.0}
        if self.target_layer_ids is None:
            from upheld.speculative.taps import tap_layers

            self.target_layer_ids = tap_layers(self.num_target_layers, 3)
        self.check()
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]

    def check(self) -> None:
        """Refuse what cannot be built; asked again after fields were set one by one."""
        taps = self.target_layer_ids or []
        if self.injection not in INJECTIONS:
            raise ValueError(f"injection must be one of kv, input, none, got {self.injection!r}")
        if self.block_size < 2:
            raise ValueError(f"block_size must be 2 or more (an anchor and a draft), got {self.block_size}")
        if self.num_hidden_layers < 1:
            raise ValueError(f"num_hidden_layers must be 1 or more, got {self.num_hidden_layers}")
        if not taps or sorted(set(taps)) != list(taps) or taps[0] < 0 or taps[-1] >= self.num_target_layers:
            raise ValueError(
                f"target_layer_ids must increase within 0 to {self.num_target_layers - 1} (layers of the target), got {taps}"
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{self.num_attention_heads} heads cannot share {self.num_key_value_heads} key-value heads evenly"
            )
        if self.draft_vocab_size is not None and not 1 <= self.draft_vocab_size <= self.vocab_size:
            raise ValueError(f"draft_vocab_size must lie in 1 to {self.vocab_size}, got {self.draft_vocab_size}")

    @property
    def context_width(self) -> int:
        """Width of a row of `context_features`: m D, D or D + m D, by the injection."""
        taps = len(self.target_layer_ids or []) * self.hidden_size
        return {"kv": taps, "none": self.hidden_size, "input": self.hidden_size + taps}[self.injection]
