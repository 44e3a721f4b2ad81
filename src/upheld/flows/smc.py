"""Weights and resampling of many groups of particles at once; nothing here knows a model.

Log-weights are float64, (groups M, particles K). A resampler turns normalised weights and uniform numbers, both (M, K), into the
ancestor of every particle, (M, K); each gives particle i on average K w_i offspring, which is all that an unbiased evidence needs::

    ESS = (sum w)^2 / sum w^2                                                                     (1)
    log Z_hat += log mean w,  then w = 1                                                          (2)

Schemes: Douc, Cappe & Moulines (2005); ssp: Gerber, Chopin & Whiteley (2019), algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Resampler = Callable[[Tensor, Tensor], Tensor]


def log_mean_exp(log_weights: Tensor) -> Tensor:
    """log of the mean weight of every group: over the last axis."""
    return torch.logsumexp(log_weights, -1) - math.log(log_weights.shape[-1])


def normalised(log_weights: Tensor) -> Tensor:
    """Weights that sum to 1 over the last axis."""
    return torch.softmax(log_weights, -1)


def effective_sample_size(log_weights: Tensor) -> Tensor:
    """Equation (1) for every group, between 1 and K."""
    return 1 / normalised(log_weights).square().sum(-1)


def systematic(weights: Tensor, u: Tensor) -> Tensor:
    """One uniform number a group: floor(K w) or ceil(K w) offspring each."""
    return _at(weights, (u[:, :1] + _ranks(weights)) / weights.shape[1])


def stratified(weights: Tensor, u: Tensor) -> Tensor:
    """One uniform number in every K-th of [0, 1]."""
    return _at(weights, (u + _ranks(weights)) / weights.shape[1])


def multinomial(weights: Tensor, u: Tensor) -> Tensor:
    """K independent draws."""
    return _at(weights, u)


def residual(weights: Tensor, u: Tensor) -> Tensor:
    """floor(K w) offspring for sure, the rest multinomial on what is left."""
    count = weights.shape[1]
    sure = (count * weights).floor()
    left = count * weights - sure
    drawn = _at(left / left.sum(1, keepdim=True).clamp(min=torch.finfo(left.dtype).tiny), u)
    ranks = _ranks(weights)
    return torch.where(ranks < sure.sum(1, keepdim=True), _spread(sure), drawn)


def ssp(weights: Tensor, u: Tensor) -> Tensor:
    """Pairs of particles trade the fractional parts of K w until one of them is whole: floor or ceil as in systematic, but the
    order of particles does not matter for consistency."""
    groups, count = weights.shape
    children = (count * weights).floor()
    part = count * weights - children
    rows, carried = torch.arange(groups), torch.zeros(groups, dtype=torch.long)
    for j in range(1, count):
        mine, other = part[rows, carried], part[:, j].clone()
        up, down = torch.minimum(1 - mine, other), torch.minimum(mine, 1 - other)
        rises = u[:, j] * (up + down) < down
        moved = torch.where(rises, up, -down)
        mine, other = mine + moved, other - moved
        whole = (mine < _TINY) | (mine > 1 - _TINY)
        done = torch.where(whole, carried, torch.full_like(carried, j))
        children[rows, done] += torch.where(whole, mine, other).round()
        part[rows, carried], part[:, j] = mine, other
        carried = torch.where(whole, torch.full_like(carried, j), carried)
    children[rows, carried] += part[rows, carried].round()
    return _spread(children)


_TINY = 1e-9
RESAMPLERS: dict[str, Resampler] = {
    "systematic": systematic,
    "stratified": stratified,
    "multinomial": multinomial,
    "residual": residual,
    "ssp": ssp,
}


def resampler(name: str) -> Resampler:
    """The resampler of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in RESAMPLERS:
        raise ValueError(f"no resampling {name!r}; there are {', '.join(RESAMPLERS)}, and None for none")
    return RESAMPLERS[name]


def draw_one(weights: Tensor, u: Tensor) -> Tensor:
    """One particle of every group, by one uniform number each: (M,)."""
    return _at(weights, u[:, :1])[:, 0]


def _ranks(weights: Tensor) -> Tensor:
    return torch.arange(weights.shape[1], dtype=weights.dtype).expand_as(weights)


def _at(weights: Tensor, positions: Tensor) -> Tensor:
    """The particle in whose stretch of the cumulated weights a position falls; never one of weight 0."""
    ends = weights.cumsum(1)
    last = (weights > 0).to(torch.long).cumsum(1).argmax(1, keepdim=True)  # rounding may leave the sum below 1
    return torch.minimum(torch.searchsorted(ends, positions.contiguous(), right=True), last)


def _spread(children: Tensor) -> Tensor:
    """Ancestors from numbers of offspring."""
    ends = children.cumsum(1)
    found = torch.searchsorted(ends, _ranks(children).contiguous(), right=True)
    return found.clamp(max=children.shape[1] - 1)
