"""How far samples are from what they should be, judged without the guide."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def energy_distance(x: Tensor, y: Tensor) -> float:
    """2 E|X - Y| - E|X - X'| - E|Y - Y'|, unbiased (a U-statistic): 0 on average for two samples of one law, so it may be negative.

    Examples
    --------
    >>> energy_distance(torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]]))
    2.0
    """
    x, y = x.flatten(1).double(), y.flatten(1).double()
    if min(len(x), len(y)) < 2:
        raise ValueError(f"{len(x)} and {len(y)} points; an energy distance needs at least 2 of each")
    return float(2 * torch.cdist(x, y).mean() - _within(x) - _within(y))


def _within(x: Tensor) -> Tensor:
    return torch.cdist(x, x).sum() / (len(x) * (len(x) - 1))


def sliced_wasserstein(x: Tensor, y: Tensor, directions: int = 64, seed: int = 0) -> float:
    """Mean over random directions of the first Wasserstein distance of two samples of equal size; in one dimension the distance."""
    if x.shape != y.shape:
        raise ValueError(f"samples of shapes {tuple(x.shape)} and {tuple(y.shape)}; they must be the same")
    if x.shape[1] == 1:
        return float((x.sort(0).values - y.sort(0).values).abs().mean())
    way = torch.randn(x.shape[1], directions, generator=torch.Generator().manual_seed(seed), dtype=x.dtype)
    way = way / way.norm(dim=0)
    first, second = (torch.as_tensor(np.sort((way.T @ one.T).numpy(), axis=1)) for one in (x, y))
    return float((first - second).abs().mean())


def frechet_distance(x: Tensor, y: Tensor) -> float:
    """|m_x - m_y|^2 + tr(S_x + S_y - 2 (S_x S_y)^(1/2)) of features, (n, d) and (m, d): of a judge's, never called FID."""
    from scipy.linalg import sqrtm

    x, y = x.double(), y.double()
    first, second = torch.cov(x.T), torch.cov(y.T)
    root = torch.as_tensor(sqrtm((first @ second).numpy()).real)
    gap = (x.mean(0) - y.mean(0)).square().sum()
    return float(gap + torch.trace(first + second - 2 * root))


def mean_pairwise_distance(x: Tensor) -> float:
    """E|X - X'| over pairs of (n, d)."""
    return float(_within(x.flatten(1).double()))


def wasserstein_of_normals(mean: float, variance: float, other_mean: float, other_variance: float) -> float:
    """Second Wasserstein distance of two normal laws on the line."""
    return math.hypot(mean - other_mean, math.sqrt(variance) - math.sqrt(other_variance))
