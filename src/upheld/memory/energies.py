"""Energies of a dense associative memory on any vectors, batched, with their gradients in closed form.

In squared distances, so that norms may differ (on the sphere of radius sqrt(N), |x - xi|^2 = 2N(1 - phi))::

    LSE    E(x) = -(1/beta) ln sum_mu exp(-beta/2 |x - xi_mu|^2)                                                  (1)
           grad = x - sum_mu softmax_mu(-beta/2 |x - xi_mu|^2) xi_mu
    LSR    E(x) = -(1/beta) ln [eps + sum_mu ReLU(1 - beta/2 |x - xi_mu|^2)]                                      (2)
           grad = sum_mu 1[mu in support] (x - xi_mu) / (eps + sum_mu r_mu)

The support of LSR is |x - xi|^2 < 2/beta. Outside every support (2) is +inf with eps = 0; any eps > 0 invents a floor there, and stands
inside the logarithm once, never once a pattern. On the sphere b = N beta.

LSE: Ramsauer et al., ICLR 2021; LSR: Hoover et al., NeurIPS 2025. Dropping |xi|^2 from (1) gives softmax attention, which is the same
only when all patterns have one norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def squared_distances(x: torch.Tensor, patterns: torch.Tensor, squares: torch.Tensor | None = None) -> torch.Tensor:
    """|x - xi|^2 of every state and pattern, (..., B, M), by one product of matrices; never below 0.

    `squares` : (..., M) |xi|^2, where they are known already
    """
    if squares is None:
        squares = (patterns * patterns).sum(-1)
    both = (x * x).sum(-1)[..., :, None] + squares[..., None, :]
    return both.sub_(x @ patterns.transpose(-1, -2), alpha=2).clamp_min_(0)  # in place: these are the large arrays


def log_kernel_sum(phi: torch.Tensor, kernel: str, strength: float, N: int) -> torch.Tensor:
    """ln of the sum over patterns in alignments phi (..., M): exp(beta N (phi - 1)), or ReLU(1 - b (1 - phi)); -inf outside."""
    import torch

    if kernel == "lse":
        return torch.logsumexp(strength * N * (phi - 1), -1)
    return torch.log((1 - strength * (1 - phi)).clamp_min(0).sum(-1))


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be above 0, got {value}")


@dataclass(frozen=True)
class LSEEnergy:
    """Equation (1).

    Parameters
    ----------
    beta : inverse variance of the kernel

    Examples
    --------
    >>> import torch
    >>> patterns = torch.eye(3)
    >>> round(float(LSEEnergy(50.0)(patterns[0], patterns)), 6)
    -0.0
    """

    beta: float

    def __post_init__(self) -> None:
        _positive("beta", self.beta)

    def __call__(self, x: torch.Tensor, patterns: torch.Tensor) -> torch.Tensor:
        """Energies (...,) of states (..., N) among patterns (M, N)."""
        import torch

        distances = squared_distances(_as_batch(x), patterns)
        return (-torch.logsumexp(-self.beta / 2 * distances, -1) / self.beta).reshape(x.shape[:-1])

    def grad(self, x: torch.Tensor, patterns: torch.Tensor) -> torch.Tensor:
        """Gradients, of the shape of x."""
        import torch

        batch = _as_batch(x)
        weights = torch.softmax(-self.beta / 2 * squared_distances(batch, patterns), -1)
        return (batch - weights @ patterns).reshape(x.shape)


class LSREnergy:
    """Equation (2).

    Parameters
    ----------
    beta : inverse variance of the kernel; or
    b : N beta, on the sphere of radius sqrt(N). One of the two.
    eps : floor inside the logarithm; 0 is a hard wall

    Examples
    --------
    >>> import torch
    >>> patterns = torch.eye(3)
    >>> LSREnergy(beta=2.0)(torch.stack([patterns[0], -patterns[0]]), patterns)
    tensor([-0., inf])
    """

    def __init__(self, b: float | None = None, beta: float | None = None, eps: float = 0.0) -> None:
        if (b is None) == (beta is None):
            raise ValueError("give either b (on the sphere) or beta, not both")
        for name, value in (("b", b), ("beta", beta)):
            if value is not None:
                _positive(name, value)
        if eps < 0:
            raise ValueError(f"eps must be at least 0, got {eps}")
        self.b, self.beta, self.eps = b, beta, eps

    def _beta(self, N: int) -> float:
        return self.beta if self.beta is not None else (self.b or 0.0) / N

    def __call__(self, x: torch.Tensor, patterns: torch.Tensor) -> torch.Tensor:
        """Energies (...,) of states (..., N) among patterns (M, N); +inf outside every support."""
        beta = self._beta(x.shape[-1])
        ramp = (1 - beta / 2 * squared_distances(_as_batch(x), patterns)).clamp_min(0)
        return (-(self.eps + ramp.sum(-1)).log() / beta).reshape(x.shape[:-1])

    def grad(self, x: torch.Tensor, patterns: torch.Tensor) -> torch.Tensor:
        """Gradients, of the shape of x; 0 outside every support, where the energy is flat or infinite."""
        beta, batch = self._beta(x.shape[-1]), _as_batch(x)
        ramp = (1 - beta / 2 * squared_distances(batch, patterns)).clamp_min(0)
        inside = (ramp > 0).to(batch.dtype)
        total = self.eps + ramp.sum(-1, keepdim=True)
        pull = inside.sum(-1, keepdim=True) * batch - inside @ patterns
        return (pull / total.where(total > 0, total.new_ones(()))).reshape(x.shape)


def _as_batch(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, x.shape[-1])
