"""What a pilot finds: windows by the predicted effective sample size, ladders that rise, and evidence that stays unbiased."""

from __future__ import annotations

import math

import pytest
import torch

from upheld.flows import GaussianMixtureFlow, LinearGaussian, Reward, TargetedFlow
from upheld.flows.lookahead import PointLookAhead, TemperedLookAhead, View
from upheld.flows.pilot import HALF, adaptive_window, temperature_ladder

FLOW = GaussianMixtureFlow(torch.zeros(1, 2), 1.0)
SHARP = LinearGaussian(torch.eye(2), torch.tensor([1.5, -1.0]), 0.1)
BASE = TargetedFlow(FLOW, SHARP, n_steps=32, n_particles=16)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def share(sigma: float, t: float) -> float:
    """Effective sample size over K of the calibrated look-ahead at time t on standard normal data, by Monte Carlo from the closed form:
    x_t ~ N(0, (t^2 + (1 - t)^2) I), x1_hat = t x_t/(t^2 + (1 - t)^2), g = N(y; x1_hat, sigma^2 + r^2)."""
    total = t**2 + (1 - t) ** 2
    ends = t / math.sqrt(total) * torch.randn(400_000, 2, generator=generator(1))
    g = torch.exp(-(SHARP.y - ends).square().sum(1) / (2 * (sigma**2 + (1 - t) ** 2 / total)))
    return float(g.mean() ** 2 / g.square().mean())


def test_the_window_begins_where_half_of_the_particles_would_be_left():
    start, end = adaptive_window(BASE, (2,))
    exact = next(k / 32 for k in range(1, 32) if share(0.1, k / 32) < HALF)
    assert abs(start - exact) <= 1 / 32 + 1e-9
    assert end == 14 / 16


def test_a_condition_that_asks_for_nothing_leaves_the_presets_window():
    nothing = Reward(lambda x: torch.zeros(len(x)))
    assert adaptive_window(TargetedFlow(FLOW, nothing, n_steps=16), (2,)) == (3 / 16, 14 / 16)


def test_adaptive_is_the_piloted_flow():
    asked = TargetedFlow(FLOW, SHARP, n_steps=32, n_particles=8, window="adaptive")
    found = asked.sample(4, shape=(2,), generator=generator())
    same = asked.piloted((2,)).sample(4, shape=(2,), generator=generator())
    assert torch.equal(found.samples, same.samples)
    with pytest.raises(ValueError, match=r"needs an example's shape; take flow\.piloted\(shape\)"):
        asked.evaluations()


def test_the_ladder_rises_to_one_and_keeps_half():
    sharper = TargetedFlow(FLOW, SHARP, n_steps=64, lookahead="point", window=(1 / 16, 15 / 16))
    ladder = temperature_ladder(sharper, (2,))
    assert list(ladder.betas) == sorted(ladder.betas)
    assert ladder.betas[0] < 0.5
    assert ladder.betas[-1] == 1.0
    assert len(ladder.betas) == len(ladder.times) == 57


def test_a_weak_condition_counts_wholly_from_the_start():
    weak = TargetedFlow(FLOW, LinearGaussian(torch.eye(2), torch.zeros(2), 20.0), n_steps=16)
    assert set(temperature_ladder(weak, (2,)).betas) == {1.0}


@pytest.mark.parametrize("ladder", [True, False])
def test_evidence_is_unbiased_under_a_ladder(ladder):
    """y = x + N(0, .7^2) of standard normal data: p(y) in closed form; 64 steps leave an error far below the bound."""
    seen = LinearGaussian(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), 0.7)
    flow = TargetedFlow(FLOW, seen, n_steps=64, n_particles=4, lookahead="point")
    flow = flow.tempered((2,)) if ladder else flow.piloted((2,))
    found = flow.sample(2000, shape=(2,), generator=generator())
    exact = -1.0 / (2 * 1.49) - math.log(2 * math.pi * 1.49) / 2
    assert abs(found.log_evidence - exact) < 4 * found.log_evidence_se + 0.02


def test_between_rungs_beta_is_that_of_the_rung_before():
    look = TemperedLookAhead(PointLookAhead(), [0.25, 0.5], [0.1, 1.0])
    assert [look.beta(t) for t in (0.1, 0.25, 0.4, 0.5, 0.9)] == [0.1, 0.1, 0.1, 1.0, 1.0]
    view = View(torch.zeros(1, 2), 0.3, torch.zeros(1, 2), None, None)
    plain = PointLookAhead().log_twist(SHARP, view)
    torch.testing.assert_close(look.log_twist(SHARP, view), 0.1 * plain)


@pytest.mark.parametrize("betas", [[], [0.0], [2.0], [0.5, 0.6]])
def test_no_ladder(betas):
    with pytest.raises(ValueError, match="as many betas as times"):
        TemperedLookAhead(PointLookAhead(), [0.5], betas)


def test_a_flow_without_a_window_has_no_ladder():
    with pytest.raises(ValueError, match="a ladder rises inside the window"):
        temperature_ladder(TargetedFlow(FLOW, SHARP, window=None), (2,))
