"""A GGUF file turned into a folder that transformers loads in a tenth of a second; reading the GGUF itself takes half a minute."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers

from upheld.llm.loading import LOCAL_ONLY, quietly

END_OF_TEXT = "<|endoftext|>"


def convert(gguf: Path, folder: Path) -> None:
    """Write weights (float32: the quantised values exactly), configuration, tokenizer and chat template into `folder`."""
    with quietly(), _without_bar():
        source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name, **LOCAL_ONLY}
        tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
        read = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        # What was read from a GGUF refuses to be saved; the same weights in a network that does not know of it are welcome.
        del read.config.quantization_config
        with torch.device("meta"):
            plain = type(read)(read.config)
        plain.load_state_dict(read.state_dict(), assign=True)
        plain.tie_weights()
        plain.generation_config = read.generation_config
        # A chat ends a turn with its own token, a completed text with this one: the file names only the first.
        if END_OF_TEXT in tokenizer.get_vocab():
            ends = {read.generation_config.eos_token_id, tokenizer.convert_tokens_to_ids(END_OF_TEXT)}
            plain.generation_config.eos_token_id = sorted(ends)
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


@contextmanager
def _without_bar() -> Iterator[None]:
    """The reader of GGUF files takes its progress bar from elsewhere, where `quietly` does not reach."""
    reader: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    bar, reader.tqdm = reader.tqdm, lambda tensors, **_: tensors
    try:
        yield
    finally:
        reader.tqdm = bar
