"""Models and tokenizers out of folders, by transformers, without a word on the terminal and without a network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

LOCAL_ONLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}

UNREAD = "pooler"
"""Weights that stand behind the states that are read here; many a folder comes without them."""

_one_at_a_time = (
    threading.RLock()
)  # what transformers says is a setting of the process: two at once would restore the wrong one


@contextmanager
def quietly() -> Iterator[None]:
    """Without the progress bars and remarks of transformers; what it was told before holds again afterwards."""

    def unseen(bar: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return bar(*arguments, **(options | {"disable": True}))

    with _one_at_a_time:
        verbosity, hook = logging.get_verbosity(), logging.set_tqdm_hook(unseen)
        logging.set_verbosity(ERROR)
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            logging.set_tqdm_hook(hook)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """
    Raises
    ------
    ValueError
        If the folder holds none, or one without a vocabulary, to which all texts would be the same unknown tokens.
    """
    with quietly(), _explained(folder, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(folder, **LOCAL_ONLY)
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise ValueError(
            f"the folder {folder} holds no vocabulary (tokenizer.json, vocab.txt or the like); put the model's tokenizer files there"
        )
    return tokenizer


def load_network(kind: Any, folder: Path, *, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """A network for use, not for training.

    Parameters
    ----------
    kind : ``AutoModel``, ``AutoModelForCausalLM`` or the like

    Raises
    ------
    ValueError
        If the folder holds no such model, or not all of its weights: transformers would take random ones for the others.
    """
    with quietly(), _explained(folder, "model"):
        loaded, found = kind.from_pretrained(
            folder, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **LOCAL_ONLY
        )
    misfits = sorted(str(key[0]) for key in found["mismatched_keys"])
    absent = sorted(key for key in found["missing_keys"] if UNREAD not in key) + misfits
    if absent:
        raise ValueError(
            f"the weights in {folder} are not those of its config.json: {len(absent)} are missing or of another shape, {absent[0]} first; "
            "copy the model again"
        )
    network: PreTrainedModel = loaded.requires_grad_(False).eval().to(device)
    return network


def device_for(device: str | torch.device | None) -> torch.device:
    """The device asked for, else a CUDA device where there is one, else the processor."""
    try:
        found = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise ValueError(
            f"device {device!r} is none that PyTorch knows; take cpu, cuda or cuda:0, or leave it out"
        ) from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device {device!r} is not there: PyTorch finds no CUDA device on this machine; take cpu, or leave it out"
        )
    return found


def dtype_for(dtype: str | torch.dtype) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ValueError(f"dtype must be float32, bfloat16 or float16, got {dtype!r}")
    return found


@contextmanager
def _explained(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(":. ")
        raise ValueError(
            f"transformers cannot load a {what} from {folder} ({reason}); is the folder complete, and a model of this kind?"
        ) from error
