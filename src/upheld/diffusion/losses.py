"""What a network is fitted to: velocity (flow matching), noise (DDPM), or the data (EDM), each as one number an entry.

Losses come back with the shape of the data, not averaged, since some methods leave entries out or weigh them::

    error = flow_matching_error(net, path, x1, generator)
    loss = (mask * error).sum() / mask.sum()
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from upheld.diffusion.paths import AffinePath, beside

Network = Callable[..., Tensor]


def flow_matching_error(
    net: Network, path: AffinePath, x1: Tensor, generator: torch.Generator, condition: Tensor | None = None
) -> Tensor:
    """(net(x_t, t) - (alpha' x_1 + sigma' x_0))^2 at t ~ U(0, 1) (Lipman et al. 2023, conditional flow matching)."""
    t = torch.rand(len(x1), generator=generator, dtype=x1.dtype)
    x0 = torch.randn(x1.shape, generator=generator, dtype=x1.dtype)
    given = () if condition is None else (condition,)
    return (net(path.interpolate(x1, x0, t), t, *given) - path.velocity(x1, x0, t)) ** 2


def noise_error(
    net: Network, alpha_bar: Tensor, x: Tensor, generator: torch.Generator, condition: Tensor | None = None
) -> Tensor:
    """(net(x_k, k/T) - eps)^2 at a uniform step k of T (Ho et al. 2020, equation 14); the network sees k/T in (0, 1]."""
    k = torch.randint(len(alpha_bar), (len(x),), generator=generator)
    eps = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    kept = beside(alpha_bar[k].to(x.dtype), x)
    given = () if condition is None else (condition,)
    noisy = kept.sqrt() * x + (1 - kept).sqrt() * eps
    return (net(noisy, (k + 1).to(x.dtype) / len(alpha_bar), *given) - eps) ** 2


class Preconditioned(nn.Module):
    """The denoiser of Karras et al. (2022), equation 7, around a network F::

    D(x, sigma) = c_skip x + c_out F(c_in x, log(sigma)/4),    sigma_data the standard deviation of the data
    """

    def __init__(self, net: nn.Module, sigma_data: float = 1.0) -> None:
        super().__init__()
        self.net, self.sigma_data = net, sigma_data

    def forward(self, x: Tensor, sigma: Tensor, condition: Tensor | None = None) -> Tensor:
        s, total = beside(sigma, x), beside(sigma, x) ** 2 + self.sigma_data**2
        given = () if condition is None else (condition,)
        time = torch.as_tensor(sigma, dtype=x.dtype).log() / 4
        out = self.net(x / total.sqrt(), time, *given)
        denoised: Tensor = self.sigma_data**2 / total * x + s * self.sigma_data / total.sqrt() * out
        return denoised


def denoising_error(
    net: Preconditioned, x: Tensor, generator: torch.Generator, condition: Tensor | None = None,
    log_mean: float = -1.2, log_std: float = 1.2,
) -> Tensor:  # fmt: skip
    """lambda(sigma) (D(x + sigma eps, sigma) - x)^2 at log sigma ~ N(log_mean, log_std^2), with the weight that makes the
    network's own target have variance 1 (Karras et al. 2022, section 5)."""
    sigma = torch.exp(log_mean + log_std * torch.randn(len(x), generator=generator, dtype=x.dtype))
    s = beside(sigma, x)
    noisy = x + s * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    weight = (s**2 + net.sigma_data**2) / (s * net.sigma_data) ** 2
    given = () if condition is None else (condition,)
    error: Tensor = weight * (net(noisy, sigma, *given) - x) ** 2
    return error
