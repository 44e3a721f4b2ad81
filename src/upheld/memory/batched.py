"""Metropolis steps of all trials at once, in torch: the energy of a batch is one product of matrices.

For GPUs, where trials fill the device; on a CPU the compiled chains of `upheld.memory.montecarlo` are faster.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from upheld.memory.data import draw_patterns, near, on_sphere
from upheld.memory.energies import log_kernel_sum

if TYPE_CHECKING:
    import torch

    from upheld.memory.montecarlo import SphereSampler, Trace


def run_batched(sampler: SphereSampler) -> Trace:
    """`SphereSampler.run` on a device of torch: patterns (trials, M, N) float32, energies float64."""
    import torch

    seeds = np.random.SeedSequence(sampler.random_state)
    rng = np.random.default_rng(seeds)
    draws = [
        draw_patterns(sampler.M, sampler.N, rng=rng, law=sampler.law, rho=sampler.rho) for _ in range(sampler.trials)
    ]
    patterns = torch.from_numpy(np.stack(draws)).to(sampler.device)
    generator = torch.Generator(sampler.device).manual_seed(int(seeds.generate_state(1)[0]))
    targets = on_sphere(np.stack([one[0] for one in draws]))
    temperatures = np.atleast_1d(np.asarray(sampler.T, dtype=float))
    x, parts = None, []
    for T in temperatures:
        if x is None or sampler.protocol == "restart":
            start = near(targets, sampler.first_alignment(rng, sampler.trials), rng=rng)
            x = torch.from_numpy(start).to(patterns)
        x, part = _at_temperature(sampler, float(T), x, patterns, generator)
        parts.append(part)
    shape = (len(temperatures), sampler.trials)
    return sampler.trace(
        target=np.stack([part["target"] for part in parts]),
        other=np.stack([part["other"] for part in parts]),
        energy=np.stack([part["energy"] for part in parts]),
        q12=np.full((*shape, sampler.sweeps), np.nan, dtype=np.float32),
        acceptance=np.stack([part["acceptance"] for part in parts]),
        left_support=np.stack([part["left"] for part in parts]),
        M=np.full(sampler.trials, sampler.M),
    )


def _at_temperature(
    sampler: SphereSampler, T: float, x: torch.Tensor, patterns: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, dict[str, Any]]:
    import torch

    N, sigma = sampler.N, sampler.sigma(T)
    strength = sampler.beta_net if sampler.kernel == "lse" else sampler.b
    scale = 1 / strength if sampler.kernel == "lse" else N / strength
    rows: dict[str, list[torch.Tensor]] = {"target": [], "other": [], "energy": []}
    accepted = torch.zeros(sampler.trials, dtype=torch.float64, device=x.device)
    left = torch.full((sampler.trials,), -1, dtype=torch.int64, device=x.device)

    def overlaps(state: torch.Tensor) -> torch.Tensor:
        return torch.einsum("tmn,tn->tm", patterns, state) / N

    phi = overlaps(x)
    L = log_kernel_sum(phi.double(), sampler.kernel, strength, N)
    for t in range(sampler.burn_in + sampler.sweeps):
        moved = x + sigma * torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        moved = moved * (math.sqrt(N) / moved.norm(dim=-1, keepdim=True))
        proposed_phi = overlaps(moved)
        proposed = log_kernel_sum(proposed_phi.double(), sampler.kernel, strength, N)
        coin = torch.rand(sampler.trials, generator=generator, device=x.device, dtype=torch.float64)
        take = torch.log(coin) < (proposed - L) * scale / T
        x = torch.where(take[:, None], moved, x)
        phi = torch.where(take[:, None], proposed_phi, phi)
        L = torch.where(take, proposed, L)
        left = torch.where((left < 0) & (phi[:, 0] <= sampler.wall), t, left)
        if t >= sampler.burn_in:
            accepted += take
            rows["target"].append(phi[:, 0])
            rows["other"].append(phi[:, 1:].amax(-1) if sampler.M > 1 else torch.full_like(phi[:, 0], -1.0))
            rows["energy"].append(-scale * L)
    found: dict[str, Any] = {name: torch.stack(one, -1).cpu().numpy() for name, one in rows.items()}
    return x, found | {"acceptance": (accepted / sampler.sweeps).cpu().numpy(), "left": left.cpu().numpy()}
