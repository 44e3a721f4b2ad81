from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))  # servers.py
sys.path.insert(0, str(Path(__file__).parent))
from context_samples import drawn, hashed

from upheld.context import Sample, Task


@pytest.fixture
def embed():
    return hashed


@pytest.fixture
def task() -> Task:
    return Task(drawn(40, 0))


@pytest.fixture
def val() -> list[Sample]:
    return drawn(24, 1, "v")


@pytest.fixture(scope="session")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model of two layers that reads 400 bytes, a token each; its weights are wild enough for a law that is not flat."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("causal")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=258, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=400, initializer_range=0.4, bos_token_id=None, eos_token_id=1, pad_token_id=0,
        )  # fmt: skip
        LlamaForCausalLM(config).save_pretrained(folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: n for n, token in enumerate(["<pad>", "<end>", *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>").save_pretrained(folder)
    return folder
