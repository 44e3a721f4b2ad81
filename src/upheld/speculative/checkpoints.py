"""Drafters in the published format (z-lab): read, and written for servers that know it.

Its configuration is that of a Qwen3 model with ``block_size``, ``num_target_layers`` and ``dflash_config`` (``mask_token_id``,
``target_layer_ids``); its weights bear the names used here. It knows neither a learned mask, nor a part of the vocabulary, nor
any injection but keys and values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from upheld.speculative.configuration import DFlashConfig
from upheld.speculative.drafter import DFlashDrafter

SHARED = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "hidden_act", "rms_norm_eps", "attention_bias", "max_position_embeddings", "initializer_range", "vocab_size",
    "block_size", "num_target_layers",
)  # fmt: skip


def load_published(folder: str | Path, *, dtype: torch.dtype = torch.float32) -> DFlashDrafter:
    """A drafter out of a folder in the published format.

    Raises
    ------
    ValueError
        If the folder is not in that format, or weights are missing, left over or of another shape.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} holds no config.json; give the folder of a published drafter")
    told = json.loads((folder / "config.json").read_text())
    own = told.get("dflash_config") or {}
    if "target_layer_ids" not in own or "block_size" not in told:
        raise ValueError(
            f"the config.json in {folder} names no dflash_config.target_layer_ids and block_size; is it a drafter?"
        )
    config = DFlashConfig(
        **{name: told[name] for name in SHARED if told.get(name) is not None},
        rope_parameters=_rope(told),
        target_layer_ids=list(own["target_layer_ids"]),
        mask_token_id=own.get("mask_token_id"),
        attention_output_bias=bool(told.get("attention_bias")),
        qk_norm=True,
    )
    drafter = DFlashDrafter(config)
    weights: dict[str, Any] = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= load_file(file)
    expected = set(drafter.state_dict()) - {"draft_ids"}
    for kind, names in (("lacks", expected - set(weights)), ("has an unknown", set(weights) - expected)):
        if names:
            raise ValueError(f"the drafter in {folder} {kind} weight {min(names)} ({len(names)} in all)")
    try:
        drafter.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        shape = str(error).partition("\n")[2].strip()
        raise ValueError(f"a weight in {folder} has not the shape that its config.json tells: {shape}") from error
    drafter.to(dtype=dtype)  # type: ignore[call-arg]
    drafter.eval()  # type: ignore[no-untyped-call]
    return drafter


def save_published(drafter: DFlashDrafter, folder: str | Path) -> None:
    """Write a drafter in the published format.

    Raises
    ------
    ValueError
        If it has what the format cannot say.
    """
    config, folder = drafter.config, Path(folder)
    for wrong, mend in (
        (config.injection != "kv" or config.autoregressive, "an ablation's drafter"),
        (config.draft_vocab_size is not None, "a draft vocabulary (train with draft_vocab_size=None)"),
        (config.mask_token_id is None, "a learned mask (train with a mask_token_id)"),
        (not config.qk_norm, "no norms of queries and keys (train with init='random')"),
    ):
        if wrong:
            raise ValueError(f"the published format cannot say that a drafter has {mend}; use save_pretrained")
    told: dict[str, Any] = {name: getattr(config, name) for name in SHARED}
    told |= {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "tie_word_embeddings": False,
        "rope_parameters": config.rope_parameters,
        "rope_theta": (config.rope_parameters or {})["rope_theta"],
        "dtype": str(drafter.dtype).removeprefix("torch."),
        "dflash_config": {"mask_token_id": config.mask_token_id, "target_layer_ids": config.target_layer_ids},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(told, indent=2) + "\n")
    weights = {name: value.contiguous() for name, value in drafter.state_dict().items() if name != "draft_ids"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _rope(told: dict[str, Any]) -> dict[str, Any]:
    """Rotary positions as transformers 5 writes them; older files have the base and the scaling apart."""
    if told.get("rope_parameters"):
        return dict(told["rope_parameters"])
    scaling = dict(told.get("rope_scaling") or {})
    kind = scaling.pop("rope_type", scaling.pop("type", "default"))
    return {**scaling, "rope_type": kind, "rope_theta": told.get("rope_theta", 10000.0)}
