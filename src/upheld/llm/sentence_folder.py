"""The layout of a sentence-transformers folder: what runs after the network, read without that package.

``modules.json`` lists the steps. The first is the network; then one pooling; then perhaps dense layers; a last step that
scales vectors to length 1 is left to the reader of the vectors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from upheld.llm.pooling import POOLINGS, Pooling

MODES: dict[str, Pooling] = {"mean": "mean", "cls": "cls", "max": "max", "lasttoken": "last"}
"""Their names for the ways of pooling that are known here."""
ACTIVATIONS = {"Identity": nn.Identity, "Tanh": nn.Tanh, "ReLU": nn.ReLU, "GELU": nn.GELU}


@dataclass(frozen=True)
class SentenceFolder:
    """How a folder turns token states into vectors.

    Parameters
    ----------
    network : folder of the network and its tokenizer
    pooling : the one asked for, else the folder's own, else ``mean``
    dense : layers after pooling
    dimension : of a vector (None: that of a state)
    limit : longest text in tokens that it was made for
    lower_case : whether texts are put in lower case first
    prefix : stands before every text
    """

    network: Path
    pooling: Pooling
    dense: tuple[nn.Module, ...] = ()
    dimension: int | None = None
    limit: int | None = None
    lower_case: bool = False
    prefix: str = ""


def read_folder(folder: Path, pooling: Pooling | None = None) -> SentenceFolder:
    """Of a sentence-transformers folder, or of a plain model's, which only has a network.

    Parameters
    ----------
    pooling : asked for instead of the folder's own

    Raises
    ------
    ValueError
        If a step is none of those above.
    """
    if not (folder / "modules.json").is_file():
        return SentenceFolder(folder, pooling or "mean")
    try:
        steps = [(step["type"].rpartition(".")[2], folder / step["path"]) for step in _json(folder / "modules.json")]
    except (TypeError, KeyError, AttributeError):
        raise ValueError(
            f"{folder / 'modules.json'} is no list of steps with type and path, as sentence-transformers writes it; copy it again"
        ) from None
    kinds = [kind for kind, _ in steps]
    unknown = sorted(set(kinds) - {"Transformer", "Pooling", "Dense", "Normalize"})
    if unknown or kinds[:2] != ["Transformer", "Pooling"]:
        raise ValueError(f"{folder / 'modules.json'} lists the steps {', '.join(kinds)}; known are Transformer, Pooling, "
                         "then Dense and Normalize: choose another embedder")  # fmt: skip
    network, settings = steps[0][1], _json(steps[0][1] / "sentence_bert_config.json")
    dense = [place for kind, place in steps if kind == "Dense"]
    return SentenceFolder(
        network,
        pooling or _pooling(steps[1][1] / "config.json"),
        tuple(_dense(place) for place in dense),
        _json(dense[-1] / "config.json")["out_features"] if dense else None,
        settings.get("max_seq_length"),
        bool(settings.get("do_lower_case")),
        _prefix(_json(folder / "config_sentence_transformers.json")),
    )


def _pooling(file: Path) -> Pooling:
    """Its mode: named in ``pooling_mode``, or by a flag for each that may be on."""
    settings = _json(file)
    named = settings.get("pooling_mode") or [
        flag.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for flag, on in settings.items()
        if flag.startswith("pooling_mode_") and on is True
    ]
    modes = [named] if isinstance(named, str) else list(named)
    if len(modes) != 1 or modes[0] not in MODES:
        raise ValueError(f"{file} asks for the pooling {' with '.join(modes) or '(none)'}; known are {', '.join(MODES)}: pass "
                         f"pooling= one of {', '.join(POOLINGS)}, or choose another embedder")  # fmt: skip
    return MODES[modes[0]]


def _dense(folder: Path) -> nn.Module:
    settings = _json(folder / "config.json")
    activation = settings["activation_function"].rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"{folder / 'config.json'} asks for the activation {activation}; known are {', '.join(ACTIVATIONS)}"
        )
    layer = nn.Linear(settings["in_features"], settings["out_features"], bias=settings.get("bias", True))
    layer.load_state_dict({name.removeprefix("linear."): value.float() for name, value in _weights(folder).items()})
    return nn.Sequential(layer, ACTIVATIONS[activation]())


def _weights(folder: Path) -> dict[str, Tensor]:
    if (file := folder / "model.safetensors").is_file():
        return load_file(file)
    weights: dict[str, Tensor] = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    return weights


def _prefix(settings: dict[str, Any]) -> str:
    name = settings.get("default_prompt_name")
    return settings.get("prompts", {})[name] if name else ""


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON ({error}); copy the model again") from None
