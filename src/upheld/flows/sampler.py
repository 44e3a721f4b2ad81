"""TFTF, training-free targeted flow: conditional samples of a pretrained flow by particles.

Q. Qu and J. S. Liu, "TFTF: Training-Free Targeted Flow for Conditional Sampling", ICML 2026 (arXiv 2602.12932). Inside a window
[t_a, t_b] the flow dX = v dt is replaced by one with noise of the same marginals (their proposition 3.2)::

    dX = [v + (eta^2/2) s] dt + eta dW,     eta^2 = gamma^2 * 2 sigma (sigma alpha'/alpha - sigma')             (1)

whose steps are proposed with the gradient of a look-ahead g_t and weighed against what they should have been::

    m_p = x + [v + (eta^2/2) s] dt,         m_q = m_p + rho eta^2 dt clip(grad log g_t(x))                      (2)
    x' ~ N(m_q, (1 + eps1) eta^2 dt I)                                                                          (3)
    log w += log N(x'; m_p, eta^2 dt) - log N(x'; m_q, (1 + eps1) eta^2 dt) + log g_t'(x') - log g_t(x)         (4)

Groups whose effective sample size falls below tau K are resampled. From t_b on the plain flow; at its end::

    log w += log l(x_1) - log g_{t_b}(x_{t_b}),   log Z += log mean w                                           (5)

With the discretised sampler as the law of reference, Z is unbiased for E[l(x_1)] for any number of particles, any positive g, any
rho, eps1 and resampling. gamma = 1 is the memoryless schedule, under which X_1 given X_t has the law that the flow's end point has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from upheld.diffusion.paths import AffinePath, affine_path, clamped
from upheld.diffusion.samplers import EVALUATIONS, integrate, ode_step
from upheld.diffusion.schedules import uniform_times
from upheld.flows.likelihoods import Likelihood, checked_log_prob, is_differentiable
from upheld.flows.lookahead import (
    CalibratedLookAhead,
    GivenLookAhead,
    LookAhead,
    PointLookAhead,
    View,
    is_linear_gaussian,
    wants_draws,
)
from upheld.flows.memory import particles_that_fit
from upheld.flows.samples import FlowSamples, pooled_log_weights
from upheld.flows.smc import draw_one, effective_sample_size, log_mean_exp, normalised, resampler
from upheld.flows.streams import GroupStreams
from upheld.flows.velocity import FlowField, check_parametrization, flow_field

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"n_steps": 800, "n_particles": 16, "window": (7 / 16, 14 / 16), "lookahead": "point", "guidance": 1.0},
    "default": {"n_steps": 128, "n_particles": 16, "window": (3 / 16, 14 / 16)},
}
END_POINTS_FOR_VARIANCE = 256
Window = tuple[float, float] | None


@dataclass
class Cloud:
    """All particles at one time: where they are, what the network and the look-ahead said there, and their weights.

    `unfinished` is the log-weight without the look-ahead of the present point, so that log w = unfinished + log g and a g of 0 on
    the way costs a particle nothing that it does not get back.
    """

    x: Tensor
    v: Tensor
    log_g: Tensor
    slope: Tensor | None
    unfinished: Tensor
    ancestors: Tensor

    def log_weights(self) -> Tensor:
        return self.unfinished + self.log_g

    def take(self, kept: Tensor) -> Cloud:
        """The particles at these places, (M, K); everything that belongs to a particle goes with it."""
        groups, count = kept.shape
        flat = (kept + count * torch.arange(groups)[:, None]).flatten()
        place = flat.to(self.x.device)
        slope = None if self.slope is None else self.slope.index_select(0, place)
        return Cloud(
            self.x.index_select(0, place), self.v.index_select(0, place), self.log_g.flatten()[flat].view(groups, count), slope,
            self.unfinished.flatten()[flat].view(groups, count), self.ancestors.flatten()[flat].view(groups, count),
        )  # fmt: skip


@dataclass
class Progress:
    """What a callback is told after every step."""

    step: int
    n_steps: int
    time: float
    ess: Tensor | None
    """(groups,) inside the window."""


@dataclass
class TargetedFlow:
    """Samples of a flow that satisfy a condition, without training.

    Parameters
    ----------
    velocity : a `FlowField`, or any ``f(x, t) -> v`` with noise at t = 0 and data at t = 1
    likelihood : has ``log_prob(x) -> (B,)``; see `upheld.flows.likelihoods`
    path : "linear", "vp", "cosine" or an `AffinePath`: what the flow was trained on
    n_steps, n_particles : N and K; of the preset if None
    window : (t_a, t_b) inside (0, 1), ends snap to the grid; None for none, which is importance sampling at the end; "adaptive" begins
        where a pilot's look-ahead would leave half of the particles (`piloted`)
    noise : gamma of equation (1); or a callable from t to eta
    guidance : rho; "auto" is 1 for linear measurements and 2 for classifiers, captions and rewards
    lookahead : "point", "calibrated", a `LookAhead`, or a callable ``log_g(x, t, endpoint) -> (B,)``; "auto" is calibrated for linear
        measurements and point for all else
    preset : "default", or "paper" for the published settings
    resampling : "systematic", "multinomial", "stratified", "residual", "ssp", or None
    ess_threshold : tau
    eps1 : inflation of the proposal's variance; eps2 : floor of the look-ahead, never of the likelihood itself
    grad_clip : longest gradient of log g; "auto" is 10 sqrt(d) for linear measurements and 5 for all else
    velocity_jacobian : whether the gradient goes through the network; without, steps are cheaper and worse, but weighed as they are
    extra_window : a second stretch with noise after the first, not weighed: it makes copies differ
    particles_per_chunk : how many go through the network at once; None for as many as fit 1 GiB
    ode : "euler", "heun" or "midpoint" outside the windows; the last two ask twice a step

    Examples
    --------
    >>> from upheld.flows import GaussianMixtureFlow, LinearGaussian
    >>> flow = GaussianMixtureFlow(torch.zeros(1, 2), 1.0)                        # standard normal data
    >>> seen = LinearGaussian(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), 1.0)  # y = x_1 + noise = 1: the mean is (1/2, 0)
    >>> found = TargetedFlow(flow, seen).sample(200, shape=(2,), generator=torch.Generator().manual_seed(0))
    >>> [round(value, 1) for value in found.samples.mean(0).tolist()]
    [0.5, 0.0]
    """

    velocity: Any
    likelihood: Likelihood
    path: str | AffinePath = field(default="linear", kw_only=True)
    n_steps: int | None = field(default=None, kw_only=True)
    n_particles: int | None = field(default=None, kw_only=True)
    window: Window | str = field(default="auto", kw_only=True)
    noise: float | Callable[[float], float] = field(default=1.0, kw_only=True)
    guidance: float | str = field(default="auto", kw_only=True)
    lookahead: Any = field(default="auto", kw_only=True)
    preset: str = field(default="default", kw_only=True)
    resampling: str | None = field(default="systematic", kw_only=True)
    ess_threshold: float = field(default=0.5, kw_only=True)
    eps1: float = field(default=0.0, kw_only=True)
    eps2: float = field(default=0.0, kw_only=True)
    grad_clip: float | str = field(default="auto", kw_only=True)
    velocity_jacobian: bool = field(default=True, kw_only=True)
    extra_window: Window = field(default=None, kw_only=True)
    particles_per_chunk: int | None = field(default=None, kw_only=True)
    ode: str = field(default="euler", kw_only=True)

    def sample(
        self, n: int, *, shape: tuple[int, ...], generator: torch.Generator | None = None, mode: str = "nested",
        callback: Callable[[Progress], None] | None = None,
    ) -> FlowSamples:  # fmt: skip
        """n samples of the posterior.

        Parameters
        ----------
        shape : of one example
        generator : its state gives every group a seed of its own
        mode : "nested": n groups, one particle of each, independent. "pooled": ceil(n/K) groups, all their particles with weights
        callback : told after every step

        Raises
        ------
        ValueError
            If an option is none, the likelihood or the velocity is not what it should be, or all particles of a group have likelihood 0.
        """
        return self.sample_groups(self.seeds(n, mode, generator), shape=shape, mode=mode, callback=callback)

    def seeds(self, n: int, mode: str, generator: torch.Generator | None = None) -> list[int]:
        """A seed for every group that n samples need.

        Raises
        ------
        ValueError
            If there is no such mode, or nothing to sample.
        """
        if mode not in ("nested", "pooled") or n < 1:
            raise ValueError(f"{n} samples in mode {mode!r}; take at least 1, nested or pooled")
        count = int(self._preset("n_particles", self.n_particles))
        groups = n if mode == "nested" else math.ceil(n / max(count, 1))
        return [int(seed) for seed in torch.randint(2**61, (groups,), generator=generator)]

    def sample_groups(
        self, seeds: list[int], *, shape: tuple[int, ...], mode: str = "nested",
        callback: Callable[[Progress], None] | None = None,
    ) -> FlowSamples:  # fmt: skip
        """The groups of these seeds, each independent of the others; see `sample`."""
        plan = (self.piloted(shape) if self.window == "adaptive" else self).planned(shape)
        return plan.run(seeds, mode, callback)

    def refined(self) -> TargetedFlow:
        """The same with twice the steps: what differs between both is the error of the discretisation."""
        return replace(self, n_steps=2 * int(self._preset("n_steps", self.n_steps)))

    def piloted(self, shape: tuple[int, ...], seed: int = 0) -> TargetedFlow:
        """The same with its window begun where a pilot says: see `upheld.flows.pilot.adaptive_window`."""
        from upheld.flows.pilot import adaptive_window

        return replace(self, window=adaptive_window(self, shape, seed))

    def settled(self, shape: tuple[int, ...], seed: int = 0) -> TargetedFlow:
        """The same with all that a run finds out before it begins found: window, variance of the data, size of a chunk. What runs in
        parts, or more than once, then finds it once."""
        flow = self.piloted(shape, seed) if self.window == "adaptive" else self
        run = flow.planned(shape)
        return replace(flow, lookahead=run.look, particles_per_chunk=run.chunk)

    def tempered(self, shape: tuple[int, ...], seed: int = 0) -> TargetedFlow:
        """The same with a look-ahead g^beta whose beta rises as a pilot says: see `upheld.flows.pilot.temperature_ladder`."""
        from upheld.flows.pilot import temperature_ladder

        return replace(self, lookahead=temperature_ladder(self, shape, seed))

    def evaluations(self) -> dict[str, int]:
        """Forward and backward passes of the velocity that one particle takes."""
        return self.decided().evaluations(self.ode)

    def decided(self) -> Decided:
        """Every "auto" decided that does not hang on the shape of an example, and what is not possible refused.

        Raises
        ------
        ValueError
            If an option is none.
        """
        found, path = flow_field(self.velocity), affine_path(self.path)
        n_steps, count = int(self._preset("n_steps", self.n_steps)), int(self._preset("n_particles", self.n_particles))
        if n_steps < 1 or count < 1:
            raise ValueError(f"{n_steps} steps and {count} particles; take at least 1 of each")
        if self.ode not in EVALUATIONS:
            raise ValueError(f"no way of stepping {self.ode!r}; there are {', '.join(EVALUATIONS)}")
        if min(self.eps1, self.eps2) < 0 or not 0 <= self.ess_threshold <= 1:
            raise ValueError(
                f"eps1 ({self.eps1}), eps2 ({self.eps2}) must not be negative and ess_threshold ({self.ess_threshold}) lies in [0, 1]"
            )
        if self.resampling is not None:
            resampler(self.resampling)
        times = (found.times or uniform_times)(n_steps)
        if self.window == "adaptive":
            raise ValueError(
                "window 'adaptive' is found by a pilot that needs an example's shape; take flow.piloted(shape)"
            )
        window = self._preset("window", None if self.window == "auto" else self.window, given=self.window != "auto")
        first, last = _snapped(times, window, "window")
        further = _snapped(times, self.extra_window, "extra_window")
        if self.extra_window is not None and further[0] < last:
            raise ValueError(
                f"extra_window {self.extra_window} begins before the window {window} ends; let it begin there"
            )
        still = isinstance(self.noise, int | float) and self.noise == 0
        noisy = not still and (last > first or self.extra_window is not None)
        _check_noise(found, noisy)
        return Decided(found, path, times, (first, last), further, count, self._guidance() if noisy else 0.0)

    def planned(self, shape: tuple[int, ...]) -> Run:
        """A run, ready to start."""
        decided = self.decided()
        first, last = decided.window
        twisted = last > first and (decided.guidance > 0 or (self.resampling is not None and decided.count > 1))
        run = Run(self, decided, shape, self._clip(shape), twisted)
        check_parametrization(decided.flow, decided.path, shape)
        if self.eps1 > 0 and math.prod(shape) * (last - first) * self.eps1**2 > 1:
            _warn(
                f"eps1 = {self.eps1:g} adds about {math.prod(shape) * (last - first) * self.eps1**2 / 2:.1f} to the variance of the "
                "log-weights; 0 is usually better"
            )
        run.look = self._look(run)
        run.chunk = self.particles_per_chunk or particles_that_fit(run.probe(), shape, run.flow.device)
        return run

    def _preset(self, name: str, chosen: Any, given: bool | None = None) -> Any:
        if self.preset not in PRESETS:
            raise ValueError(f"no preset {self.preset!r}; there are {', '.join(PRESETS)}")
        return chosen if (chosen is not None if given is None else given) else PRESETS[self.preset].get(name)

    def _guidance(self) -> float:
        """rho, 0 where there is no gradient."""
        if not is_differentiable(self.likelihood):
            return 0.0
        if self.guidance != "auto":
            return float(self.guidance)
        return float(PRESETS[self.preset].get("guidance", 1.0 if is_linear_gaussian(self.likelihood) else 2.0))

    def _clip(self, shape: tuple[int, ...]) -> float:
        if self.grad_clip != "auto":
            return float(self.grad_clip)
        return 10 * math.sqrt(math.prod(shape)) if is_linear_gaussian(self.likelihood) else 5.0

    def _look(self, run: Run) -> LookAhead:
        look = self.lookahead
        if look == "auto":
            look = PRESETS[self.preset].get(
                "lookahead", "calibrated" if is_linear_gaussian(self.likelihood) else "point"
            )
        if look == "point":
            return PointLookAhead(self.eps2)
        if look == "calibrated":
            draws = 4 if wants_draws(self.likelihood) else 0
            return CalibratedLookAhead(run.data_variance() if run.twisted else 1.0, eps2=self.eps2, draws=draws)
        if isinstance(look, str):
            raise ValueError(f"no lookahead {look!r}; there are auto, point, calibrated, and callables")
        if hasattr(look, "log_twist"):
            chosen: LookAhead = look
            return chosen
        return GivenLookAhead(look)


@dataclass
class Decided:
    """What a `TargetedFlow` is, once its presets and "auto"s are numbers; windows are places on the grid, first and last."""

    flow: FlowField
    path: AffinePath
    times: Tensor
    window: tuple[int, int]
    further: tuple[int, int]
    count: int
    guidance: float

    def evaluations(self, ode: str) -> dict[str, int]:
        """Passes a particle."""
        steps, (first, last) = len(self.times) - 1, self.window
        plain = steps - (last - first) - (self.further[1] - self.further[0])
        forward = steps + plain * (EVALUATIONS[ode] - 1)
        return {"forward": forward, "backward": (last - first) if self.guidance > 0 else 0}


class Run:
    """One run with everything decided."""

    def __init__(self, of: TargetedFlow, decided: Decided, shape: tuple[int, ...], clip: float, twisted: bool) -> None:
        self.of, self.decided, self.shape, self.clip, self.twisted = of, decided, shape, clip, twisted
        self.flow, self.path, self.times = decided.flow, decided.path, decided.times
        self.window, self.further, self.count, self.guidance = (
            decided.window,
            decided.further,
            decided.count,
            decided.guidance,
        )
        self.look: LookAhead = PointLookAhead()
        self.chunk = 1

    def run(self, seeds: list[int], mode: str, callback: Callable[[Progress], None] | None) -> FlowSamples:
        noisy = self.window[1] - self.window[0] + self.further[1] - self.further[0]
        streams = GroupStreams(seeds, self.count, self.shape, self.flow.device, noisy + 1)
        told = callback or (lambda progress: None)
        first, last = self.window
        with torch.no_grad():
            x = self.flow_between(streams.start(), None, 0, first, told)
            cloud = self.begin(x, first, streams)
            trace, log_z = _Trace(), torch.zeros(len(seeds), dtype=torch.float64)
            for k in range(first, last):
                cloud = self.step(cloud, k, streams)
                cloud, log_z = self._select(cloud, log_z, k + 1, streams, trace)
                told(Progress(k + 1, len(self.times) - 1, float(self.times[k + 1]), trace.ess[-1]))
            x = self._finish(cloud, streams, told)
            if trace.cut:
                _warn(
                    "the look-ahead is 0 for some particles, and resampling gave them up: if the likelihood is not 0 where they would have "
                    "gone, the evidence is too low; eps2 > 0 keeps them"
                )
            return self._samples(x, cloud, self._log_likelihood(x, len(seeds)), log_z, trace, streams, mode)

    def data_variance(self) -> float:
        """c: mean variance of a coordinate over unconditional end points, always the same ones."""
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(END_POINTS_FOR_VARIANCE, *self.shape, generator=generator).to(self.flow.device)
        with torch.no_grad():
            ends = integrate(lambda x, t: self.flow.velocity(x, t, self.path), x, self.times)
        return float(ends.flatten(1).var(0).mean())

    # -- the parts of a run

    def flow_between(
        self, x: Tensor, v: Tensor | None, start: int, end: int, told: Callable[[Progress], None]
    ) -> Tensor:  # fmt: skip
        """The plain flow between two times of the grid; `v` is the velocity at the start, if known."""
        for k in range(start, end):
            now = self._velocity(x, self.times[k]) if v is None else v
            x, v = ode_step(self._velocity, x, now, self.times[k], self.times[k + 1], self.of.ode), None
            told(Progress(k + 1, len(self.times) - 1, float(self.times[k + 1]), None))
        return x

    def begin(self, x: Tensor, k: int, streams: GroupStreams) -> Cloud:
        groups = len(x) // self.count
        nothing = torch.zeros(groups, self.count, dtype=torch.float64)
        ancestors = torch.arange(self.count).repeat(groups, 1)
        if not self.window[0] < self.window[1]:
            return Cloud(x, x, nothing, None, nothing, ancestors)
        v, log_g, slope = self.look_ahead(x, k, streams)
        return Cloud(x, v, log_g, slope, nothing, ancestors)

    def step(self, cloud: Cloud, k: int, streams: GroupStreams) -> Cloud:
        """Equations (1) to (4) for one step."""
        place, kernel = self._propose(cloud, k, streams)
        v, log_g, slope = self.look_ahead(place, k + 1, streams)
        return Cloud(place, v, log_g, slope, cloud.unfinished + kernel, cloud.ancestors)

    def _propose(self, cloud: Cloud, k: int, streams: GroupStreams) -> tuple[Tensor, Tensor]:
        """Equations (1) to (3), and the kernels' part of (4), (M, K) in float64, from the distances between their means."""
        t, dt = self.times[k], float(self.times[k + 1] - self.times[k])
        eta2 = self._variance(t)
        mean = cloud.x + dt * (cloud.v + eta2 / 2 * self.path.score(cloud.x, cloud.v, clamped(t)))
        ratio = torch.zeros_like(cloud.log_g)
        if eta2 == 0:
            return mean, ratio
        s, wide, noise = math.sqrt(eta2 * dt), 1 + self.of.eps1, streams.normal()
        if cloud.slope is not None:
            shift = self.guidance * eta2 * dt * cloud.slope
            d, xi = shift.double().flatten(1), noise.double().flatten(1)
            apart = -d.square().sum(1) / (2 * s**2) - math.sqrt(wide) / s * (d * xi).sum(1)
            mean, ratio = mean + shift, apart.cpu().view_as(ratio)
        if self.of.eps1 > 0:
            far = noise.double().flatten(1).square().sum(1)
            ratio = ratio + ((noise[0].numel() * math.log(wide) - self.of.eps1 * far) / 2).cpu().view_as(ratio)
        return mean + math.sqrt(wide) * s * noise, ratio

    def _select(
        self, cloud: Cloud, log_z: Tensor, k: int, streams: GroupStreams, trace: _Trace
    ) -> tuple[Cloud, Tensor]:  # fmt: skip
        """Resample the groups whose weights have become uneven; every group draws, so that none depends on another's fate."""
        log_w, u = cloud.log_weights(), streams.uniform()
        _check_alive(log_w, float(self.times[k]), cloud.log_g)
        ess = effective_sample_size(log_w)
        uneven = ess < self.of.ess_threshold * self.count
        if self.of.resampling is None or self.count == 1:
            uneven = torch.zeros_like(uneven)
        trace.add(float(self.times[k]), ess, uneven)
        if not uneven.any():
            return cloud, log_z
        trace.cut = trace.cut or float(cloud.log_g[uneven].min()) == -math.inf
        kept = torch.arange(self.count).repeat(len(log_w), 1)
        kept[uneven] = resampler(self.of.resampling or "")(normalised(log_w[uneven]), u[uneven])
        cloud = cloud.take(kept)
        cloud.unfinished = torch.where(uneven[:, None], -cloud.log_g, cloud.unfinished)
        return cloud, log_z + torch.where(uneven, log_mean_exp(log_w), 0.0)

    def _finish(self, cloud: Cloud, streams: GroupStreams, told: Callable[[Progress], None]) -> Tensor:
        """From the window's end to the data, over the stretch with noise that is not weighed, if there is one."""
        last, end = self.window[1], len(self.times) - 1
        known = cloud.v if self.window[0] < last else None
        start = last if self.window[0] < last else self.window[0]
        if self.of.extra_window is None:
            return self.flow_between(cloud.x, known, start, end, told)
        x = self.flow_between(cloud.x, known, start, self.further[0], told)
        known = known if start == self.further[0] else None
        for k in range(*self.further):
            t, dt = self.times[k], float(self.times[k + 1] - self.times[k])
            v, eta2, known = self._velocity(x, t) if known is None else known, self._variance(t), None
            drift = v + eta2 / 2 * self.path.score(x, v, clamped(t))
            x = x + dt * drift + math.sqrt(eta2 * dt) * streams.normal()
            told(Progress(k + 1, end, float(self.times[k + 1]), None))
        return self.flow_between(x, None, self.further[1], end, told)

    def _samples(
        self, x: Tensor, cloud: Cloud, log_l: Tensor, log_z: Tensor, trace: _Trace, streams: GroupStreams, mode: str
    ) -> FlowSamples:  # fmt: skip
        """Equation (5), and what is handed over."""
        ratio, u = log_l - cloud.log_g, streams.choice()
        log_w = torch.where(torch.isneginf(cloud.log_g), cloud.unfinished + log_l, cloud.log_weights() + ratio)
        _check_alive(log_w, 1.0, log_l)
        trace.add(1.0, effective_sample_size(log_w), torch.zeros(len(log_w), dtype=torch.bool))
        log_z = log_z + log_mean_exp(log_w)
        particles = x.reshape(-1, self.count, *self.shape)
        if mode == "nested":
            chosen = draw_one(normalised(log_w), u)
            samples = particles[torch.arange(len(chosen)), chosen]
            log_weights = torch.full((len(chosen),), -math.log(len(chosen)), dtype=torch.float64)
        else:
            samples = x
            log_weights = pooled_log_weights(log_z, log_w)
        return FlowSamples(
            samples, log_weights, mode, particles, log_w, log_z, torch.stack(trace.ess), torch.tensor(trace.times),
            torch.stack(trace.resampled), cloud.ancestors, ratio, self.decided.evaluations(self.of.ode),
        )  # fmt: skip

    # -- asking the network

    def _velocity(self, x: Tensor, t: Tensor) -> Tensor:
        return _together([self.flow.velocity(part, t, self.path) for part in torch.split(x, self.chunk)])

    def _variance(self, t: Tensor) -> float:
        """eta^2 at t."""
        if callable(self.of.noise):
            return float(self.of.noise(float(t))) ** 2
        return float(self.of.noise) ** 2 * float(self.path.memoryless_variance(t))

    def look_ahead(self, x: Tensor, k: int, streams: GroupStreams) -> tuple[Tensor, Tensor, Tensor | None]:
        """Velocity, log g as (M, K) and its clipped gradient, chunk by chunk; no graph outlives its chunk."""
        t = self.times[k]
        if not self.twisted:
            return self._velocity(x, t), torch.zeros(len(x) // self.count, self.count, dtype=torch.float64), None
        sloped = self.guidance > 0 and k < self.window[1]
        noise = torch.stack([streams.look_ahead() for _ in range(self.look.draws)]) if self.look.draws else None
        parts = [
            self._ask(part, t, None if noise is None else noise[:, start : start + self.chunk], sloped)
            for start, part in zip(range(0, len(x), self.chunk), torch.split(x, self.chunk), strict=True)
        ]
        v, log_g = _together([part[0] for part in parts]), _together([part[1] for part in parts])
        slope = _together([part[2] for part in parts if part[2] is not None]) if sloped else None
        return v, log_g.double().cpu().view(-1, self.count), slope

    def _ask(self, x: Tensor, t: Tensor, noise: Tensor | None, sloped: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        with torch.set_grad_enabled(sloped):
            x = x.detach().requires_grad_(sloped)
            with torch.set_grad_enabled(sloped and self.of.velocity_jacobian):
                v = self.flow.velocity(x, t, self.path)
            ends = self.path.endpoint(x, v, clamped(t))
            log_g = self.look.log_twist(self.of.likelihood, View(x, float(t), ends, self.path, noise))
            if not sloped:
                return v.detach(), log_g.detach(), None
            if not log_g.requires_grad:
                raise ValueError(
                    "the likelihood has no gradient; set likelihood.differentiable = False to go without, or let it keep torch's graph"
                )
            (slope,) = torch.autograd.grad(log_g.sum(), x, allow_unused=True)
        slope, impossible = torch.zeros_like(x) if slope is None else slope, torch.isneginf(log_g)
        if impossible.any():
            slope = slope.masked_fill(_like(impossible, slope), 0.0)
        norm = slope.flatten(1).norm(dim=1)
        if not (math.isfinite(float(norm.sum())) or torch.isfinite(slope).all()):
            raise ValueError(
                f"the gradient of the look-ahead is not finite at time {float(t):.4g}; mend the likelihood"
            )
        shrunk = (self.clip / norm.clamp(min=torch.finfo(slope.dtype).tiny)).clamp(max=1.0)
        return v.detach(), log_g.detach(), slope * _like(shrunk, slope)

    def _log_likelihood(self, x: Tensor, groups: int) -> Tensor:
        parts = [checked_log_prob(self.of.likelihood.log_prob, part) for part in torch.split(x, self.chunk)]
        return _together(parts).detach().double().cpu().view(groups, self.count)

    def probe(self) -> Callable[[Tensor], object]:
        """One evaluation as the window makes it, for the memory it takes."""
        t, sloped = self.times[self.window[0]], self.twisted and self.guidance > 0

        def probe(x: Tensor) -> object:
            noise = x.new_zeros(self.look.draws, *x.shape) if self.look.draws else None
            return self._ask(x, t, noise, sloped) if self.twisted else self.flow.velocity(x, t, self.path)

        return probe


@dataclass
class _Trace:
    times: list[float] = field(default_factory=list)
    ess: list[Tensor] = field(default_factory=list)
    resampled: list[Tensor] = field(default_factory=list)
    cut: bool = False
    """Whether resampling gave up a particle for a look-ahead of 0."""

    def add(self, time: float, ess: Tensor, resampled: Tensor) -> None:
        self.times.append(time)
        self.ess.append(ess)
        self.resampled.append(resampled)


def _snapped(times: Tensor, window: Window | str, name: str) -> tuple[int, int]:
    """Places of the window's ends on the grid; an empty stretch at the start where there is no window."""
    if window is None:
        return 0, 0
    if isinstance(window, str) or len(window) != 2 or not 0 < window[0] < window[1] < 1:
        raise ValueError(f"{name} {window!r} must be two times with 0 < t_a < t_b < 1, or None")
    first, last = (int((times - end).abs().argmin()) for end in window)
    first, last = max(first, 1), min(last, len(times) - 2)
    if not first < last:
        raise ValueError(f"{name} {window} holds no step of {len(times) - 1}; widen it or take more steps")
    return first, last


def _check_noise(found: FlowField, noisy: bool) -> None:
    """Noise needs a score, and there is one only where x_0 is Gaussian and independent of x_1."""
    if not noisy:
        return
    if found.base != "gaussian":
        raise ValueError(f"the flow's base is {found.base!r}; noise can be added to a Gaussian one only: take noise=0")
    if found.coupling != "independent":
        raise ValueError(
            f"the flow was trained with coupling {found.coupling!r}: its velocity gives no score, so noise would change its law; take "
            "noise=0, or a flow trained on independent pairs"
        )
    if found.guided:
        _warn(
            "this velocity is one under guidance, which belongs to no law: noise changes what the sampler draws from; weights are exact "
            "for that sampler alone"
        )


def _check_alive(log_w: Tensor, t: float, log_l: Tensor) -> None:
    best = log_w.max(1).values
    if float(best.min()) == -math.inf:
        group = int(best.argmin())
        raise ValueError(
            f"all {log_w.shape[1]} particles of group {group} have weight 0 at time {t:.4g} (largest log-likelihood "
            f"{float(log_l[group].max()):.4g}); take more particles, or eps2 > 0 for a look-ahead that is 0 somewhere"
        )


def _together(parts: list[Tensor]) -> Tensor:
    """Chunks one after the other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _like(values: Tensor, x: Tensor) -> Tensor:
    """(B,) to multiply (B, \\*shape)."""
    return values.reshape(-1, *[1] * (x.dim() - 1))


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, stacklevel=4)
