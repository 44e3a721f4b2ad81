"""What a run leaves: samples with weights, an evidence with its error, and how the particles fared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from upheld.flows.smc import log_mean_exp, normalised


def pooled_log_weights(log_z: Tensor, log_w: Tensor) -> Tensor:
    """Of particle i of group m, proportional to Z_m w_mi, normalised over all: from (M,) and (M, K) to (M K,)."""
    return (torch.log_softmax(log_z, 0)[:, None] + torch.log_softmax(log_w, 1)).flatten()


@dataclass
class FlowSamples:
    """Samples of the posterior.

    Parameters
    ----------
    samples : (n, \\*shape)
    log_weights : (n,), normalised over all n; equal in mode "nested"
    mode : "nested": one particle of every group, independent of each other. "pooled": every particle of every group
    particles : (groups, K, \\*shape), all end points
    particle_log_weights : (groups, K), float64, not normalised; what was not resampled away
    group_log_evidence : (groups,), log Z of every group
    ess_trace : (stages, groups): effective sample size after each weighing, before resampling; the last is at the end
    stage_times : (stages,), when
    resampled_at : (stages, groups), whether the group was resampled there
    ancestors : (groups, K): which particle at the window's start an end point descends from
    terminal_log_ratio : (groups, K): log of true likelihood over the last look-ahead
    evaluations : forward and backward passes of the velocity a particle
    """

    samples: Tensor
    log_weights: Tensor
    mode: str
    particles: Tensor
    particle_log_weights: Tensor
    group_log_evidence: Tensor
    ess_trace: Tensor
    stage_times: Tensor
    resampled_at: Tensor
    ancestors: Tensor
    terminal_log_ratio: Tensor
    evaluations: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.samples)

    @classmethod
    def joined(cls, parts: Sequence[FlowSamples]) -> FlowSamples:
        """Groups of one flow that ran apart, in the order given, as if they had run together."""
        first = parts[0]
        by_group = (
            "samples",
            "particles",
            "particle_log_weights",
            "group_log_evidence",
            "ancestors",
            "terminal_log_ratio",
        )
        found: dict[str, Tensor] = {name: torch.cat([getattr(part, name) for part in parts]) for name in by_group}
        for name in ("ess_trace", "resampled_at"):
            found[name] = torch.cat([getattr(part, name) for part in parts], 1)
        log_weights = pooled_log_weights(found["group_log_evidence"], found["particle_log_weights"])
        if first.mode == "nested":
            log_weights = torch.full((len(found["samples"]),), -math.log(len(found["samples"])), dtype=torch.float64)
        return cls(
            **found,
            log_weights=log_weights,
            mode=first.mode,
            stage_times=first.stage_times,
            evaluations=first.evaluations,
        )

    @property
    def log_evidence(self) -> float:
        """log of the mean of Z over groups: an unbiased estimate of Z for the discretised sampler, before the logarithm."""
        return float(log_mean_exp(self.group_log_evidence))

    @property
    def log_evidence_se(self) -> float:
        """Standard error of `log_evidence` by the delta method over groups; NaN for one group."""
        z = torch.exp(self.group_log_evidence - self.group_log_evidence.max())
        return float(z.std() / z.mean() / math.sqrt(len(z)))

    def expectation(self, fn: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """E[fn(x) | y] and its standard error over groups.

        Parameters
        ----------
        fn : from (B, \\*shape) to (B,) or (B, k)
        """
        if self.mode == "nested":
            values = fn(self.samples).double()
            return values.mean(0), values.std(0) / math.sqrt(len(values))
        groups, count = self.particle_log_weights.shape
        flat = fn(self.particles.flatten(0, 1)).double()
        values = flat.reshape(groups, count, *flat.shape[1:])
        inside = normalised(self.particle_log_weights)
        means = (inside.reshape(groups, count, *[1] * (values.dim() - 2)) * values).sum(1)
        share = torch.softmax(self.group_log_evidence, 0).reshape(groups, *[1] * (means.dim() - 1))
        mean = (share * means).sum(0)
        return mean, ((share * (means - mean)).square().sum(0)).sqrt() * math.sqrt(groups / max(groups - 1, 1))

    def to_dataset(self) -> TensorDataset:
        """(sample, weight) pairs; the weights sum to 1."""
        return TensorDataset(self.samples, self.log_weights.exp())
