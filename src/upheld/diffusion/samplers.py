"""From noise to data: ordinary and stochastic differential equations of a velocity, DDIM steps, and the sampler of EDM."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from upheld.diffusion.paths import AffinePath, beside, clamped

Velocity = Callable[[Tensor, Tensor], Tensor]
EVALUATIONS = {"euler": 1, "heun": 2, "midpoint": 2}


def ode_step(velocity: Velocity, x: Tensor, v: Tensor, t: Tensor, t_next: Tensor, method: str = "euler") -> Tensor:
    """One step of dX = v(X, t) dt; `v` is the velocity at `x`, which the caller has. Heun and midpoint ask for one more."""
    dt = (t_next - t).to(x.dtype)
    if method == "euler":
        return x + dt * v
    if method == "heun":
        ahead = velocity(x + dt * v, clamped(t_next).to(x.dtype))
        return x + dt * (v + ahead) / 2
    if method == "midpoint":
        return x + dt * velocity(x + dt / 2 * v, clamped((t + t_next) / 2).to(x.dtype))
    raise ValueError(f"no way of stepping {method!r}; there are {', '.join(EVALUATIONS)}")


def integrate(velocity: Velocity, x: Tensor, times: Tensor, method: str = "euler") -> Tensor:
    """dX = v(X, t) dt along `times`, forwards or backwards.

    Examples
    --------
    >>> x = integrate(lambda x, t: x, torch.ones(1, 1), torch.linspace(0, 1, 101), "heun")
    >>> round(x.item(), 3)
    2.718
    """
    for t, t_next in itertools.pairwise(times):
        x = ode_step(velocity, x, velocity(x, clamped(t).to(x.dtype)), t, t_next, method)
    return x


def marginal_preserving_sde(
    velocity: Velocity, path: AffinePath, x: Tensor, times: Tensor, variance: Callable[[Tensor], Tensor | float],
    generator: torch.Generator,
) -> Tensor:  # fmt: skip
    """dX = [v + (eta^2/2) s] dt + eta dW by Euler and Maruyama: the same marginals as the ODE for any eta^2 >= 0.

    Where eta^2 is not bounded (towards noise) or the score is not (towards data), leave those times to `integrate`.
    """
    for t, t_next in itertools.pairwise(times):
        at, dt = clamped(t), float(t_next - t)
        v, eta2 = velocity(x, at.to(x.dtype)), float(variance(at))
        drift = v + eta2 / 2 * path.score(x, v, at)
        x = x + dt * drift
        if eta2 > 0:
            x = x + (eta2 * dt) ** 0.5 * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    return x


def ddim(
    noise: Velocity, x: Tensor, alpha_bar: Tensor, n_steps: int, *, eta: float = 0.0, generator: torch.Generator | None = None
) -> Tensor:  # fmt: skip
    """Steps of Song, Meng & Ermon (2021), equation 12, from pure noise `x` over every (T/n)-th step of the schedule.

    Parameters
    ----------
    noise : called as ``noise(x, k/T)`` with k = T, ..., 1, as `noise_error` trains it
    eta : 0 deterministic, 1 as DDPM; above 0 it needs `generator`
    """
    total = len(alpha_bar)
    if not 1 <= n_steps <= total:
        raise ValueError(f"{n_steps} steps of a schedule of {total}; take 1 to {total}")
    ks = torch.linspace(total, 0, n_steps + 1).round().long().tolist()
    bars = torch.cat([torch.ones(1, dtype=alpha_bar.dtype), alpha_bar])
    for k, k_next in itertools.pairwise(ks):
        here, there = float(bars[k]), float(bars[k_next])
        eps = noise(x, torch.tensor(k / total, dtype=x.dtype))
        clean = (x - (1 - here) ** 0.5 * eps) / here**0.5
        spread = eta * ((1 - there) / (1 - here) * (1 - here / there)) ** 0.5
        x = there**0.5 * clean + max(1 - there - spread**2, 0.0) ** 0.5 * eps
        if spread > 0:
            x = x + spread * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    return x


def edm_heun(denoiser: Velocity, x: Tensor, sigmas: Tensor) -> Tensor:
    """Algorithm 1 of Karras et al. (2022) from noise `x` (standard normal) along `sigmas`, which end in 0."""
    x = x * sigmas[0].to(x.dtype)
    for sigma, after in itertools.pairwise(sigmas):
        s, s_next = sigma.to(x.dtype), after.to(x.dtype)
        slope = (x - denoiser(x, s)) / beside(s, x)
        ahead = x + (s_next - s) * slope
        if float(after) > 0:
            slope = (slope + (ahead - denoiser(ahead, s_next)) / beside(s_next, x)) / 2
            ahead = x + (s_next - s) * slope
        x = ahead
    return x
