"""Samplers on Gaussian data, where every prediction and every law is known."""

from __future__ import annotations

import pytest
import torch
from scipy.integrate import solve_ivp

from upheld.diffusion.paths import affine_path
from upheld.diffusion.samplers import ddim, edm_heun, integrate, marginal_preserving_sde
from upheld.diffusion.schedules import cosine_alpha_bar, karras_sigmas, uniform_times

MEAN, STD = 1.0, 2.0


def velocity(path):
    def of(x, t):
        alpha, sigma = float(path.alpha(t.double())), float(path.sigma(t.double()))
        x1 = MEAN + STD**2 * alpha / (STD**2 * alpha**2 + sigma**2) * (x - alpha * MEAN)
        return path.velocity_from_endpoint(x, x1, t)

    return of


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("method", "error"), [("euler", 0.05), ("heun", 2e-3), ("midpoint", 2e-3)])
@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_ode_agrees_with_scipys(name, method, error):
    v = velocity(affine_path(name))
    x = torch.tensor([[-1.5], [0.2], [2.0]], dtype=torch.float64)
    at = solve_ivp(
        lambda t, y: v(torch.tensor(y)[:, None], torch.tensor(t)).numpy()[:, 0],
        (1e-4, 1 - 1e-4),
        x[:, 0].numpy(),
        rtol=1e-9,
    )
    end = integrate(v, x, uniform_times(200), method)
    assert float((end[:, 0] - torch.tensor(at.y[:, -1])).abs().max()) < error


def test_second_order_is_second_order():
    v, x = velocity(affine_path("cosine")), normal(50)
    exact = MEAN + STD * x
    errors = [float((integrate(v, x, uniform_times(n), "heun") - exact).abs().mean()) for n in (20, 80)]
    assert 10 < errors[0] / errors[1] < 22  # 16 = 4^2


@pytest.mark.parametrize("name", ["linear", "cosine", "vp"])
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_noise_keeps_the_marginals(name, strength):
    path, times = affine_path(name), uniform_times(256)
    v, x = velocity(path), normal(20_000)
    x = integrate(v, x, times[:65])
    x = marginal_preserving_sde(
        v, path, x, times[64:225], lambda t: strength**2 * path.memoryless_variance(t), torch.Generator().manual_seed(1)
    )
    x = integrate(v, x, times[224:])
    assert float(x.mean()) == pytest.approx(MEAN, abs=0.06)
    assert float(x.std()) == pytest.approx(STD, abs=0.06)


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_ddim_reaches_the_data(eta):
    bars = cosine_alpha_bar(200)

    def noise(x, t):
        bar = float(bars[round(float(t) * 200) - 1])
        variance = STD**2 * bar + 1 - bar
        return (1 - bar) ** 0.5 * (x - bar**0.5 * MEAN) / variance

    x = ddim(noise, normal(20_000), bars, 200, eta=eta, generator=torch.Generator().manual_seed(1))
    assert float(x.mean()) == pytest.approx(MEAN, abs=0.06)
    assert float(x.std()) == pytest.approx(STD, abs=0.08)


def test_edm_reaches_the_data():
    def denoiser(x, sigma):
        return MEAN + STD**2 / (STD**2 + sigma**2) * (x - MEAN)

    x = normal(50)
    exact = MEAN + STD / (STD**2 + 80.0**2) ** 0.5 * (
        80 * x - MEAN
    )  # the flow of the probability-flow ODE, in closed form
    torch.testing.assert_close(edm_heun(denoiser, x, karras_sigmas(60, 0.005, 80.0)), exact, rtol=0, atol=0.02)


def test_what_cannot_be_stepped_is_refused():
    with pytest.raises(ValueError, match="no way of stepping 'rk4'; there are euler, heun, midpoint"):
        integrate(velocity(affine_path("linear")), normal(1), uniform_times(2), "rk4")
    with pytest.raises(ValueError, match="11 steps of a schedule of 10; take 1 to 10"):
        ddim(lambda x, t: x, normal(1), cosine_alpha_bar(10), 11)
