from __future__ import annotations

import math

import pytest
import torch

from upheld.diffusion.paths import affine_path
from upheld.flows.likelihoods import LinearGaussian
from upheld.flows.mixture import GaussianMixtureFlow, mixture_benchmark


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_one_gaussian_has_the_closed_form_of_the_textbook():
    """N(mu, s^2 I): x1_hat = mu + t s^2 (x - t mu)/(t^2 s^2 + (1 - t)^2)."""
    mu, s2, t = torch.tensor([1.0, -2.0]).double(), 4.0, 0.3
    flow, x = GaussianMixtureFlow(mu[None], s2), torch.randn(5, 2, generator=generator()).double()
    expected = mu + t * s2 * (x - t * mu) / (t**2 * s2 + (1 - t) ** 2)
    torch.testing.assert_close(flow.endpoint(x, t), expected)
    torch.testing.assert_close(flow(x, t), (expected - x) / (1 - t))


@pytest.mark.parametrize("name", ["linear", "cosine", "vp"])
def test_the_end_point_is_the_conditional_mean(name):
    """Against a Monte Carlo regression: E[x_1 | x_t in a narrow bin] of an uneven mixture in one dimension."""
    flow = GaussianMixtureFlow(torch.tensor([[-2.0], [1.0]]).double(), 0.3, torch.tensor([0.3, 0.7]), path=name)
    path, t = affine_path(name), 0.6
    x1 = flow.sample(400_000, generator())
    x = path.interpolate(x1, torch.randn(x1.shape, generator=generator(1)).double(), t)
    for centre in (-0.5, 0.2, 0.8):
        near = (x - centre).abs()[:, 0] < 0.02
        assert float(x1[near].mean()) == pytest.approx(
            float(flow.endpoint(torch.tensor([[centre]]).double(), t)), abs=0.05
        )


def test_a_full_covariance_is_the_round_one_turned():
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator()).double())[0]
    spectrum, means = torch.tensor([0.2, 1.0, 3.0]).double(), torch.randn(2, 3, generator=generator(1)).double()
    flow = GaussianMixtureFlow(means @ turn.T, turn @ torch.diag(spectrum) @ turn.T)
    x = torch.randn(4, 3, generator=generator(2)).double()
    separate = GaussianMixtureFlow(means, torch.diag(spectrum))
    torch.testing.assert_close(flow(x @ turn.T, 0.4), separate(x, 0.4) @ turn.T)
    torch.testing.assert_close(
        GaussianMixtureFlow(means, torch.eye(3).double() * 0.5)(x, 0.4), GaussianMixtureFlow(means, 0.5)(x, 0.4)
    )


def test_posterior_and_evidence_by_brute_force():
    """Weighted prior draws, two million of them, in two dimensions."""
    problem = mixture_benchmark(2, generator(3), spread=1.0, R=0.25)
    x = problem.flow.sample(2_000_000, generator(4))
    log_l = problem.likelihood.log_prob(x)
    assert float(torch.logsumexp(log_l, 0)) - math.log(len(x)) == pytest.approx(problem.log_evidence, abs=0.01)
    w = torch.softmax(log_l, 0)
    torch.testing.assert_close(w @ x, problem.posterior.mean, atol=0.01, rtol=0)
    second = (w[:, None] * (x - w @ x)).T @ (x - w @ x)
    exact = problem.posterior.sample(500_000, generator(5))
    torch.testing.assert_close(second, torch.cov(exact.T), atol=0.02, rtol=0)


def test_measured_rows_are_orthonormal_and_problems_differ():
    one, other = (mixture_benchmark(16, generator(seed)) for seed in (0, 1))
    A = one.likelihood.matrix(16)
    torch.testing.assert_close(A @ A.T, torch.eye(2).double())
    assert not torch.equal(one.flow.means, other.flow.means)
    assert one.flow.mean_variance == pytest.approx(
        float(one.flow.sample(200_000, generator(2)).var(0).mean()), rel=0.02
    )


def test_a_time_for_every_particle():
    problem = mixture_benchmark(4, generator())
    x, t = torch.randn(3, 4, generator=generator(1)).double(), torch.tensor([0.2, 0.5, 0.8]).double()
    each = torch.cat([problem.flow(x[i : i + 1], t[i]) for i in range(3)])
    torch.testing.assert_close(problem.flow(x, t), each)


def test_what_is_no_mixture_is_refused():
    with pytest.raises(ValueError, match=r"means have shape \(3,\); give \(components, d\)"):
        GaussianMixtureFlow(torch.zeros(3), 1.0)
    with pytest.raises(ValueError, match="are none of 2 components"):
        GaussianMixtureFlow(torch.zeros(2, 1), 1.0, torch.tensor([1.0]))
    with pytest.raises(ValueError, match="9 measurements of 4 coordinates; take 1 to 4"):
        mixture_benchmark(4, generator(), m=9)


def test_conditioning_on_nothing_changes_nothing():
    flow = mixture_benchmark(3, generator()).flow
    blind = LinearGaussian(torch.zeros(1, 3).double(), torch.zeros(1).double(), 1.0)
    posterior, evidence = flow.posterior(blind)
    torch.testing.assert_close(posterior.mean, flow.mean)
    assert evidence == pytest.approx(-math.log(2 * math.pi) / 2)
