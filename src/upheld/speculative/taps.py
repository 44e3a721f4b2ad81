"""Which layers of the target are read, and how their outputs are read without keeping the others.

H^(l) is the output of decoder layer l, counted from 0: entry l + 1 of the `hidden_states` of transformers, whose entry 0 is
the embedding.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel


def tap_layers(num_target_layers: int, taps: int) -> list[int]:
    """The taps T = {l_1, ..., l_m}: evenly spaced from layer 1 to layer L - 3, rounded half to even.

    One tap is the middle layer; a target too shallow for the rule (L - 3 < m) gives the distinct values of
    ``round(linspace(0, L - 2, m))``.

    Raises
    ------
    ValueError
        If there is no layer to tap.

    Examples
    --------
    >>> tap_layers(36, 5), tap_layers(30, 3)
    ([1, 9, 17, 25, 33], [1, 14, 27])
    """
    if taps < 1 or num_target_layers < 2:
        raise ValueError(
            f"{taps} taps in {num_target_layers} layers: take at least 1 tap, and a target of 2 layers or more"
        )
    if taps == 1:
        return [num_target_layers // 2]
    last = num_target_layers - 3
    first, last = (1, last) if last >= taps else (0, num_target_layers - 2)
    return sorted({int(layer) for layer in np.rint(np.linspace(first, last, taps))})


def decoder_layers(target: PreTrainedModel) -> nn.ModuleList:
    """The decoder layers of a causal model, in order.

    Raises
    ------
    ValueError
        If the model shows none.
    """
    bases = [target, getattr(target, "base_model", None), getattr(target, "model", None)]
    for base in bases:
        for name in ("layers", "h", "blocks"):
            found = getattr(base, name, None)
            if isinstance(found, nn.ModuleList) and len(found):
                return found
    raise ValueError(
        f"{type(target).__name__} shows no list of decoder layers (model.layers or transformer.h); its states cannot be tapped"
    )


class Taps:
    """Captures the outputs of the tapped layers, and of no other, while it is open.

    Parameters
    ----------
    target : a causal language model
    layers : the taps, increasing

    Examples
    --------
    >>> with Taps(target, [1, 14, 27]) as taps:                  # doctest: +SKIP
    ...     target(input_ids=ids)
    ...     taps.take().shape                                     # (b, n, 3 D): [H^(1); H^(14); H^(27)]
    """

    def __init__(self, target: PreTrainedModel, layers: Sequence[int]) -> None:
        found = decoder_layers(target)
        if max(layers) >= len(found):
            raise ValueError(f"tap {max(layers)} is past the target's last layer, {len(found) - 1}")
        self._tapped = [found[layer] for layer in layers]
        self._seen: list[Tensor | None] = [None] * len(layers)
        self._hooks: list[Any] = []

    def __enter__(self) -> Taps:
        for place, layer in enumerate(self._tapped):
            self._hooks.append(layer.register_forward_hook(self._keeper(place)))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._seen = [None] * len(self._tapped)

    def take(self) -> Tensor:
        """(b, n, m D): the states of the last forward, and forgets them."""
        states = [state for state in self._seen if state is not None]
        if len(states) < len(self._tapped):
            raise RuntimeError("the target was not run since the taps were last read")
        self._seen = [None] * len(self._tapped)
        return torch.cat(states, dim=-1)

    def _keeper(self, place: int) -> Any:
        def keep(_module: nn.Module, _arguments: Any, output: Any) -> None:
            self._seen[place] = output[0] if isinstance(output, tuple) else output

        return keep


def target_digest(target: PreTrainedModel) -> str:
    """16 hexadecimal digits that tell one target from another: of its shape, and of three of its weights.

    The weights are rounded to bfloat16 first, so that a model has one digest in float32 and bfloat16.
    """
    config = target.config.get_text_config()
    shape = {
        name: getattr(config, name, None)
        for name in ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    }
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode())
    layers = decoder_layers(target)
    embedding: Any = target.get_input_embeddings()
    matrices: list[Tensor] = [embedding.weight]
    matrices += [next(p for p in layer.parameters() if p.dim() == 2) for layer in (layers[0], layers[-1])]
    for matrix in matrices:
        corner = matrix.detach()[:64, :64].to(torch.bfloat16).contiguous().cpu()
        digest.update(corner.view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:16]
