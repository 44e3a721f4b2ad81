"""A small flow of one's own data: an MLP for rows, a U-Net for pictures, trained by flow matching on independent pairs."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from upheld.diffusion.losses import flow_matching_error
from upheld.diffusion.networks import SmallUNet, TimeMLP
from upheld.diffusion.paths import linear
from upheld.diffusion.training import TrainingPlan, train


def velocity_network(shape: tuple[int, ...]) -> nn.Module:
    """An untrained network for examples of this shape: (d,) or (channels, H, W)."""
    if len(shape) == 1:
        return TimeMLP(shape[0], width=256, depth=3, time_size=16)
    if len(shape) == 3:
        return SmallUNet(shape[0])
    raise ValueError(f"examples of shape {shape} are neither rows (d,) nor pictures (channels, H, W); reshape them")


def fit_flow(
    data: Tensor, *, steps: int = 2500, batch: int = 256, jitter: float = 0.0, learning_rate: float = 2e-3, seed: int = 0,
    checkpoint: Path | None = None, network: nn.Module | None = None,
) -> nn.Module:  # fmt: skip
    """A velocity network f(x, t) of the linear path, fitted to examples.

    Parameters
    ----------
    data : (n, d) or (n, channels, H, W), scaled to a spread of about 1
    steps, batch, learning_rate : of Adam, falling as a cosine
    jitter : standard deviation of noise added to the data, so that few examples are not learnt by heart
    checkpoint : a file to go on from, see `upheld.diffusion.training.train`
    network : of one's own, called as network(x, t); None for that of `velocity_network`

    Raises
    ------
    ValueError
        If the data hold what is not finite, or have another number of axes.
    """
    if not torch.isfinite(data).all():
        raise ValueError(
            f"the data hold {int((~torch.isfinite(data)).sum())} values that are not finite; drop or fill them"
        )
    if network is None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = velocity_network(tuple(data.shape[1:]))
    path = linear()

    def loss(net: nn.Module, generator: torch.Generator) -> Tensor:
        x = data[torch.randint(len(data), (batch,), generator=generator)]
        x = x + jitter * torch.randn(x.shape, generator=generator)
        return flow_matching_error(net, path, x, generator).mean()

    plan = TrainingPlan(steps=steps, learning_rate=learning_rate, clip=10.0, ema=0.995)
    return train(network, loss, plan, seed=seed, checkpoint=checkpoint).averaged


def fit_classifier(
    network: nn.Module, x: Tensor, labels: Tensor, *, steps: int = 1500, batch: int = 128, jitter: float = 0.1, seed: int = 0
) -> nn.Module:  # fmt: skip
    """The network, trained to tell classes apart by cross-entropy on jittered examples."""

    def loss(net: nn.Module, generator: torch.Generator) -> Tensor:
        rows = torch.randint(len(x), (batch,), generator=generator)
        noisy = x[rows] + jitter * torch.randn(x[rows].shape, generator=generator)
        return nn.functional.cross_entropy(net(noisy), labels[rows])

    plan = TrainingPlan(steps=steps, learning_rate=3e-3, weight_decay=1e-3, clip=10.0, ema=0.99)
    return train(network, loss, plan, seed=seed).averaged
