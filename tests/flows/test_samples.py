from __future__ import annotations

import math

import pytest
import torch

from upheld.flows.diagnostics import diagnose, pareto_shape
from upheld.flows.likelihoods import LinearGaussian
from upheld.flows.lookahead import CalibratedLookAhead
from upheld.flows.mixture import GaussianMixtureFlow, mixture_benchmark
from upheld.flows.sampler import TargetedFlow
from upheld.flows.samples import FlowSamples

PRIOR = GaussianMixtureFlow(torch.zeros(1, 2), 1.0)
SEEN = LinearGaussian(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), 1.0)
FLOW = TargetedFlow(PRIOR, SEEN, n_steps=32, n_particles=8, lookahead=CalibratedLookAhead(1.0))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def by_hand(log_w: torch.Tensor, particles: torch.Tensor, log_z: torch.Tensor) -> FlowSamples:
    groups, count = log_w.shape
    joint = (torch.log_softmax(log_z, 0)[:, None] + torch.log_softmax(log_w, 1)).flatten()
    return FlowSamples(
        particles.flatten(0, 1), joint, "pooled", particles, log_w, log_z, torch.ones(1, groups), torch.ones(1),
        torch.zeros(1, groups, dtype=torch.bool), torch.arange(count).repeat(groups, 1), log_w,
    )  # fmt: skip


def test_pooled_weights_are_evidence_times_weight():
    """Two groups with Z = 1 and 3: E = (1 * m_1 + 3 * m_2)/4."""
    log_w = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]]).double()
    particles = torch.tensor([[[0.0], [2.0]], [[4.0], [8.0]]]).double()
    found = by_hand(log_w, particles, torch.tensor([0.0, math.log(3.0)]).double())
    mean, _ = found.expectation(lambda x: x[:, 0])
    assert float(mean) == pytest.approx((1.0 + 3 * 5.0) / 4)
    assert float((found.log_weights.exp() * found.samples[:, 0]).sum()) == pytest.approx(4.0)
    assert float(found.log_weights.exp().sum()) == pytest.approx(1.0)
    assert found.log_evidence == pytest.approx(math.log(2.0))
    assert found.log_evidence_se == pytest.approx(math.sqrt(2) / 2 / math.sqrt(2))


@pytest.mark.parametrize("mode", ["nested", "pooled"])
def test_expectations_cover_the_posterior_mean(mode):
    """Posterior of the first coordinate: N(1/2, 1/2). 40 runs: most intervals of two standard errors cover."""
    covered = 0
    for seed in range(40):
        found = FLOW.sample(
            64 if mode == "nested" else 256, shape=(2,), generator=torch.Generator().manual_seed(seed), mode=mode
        )
        mean, error = found.expectation(lambda x: x[:, 0])
        covered += abs(float(mean) - 0.5) < 2 * float(error)
    assert 32 <= covered <= 40


def test_sizes_and_the_dataset():
    nested = FLOW.sample(5, shape=(2,), generator=generator())
    assert len(nested) == 5
    assert nested.particles.shape == (5, 8, 2)
    assert nested.ess_trace.shape == nested.resampled_at.shape == (len(nested.stage_times), 5)
    pooled = FLOW.sample(20, shape=(2,), generator=generator(), mode="pooled")
    assert pooled.samples.shape == (24, 2)
    data = pooled.to_dataset()
    assert len(data) == 24
    assert float(data.tensors[1].sum()) == pytest.approx(1.0)


def test_every_nested_sample_is_a_particle_of_its_group():
    found = FLOW.sample(6, shape=(2,), generator=generator())
    for sample, group in zip(found.samples, found.particles, strict=True):
        assert (sample == group).all(1).any()


def test_evidence_comes_with_its_error():
    """log N(1; 0, 2) is the truth."""
    found = FLOW.sample(400, shape=(2,), generator=generator())
    truth = float(torch.distributions.Normal(0.0, math.sqrt(2)).log_prob(torch.tensor(1.0)))
    assert abs(found.log_evidence - truth) < 4 * found.log_evidence_se + 0.03
    assert found.log_evidence_se < 0.05


def test_a_good_run_is_not_warned_of():
    found = FLOW.sample(64, shape=(2,), generator=generator())
    diagnosis = diagnose(found, FLOW.refined().sample(64, shape=(2,), generator=generator()))
    assert diagnosis.warnings == []
    assert diagnosis.final_ess > 0.5
    assert diagnosis.unique_end_points > 0.9
    assert abs(diagnosis.discretisation) < 3


def test_copies_heavy_tails_and_disagreement_are_warned_of():
    sharp = LinearGaussian(torch.eye(2), torch.tensor([2.5, -2.5]), 0.1)
    copies = TargetedFlow(PRIOR, sharp, n_steps=32, n_particles=64, noise=0.0, lookahead="point").sample(
        16, shape=(2,), generator=generator()
    )
    assert any("of the end points differ; take noise > 0" in one for one in diagnose(copies).warnings)
    problem = mixture_benchmark(32, generator())
    run = {"n_steps": 32, "n_particles": 64}
    over_confident = TargetedFlow(problem.flow, problem.likelihood, lookahead="point", **run)
    found = diagnose(over_confident.sample(16, shape=(32,), generator=generator()))
    assert any("at its worst stage only" in one for one in found.warnings)
    terminal = diagnose(
        TargetedFlow(problem.flow, problem.likelihood, window=None, **run).sample(
            16, shape=(32,), generator=generator()
        )
    )
    assert any("heavy tail" in one for one in terminal.warnings)


def test_halves_that_disagree_are_warned_of():
    log_z = torch.tensor([0.0, 1.0] * 8).double() + torch.linspace(0, 0.1, 16).double()
    found = diagnose(by_hand(torch.zeros(16, 4).double(), torch.randn(16, 4, 1), log_z))
    assert any("two halves of the groups disagree" in one for one in found.warnings)


def test_long_steps_are_warned_of():
    """Data N(1, 9) and a likelihood that looks at its spread: 2 steps against 4."""
    wide = TargetedFlow(GaussianMixtureFlow(torch.ones(1, 2), 9.0), SEEN, n_steps=2, n_particles=64, window=None)
    found = wide.sample(200, shape=(2,), generator=generator())
    finer = wide.refined().sample(200, shape=(2,), generator=generator())
    assert any("twice the steps move the log evidence" in one for one in diagnose(found, finer).warnings)


def test_shape_of_known_tails():
    """Exponential of an exponential with rate a is Pareto with k = 1/a."""
    for k in (0.3, 1.0):
        log_ratio = torch.empty(20_000).exponential_(1 / k, generator=generator())
        assert pareto_shape(log_ratio) == pytest.approx(k, abs=0.15)
    assert pareto_shape(torch.zeros(1000)) == -math.inf
    assert math.isnan(pareto_shape(torch.zeros(10)))
