"""Exactness: whatever the look-ahead, guidance, resampling or number of particles, the evidence is unbiased and the target is kept."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.flows.likelihoods import ClassifierLikelihood, LinearGaussian, Reward
from upheld.flows.lookahead import CalibratedLookAhead
from upheld.flows.mixture import GaussianMixtureFlow, mixture_benchmark
from upheld.flows.sampler import Progress, TargetedFlow
from upheld.flows.smc import RESAMPLERS
from upheld.flows.velocity import FlowField

FLOW = GaussianMixtureFlow(torch.tensor([[-1.5, 0.0], [1.0, 1.0]]), 0.3)
SEEN = LinearGaussian(torch.tensor([[1.0, 0.5]]), torch.tensor([1.2]), 1.2)
N, WINDOW, GROUPS = 8, (0.25, 0.75), 20_000
BASE = TargetedFlow(FLOW, SEEN, n_steps=N, n_particles=2, window=WINDOW, lookahead="point")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def reference(noise: float = 1.0) -> tuple[float, float]:
    """Mean of l(x_1) and its standard error under the discretised sampler without a condition, written out here once more."""
    x, times, total = torch.randn(200_000, 2, generator=generator(99)), torch.linspace(0, 1, N + 1), generator(98)
    for k in range(N):
        t, dt = max(float(times[k]), 1e-4), 1 / N
        v = FLOW(x, t)
        if 2 <= k < 6 and noise:
            eta2 = noise**2 * 2 * (1 - t) / t
            x = (
                x
                + (v + eta2 / 2 * (t * v - x) / (1 - t)) * dt
                + math.sqrt(eta2 * dt) * torch.randn(x.shape, generator=total)
            )
        else:
            x = x + v * dt
    values = SEEN.log_prob(x).double().exp()
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


REFERENCE = {noise: reference(noise) for noise in (0.0, 1.0)}


def assert_unbiased(flow: TargetedFlow, noise: float = 1.0, groups: int = GROUPS) -> None:
    z = flow.sample(groups, shape=(2,), generator=generator()).group_log_evidence.exp()
    expected, error = REFERENCE[noise]
    spread = math.hypot(float(z.std()) / math.sqrt(groups), error)
    assert abs(float(z.mean()) - expected) < 4 * spread
    assert spread < 0.06 * expected  # the test would notice a bias of a fifth


@pytest.mark.parametrize("name", sorted(RESAMPLERS))
def test_evidence_is_unbiased_for_every_resampler(name):
    assert_unbiased(replace(BASE, resampling=name, ess_threshold=0.9))


ARBITRARY = {
    "rising in time": lambda x, t, end: -t * (x - 0.5).square().sum(1),
    "of the wrong point": lambda x, t, end: torch.sin(2 * end).sum(1) / 2,
    "discontinuous": lambda x, t, end: (x[:, 0] > 0).to(x.dtype) + 0 * end.sum(1),
}


@pytest.mark.parametrize("name", ARBITRARY)
def test_evidence_is_unbiased_for_any_positive_look_ahead(name):
    assert_unbiased(replace(BASE, lookahead=ARBITRARY[name], ess_threshold=0.9), groups=10_000)


@pytest.mark.parametrize("guidance", [0.0, 0.5, 1.0, 1.5])
def test_evidence_is_unbiased_for_any_guidance(guidance):
    assert_unbiased(replace(BASE, guidance=guidance), groups=10_000)


@pytest.mark.parametrize(
    "options",
    [
        {"eps1": 0.3}, {"eps2": 0.2}, {"velocity_jacobian": False}, {"resampling": None}, {"lookahead": CalibratedLookAhead(1.0)},
        {"grad_clip": 0.1}, {"n_particles": 1}, {"n_particles": 5, "ess_threshold": 1.0},
    ],
    ids=lambda options: "-".join(options),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:eps1")
def test_evidence_is_unbiased_for_every_option(options):
    assert_unbiased(replace(BASE, **options), groups=10_000)


def test_evidence_is_unbiased_when_the_look_ahead_draws():
    """A general likelihood under "calibrated": the drawn log g must be the one that is divided out."""
    general = Reward(SEEN.log_prob)
    assert_unbiased(replace(BASE, likelihood=general, lookahead=CalibratedLookAhead(1.0, draws=2), ess_threshold=0.9))


def test_evidence_is_unbiased_for_a_deterministic_flow():
    assert_unbiased(replace(BASE, noise=0.0, ess_threshold=0.9), noise=0.0)


def test_a_look_ahead_that_redraws_what_it_divides_out_would_be_noticed():
    """The trap of the test above: noise in log g that is not carried along biases the evidence."""

    class Forgetful:
        draws = 0
        total = generator(5)

        def log_twist(self, likelihood, view):
            return likelihood.log_prob(view.endpoint) + torch.randn(len(view.x), generator=self.total)

    flow = replace(BASE, lookahead=Forgetful(), guidance=0.0, ess_threshold=0.9)
    assert_unbiased(flow)  # drawn once a point and carried: still exact
    z = flow.sample(GROUPS, shape=(2,), generator=generator())
    forgotten = z.group_log_evidence + torch.randn(GROUPS, generator=generator(6))  # e^{1/2} too large
    assert abs(float(forgotten.exp().mean()) - REFERENCE[1.0][0]) > 0.3 * REFERENCE[1.0][0]


def test_posterior_of_the_mixture():
    """Closed form of the spec: 3 components in 3 dimensions; calibrated look-ahead at K = 2,048."""
    problem = mixture_benchmark(3, generator(1), R=0.04)
    look = CalibratedLookAhead(problem.flow.mean_variance)
    flow = TargetedFlow(problem.flow, problem.likelihood, n_steps=128, n_particles=2048, lookahead=look)
    found = flow.sample(4096, shape=(3,), generator=generator(2), mode="pooled")
    assert found.log_evidence == pytest.approx(problem.log_evidence, abs=0.12)
    mean, error = found.expectation(lambda x: x)
    assert float((mean - problem.posterior.mean).norm()) < 0.12
    assert (error < 0.1).all()


@pytest.mark.parametrize("options", [{}, {"guidance": 0.0}, {"noise": 0.0}, {"window": None}, {"ode": "heun"}])
def test_a_constant_likelihood_is_that_constant(options):
    constant = Reward(lambda x: 0 * x.sum(1) - 3.25)
    flow = replace(BASE, **{"likelihood": constant, "n_particles": 8, "guidance": 2.0, **options})
    found = flow.sample(50, shape=(2,), generator=generator())
    assert found.group_log_evidence.tolist() == pytest.approx([-3.25] * 50, abs=1e-6)
    assert not found.resampled_at.any()
    assert float(found.ess_trace.min()) == pytest.approx(8)


def test_without_noise_guidance_and_resampling_it_is_importance_sampling_bit_for_bit():
    plain = replace(BASE, window=None).sample(40, shape=(2,), generator=generator())
    still = replace(BASE, noise=0.0, guidance=0.0, resampling=None).sample(40, shape=(2,), generator=generator())
    assert torch.equal(plain.particles, still.particles)
    assert torch.equal(plain.particle_log_weights, still.particle_log_weights)
    assert torch.equal(plain.samples, still.samples)


def test_copies_of_a_deterministic_flow_stay_copies_and_noise_parts_them():
    """Resampled at every step, the last time at the window's end: only noise after that parts the last copies."""
    always = replace(BASE, n_particles=16, ess_threshold=1.0)

    def shares(flow):
        found = flow.sample(20, shape=(2,), generator=generator())
        distinct = sum(len(group.unique(dim=0)) for group in found.particles) / 320
        return distinct, sum(len(group.unique()) for group in found.ancestors) / 320

    still, ancestors = shares(replace(always, noise=0.0))
    assert still == ancestors < 0.8
    assert still < shares(always)[0] < 1
    assert shares(replace(always, extra_window=(0.75, 0.9)))[0] == 1


def test_an_extra_window_keeps_the_evidence():
    flow = replace(BASE, window=(0.25, 0.5), extra_window=(0.5, 0.75), ess_threshold=0.9)
    assert_unbiased(flow)  # the noise is that of one window to 0.75: its law of reference does not change


def test_groups_do_not_depend_on_which_run_beside_them():
    """A group's numbers come from its own seed: the first five of ten are the five of five."""
    five, ten = (
        replace(BASE, n_particles=4, ess_threshold=0.9).sample(n, shape=(2,), generator=generator()) for n in (5, 10)
    )
    torch.testing.assert_close(ten.particles[:5], five.particles)
    torch.testing.assert_close(ten.group_log_evidence[:5], five.group_log_evidence)


def test_chunks_change_nothing():
    whole, parts = (
        replace(BASE, n_particles=6, ess_threshold=0.9, particles_per_chunk=size).sample(
            7, shape=(2,), generator=generator()
        )
        for size in (None, 5)
    )
    torch.testing.assert_close(whole.particles, parts.particles)
    torch.testing.assert_close(whole.particle_log_weights, parts.particle_log_weights)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 6), st.floats(0.01, 2), st.floats(0.01, 1), st.floats(0, 3), st.integers(0, 10_000)
)  # fmt: skip
def test_inflated_variance_bounds_the_kernel_ratio(d, step_variance, eps1, shift, seed):
    """log N(x'; m_p, s^2) - log N(x'; m_q, (1 + eps1) s^2) <= d/2 log(1 + eps1) + |m_p - m_q|^2/(2 eps1 s^2), for any x'."""
    total = generator(seed)
    gap = shift * torch.randn(d, generator=total).double()
    x = 3 * torch.randn(d, generator=total).double()
    s = math.sqrt(step_variance)
    ratio = torch.distributions.Normal(0.0, s).log_prob(x) - torch.distributions.Normal(
        gap, s * math.sqrt(1 + eps1)
    ).log_prob(x)
    bound = d / 2 * math.log(1 + eps1) + float(gap.square().sum()) / (2 * eps1 * step_variance)
    assert float(ratio.sum()) <= bound + 1e-9


def test_the_kernel_ratio_of_a_step_is_that_of_the_two_normals():
    """One window step from a known cloud, both densities from torch's own Normal."""
    flow = replace(BASE, window=(0.5, 0.6), n_steps=10, n_particles=3, eps1=0.4, guidance=1.5, resampling=None)
    plan = flow.planned((2,))
    plan.chunk = 100
    from upheld.flows.streams import GroupStreams

    streams = GroupStreams([4], 3, (2,))
    cloud = plan.begin(torch.randn(3, 2, generator=generator()), 5, streams)
    after = plan.step(cloud, 5, streams)
    eta2, dt, v, x = 2 * 0.5 / 0.5, 0.1, FLOW(cloud.x, 0.5), cloud.x
    m_p = x + (v + eta2 / 2 * (0.5 * v - x) / 0.5) * dt
    at = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(SEEN.log_prob(at + 0.5 * FLOW(at, 0.5)).sum(), at)
    slope = slope * (10 * math.sqrt(2) / slope.norm(dim=1, keepdim=True)).clamp(max=1)
    m_q = m_p + 1.5 * eta2 * dt * slope
    s = math.sqrt(eta2 * dt)
    normal = torch.distributions.Normal
    ratio = (normal(m_p, s).log_prob(after.x) - normal(m_q, s * math.sqrt(1.4)).log_prob(after.x)).sum(1)
    torch.testing.assert_close(after.unfinished[0].float(), ratio, rtol=1e-4, atol=1e-4)


def test_guidance_is_the_drift_of_the_conditional_flow():
    """gamma = 1, rho = 1 and the exact twist h: drift b + eta^2 grad log h is the conditional flow's own b_y, on Gaussian data."""
    prior, seen, t = (
        GaussianMixtureFlow(torch.zeros(1, 2).double(), 1.0),
        LinearGaussian(torch.eye(2).double(), torch.ones(2).double(), 1.0),
        0.4,
    )
    posterior, _ = prior.posterior(seen)
    spread = (1 - t) ** 2 / (t**2 + (1 - t) ** 2)  # variance of x_1 given x_t, exact for this prior
    x = torch.randn(6, 2, generator=generator()).double().requires_grad_()
    log_h = seen.log_prob_blurred(prior.endpoint(x, t), spread)
    (slope,) = torch.autograd.grad(log_h.sum(), x)
    eta2 = 2 * (1 - t) / t

    def drift(flow):
        v = flow(x, t)
        return v + eta2 / 2 * (t * v - x) / (1 - t)

    torch.testing.assert_close(drift(prior) + eta2 * slope, drift(posterior))


def test_order_of_components_and_particles_is_no_matter():
    """Permuting what a network sees of a batch permutes its answers: no particle is special."""
    turned = FlowField(lambda x, t: FLOW(x.flip(0), t).flip(0), parametrization="velocity")
    one, other = (
        replace(BASE, velocity=v, n_particles=4).sample(5, shape=(2,), generator=generator()) for v in (FLOW, turned)
    )
    torch.testing.assert_close(one.particles, other.particles)


def test_a_callback_hears_every_step():
    heard: list[Progress] = []
    replace(BASE, n_particles=4).sample(3, shape=(2,), generator=generator(), callback=heard.append)
    assert [one.step for one in heard] == list(range(1, N + 1))
    assert [one.ess is not None for one in heard] == [2 <= k < 6 for k in range(N)]
    assert all(one.ess.shape == (3,) for one in heard if one.ess is not None)


def test_evaluations_are_counted_as_they_happen():
    asked = {"forward": 0}

    def counted(x, t):
        asked["forward"] += len(x)
        return FLOW(x, t)

    for options in ({}, {"ode": "heun"}, {"guidance": 0.0}, {"extra_window": (0.76, 0.9)}):
        asked["forward"] = 0
        field = FlowField(counted, parametrization="velocity")
        found = replace(BASE, velocity=field, particles_per_chunk=1000, **options).sample(
            3, shape=(2,), generator=generator()
        )
        assert asked["forward"] == 6 * found.evaluations["forward"]
        assert found.evaluations["backward"] == (0 if options.get("guidance") == 0.0 else 4)


def test_presets():
    paper = TargetedFlow(FLOW, SEEN, preset="paper").planned((2,))
    assert (len(paper.times) - 1, paper.count, paper.window, paper.guidance) == (800, 16, (350, 700), 1.0)
    assert type(paper.look).__name__ == "PointLookAhead"
    ours = TargetedFlow(FLOW, SEEN).planned((2,))
    assert (len(ours.times) - 1, ours.count, ours.window, ours.guidance) == (128, 16, (24, 112), 1.0)
    assert type(ours.look).__name__ == "CalibratedLookAhead"
    judged = TargetedFlow(FLOW, ClassifierLikelihood(torch.nn.Linear(2, 3), 1)).planned((2,))
    assert (judged.guidance, judged.clip) == (2.0, 5.0)
    assert type(judged.look).__name__ == "PointLookAhead"


def test_data_variance_is_estimated_from_the_flow():
    flow = TargetedFlow(FLOW, SEEN).planned((2,)).look
    assert flow.variance == pytest.approx(FLOW.mean_variance, rel=0.15)


def test_refined_has_twice_the_steps():
    assert BASE.refined().n_steps == 2 * N
    assert TargetedFlow(FLOW, SEEN).refined().n_steps == 256


def test_a_likelihood_without_gradient_is_not_asked_for_one():
    step = Reward(lambda x: torch.where(x[:, 0] > 0, 0.0, -2.0), differentiable=False)
    found = replace(BASE, likelihood=step, n_particles=4).sample(4, shape=(2,), generator=generator())
    assert found.evaluations["backward"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": (0.0, 0.5)}, r"window \(0.0, 0.5\) must be two times with 0 < t_a < t_b < 1"),
        ({"window": (0.5, 1.0)}, "must be two times"),
        ({"window": (0.5, 0.51)}, "holds no step of 8; widen it or take more steps"),
        ({"extra_window": (0.5, 0.9)}, "begins before the window"),
        ({"resampling": "best"}, "no resampling 'best'"),
        ({"lookahead": "far"}, "no lookahead 'far'"),
        ({"preset": "fast"}, "no preset 'fast'; there are paper, default"),
        ({"path": "straight"}, "no path 'straight'"),
        ({"n_particles": 0}, "8 steps and 0 particles"),
        ({"ode": "rk4"}, "no way of stepping 'rk4'"),
        ({"eps1": -1.0}, "must not be negative"),
        ({"likelihood": Reward(lambda x: x)}, r"log_prob of \d+ examples gives \(\d+, 2\); it must give one number an example"),
        ({"likelihood": Reward(lambda x: x.sum(1) * float("nan"))}, "log_prob is NaN or"),
        ({"likelihood": Reward(lambda x: torch.zeros(len(x)))}, "the likelihood has no gradient; set likelihood.differentiable = False"),
        ({"velocity": lambda x, t: x[:, :1]}, r"has shape \(128, 1\); it must return what it is given"),
        ({"velocity": lambda x, t: x / 0}, "the velocity is not finite at time 0.001 for 128 of 128 particles"),
        ({"velocity": lambda x, t: (x - 0.0) * 1.0}, "looks like a prediction of the noise; wrap it as FlowField"),
        ({"velocity": lambda x, t: x * 0}, "looks like a prediction of the data"),
        ({"velocity": FlowField(FLOW, base="uniform")}, "the flow's base is 'uniform'; noise can be added to a Gaussian one only"),
        ({"velocity": FlowField(FLOW, coupling="ot")}, "trained with coupling 'ot': its velocity gives no score"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        replace(BASE, **{"resampling": "systematic", "ess_threshold": 1.0, "n_particles": 3, **options}).sample(
            2, shape=(2,), generator=generator()
        )


def test_dead_groups_are_named():
    nowhere = Reward(lambda x: torch.where(x[:, 0] > 50, 0.0, -math.inf), differentiable=False)
    with pytest.raises(
        ValueError,
        match=r"all 2 particles of group 0 have weight 0 at time .* \(largest log-likelihood -inf\); take more",
    ):
        replace(BASE, likelihood=nowhere).sample(3, shape=(2,), generator=generator())


def test_a_likelihood_of_zero_on_the_way_is_no_verdict():
    """A look-ahead of 0 at some points and times kills no particle for good: the weight comes back with the next look."""
    half = Reward(lambda x: torch.where(x[:, 0] > 0.3, 0.0, -math.inf), differentiable=False)
    found = replace(BASE, likelihood=half, n_particles=64, resampling=None).sample(
        20, shape=(2,), generator=generator()
    )
    ends = found.particles[..., 0] > 0.3
    assert torch.equal(torch.isfinite(found.particle_log_weights), ends)


def test_a_look_ahead_of_zero_at_the_windows_end_leaves_the_likelihood_to_decide():
    """P(x > -1/2) of a standard normal is 0.6915. Whoever has g = 0 at the window's end and ends where the likelihood is 1 counts."""
    normal = GaussianMixtureFlow(torch.zeros(1, 2), 1.0)
    right = Reward(lambda x: torch.where(x[:, 0] > -0.5, 0.0, -math.inf), differentiable=False)
    flow = TargetedFlow(normal, right, n_steps=16, n_particles=64, ess_threshold=0.9)
    with pytest.warns(UserWarning, match="resampling gave them up: .* eps2 > 0 keeps them"):
        found = flow.sample(20, shape=(2,), generator=generator())
    assert not torch.isnan(found.particle_log_weights).any()
    assert (found.samples[:, 0] > -0.5).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = replace(flow, eps2=0.05).sample(60, shape=(2,), generator=generator())
    assert abs(kept.log_evidence - math.log(0.6915)) < 4 * kept.log_evidence_se < 0.2


def test_warnings_where_weights_are_exact_for_another_law():
    with pytest.warns(UserWarning, match="this velocity is one under guidance"):
        replace(BASE, velocity=FlowField(FLOW, guided=True)).planned((2,))
    with pytest.warns(UserWarning, match="eps1 = 1 adds about"):
        replace(BASE, eps1=1.0).planned((2,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BASE.planned((2,))


def test_modes():
    with pytest.raises(ValueError, match="0 samples in mode 'nested'"):
        BASE.sample(0, shape=(2,))
    with pytest.raises(ValueError, match="in mode 'all'"):
        BASE.sample(3, shape=(2,), mode="all")
