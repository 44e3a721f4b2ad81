"""Gaussian mixtures: data whose flow, score, posterior and evidence are known, to test everything else against.

With data sum_j pi_j N(mu_j, S) the marginals of a path are mixtures too, N(alpha mu_j, alpha^2 S + sigma^2 I), and::

    x1_hat = sum_j rho_j(x) [mu_j + alpha S (alpha^2 S + sigma^2 I)^-1 (x - alpha mu_j)]           (1)

with responsibilities rho. Given y = A x + N(0, R) the posterior is again a mixture, with weights pi_j N(y; A mu_j, A S A' + R).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from upheld.diffusion.paths import AffinePath, affine_path
from upheld.flows.likelihoods import LinearGaussian


@dataclass
class GaussianMixtureFlow:
    """The exact velocity of a mixture, as a field ``flow(x, t)``.

    Parameters
    ----------
    means : (components, d)
    cov : variance of every coordinate, or a covariance (d, d), the same for all components
    weights : (components,), equal if None
    path : of which it is the velocity
    shape : of one example, (d,) if None

    Examples
    --------
    >>> flow = GaussianMixtureFlow(torch.zeros(1, 2), 1.0)               # standard normal data: v = (2t - 1)/(...) x
    >>> flow(torch.ones(1, 2), torch.tensor(0.5))                         # 0 half-way, by symmetry
    tensor([[0., 0.]])
    """

    means: Tensor
    cov: float | Tensor
    weights: Tensor | None = None
    path: str | AffinePath = "linear"
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.means = torch.as_tensor(self.means)
        self._basis: Tensor | None
        if self.means.dim() != 2:
            raise ValueError(f"means have shape {tuple(self.means.shape)}; give (components, d)")
        count, self.d = self.means.shape
        weights = torch.full((count,), 1 / count) if self.weights is None else torch.as_tensor(self.weights)
        if weights.shape != (count,) or (weights < 0).any() or not weights.sum() > 0:
            raise ValueError(
                f"weights {weights.tolist()} are none of {count} components; give that many, none negative"
            )
        self.weights_ = (weights / weights.sum()).to(self.means.dtype)
        self.path_ = affine_path(self.path)
        if isinstance(self.cov, Tensor) and self.cov.dim() == 2:
            values, self._basis = torch.linalg.eigh(self.cov.to(self.means.dtype))
            self._spectrum = values.clamp(min=0)
        else:
            self._basis = None
            self._spectrum = torch.as_tensor(self.cov, dtype=self.means.dtype).expand(1)
        self._rotated = self.means if self._basis is None else self.means @ self._basis

    @property
    def covariance(self) -> Tensor:
        """(d, d), of each component."""
        if self._basis is None:
            round_: Tensor = self._spectrum * torch.eye(self.d, dtype=self.means.dtype)
            return round_
        full: Tensor = (self._basis * self._spectrum) @ self._basis.T
        return full

    @property
    def mean(self) -> Tensor:
        mean: Tensor = self.weights_ @ self.means
        return mean

    @property
    def mean_variance(self) -> float:
        """Average variance of a coordinate of the data."""
        between = self.weights_ @ (self.means - self.mean).square()
        return float(between.mean() + self._spectrum.mean())

    def endpoint(self, x: Tensor, t: Tensor | float) -> Tensor:
        """E[x_1 | x_t = x], equation (1)."""
        flat = x.flatten(1)
        z = flat if self._basis is None else flat @ self._basis.to(x.dtype)
        time = torch.as_tensor(t, dtype=x.dtype)
        alpha, sigma = self.path_.alpha(time), self.path_.sigma(time)
        if alpha.dim():
            alpha, sigma = alpha[:, None], sigma[:, None]
        spectrum, means = self._spectrum.to(x.dtype), self._rotated.to(x.dtype)
        variance = alpha**2 * spectrum + sigma**2
        # the squared distances are multiplied out: at 3,072 dimensions differences of all pairs would not fit
        inverse = (1 / variance).reshape(-1, variance.shape[-1])
        inverse = inverse.expand(len(inverse), self.d)
        log_rho = alpha * (z * inverse) @ means.T - alpha**2 * (means.square() @ inverse.T).T / 2
        rho = torch.softmax(log_rho + self.weights_.to(x.dtype).log(), 1)
        centre = rho @ means
        found = centre + alpha * spectrum / variance * (z - alpha * centre)
        ends: Tensor = (found if self._basis is None else found @ self._basis.T.to(x.dtype)).reshape(x.shape)
        return ends

    def __call__(self, x: Tensor, t: Tensor | float) -> Tensor:
        return self.path_.velocity_from_endpoint(x, self.endpoint(x, t), t)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n exact draws of the data, (n, \\*shape)."""
        which = torch.multinomial(self.weights_, n, replacement=True, generator=generator)
        noise = torch.randn(n, self.d, generator=generator, dtype=self.means.dtype) * self._spectrum.sqrt()
        drawn = self.means[which] + (noise if self._basis is None else noise @ self._basis.T)
        draws: Tensor = drawn.reshape(n, *(self.shape or (self.d,)))
        return draws

    def posterior(self, likelihood: LinearGaussian) -> tuple[GaussianMixtureFlow, float]:
        """The mixture given the measurement, and log p(y)."""
        A, y, R = (part.to(self.means.dtype) for part in (likelihood.matrix(self.d), likelihood.y, likelihood.noise()))
        S = self.covariance
        total = A @ S @ A.T + torch.diag(R)
        root = torch.linalg.cholesky(total)
        gap = y - self.means @ A.T
        white = torch.linalg.solve_triangular(root, gap.T, upper=False)
        log_each = -white.square().sum(0) / 2 - root.diagonal().log().sum() - len(y) / 2 * math.log(2 * math.pi)
        joint = self.weights_.log() + log_each
        gain = torch.cholesky_solve(A @ S, root).T
        cov = S - gain @ A @ S
        found = GaussianMixtureFlow(
            self.means + gap @ gain.T, (cov + cov.T) / 2, torch.softmax(joint, 0), self.path, self.shape
        )
        return found, float(torch.logsumexp(joint, 0))


@dataclass
class MixtureProblem:
    """A mixture, a linear measurement of one of its points, and what is to be found."""

    flow: GaussianMixtureFlow
    likelihood: LinearGaussian
    posterior: GaussianMixtureFlow
    log_evidence: float


def mixture_benchmark(
    d: int, generator: torch.Generator, *, spread: float = 2.0, R: float = 0.04, m: int | None = None
) -> MixtureProblem:
    """Eight equal components with means spread N(0, I) and covariance I/4; m = max(1, d/8) rows of a random orthogonal matrix are
    measured with noise variance R at one point of the prior. A new problem at every call."""
    rows = max(1, d // 8) if m is None else m
    if not 1 <= rows <= d:
        raise ValueError(f"{rows} measurements of {d} coordinates; take 1 to {d}")

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    flow = GaussianMixtureFlow(spread * normal(8, d), 0.25)
    basis, triangle = torch.linalg.qr(normal(d, d))
    A = (basis * triangle.diagonal().sign()).T[:rows]
    truth = flow.sample(1, generator)
    y = (A @ truth[0]) + math.sqrt(R) * normal(rows)
    likelihood = LinearGaussian(A, y, math.sqrt(R))
    posterior, evidence = flow.posterior(likelihood)
    return MixtureProblem(flow, likelihood, posterior, evidence)
