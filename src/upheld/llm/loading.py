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
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

LOCAL_ONLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}

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
    with quietly(), _explained(folder, "tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(folder, **LOCAL_ONLY)


def load_network(kind: Any, folder: Path, *, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """A network for use, not for training.

    Parameters
    ----------
    kind : ``AutoModel``, ``AutoModelForCausalLM`` or the like
    """
    with quietly(), _explained(folder, "model"):
        loaded: Any = kind.from_pretrained(folder, dtype=dtype, **LOCAL_ONLY)
    network: PreTrainedModel = loaded.requires_grad_(False).eval().to(device)
    return network


def device_for(device: str | torch.device | None) -> torch.device:
    """The device asked for, else a CUDA device where there is one, else the processor."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def dtype_for(dtype: str | torch.dtype) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ValueError(f"dtype must be float32, bfloat16 or float16, got {dtype!r}")
    return found


@contextmanager
def _explained(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"transformers cannot load a {what} from {folder}: {reason}") from error
