from __future__ import annotations

import pytest
import torch

from upheld.diffusion.networks import SmallUNet, TimeFeatures, TimeMLP

NETS = {
    "mlp": (lambda condition: TimeMLP(6, width=16, condition=condition, residual=True), (4, 6)),
    "u-net": (lambda condition: SmallUNet(1, widths=(8, 16), condition=condition), (4, 1, 8, 8)),
}


@pytest.mark.parametrize("name", NETS)
def test_shape_time_and_condition(name):
    make, shape = NETS[name]
    torch.manual_seed(0)
    net, x = make(3), torch.randn(shape)
    t, condition = torch.full((4,), 0.3), torch.eye(4, 3)
    out = net(x, t, condition)
    assert out.shape == x.shape
    torch.testing.assert_close(net(x, torch.tensor(0.3), condition), out)  # one time for all
    torch.testing.assert_close(net(x, t), net(x, t, torch.zeros(4, 3)))  # none is zeros
    assert not torch.allclose(net(x, t + 0.1, condition), out)
    assert not torch.allclose(net(x, t, condition.roll(1, 0)), out)


@pytest.mark.parametrize("name", NETS)
def test_examples_do_not_see_each_other(name):
    make, shape = NETS[name]
    torch.manual_seed(0)
    net, x, t = make(0), torch.randn(shape), torch.rand(4)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(net(x[order], t[order]), net(x, t)[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETS)
def test_every_parameter_is_used(name):
    make, shape = NETS[name]
    net = make(3)
    net(torch.randn(shape), torch.rand(4), torch.randn(4, 3)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


def test_features_tell_near_times_apart():
    features = TimeFeatures(16)(torch.tensor([0.5, 0.501]), 2)
    assert (features[0] - features[1]).norm() > 0.3


def test_size_of_the_u_net():
    assert sum(p.numel() for p in SmallUNet(1).parameters()) == 2_260_737  # as documented


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"pictures of \(7, 8\) cannot be halved 1 times"):
        NETS["u-net"][0](0)(torch.zeros(1, 1, 7, 8), torch.tensor(0.5))
    with pytest.raises(ValueError, match=r"shape \(2, 4\), the network takes \(2, 3\)"):
        NETS["mlp"][0](3)(torch.zeros(2, 6), torch.tensor(0.5), torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"widths \[12\] cannot be split into 8 groups"):
        SmallUNet(1, widths=(8, 12))
    with pytest.raises(ValueError, match="come in pairs"):
        TimeFeatures(7)
