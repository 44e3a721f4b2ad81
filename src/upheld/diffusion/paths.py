"""Affine paths between Gaussian noise and data, and what one prediction says about the others.

Noise at t = 0, data at t = 1, x_0 ~ N(0, I) independent of x_1 (Lipman et al. 2023; Albergo et al. 2023)::

    x_t = alpha x_1 + sigma x_0                                                                   (1)
    v(x, t) = E[alpha' x_1 + sigma' x_0 | x_t = x]                                                (2)
    x1_hat = (sigma v - sigma' x) / (sigma alpha' - sigma' alpha)                                 (3)
    s(x, t) = grad log p_t(x) = -(x - alpha x1_hat) / sigma^2                                     (4)

On the linear path (alpha = t, sigma = 1 - t) these are x1_hat = x + (1 - t) v and s = (t v - x) / (1 - t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

Coefficient = Callable[[Tensor], Tensor]
NEAREST_TO_THE_ENDS = 1e-4


def beside(t: Tensor | float, x: Tensor) -> Tensor:
    """Time in the type and device of `x`, a column for every example: () or (B,) becomes what multiplies (B, ...)."""
    t = torch.as_tensor(t, dtype=x.dtype, device=x.device)
    return t.reshape(-1, *[1] * (x.dim() - 1)) if t.dim() else t


@dataclass(frozen=True)
class AffinePath:
    """alpha(t) and sigma(t) with their derivatives, each from a tensor of times to one of the same shape.

    Parameters
    ----------
    alpha, sigma : weight of the data, 0 to 1, and of the noise, 1 to 0
    alpha_slope, sigma_slope : derivatives; found by automatic differentiation where they are None

    Examples
    --------
    >>> path = affine_path("linear")
    >>> x, v, t = torch.tensor([[1.0]]), torch.tensor([[4.0]]), torch.tensor(0.5)
    >>> path.endpoint(x, v, t).item(), path.score(x, v, t).item()
    (3.0, 2.0)
    """

    name: str
    alpha: Coefficient
    sigma: Coefficient
    alpha_slope: Coefficient | None = None
    sigma_slope: Coefficient | None = None

    def coefficients(self, t: Tensor | float, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """alpha, sigma, alpha', sigma', shaped to multiply `x`."""
        time = beside(t, x)
        return (
            self.alpha(time),
            self.sigma(time),
            (self.alpha_slope or _slope(self.alpha))(time),
            (self.sigma_slope or _slope(self.sigma))(time),
        )

    def interpolate(self, x1: Tensor, x0: Tensor, t: Tensor | float) -> Tensor:
        """x_t, equation (1)."""
        alpha, sigma, _, _ = self.coefficients(t, x1)
        return alpha * x1 + sigma * x0

    def velocity(self, x1: Tensor, x0: Tensor, t: Tensor | float) -> Tensor:
        """What a velocity field is fitted to, equation (2)."""
        _, _, alpha_slope, sigma_slope = self.coefficients(t, x1)
        return alpha_slope * x1 + sigma_slope * x0

    def endpoint(self, x: Tensor, v: Tensor, t: Tensor | float) -> Tensor:
        """Prediction of the data, equation (3)."""
        alpha, sigma, alpha_slope, sigma_slope = self.coefficients(t, x)
        return (sigma * v - sigma_slope * x) / (sigma * alpha_slope - sigma_slope * alpha)

    def noise(self, x: Tensor, v: Tensor, t: Tensor | float) -> Tensor:
        """Prediction of the noise: the same two equations solved for x_0."""
        alpha, sigma, alpha_slope, sigma_slope = self.coefficients(t, x)
        return (alpha_slope * x - alpha * v) / (sigma * alpha_slope - sigma_slope * alpha)

    def score(self, x: Tensor, v: Tensor, t: Tensor | float) -> Tensor:
        """grad log p_t, equation (4): minus the predicted noise over sigma."""
        _, sigma, _, _ = self.coefficients(t, x)
        return self.noise(x, v, t) / -sigma

    def velocity_from_endpoint(self, x: Tensor, x1: Tensor, t: Tensor | float) -> Tensor:
        """Velocity of a network that predicts the data; needs sigma > 0."""
        alpha, sigma, alpha_slope, sigma_slope = self.coefficients(t, x)
        return alpha_slope * x1 + sigma_slope * (x - alpha * x1) / sigma

    def velocity_from_noise(self, x: Tensor, x0: Tensor, t: Tensor | float) -> Tensor:
        """Velocity of a network that predicts the noise; needs alpha > 0."""
        alpha, sigma, alpha_slope, sigma_slope = self.coefficients(t, x)
        return alpha_slope * (x - sigma * x0) / alpha + sigma_slope * x0

    def memoryless_variance(self, t: Tensor | float) -> Tensor:
        """eta^2 = 2 sigma (sigma alpha'/alpha - sigma'): the noise under which X_1 is independent of X_0 (Domingo-Enrich et al.
        2025); on the linear path 2 (1 - t)/t."""
        time = torch.as_tensor(t, dtype=torch.float64)
        alpha, sigma, alpha_slope, sigma_slope = self.coefficients(time, time)
        return 2 * sigma * (sigma * alpha_slope / alpha - sigma_slope)


def _slope(of: Coefficient) -> Coefficient:
    def slope(t: Tensor) -> Tensor:
        with torch.enable_grad():
            at = t.detach().double().requires_grad_()
            (found,) = torch.autograd.grad(of(at).sum(), at)
        return found.to(t.dtype)

    return slope


def linear() -> AffinePath:
    """x_t = t x_1 + (1 - t) x_0: rectified flow, Stable Diffusion 3, Flux."""
    return AffinePath("linear", _same, _rest, torch.ones_like, _minus_one)


def cosine() -> AffinePath:
    """alpha = sin(pi t/2), sigma = cos(pi t/2): variance-preserving, and alpha' never vanishes before the end."""
    return AffinePath("cosine", _sine, _cosine, _sine_slope, _cosine_slope)


def variance_preserving(beta_min: float = 0.1, beta_max: float = 20.0) -> AffinePath:
    """The diffusion of Song et al. (2021) with linear beta, run from noise to data: log alpha = -s^2 (b - a)/4 - s a/2, s = 1 - t.

    At t = 0 a little of the data is left, alpha = exp(-(a + b)/4), which is 0.0066 for the usual constants.
    """
    alpha, sigma = (partial(of, beta_min=beta_min, beta_max=beta_max) for of in (_kept, _lost))
    return AffinePath("vp", alpha, sigma)


# functions of the module, so that a path can be sent to another process


def _same(t: Tensor) -> Tensor:
    return t


def _rest(t: Tensor) -> Tensor:
    return 1 - t


def _minus_one(t: Tensor) -> Tensor:
    return -torch.ones_like(t)


def _sine(t: Tensor) -> Tensor:
    return torch.sin(math.pi / 2 * t)


def _cosine(t: Tensor) -> Tensor:
    return torch.cos(math.pi / 2 * t)


def _sine_slope(t: Tensor) -> Tensor:
    return math.pi / 2 * torch.cos(math.pi / 2 * t)


def _cosine_slope(t: Tensor) -> Tensor:
    return -math.pi / 2 * torch.sin(math.pi / 2 * t)


def _kept(t: Tensor, beta_min: float, beta_max: float) -> Tensor:
    s = 1 - t
    return torch.exp(-(s**2) * (beta_max - beta_min) / 4 - s * beta_min / 2)


def _lost(t: Tensor, beta_min: float, beta_max: float) -> Tensor:
    return torch.sqrt(-torch.expm1(2 * torch.log(_kept(t, beta_min, beta_max))))


PATHS = {"linear": linear, "cosine": cosine, "vp": variance_preserving}


def affine_path(path: str | AffinePath) -> AffinePath:
    """The path of that name, or the one given.

    Raises
    ------
    ValueError
        If there is no such name, or a path of the user's is not 0 and 1 where it must be.
    """
    if isinstance(path, AffinePath):
        start, end = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
        if abs(float(path.alpha(end)) - 1) > 1e-3 or abs(float(path.sigma(start)) - 1) > 1e-3:
            raise ValueError(
                f"path {path.name!r} has alpha(1) = {float(path.alpha(end)):.3g} and sigma(0) = {float(path.sigma(start)):.3g}; both "
                "must be 1: time runs from noise at 0 to data at 1"
            )
        return path
    if path not in PATHS:
        raise ValueError(f"no path {path!r}; there are {', '.join(PATHS)}, or pass an AffinePath of your own")
    return PATHS[path]()


def clamped(t: Tensor | float) -> Tensor:
    """A time as networks are asked: not nearer than 1e-4 to noise or data, where predictions are divided by 0."""
    return torch.as_tensor(t, dtype=torch.float64).clamp(NEAREST_TO_THE_ENDS, 1 - NEAREST_TO_THE_ENDS)
