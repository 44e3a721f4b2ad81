"""How many particles may go through a network at once, and what a run holds: measured, not guessed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

BYTES = 2**30


def particles_that_fit(evaluate: Callable[[Tensor], object], shape: tuple[int, ...], device: torch.device | str) -> int:
    """Largest number of particles whose evaluation keeps at most 1 GiB for the way back."""
    one, two = (_kept(evaluate, torch.zeros(count, *shape, device=device)) for count in (1, 2))
    size = torch.zeros(shape).nbytes
    return max(1, BYTES // max(two - one, 8 * size))


def _kept(evaluate: Callable[[Tensor], object], x: Tensor) -> int:
    """Bytes that autograd keeps while `evaluate` runs."""
    total = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal total
        total += tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        evaluate(x)
    return total


class Held(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that are made inside it, and the most that lived at once; what an operation needs while it works is
    not seen.

    Examples
    --------
    >>> with Held() as held:
    ...     x = torch.zeros(1000) + 1
    ...     y = x * 2
    >>> held.most >= 8000
    True
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._alive: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor) and leaf.untyped_storage()._cdata not in given:
                self._add(leaf.untyped_storage())
        return out

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._alive:
            return
        self._alive.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self._alive.discard(key)
        self.now -= size
