"""Grids of times and noise levels: where a sampler steps, and where training looks."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def uniform_times(n_steps: int) -> Tensor:
    """``n_steps + 1`` times from 0 to 1, equally spaced, float64."""
    _check_steps(n_steps)
    return torch.linspace(0, 1, n_steps + 1, dtype=torch.float64)


def shifted_times(n_steps: int, shift: float) -> Tensor:
    """The grid of Stable Diffusion 3 (Esser et al. 2024, equation 23): noise level s becomes shift s/(1 + (shift - 1) s), t = 1 - s.

    A shift above 1 spends more steps near noise, as larger pictures need.
    """
    if not shift > 0:
        raise ValueError(f"a shift of {shift} is none; it must be above 0, and 1 leaves the grid as it is")
    level = 1 - uniform_times(n_steps)
    return 1 - shift * level / (1 + (shift - 1) * level)


def karras_sigmas(n_steps: int, sigma_min: float, sigma_max: float, rho: float = 7.0) -> Tensor:
    """Noise levels of Karras et al. (2022), equation 5: `n_steps` from `sigma_max` down to `sigma_min`, then 0."""
    _check_steps(n_steps)
    if not 0 < sigma_min < sigma_max:
        raise ValueError(f"sigma_min {sigma_min} and sigma_max {sigma_max} are no range; 0 < sigma_min < sigma_max")
    ramp = torch.linspace(0, 1, n_steps, dtype=torch.float64)
    low, high = sigma_min ** (1 / rho), sigma_max ** (1 / rho)
    return torch.cat([(high + ramp * (low - high)) ** rho, torch.zeros(1, dtype=torch.float64)])


def cosine_alpha_bar(n_steps: int, offset: float = 0.008) -> Tensor:
    """Products of (1 - beta) after 1, ..., T steps (Nichol & Dhariwal 2021, equation 17), with beta at most 0.999."""
    _check_steps(n_steps)
    step = torch.arange(n_steps + 1, dtype=torch.float64) / n_steps
    f = torch.cos((step + offset) / (1 + offset) * math.pi / 2) ** 2
    beta = (1 - f[1:] / f[:-1]).clamp(max=0.999)
    return torch.cumprod(1 - beta, 0)


def linear_alpha_bar(n_steps: int, first: float = 1e-4, last: float = 0.02) -> Tensor:
    """The same for betas in equal steps, as in Ho et al. (2020)."""
    _check_steps(n_steps)
    return torch.cumprod(1 - torch.linspace(first, last, n_steps, dtype=torch.float64), 0)


def _check_steps(n_steps: int) -> None:
    if n_steps < 1:
        raise ValueError(f"{n_steps} steps lead nowhere; take at least 1")
