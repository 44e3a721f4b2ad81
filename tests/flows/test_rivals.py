"""Rivals on closed-form mixtures: those that target the posterior must reach it, those that climb must climb, all at their price."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.optimize import minimize as scipy_minimise

from upheld.diffusion.samplers import integrate
from upheld.diffusion.schedules import uniform_times
from upheld.flows.likelihoods import LinearGaussian, Reward
from upheld.flows.minimise import minimise
from upheld.flows.mixture import GaussianMixtureFlow
from upheld.flows.rivals import OTODE, BestOf, DFlow, FeynmanKac, FlowChef, Particles, PnPFlow, Posterior, at_cost, tds
from upheld.flows.sampler import TargetedFlow
from upheld.flows.velocity import FlowField

PRIOR = GaussianMixtureFlow(torch.tensor([[-1.0, 0.0], [1.0, 1.0]]), 0.5)
SEEN = LinearGaussian(torch.tensor([[1.0, 0.5]]), torch.tensor([1.2]), 0.5)
POSTERIOR, _ = PRIOR.posterior(SEEN)
NORMAL = GaussianMixtureFlow(torch.zeros(1, 2), 1.0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def residual(x: torch.Tensor) -> float:
    return float((SEEN.measure(x)[:, 0] - 1.2).abs().mean())


UNCONDITIONAL = residual(PRIOR.sample(2000, generator()))


@pytest.mark.parametrize(
    "rival",
    [
        Particles(TargetedFlow(PRIOR, SEEN, n_steps=64, n_particles=64)),
        Particles(TargetedFlow(PRIOR, SEEN, n_steps=64, n_particles=64, window=None)),
        Particles(TargetedFlow(PRIOR, SEEN, n_steps=64, n_particles=64, guidance=0.0)),
        tds(PRIOR, SEEN, 64, 64),
        FeynmanKac(PRIOR, SEEN, 64, 64, 1.0, "difference"),
        FeynmanKac(PRIOR, SEEN, 64, 64, 1.0, "max"),
    ],
    ids=["tftf", "importance", "bootstrap", "tds", "steering-difference", "steering-max"],
)  # fmt: skip
def test_particle_methods_reach_the_posterior(rival):
    x = rival.sample(600, (2,), generator())
    exact = POSTERIOR.sample(100_000, generator(1))
    assert x.shape == (600, 2)
    torch.testing.assert_close(x.mean(0), exact.mean(0), atol=0.16, rtol=0)
    torch.testing.assert_close(torch.cov(x.T), torch.cov(exact.T), atol=0.2, rtol=0)


def test_a_strength_above_one_targets_a_sharper_law():
    """strength 4 is the posterior under l^4: a measurement of half the noise."""
    sharper, _ = PRIOR.posterior(LinearGaussian(SEEN.A, SEEN.y, 0.25))
    x = FeynmanKac(PRIOR, SEEN, 64, 64, 4.0).sample(600, (2,), generator())
    assert residual(x) == pytest.approx(residual(sharper.sample(20_000, generator())), abs=0.05)


CLIMBERS = {
    "dps": (Posterior(PRIOR, SEEN), "step", (0.0, 0.02, 0.05)),
    "flowchef": (FlowChef(PRIOR, SEEN), "step", (0.0, 0.002, 0.01)),
    "best of": (BestOf(PRIOR, SEEN), "n_particles", (1, 4, 16)),
    "pnp-flow": (PnPFlow(PRIOR, SEEN), "step", (0.0, 0.02, 0.2)),
}


@pytest.mark.parametrize("name", CLIMBERS)
def test_more_guidance_fits_the_measurement_better(name):
    rival, option, values = CLIMBERS[name]
    fits = [residual(replace(rival, **{option: value}).sample(400, (2,), generator())) for value in values]
    assert fits[0] > fits[1] > fits[2]
    if name != "pnp-flow":  # which averages, and is no sampler even without guidance
        assert fits[0] == pytest.approx(UNCONDITIONAL, rel=0.15)


@pytest.mark.parametrize("rival", [Posterior(PRIOR, SEEN, 0.0), FlowChef(PRIOR, SEEN, 0.0)])
def test_without_a_step_it_is_the_plain_flow(rival):
    start = torch.randn(5, 2, generator=generator())
    torch.testing.assert_close(rival.sample(5, (2,), generator()), integrate(PRIOR, start, uniform_times(64)))


def test_ot_ode_is_exact_on_standard_normal_data():
    """There r^2 is the exact spread, so that its velocity is the posterior's own: N(., .) of the closed form."""
    posterior, _ = NORMAL.posterior(SEEN)
    x = OTODE(NORMAL, SEEN, n_steps=200, start=0.02).sample(4000, (2,), generator())
    torch.testing.assert_close(x.mean(0), posterior.mean, atol=0.06, rtol=0)
    torch.testing.assert_close(torch.cov(x.T), posterior.covariance, atol=0.08, rtol=0)


def test_d_flow_finds_what_fits():
    rival = DFlow(PRIOR, SEEN)
    x = rival.sample(50, (2,), generator())
    assert residual(x) < 0.02
    assert rival.asked >= rival.iterations


def test_d_flow_without_a_measurement_starts_from_noise():
    x = DFlow(PRIOR, Reward(lambda x: -(x[:, 0] - 1).square())).sample(20, (2,), generator())
    assert float((x[:, 0] - 1).abs().max()) < 0.05


def test_many_minimisations_at_once_are_those_of_scipy():
    """Rosenbrock from several starts, each as good as SciPy's own L-BFGS after as many iterations, or at the minimum."""
    starts = torch.tensor([[-1.2, 1.0], [0.0, 0.0], [2.0, -1.0], [-0.5, 2.0]]).double()

    def value(x):
        return 100 * (x[:, 1] - x[:, 0] ** 2) ** 2 + (1 - x[:, 0]) ** 2

    def objective(x):
        at = x.detach().requires_grad_()
        out = value(at)
        (slope,) = torch.autograd.grad(out.sum(), at)
        return out.detach(), slope

    found, asked = minimise(objective, starts, iterations=80)
    assert asked > 80
    for start, end in zip(starts, found, strict=True):
        theirs = scipy_minimise(
            lambda x: float(value(torch.tensor(x)[None])), start.numpy(), method="L-BFGS-B",
            jac=lambda x: objective(torch.tensor(x)[None])[1][0].numpy(), options={"maxiter": 80},
        )  # fmt: skip
        assert float(value(end[None])) <= max(10 * theirs.fun, 1e-6)


def test_one_example_does_not_move_another():
    def objective(x):
        return (x - 3).square().sum(1) * torch.tensor([1.0, 50.0])[: len(x)], 2 * (x - 3) * torch.tensor(
            [[1.0], [50.0]]
        )[: len(x)]

    together, _ = minimise(objective, torch.zeros(2, 1), iterations=5)
    alone, _ = minimise(objective, torch.zeros(1, 1), iterations=5)
    torch.testing.assert_close(together[:1], alone)
    torch.testing.assert_close(together, torch.full((2, 1), 3.0))


RIVALS = [
    Particles(TargetedFlow(PRIOR, SEEN, n_steps=32, n_particles=4)),
    Particles(TargetedFlow(PRIOR, SEEN, n_steps=32, n_particles=4, window=None)),
    tds(PRIOR, SEEN, 32, 4),
    FeynmanKac(PRIOR, SEEN, 32, 4),
    BestOf(PRIOR, SEEN, 32, 4),
    Posterior(PRIOR, SEEN, n_steps=32, restarts=2),
    FlowChef(PRIOR, SEEN, n_steps=32, restarts=2),
    OTODE(PRIOR, SEEN, n_steps=32),
    PnPFlow(PRIOR, SEEN, n_steps=32),
    DFlow(PRIOR, SEEN, iterations=3),
]  # fmt: skip


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: type(rival).__name__)
def test_the_price_is_what_was_asked(rival):
    """Forward passes are counted as they happen; the price adds two for every backward pass."""
    asked = 0

    def counted(x, t):
        nonlocal asked
        asked += len(x)
        return PRIOR(x, t)

    field = FlowField(counted, parametrization="velocity")
    if isinstance(rival, Particles):
        flow = replace(rival.flow, velocity=field, particles_per_chunk=10_000, lookahead="point")
        rival = Particles(flow)
        forward = flow.sample(3, shape=(2,), generator=generator()).evaluations
        per_sample = flow.n_particles * (forward["forward"] + 2 * forward["backward"])
        assert rival.cost == per_sample
        assert asked == 3 * flow.n_particles * forward["forward"]
        return
    rival = replace(rival, velocity=field)
    rival.sample(3, (2,), generator())
    share = 3 if isinstance(rival, Posterior | OTODE | DFlow) else 1
    if isinstance(
        rival, DFlow
    ):  # halved steps cost more than the price says, the last look and the way back are not priced
        assert rival.cost * 3 <= share * asked <= 4 * rival.cost * 3
    else:
        assert asked * share == rival.cost * 3


def test_equal_budgets():
    cost = RIVALS[0].cost * 4
    for rival in RIVALS[:7]:
        bought = at_cost(rival, cost)
        assert 0.5 * cost < bought.cost <= cost
    assert at_cost(RIVALS[0], 1).flow.n_particles == 1


def test_unknown_potential_is_refused():
    with pytest.raises(ValueError, match="no potential 'sum'; there are difference and max"):
        FeynmanKac(PRIOR, SEEN, potential="sum").sample(1, (2,), generator())
