from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def llama(
    *, layers: int = 3, width: int = 64, vocabulary: int = 512, heads: int = 4, seed: int = 0, tied: bool = False
):
    """A random Llama in float64 whose choices are sharp enough to differ from place to place."""
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads // 2, max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0}, tie_word_embeddings=tied,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        for parameter in model.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.25)
    return model.to(torch.float64).eval().requires_grad_(False)


@pytest.fixture(scope="session")
def tiny():
    """The tiny float64 target: 3 layers, width 64, 512 tokens."""
    return llama()


@pytest.fixture
def make_llama():
    return llama
