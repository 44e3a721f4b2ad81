from __future__ import annotations

import math

import pytest
import torch

from upheld.diffusion.paths import affine_path
from upheld.flows.memory import BYTES, particles_that_fit
from upheld.flows.mixture import GaussianMixtureFlow
from upheld.flows.streams import GroupStreams
from upheld.flows.velocity import FlowField, check_parametrization, flow_field, from_flow_matching, from_torchcfm

FLOW = GaussianMixtureFlow(torch.tensor([[-1.0, 0.0], [1.0, 2.0]]), 0.5)
PATH = affine_path("linear")
X = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))


class TimeFirst(torch.nn.Module):
    def forward(self, t, x):
        assert t.dim() == 0
        return FLOW(x, t)


class Meta(torch.nn.Module):
    def forward(self, x, t, scale=1.0):
        return scale * FLOW(x, t)


def test_adapters_give_the_velocity_they_wrap():
    for field in (
        from_torchcfm(TimeFirst(), coupling="independent"),
        from_flow_matching(Meta(), coupling="independent"),
        flow_field(FLOW),
    ):
        torch.testing.assert_close(field.velocity(X, torch.tensor(0.4), PATH), FLOW(X, 0.4))
    torch.testing.assert_close(
        from_flow_matching(Meta(), coupling="independent", scale=2.0).velocity(X, torch.tensor(0.4), PATH),
        2 * FLOW(X, 0.4),
    )
    with pytest.raises(TypeError, match="coupling"):
        from_torchcfm(TimeFirst())


def test_other_predictions_are_turned_into_velocities():
    def noise(x, t):
        return PATH.noise(x, FLOW(x, t), t)

    for name, predict in (("endpoint", FLOW.endpoint), ("noise", noise)):
        field = FlowField(predict, parametrization=name)
        torch.testing.assert_close(field.velocity(X, torch.tensor(0.4), PATH), FLOW(X, 0.4), rtol=1e-4, atol=1e-5)


def test_what_a_field_predicts_is_seen_near_the_noise():
    check_parametrization(flow_field(FLOW), PATH, (2,))

    def transported(
        x, t
    ):  # the optimal-transport map of N(0, I) to N(0, 0.8^2 I) is x -> 0.8 x: its velocity is -0.2 x
        return -0.2 * x

    for predict, message in (
        (FLOW.endpoint, "rise by 0.00 for every unit .* looks like a prediction of the data"),
        (lambda x, t: PATH.noise(x, FLOW(x, t), t), "looks like a prediction of the noise; wrap it as .*'noise'"),
        (transported, "or of a flow trained with optimal-transport pairs"),
    ):
        with pytest.raises(ValueError, match=message):
            check_parametrization(FlowField(predict), PATH, (2,))
        check_parametrization(FlowField(predict, parametrization="velocity"), PATH, (2,))  # who says so is believed


def test_what_is_no_field_is_refused():
    with pytest.raises(TypeError, match="a velocity is called as f"):
        flow_field(3)
    with pytest.raises(ValueError, match="no parametrization 'score'"):
        FlowField(FLOW, parametrization="score")


def test_a_network_computes_in_its_own_type():
    seen = []

    def half(x, t):
        seen.append((x.dtype, t.dtype))
        return -x

    out = FlowField(half, dtype=torch.bfloat16).velocity(X, torch.tensor(0.3), PATH)
    assert seen == [(torch.bfloat16, torch.bfloat16)]
    assert out.dtype == X.dtype


def test_a_groups_numbers_are_its_own():
    together, alone = GroupStreams([7, 8, 9], 4, (3,)), GroupStreams([8], 4, (3,))
    torch.testing.assert_close(together.start()[4:8], alone.start())
    for _ in range(70):  # beyond one block
        torch.testing.assert_close(together.normal()[4:8], alone.normal())
        torch.testing.assert_close(together.uniform()[1], alone.uniform()[0])
        torch.testing.assert_close(together.look_ahead()[4:8], alone.look_ahead())
        torch.testing.assert_close(together.choice()[1], alone.choice()[0])


def test_the_start_does_not_hang_on_the_steps_that_follow():
    few, many = (GroupStreams([5], 3, (7,), steps=steps) for steps in (2, 50))
    assert torch.equal(few.start(), many.start())


def test_streams_are_normal_uniform_and_apart():
    streams = GroupStreams(list(range(500)), 4, (5,))
    first, second, ahead, start = streams.normal(), streams.normal(), streams.look_ahead(), streams.start()
    for one in (first, second, ahead, start):
        assert abs(float(one.mean())) < 0.05
        assert float(one.std()) == pytest.approx(1, abs=0.03)
    for pair in ((first, second), (first, ahead), (first, start)):
        assert abs(float(torch.corrcoef(torch.stack([one.flatten() for one in pair]))[0, 1])) < 0.05
    assert float(streams.uniform().mean()) == pytest.approx(0.5, abs=0.03)


def test_large_networks_get_fewer_particles():
    """A layer of 2^20 units keeps 4 MiB a particle for the way back (its input or output): between 64 and 512 fit 1 GiB."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 2**20), torch.nn.SiLU(), torch.nn.Linear(2**20, 1))

    def evaluate(x):
        with torch.enable_grad():
            return net(x.requires_grad_())

    assert 64 <= particles_that_fit(evaluate, (1,), "cpu") <= 512
    assert particles_that_fit(lambda x: x, (4,), "cpu") == BYTES // (8 * 16)


def test_extreme_seeds_are_seeds():
    assert math.isfinite(float(GroupStreams([2**61 - 1], 1, (1,)).normal()))
