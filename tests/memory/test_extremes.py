"""Extremes of random patterns against patterns that are drawn, and limits in N."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.memory.data import draw_patterns
from upheld.memory.extremes import arrivals, critical_load, limit, log_noise, top_alignments
from upheld.memory.theory import capacity_zero_t, noise_floor


@pytest.mark.parametrize("law", ["spherical", "gaussian"])
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_the_noise_sum_is_distributed_as_that_of_drawn_patterns(law, beta):
    alpha, N = 0.15, 40
    M = round(np.exp(alpha * N))
    rng = np.random.default_rng(0)
    state = np.zeros(N)
    state[0] = np.sqrt(N)
    drawn = [
        np.log(np.exp(-beta * N * (1 - draw_patterns(M, N, rng=rng, law=law).astype(float) @ state / N)).sum())
        for _ in range(400)
    ]
    made = log_noise(arrivals(400, rng=rng, terms=256), np.log(M) / N, N, beta, law)
    for q in (0.25, 0.5, 0.75):
        assert np.quantile(made, q) == pytest.approx(np.quantile(drawn, q), abs=4 * np.std(drawn) / np.sqrt(200))


@pytest.mark.parametrize("law", ["spherical", "gaussian"])
def test_few_terms_and_many_agree(law):
    many = arrivals(50, rng=np.random.default_rng(1), terms=2048)
    differences = log_noise(many, 0.3, 60, 1.0, law) - log_noise(many[:, :256], 0.3, 60, 1.0, law)
    assert abs(np.median(differences)) < 0.05


def test_the_largest_alignments_fall_off():
    phi = top_alignments(arrivals(5, rng=np.random.default_rng(0), terms=100), 4.0, 30)
    assert np.all(np.diff(phi, axis=1)[:, :20] < 0)
    assert np.isnan(phi[:, -1]).all()  # of 55 patterns there is no hundredth
    with pytest.raises(ValueError, match="law must be"):
        top_alignments(np.zeros((1, 1)), 4.0, 30, "cubic")


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_critical_loads_tend_to_the_capacity_of_gaussian_patterns(beta):
    log_gamma = arrivals(15, rng=np.random.default_rng(0), terms=512)
    sizes = (100, 400, 2000, 10_000)
    loads = [np.median(critical_load(log_gamma, N, beta, "gaussian")) for N in sizes]
    assert limit(sizes, loads) == pytest.approx(float(capacity_zero_t(beta, "gaussian")), abs=0.006)
    root = critical_load(log_gamma, 400, beta, "gaussian")
    assert np.allclose(
        [float(log_noise(g[None], a, 400, beta, "gaussian")[0]) for g, a in zip(log_gamma, root, strict=True)],
        0,
        atol=1e-6,
    )


@pytest.mark.parametrize("beta", [0.3, 2.0])
def test_noise_of_spherical_patterns_tends_to_the_exact_floor(beta):
    log_gamma = arrivals(15, rng=np.random.default_rng(0), terms=512)
    sizes = (100, 400, 2000, 5000)
    found = [np.median(-log_noise(log_gamma, 0.2, N, beta) / (N * beta)) for N in sizes]
    assert limit(sizes, found) == pytest.approx(float(noise_floor(0.2, "lse", beta)), abs=0.004)
