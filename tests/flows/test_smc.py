from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from particles.resampling import resampling
from scipy.stats import chisquare

from upheld.flows.smc import RESAMPLERS, draw_one, effective_sample_size, log_mean_exp, normalised, resampler

SCHEMES = sorted(RESAMPLERS)
WEIGHTS = torch.tensor([0.02, 0.28, 0.0, 0.4, 0.17, 0.13], dtype=torch.float64)


def uniform(groups: int, count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(groups, count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def offspring(name: str, weights: torch.Tensor, groups: int) -> np.ndarray:
    """(groups, K): how many offspring each particle has."""
    ancestors = resampler(name)(weights.expand(groups, -1).contiguous(), uniform(groups, len(weights)))
    assert ancestors.shape == (groups, len(weights))
    return np.stack([(ancestors == i).sum(1).numpy() for i in range(len(weights))], axis=1)


@pytest.mark.parametrize("name", SCHEMES)
def test_expected_offspring_is_k_times_the_weight(name):
    counts = offspring(name, WEIGHTS, 20_000)
    alive = WEIGHTS.numpy() > 0
    assert (counts[:, ~alive] == 0).all()
    assert (counts.sum(1) == len(WEIGHTS)).all()
    expected = 6 * WEIGHTS.numpy()[alive]
    spread = np.maximum(counts[:, alive].std(0), 1e-3) / math.sqrt(len(counts))
    assert (np.abs(counts[:, alive].mean(0) - expected) < 4.5 * spread).all()


def test_multinomial_offspring_pass_the_chi_square_test():
    total = offspring("multinomial", WEIGHTS, 5000).sum(0)
    alive = WEIGHTS.numpy() > 0
    assert chisquare(total[alive], 30_000 * WEIGHTS.numpy()[alive]).pvalue > 1e-4


@pytest.mark.parametrize("name", ["systematic", "ssp", "residual"])
def test_offspring_are_not_far_from_what_is_expected(name):
    counts, expected = offspring(name, WEIGHTS, 2000), 6 * WEIGHTS.numpy()
    assert (counts >= np.floor(expected)).all()
    if name != "residual":
        assert (counts <= np.ceil(expected)).all()


def test_variance_falls_from_multinomial_to_systematic():
    """Var of one particle's offspring: multinomial K w (1 - w); systematic f (1 - f), f the fractional part of K w."""
    w = 0.28
    assert offspring("multinomial", WEIGHTS, 20_000)[:, 1].var() == pytest.approx(6 * w * (1 - w), rel=0.05)
    fraction = 6 * w % 1
    for name in ("systematic", "ssp"):
        assert offspring(name, WEIGHTS, 20_000)[:, 1].var() == pytest.approx(fraction * (1 - fraction), rel=0.05)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=12), st.integers(0, 1000), st.sampled_from(SCHEMES))
def test_any_weights_give_k_ancestors_that_have_weight(log_w, seed, name):
    weights = normalised(torch.tensor([log_w], dtype=torch.float64))
    found = resampler(name)(weights, uniform(1, len(log_w), seed))
    assert found.shape == (1, len(log_w))
    assert (weights[0, found[0]] > 0).all()


@pytest.mark.parametrize("name", SCHEMES)
def test_groups_do_not_see_each_other(name):
    weights = torch.stack([WEIGHTS, WEIGHTS.flip(0), torch.full((6,), 1 / 6, dtype=torch.float64)])
    u = uniform(3, 6)
    together = resampler(name)(weights, u)
    apart = torch.cat([resampler(name)(weights[i : i + 1], u[i : i + 1]) for i in range(3)])
    assert torch.equal(together, apart)


@pytest.mark.parametrize("name", ["systematic", "stratified", "residual", "ssp"])
def test_equal_weights_are_left_alone(name):
    weights = torch.full((4, 8), 1 / 8, dtype=torch.float64)
    assert torch.equal(resampler(name)(weights, uniform(4, 8)).sort(1).values, torch.arange(8).expand(4, 8))


@pytest.mark.parametrize("name", ["multinomial", "stratified", "systematic", "residual", "ssp"])
def test_agrees_with_the_package_particles_in_distribution(name):
    """Mean and covariance of the numbers of offspring."""
    np.random.seed(0)  # noqa: NPY002 - the package draws from it
    w = WEIGHTS.numpy()
    ours = offspring(name, WEIGHTS, 4000)
    other = np.stack([np.bincount(resampling(name, w), minlength=6) for _ in range(4000)])
    assert np.abs(ours.mean(0) - other.mean(0)).max() < 0.08
    assert np.abs(np.cov(ours.T) - np.cov(other.T)).max() < 0.12


def test_effective_sample_size_and_mean():
    log_w = torch.tensor([[0.0, 0.0, -math.inf, -math.inf], [5.0, 5.0, 5.0, 5.0]], dtype=torch.float64)
    assert effective_sample_size(log_w).tolist() == pytest.approx([2, 4])
    assert log_mean_exp(log_w).tolist() == pytest.approx([math.log(0.5), 5])


def test_one_of_a_group_is_drawn_by_weight():
    drawn = draw_one(WEIGHTS.expand(20_000, -1), uniform(20_000, 6))
    shares = np.bincount(drawn.numpy(), minlength=6) / 20_000
    assert np.abs(shares - WEIGHTS.numpy()).max() < 0.015


def test_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="no resampling 'killing'; there are systematic, stratified"):
        resampler("killing")
