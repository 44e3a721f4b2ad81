"""How likely the condition will be met, seen from an intermediate point: twisting functions g_t(x) > 0.

Any positive g leaves the target as it is, since it is divided out at the end; the nearer it is to E[l(x_1) | x_t = x], the smaller
the variance. Each look-ahead is asked for log g at the predicted end point x1_hat::

    point        g = l(x1_hat) + eps2                                                             (1)
    calibrated   x_1 given x_t is spread around x1_hat by r^2 = c sigma^2 / (c alpha^2 + sigma^2),
                 c the variance of a coordinate of the data                                       (2)
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from upheld.diffusion.paths import AffinePath
from upheld.flows.likelihoods import ClassifierLikelihood, Likelihood, LinearGaussian, Product, checked_log_prob


@dataclass
class View:
    """What a look-ahead sees of the particles: where they are, when, where they seem to go, and noise of its own."""

    x: Tensor
    t: float
    endpoint: Tensor
    path: AffinePath
    noise: Tensor | None


class LookAhead(Protocol):
    """A twisting function."""

    draws: int
    """Standard normal draws it wants at a point, each of the shape of x; they are `View.noise`, (draws, B, \\*shape)."""

    def log_twist(self, likelihood: Likelihood, view: View) -> Tensor:
        """log g of every particle, (B,)."""


@dataclass
class PointLookAhead:
    """Equation (1): the likelihood at the predicted end point, as the paper has it."""

    eps2: float = 0.0
    draws: int = 0

    def log_twist(self, likelihood: Likelihood, view: View) -> Tensor:
        return _floored(checked_log_prob(likelihood.log_prob, view.endpoint), self.eps2)


@dataclass
class CalibratedLookAhead:
    """Equation (2): the likelihood averaged over where the particle may still go.

    Exactly, for linear measurements; with logits divided by 1 + kappa r^2/c, for softmax classifiers; else over `draws` draws.

    Parameters
    ----------
    variance : c
    kappa : 0 leaves a classifier as it is: the predicted end point is blurred already
    """

    variance: float
    kappa: float = 0.0
    eps2: float = 0.0
    draws: int = 4

    def spread(self, path: AffinePath, t: float) -> float:
        """r^2 of equation (2)."""
        time = torch.tensor(t, dtype=torch.float64)
        alpha, sigma = float(path.alpha(time)), float(path.sigma(time))
        return self.variance * sigma**2 / (self.variance * alpha**2 + sigma**2)

    def log_twist(self, likelihood: Likelihood, view: View) -> Tensor:
        return _floored(self._log_mean(likelihood, view), self.eps2)

    def _log_mean(self, likelihood: Likelihood, view: View) -> Tensor:
        spread = self.spread(view.path, view.t)
        if isinstance(likelihood, Product):
            return torch.stack([self._log_mean(part, view) for part in likelihood.parts]).sum(0)
        if isinstance(likelihood, LinearGaussian):
            return checked_log_prob(likelihood.log_prob_blurred, view.endpoint, spread)
        if isinstance(likelihood, ClassifierLikelihood) or hasattr(likelihood, "log_prob_tempered"):
            factor = 1 + self.kappa * spread / self.variance
            return checked_log_prob(likelihood.log_prob_tempered, view.endpoint, factor)
        assert view.noise is not None
        around = [checked_log_prob(likelihood.log_prob, view.endpoint + spread**0.5 * xi) for xi in view.noise]
        return torch.logsumexp(torch.stack(around), 0) - math.log(len(around))


@dataclass
class TemperedLookAhead:
    """g^beta of another look-ahead, beta by time: a condition that is let in gradually. At the end the whole likelihood counts.

    Parameters
    ----------
    look : the other
    times, betas : a ladder, times rising, betas in (0, 1]; between its rungs beta is that of the rung before
    """

    look: LookAhead
    times: Sequence[float]
    betas: Sequence[float]

    def __post_init__(self) -> None:
        if not self.betas or len(self.times) != len(self.betas) or not all(0 < beta <= 1 for beta in self.betas):
            raise ValueError("a ladder has as many betas as times, at least one, each in (0, 1]")

    @property
    def draws(self) -> int:
        """As many as the other wants."""
        return self.look.draws

    def beta(self, t: float) -> float:
        """The exponent at a time."""
        return self.betas[max(bisect.bisect_right(self.times, t + 1e-9) - 1, 0)]

    def log_twist(self, likelihood: Likelihood, view: View) -> Tensor:
        return self.beta(view.t) * self.look.log_twist(likelihood, view)


@dataclass
class GivenLookAhead:
    """A twisting function of the user's: ``log_g(x, t, endpoint) -> (B,)``."""

    log_g: Callable[[Tensor, float, Tensor], Tensor]
    draws: int = 0

    def log_twist(self, likelihood: Likelihood, view: View) -> Tensor:
        return checked_log_prob(lambda x: self.log_g(x, view.t, view.endpoint), view.x)


def wants_draws(likelihood: Likelihood) -> bool:
    """Whether the calibrated look-ahead has to draw."""
    if isinstance(likelihood, Product):
        return any(wants_draws(part) for part in likelihood.parts)
    return not (isinstance(likelihood, LinearGaussian) or hasattr(likelihood, "log_prob_tempered"))


def is_linear_gaussian(likelihood: Likelihood) -> bool:
    """Whether the condition is one of linear measurements alone."""
    if isinstance(likelihood, Product):
        return all(is_linear_gaussian(part) for part in likelihood.parts)
    return isinstance(likelihood, LinearGaussian)


def _floored(log_g: Tensor, eps2: float) -> Tensor:
    """log(g + eps2)."""
    return torch.logaddexp(log_g, torch.full_like(log_g, math.log(eps2))) if eps2 > 0 else log_g
