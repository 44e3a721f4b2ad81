"""Each loss against a network whose expected error is known: the one that answers with a constant, or the exact one."""

from __future__ import annotations

import pytest
import torch

from upheld.diffusion.losses import Preconditioned, denoising_error, flow_matching_error, noise_error
from upheld.diffusion.paths import affine_path
from upheld.diffusion.schedules import cosine_alpha_bar


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_flow_matching_of_a_network_that_says_nothing():
    """E(x_1 - x_0)^2 with data N(0, 4) and noise N(0, 1): 5, for every entry."""
    x1 = 2 * torch.randn(20_000, 2, generator=generator())
    error = flow_matching_error(lambda x, t: torch.zeros_like(x), affine_path("linear"), x1, generator())
    assert error.shape == x1.shape
    assert float(error.mean()) == pytest.approx(5.0, rel=0.03)


def test_flow_matching_of_the_best_network():
    """Standard normal data on the cosine path: x_t says nothing of the velocity, whose variance is (pi/2)^2."""
    x1 = torch.randn(20_000, 1, generator=torch.Generator().manual_seed(1))
    error = flow_matching_error(lambda x, t: torch.zeros_like(x), affine_path("cosine"), x1, generator())
    assert float(error.mean()) == pytest.approx((torch.pi / 2) ** 2, rel=0.03)


def test_noise_prediction_sees_the_step_it_is_at():
    """With data 0 the noise is x/sqrt(1 - alpha_bar): a network that inverts its time has no error."""
    bars = cosine_alpha_bar(50)

    def exact(x, t):
        return x / (1 - bars[(t * 50).round().long() - 1]).sqrt()[:, None].to(x.dtype)

    assert float(noise_error(exact, bars, torch.zeros(500, 2), generator()).max()) < 1e-8


def test_preconditioning_asks_the_network_for_a_target_of_variance_one():
    """With standard normal data and F = 0, D = x/(1 + sigma^2) is exact; the weighted error is 1 at every noise level."""

    class Zero(torch.nn.Module):
        def forward(self, x, t):
            return torch.zeros_like(x)

    x = torch.randn(40_000, 1, generator=torch.Generator().manual_seed(1))
    assert float(denoising_error(Preconditioned(Zero()), x, generator()).mean()) == pytest.approx(1.0, rel=0.03)


def test_conditions_reach_the_network():
    seen = []

    def net(x, t, condition):
        seen.append(condition)
        return x

    condition = torch.ones(3, 2)
    flow_matching_error(net, affine_path("linear"), torch.zeros(3, 1), generator(), condition)
    noise_error(net, cosine_alpha_bar(5), torch.zeros(3, 1), generator(), condition)
    assert all(one is condition for one in seen)
    assert len(seen) == 2
