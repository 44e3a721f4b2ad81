"""A cross-encoder that costs what a real one costs and knows nothing: for timing only, never for scores.

The shape is DeBERTa-v3-base's (12 layers of width 768, 12 heads, relative positions in 256 buckets, 128,100 word pieces; 184 million
weights), the smallest model in use for NLI on long answers, so times against it favour the rival. The weights are random and
so are the tokens: the arithmetic is the same, and nothing has to be downloaded.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 128_100
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "layer_norm_eps": 1e-7,
    "num_labels": 3,
}
FIRST_WORD = 4  # below are padding and special tokens
WARM_UP_TOKENS = 32


def untrained_cross_encoder(device: str = "cpu") -> Any:
    """A classifier of that shape with random weights, about 0.75 GB and 4 s to make."""
    from transformers import AutoModelForSequenceClassification, DebertaV2Config

    build: Any = AutoModelForSequenceClassification.from_config
    return build(DebertaV2Config(**SHAPE)).to(device).eval()


def seconds_a_pair(model: Any, *, rng: np.random.Generator, n_pairs: int = 5, n_tokens: int = 512) -> list[float]:
    """Wall seconds of each of `n_pairs` pairs of `n_tokens` random tokens, one at a time, after a warm-up.

    One at a time favours neither side on a CPU, where a batch of equal lengths takes as long a pair.
    """
    _seconds(model, rng.integers(FIRST_WORD, VOCABULARY, WARM_UP_TOKENS))
    return [_seconds(model, rng.integers(FIRST_WORD, VOCABULARY, n_tokens)) for _ in range(n_pairs)]


def _seconds(model: Any, tokens: NDArray[np.int64]) -> float:
    import torch

    ids = torch.as_tensor(tokens, device=model.device)[None]
    start = perf_counter()
    with torch.inference_mode():
        model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.cpu()
    return perf_counter() - start
