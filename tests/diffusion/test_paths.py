from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.diffusion.paths import PATHS, AffinePath, affine_path, clamped

TIMES = st.floats(0.05, 0.95)
NAMES = st.sampled_from(sorted(PATHS))


def pair(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, 3, generator=generator).double(), torch.randn(5, 3, generator=generator).double()


@settings(max_examples=60, deadline=None)
@given(NAMES, TIMES, st.integers(0, 1000))
def test_a_pair_comes_back_from_its_point_and_velocity(name, t, seed):
    path, (x1, x0) = affine_path(name), pair(seed)
    x, v = path.interpolate(x1, x0, t), path.velocity(x1, x0, t)
    torch.testing.assert_close(path.endpoint(x, v, t), x1)
    torch.testing.assert_close(path.noise(x, v, t), x0)
    torch.testing.assert_close(path.velocity_from_endpoint(x, x1, t), v)
    torch.testing.assert_close(path.velocity_from_noise(x, x0, t), v)


@settings(max_examples=40, deadline=None)
@given(NAMES, TIMES, st.integers(0, 1000))
def test_velocity_is_the_derivative_of_the_path(name, t, seed):
    path, (x1, x0), h = affine_path(name), pair(seed), 1e-6
    slope = (path.interpolate(x1, x0, t + h) - path.interpolate(x1, x0, t - h)) / (2 * h)
    torch.testing.assert_close(path.velocity(x1, x0, t), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(PATHS))
def test_score_of_gaussian_data_is_that_of_the_gaussian_marginal(name):
    """Data N(2, 9): x_t ~ N(2 alpha, 9 alpha^2 + sigma^2), whose score needs no prediction."""
    path, t = affine_path(name), torch.tensor(0.4, dtype=torch.float64)
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None]
    alpha, sigma = float(path.alpha(t)), float(path.sigma(t))
    variance = 9 * alpha**2 + sigma**2
    x1 = 2 + 9 * alpha / variance * (x - 2 * alpha)
    v = path.velocity_from_endpoint(x, x1, t)
    torch.testing.assert_close(path.score(x, v, t), -(x - 2 * alpha) / variance)


def test_the_linear_path_is_the_one_of_the_papers():
    path, (x, v) = affine_path("linear"), pair(0)
    torch.testing.assert_close(path.endpoint(x, v, 0.3), x + 0.7 * v)
    torch.testing.assert_close(path.score(x, v, 0.3), (0.3 * v - x) / 0.7)
    assert float(path.memoryless_variance(0.25)) == pytest.approx(2 * 0.75 / 0.25)


def test_variance_preserving_keeps_the_variance_and_starts_as_song_et_al_end():
    path, t = affine_path("vp"), torch.linspace(0, 1, 11, dtype=torch.float64)
    torch.testing.assert_close(path.alpha(t) ** 2 + path.sigma(t) ** 2, torch.ones_like(t))
    assert float(path.alpha(t)[0]) == pytest.approx(math.exp(-5.025))


def test_a_time_for_every_example():
    path, (x1, x0) = affine_path("cosine"), pair(1)
    t = torch.linspace(0.1, 0.9, 5).double()
    each = torch.cat([path.interpolate(x1[i : i + 1], x0[i : i + 1], t[i]) for i in range(5)])
    torch.testing.assert_close(path.interpolate(x1, x0, t), each)


def test_a_path_of_the_users_own_is_differentiated():
    mine = AffinePath("square root", lambda t: t**2, lambda t: 1 - t**2)
    x1, x0 = pair(2)
    torch.testing.assert_close(affine_path(mine).velocity(x1, x0, 0.5), x1 - x0)


def test_unknown_and_backward_paths_are_refused():
    with pytest.raises(ValueError, match="no path 'straight'; there are linear, cosine, vp"):
        affine_path("straight")
    with pytest.raises(ValueError, match=r"alpha\(1\) = 0 and sigma\(0\) = 0; both must be 1"):
        affine_path(AffinePath("backwards", lambda t: 1 - t, lambda t: t))


def test_times_are_kept_off_the_ends():
    assert clamped(torch.tensor([0.0, 0.5, 1.0])).tolist() == pytest.approx([1e-4, 0.5, 1 - 1e-4])
