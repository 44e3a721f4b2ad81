"""Many small minimisations at once: L-BFGS (Nocedal 1980) in which every example has its own history and step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]
SUFFICIENT = 1e-4
HALVINGS = 6


def minimise(objective: Objective, x: Tensor, *, iterations: int, memory: int = 10) -> tuple[Tensor, int]:
    """Minimise a function of every example.

    Parameters
    ----------
    objective : from (B, d) to values (B,) and gradients (B, d)
    iterations : outer ones; each asks once, and once more for every halving of the step that some example needs

    Returns
    -------
    the points, and how often the objective was asked
    """
    value, slope = objective(x)
    asked = 1
    pairs: list[tuple[Tensor, Tensor]] = []
    for iteration in range(iterations):
        way = -_two_loops(slope, pairs)
        uphill = (way * slope).sum(1) >= 0
        way = torch.where(uphill[:, None], -slope, way)
        size = torch.ones(len(x), dtype=x.dtype)
        if not pairs and iteration == 0:
            size = (1 / slope.abs().sum(1).clamp(min=1e-12)).clamp(max=1.0)
        for _ in range(HALVINGS):
            there = x + size[:, None] * way
            value_there, slope_there = objective(there)
            asked += 1
            enough = value_there <= value + SUFFICIENT * size * (way * slope).sum(1)
            if enough.all():
                break
            size = torch.where(enough, size, size / 2)
        moved = enough[:, None]
        step, change = torch.where(moved, there - x, 0.0), torch.where(moved, slope_there - slope, 0.0)
        pairs = [*pairs, (step, change)][-memory:]
        x, value, slope = x + step, torch.where(enough, value_there, value), slope + change
    return x, asked


def _two_loops(slope: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The inverse Hessian times the gradient; pairs without curvature count for nothing."""
    q, used = slope.clone(), []
    for step, change in reversed(pairs):
        product = (step * change).sum(1)
        rho = torch.where(product > 1e-10, 1 / product.clamp(min=1e-10), 0.0)
        a = rho * (step * q).sum(1)
        q = q - a[:, None] * change
        used.append((step, change, rho, a))
    if pairs:
        step, change = pairs[-1]
        scale = (step * change).sum(1) / change.square().sum(1).clamp(min=1e-12)
        q = q * torch.where(scale > 0, scale, 1.0)[:, None]
    for step, change, rho, a in reversed(used):
        q = q + (a - rho * (change * q).sum(1))[:, None] * step
    return q
