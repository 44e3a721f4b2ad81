"""What one would do otherwise, each from its paper's equations, on the linear path with noise at t = 0.

A rival is a small object with ``sample(n, shape, generator) -> (n, \\*shape)`` and ``cost``, the evaluations an output sample takes
(a forward pass counts 1, a backward pass 2). Gradient methods may try several starts and keep the one that the guide likes best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from upheld.diffusion.paths import clamped, linear
from upheld.diffusion.samplers import Velocity, integrate
from upheld.diffusion.schedules import uniform_times
from upheld.flows.likelihoods import Likelihood, LinearGaussian
from upheld.flows.lookahead import CalibratedLookAhead
from upheld.flows.minimise import minimise
from upheld.flows.sampler import TargetedFlow
from upheld.flows.smc import draw_one, normalised, systematic
from upheld.flows.streams import GroupStreams
from upheld.flows.velocity import flow_field

PATH = linear()
BACKWARD = 2


class Rival(Protocol):
    """A conditional sampler."""

    @property
    def cost(self) -> int:
        """Evaluations an output sample."""

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """n samples."""


@dataclass
class Particles:
    """TFTF itself, and what is its code path with other options: terminal importance sampling (``window=None``), bootstrap
    (``guidance=0``), the twisted diffusion sampler ported to flows (`tds`)."""

    flow: TargetedFlow

    @property
    def cost(self) -> int:
        asked = self.flow.evaluations()
        return int(self.flow.decided().count * (asked["forward"] + BACKWARD * asked["backward"]))

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return self.flow.sample(n, shape=shape, generator=generator).samples


def tds(velocity: Any, likelihood: Likelihood, n_steps: int, n_particles: int, guidance: float = 1.0) -> Particles:
    """TDS (arXiv 2306.17775): noise and guidance all the way, look-ahead at the predicted end point, resampling by ESS."""
    return Particles(
        TargetedFlow(
            velocity, likelihood, n_steps=n_steps, n_particles=n_particles, window=(0.02, 0.98), lookahead="point", guidance=guidance
        )
    )  # fmt: skip


@dataclass
class BestOf:
    """The most likely of K unconditional samples."""

    velocity: Any
    likelihood: Likelihood
    n_steps: int = 64
    n_particles: int = 16

    @property
    def cost(self) -> int:
        return self.n_steps * self.n_particles

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        start = torch.randn(n * self.n_particles, *shape, generator=generator)
        with torch.no_grad():
            return _best(integrate(_velocity(self.velocity), start, uniform_times(self.n_steps)), self.likelihood, n)


@dataclass
class FeynmanKac:
    """Feynman-Kac steering (arXiv 2501.06848) with the flow's stochastic version as its proposal.

    Resampled every 20 % of steps between 20 % and 80 %, and at the end, by potentials of r = log l(x1_hat)::

        difference   exp(strength (r_k - r_{k-1}))
        max          exp(strength max_{j<=k} r_j);   the last weight is exp(strength r_N) over the product of those before
    """

    velocity: Any
    likelihood: Likelihood
    n_steps: int = 64
    n_particles: int = 16
    strength: float = 1.0
    potential: str = "difference"

    @property
    def cost(self) -> int:
        return self.n_steps * self.n_particles

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        if self.potential not in ("difference", "max"):
            raise ValueError(f"no potential {self.potential!r}; there are difference and max")
        seeds = torch.randint(2**61, (n,), generator=generator).tolist()
        streams, times = GroupStreams(seeds, self.n_particles, shape), uniform_times(self.n_steps)
        velocity, stops = _velocity(self.velocity), {round(share * self.n_steps) for share in (0.2, 0.4, 0.6, 0.8)}
        x, steered = streams.start(), torch.zeros(n, self.n_particles, dtype=torch.float64)
        last = torch.zeros_like(steered) if self.potential == "difference" else torch.full_like(steered, -math.inf)
        with torch.no_grad():
            for k in range(self.n_steps):
                v = velocity(x, clamped(times[k]).to(x.dtype))
                if k in stops:
                    r = self.likelihood.log_prob(x + (1 - float(times[k])) * v).double().view_as(last)
                    new = r if self.potential == "difference" else torch.maximum(r, last)
                    log_w = self.strength * (new - last if self.potential == "difference" else new)
                    kept = systematic(normalised(log_w), streams.uniform())
                    flat = (kept + self.n_particles * torch.arange(n)[:, None]).flatten()
                    x, v = x[flat], v[flat]
                    steered, last = (steered + log_w).flatten()[flat].view_as(last), new.flatten()[flat].view_as(last)
                x = _noisy_step(x, v, times[k], times[k + 1], streams.normal())
            log_w = self.strength * self.likelihood.log_prob(x).double().view_as(last) - steered
            chosen = draw_one(normalised(log_w), streams.choice())
        return x.reshape(n, self.n_particles, *shape)[torch.arange(n), chosen]


@dataclass
class Posterior:
    """DPS-style guidance: x <- x + v dt + step grad_x log l(x1_hat)/|grad_x log l(x1_hat)|, the gradient through the network."""

    velocity: Any
    likelihood: Likelihood
    step: float = 0.1
    n_steps: int = 64
    restarts: int = 1

    @property
    def cost(self) -> int:
        return self.restarts * self.n_steps * (1 + BACKWARD)

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return _pushed(self, self.push, n, shape, generator)

    def push(self, velocity: Velocity, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """The particle moved along the gradient, and the velocity where it was."""
        v, slope = _ahead(velocity, x, t, self.likelihood.log_prob)
        norm = slope.flatten(1).norm(dim=1).clamp(min=1e-12).reshape(-1, *[1] * (x.dim() - 1))
        return x + self.step * slope / norm, v


@dataclass
class FlowChef:
    """FlowChef (arXiv 2412.00100): x <- x + v dt + step grad log l at the predicted end point, no gradient of the network."""

    velocity: Any
    likelihood: Likelihood
    step: float = 0.05
    n_steps: int = 64
    inner: int = 1
    restarts: int = 1

    @property
    def cost(self) -> int:
        return self.restarts * self.n_steps

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return _pushed(self, self.push, n, shape, generator)

    def push(self, velocity: Velocity, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """The particle moved along the gradient, and the velocity where it was."""
        with torch.no_grad():
            v = velocity(x, clamped(t).to(x.dtype))
        for _ in range(self.inner):
            x = x + self.step * _slope(self.likelihood.log_prob, x + (1 - float(t)) * v)
        return x, v


@dataclass
class OTODE:
    """OT-ODE (arXiv 2310.04432), for linear measurements: from t_0 A^+ y + (1 - t_0) x_0 with velocity
    v + ((1 - t)/t) grad_x log N(y; A x1_hat, R + r^2 A A'), r^2 = (1 - t)^2/(t^2 + (1 - t)^2)."""

    velocity: Any
    likelihood: LinearGaussian
    n_steps: int = 64
    start: float = 0.2
    weight: float = 1.0

    @property
    def cost(self) -> int:
        return self.n_steps * (1 + BACKWARD)

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        x0 = torch.randn(n, *shape, generator=generator)
        x = self.start * _pseudo_inverse(self.likelihood, shape).to(x0.dtype) + (1 - self.start) * x0
        times, velocity = self.start + (1 - self.start) * uniform_times(self.n_steps), _velocity(self.velocity)
        for t, after in itertools.pairwise(times):
            spread = float((1 - t) ** 2 / (t**2 + (1 - t) ** 2))
            v, slope = _ahead(velocity, x, t, partial(self.likelihood.log_prob_blurred, variance=spread))
            x = x + float(after - t) * (v + self.weight * float((1 - t) / t) * slope)
        return x


@dataclass
class PnPFlow:
    """PnP-Flow (arXiv 2410.02423), for linear measurements: over the times, z = x + (1 - t)^alpha step grad log l(x), then x is the mean
    over draws eps of D_t((1 - t) eps + t z), D_t(u) = u + (1 - t) v(u, t)."""

    velocity: Any
    likelihood: LinearGaussian
    step: float = 0.02
    alpha: float = 0.5
    n_steps: int = 64
    draws: int = 5

    @property
    def cost(self) -> int:
        return self.n_steps * self.draws

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        x, velocity = torch.randn(n, *shape, generator=generator), _velocity(self.velocity)
        for t in uniform_times(self.n_steps)[:-1]:
            z = x + self.step * float(1 - t) ** self.alpha * _slope(self.likelihood.log_prob, x)
            eps = torch.randn(self.draws * n, *shape, generator=generator)
            u = (1 - float(t)) * eps + float(t) * z.repeat(self.draws, *[1] * len(shape))
            with torch.no_grad():
                x = (u + (1 - float(t)) * velocity(u, clamped(t).to(u.dtype))).reshape(self.draws, n, *shape).mean(0)
        return x


@dataclass
class DFlow:
    """D-Flow (arXiv 2402.14017): minimise -log l(Phi(x_0)) over the noise, Phi six midpoint steps of the flow, by L-BFGS, from
    sqrt(.1) (A^+ y flowed backwards, or 0) + sqrt(.9) noise."""

    velocity: Any
    likelihood: Likelihood
    n_steps: int = 6
    iterations: int = 20
    blend: float = 0.1
    regulariser: float = 0.0
    restarts: int = 1
    asked: int = field(default=0, init=False)

    @property
    def cost(self) -> int:
        """Of a search that halves no step."""
        return self.restarts * (self.iterations + 1) * 2 * self.n_steps * (1 + BACKWARD)

    def sample(self, n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        velocity, times, count = _velocity(self.velocity), uniform_times(self.n_steps), n * self.restarts
        x = math.sqrt(1 - self.blend) * torch.randn(count, *shape, generator=generator)
        if isinstance(self.likelihood, LinearGaussian):
            with torch.no_grad():
                back = integrate(
                    velocity, _pseudo_inverse(self.likelihood, shape).to(x.dtype)[None], times.flip(0), "midpoint"
                )
            x = x + math.sqrt(self.blend) * back

        def objective(flat: Tensor) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                at = flat.detach().requires_grad_()
                value = -self.likelihood.log_prob(integrate(velocity, at.reshape(count, *shape), times, "midpoint"))
                value = value + self.regulariser * at.square().sum(1) / 2
                (slope,) = torch.autograd.grad(value.sum(), at)
            return value.detach(), slope

        found, self.asked = minimise(objective, x.flatten(1), iterations=self.iterations)
        with torch.no_grad():
            return _best(integrate(velocity, found.reshape(count, *shape), times, "midpoint"), self.likelihood, n)


# -- parts of several


def _pushed(
    of: Posterior | FlowChef, push: Callable[[Velocity, Tensor, Tensor], tuple[Tensor, Tensor]], n: int, shape: tuple[int, ...],
    generator: torch.Generator,
) -> Tensor:  # fmt: skip
    """Several starts along the flow, pushed before every step; the best end of each block."""
    x, velocity = torch.randn(n * of.restarts, *shape, generator=generator), _velocity(of.velocity)
    for t, after in itertools.pairwise(uniform_times(of.n_steps)):
        x, v = push(velocity, x, t)
        x = x + float(after - t) * v
    return _best(x, of.likelihood, n)


def _velocity(velocity: Any) -> Velocity:
    wrapped = flow_field(velocity)
    return lambda x, t: wrapped.velocity(x, t, PATH)


def _ahead(
    velocity: Velocity, x: Tensor, t: Tensor, log_prob: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Velocity, and gradient by x of the log-likelihood of the predicted end point."""
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        v = velocity(at, clamped(t).to(x.dtype))
        (slope,) = torch.autograd.grad(log_prob(at + (1 - float(t)) * v).sum(), at)
    return v.detach(), slope


def _slope(log_prob: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(log_prob(at).sum(), at)
    return slope


def _noisy_step(x: Tensor, v: Tensor, t: Tensor, after: Tensor, noise: Tensor) -> Tensor:
    """One step of the flow, with memoryless noise where that is finite."""
    dt = float(after - t)
    if not 0.02 <= float(t) < 0.98:
        return x + dt * v
    eta2 = float(PATH.memoryless_variance(t))
    return x + dt * (v + eta2 / 2 * PATH.score(x, v, t)) + math.sqrt(eta2 * dt) * noise


def _best(x: Tensor, likelihood: Likelihood, n: int) -> Tensor:
    """Of every block of starts the one that the guide likes best."""
    if len(x) == n:
        return x
    with torch.no_grad():
        best = likelihood.log_prob(x).reshape(n, -1).argmax(1)
    return x.reshape(n, -1, *x.shape[1:])[torch.arange(n), best]


def _pseudo_inverse(likelihood: LinearGaussian, shape: tuple[int, ...]) -> Tensor:
    """A^+ y, in an example's shape."""
    A = likelihood.matrix(math.prod(shape), shape)
    least: Tensor = torch.linalg.pinv(A) @ likelihood.y.to(A.dtype)
    return least.reshape(shape)


# -- equal budgets and tuning


def at_cost(rival: Any, cost: int) -> Any:
    """The same rival with as many particles, or else starts, as the budget allows; at least one."""
    if isinstance(rival, Particles):
        one = replace(rival, flow=replace(rival.flow, n_particles=1)).cost
        return replace(rival, flow=replace(rival.flow, n_particles=max(1, cost // one)))
    name = "n_particles" if hasattr(rival, "n_particles") else "restarts"
    return replace(rival, **{name: max(1, cost // replace(rival, **{name: 1}).cost)})


def calibrated(velocity: Any, likelihood: Likelihood, variance: float, **options: Any) -> TargetedFlow:
    """TFTF with the calibrated look-ahead of a known data variance."""
    return TargetedFlow(velocity, likelihood, lookahead=CalibratedLookAhead(variance), **options)
