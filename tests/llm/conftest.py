"""Small random models in folders, made here, for what does not need a real one; and the real one, converted once a session."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from upheld.llm.model_files import ModelFiles, smollm2

sys.path.insert(0, str(Path(__file__).parent))  # servers.py

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


def byte_tokenizer(folder: Path, *, around: bool) -> None:
    """A tokenizer with a token a byte; `around`: with a special token before and after, as encoders have it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<end>", "<begin>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<begin> $A <end>", special_tokens=[("<begin>", 2), ("<end>", 1)]
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", bos_token="<begin>"
    )
    if not around:
        fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)


@pytest.fixture(scope="session")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model of two layers that reads 200 bytes; its weights are wild enough for a law that is not flat."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("causal")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=259, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=200, initializer_range=0.4, bos_token_id=2, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    byte_tokenizer(folder, around=False)
    return folder


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of two layers that reads 40 bytes, two of them special."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=259, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=40, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    byte_tokenizer(folder, around=True)
    return folder


@pytest.fixture(scope="session")
def smollm2_files(conversion: tuple[Path, subprocess.CompletedProcess[str]]) -> ModelFiles:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPHELD_CACHE", str(conversion[0]))
        return smollm2()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("something wants to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the developer has in the environment, no test sends it anywhere."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "UPHELD_API_KEY_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
