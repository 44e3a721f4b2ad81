"""The target as a decoder uses it: it reads tokens behind those it holds, and forgets the last ones again."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from upheld.speculative.taps import Taps


class Reader:
    """A target with its keys and values, and the states at the taps of what was read last.

    Parameters
    ----------
    target : a causal language model
    taps : layers whose outputs are kept; none for plain decoding

    Raises
    ------
    ValueError
        On the first forward, if the target keeps a state that cannot be taken back (a hybrid or recurrent model).
    """

    def __init__(self, target: PreTrainedModel, taps: Sequence[int] = ()) -> None:
        self.target = target
        self.cache: Any = DynamicCache(config=target.config)
        self.length = 0
        self._taps = Taps(target, taps) if taps else None
        known = inspect.signature(target.forward).parameters
        # Older releases of transformers know the keys and values under their second name alone.
        self._cache_name = "cache" if "cache" in known else "past_key_values"
        self._keeps_logits = "logits_to_keep" in known
        self._checked = False
        for layer in self.cache.layers:
            if hasattr(layer, "activate_past_recording"):
                layer.activate_past_recording()

    def __enter__(self) -> Reader:
        if self._taps:
            self._taps.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taps:
            self._taps.__exit__()

    def read(
        self, ids: Tensor, *, keep: int = 0, mask: Tensor | None = None, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """(b, n) tokens -> (b, keep, V) logits at the last `keep` of them (0: all) and (b, n, m D) states at the taps.

        Parameters
        ----------
        mask : (b, held + n) of 1 and 0, or (b, 1, n, held + n) added to the attention; None: all is seen, causally
        positions : (b, n) or (1, n); None: they go on where the last read ended
        """
        if positions is None:
            positions = torch.arange(self.length, self.length + ids.shape[1], device=ids.device)[None]
        options: dict[str, Any] = {self._cache_name: self.cache, "position_ids": positions, "use_cache": True}
        if mask is not None:
            options["attention_mask"] = mask
        if self._keeps_logits:
            options["logits_to_keep"] = keep
        logits: Tensor = self.target(input_ids=ids, **options).logits
        self.length += ids.shape[1]
        if not self._checked:
            self._check()
        return logits[:, -keep:], self._taps.take() if self._taps else None

    def forget(self, count: int) -> None:
        """Take back the last `count` tokens."""
        # On sliding-window layers cropping nothing still cuts what was recorded down to the window.
        self.cache.crop(-count)
        self.length -= count

    def keep(self, start: int, places: Tensor) -> None:
        """Of the tokens from `start` on, keep those at these places alone, in this order (a path through a tree)."""
        for layer in self.cache.layers:
            for name in ("keys", "values"):
                held = getattr(layer, name)
                kept = held[:, :, start:].index_select(2, places)
                setattr(layer, name, torch.cat([held[:, :, :start], kept], dim=2))
        self.length = start + len(places)

    @property
    def slides(self) -> bool:
        """Whether some layer sees a window of the last tokens only."""
        return any(getattr(layer, "is_sliding", False) for layer in self.cache.layers)

    def nbytes(self) -> int:
        """Bytes of keys and values held."""
        held = [getattr(layer, name, None) for layer in self.cache.layers for name in ("keys", "values")]
        return sum(t.numel() * t.element_size() for t in held if t is not None)

    def _check(self) -> None:
        fixed = [type(layer).__name__ for layer in self.cache.layers if not getattr(layer, "is_croppable", True)]
        if fixed or not self.cache.layers:
            raise ValueError(
                f"{type(self.target).__name__} keeps states that cannot be taken back ({fixed[0] if fixed else 'no cache'}), so "
                "rejected drafts would stay in it; take a target with ordinary attention in every layer"
            )
        self._checked = True
