"""How many particles may go through a network at once: what autograd keeps for one more is measured, not guessed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

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
