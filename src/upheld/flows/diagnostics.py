"""Whether a run may be believed: collapse, heavy tails, groups that disagree, and steps that are too long."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from upheld.flows.samples import FlowSamples

HEAVY = 0.7
FEWEST_IN_TAIL = 5


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    Parameters
    ----------
    smallest_ess : smallest effective sample size of any stage over K, mean over groups
    final_ess : the same at the end
    resamplings : mean over groups
    unique_ancestors : share of a group's particles at the window's start that still have descendants
    unique_end_points : share of a group's end points that differ
    pareto_k : shape of the upper tail of the terminal weight ratios; NaN where fewer than 5 ratios make up the tail
    halves_apart : difference of log evidence between two halves of the groups, in its standard errors; NaN below 8 groups
    evidence_error : standard error of the log evidence
    discretisation : difference of log evidence to a run of twice the steps, in its standard errors; NaN without one
    warnings : plain sentences; empty when nothing is wrong
    """

    smallest_ess: float
    final_ess: float
    resamplings: float
    unique_ancestors: float
    unique_end_points: float
    pareto_k: float
    halves_apart: float
    evidence_error: float
    discretisation: float
    warnings: list[str] = field(default_factory=list)


def diagnose(samples: FlowSamples, finer: FlowSamples | None = None) -> Diagnosis:
    """Look at a run, and at one of twice the steps (``flow.refined().sample(...)``) if there is one.

    The tail is judged as in Pareto-smoothed importance sampling (Vehtari et al. 2024): above k = 0.7 a mean of the ratios is
    ruled by the few largest, and the runs that have not met them yet look better than they are.
    """
    groups, count = samples.particle_log_weights.shape
    ess = samples.ess_trace.mean(1) / count
    found = Diagnosis(
        float(ess.min()),
        float(ess[-1]),
        float(samples.resampled_at.double().sum(0).mean()),
        sum(len(one.unique()) for one in samples.ancestors) / (groups * count),
        sum(len(one.flatten(1).unique(dim=0)) for one in samples.particles) / (groups * count),
        pareto_shape(samples.terminal_log_ratio.flatten()),
        _apart(samples.group_log_evidence[::2], samples.group_log_evidence[1::2]) if groups >= 8 else math.nan,
        samples.log_evidence_se,
        math.nan if finer is None else _apart(samples.group_log_evidence, finer.group_log_evidence),
    )
    found.warnings.extend(_warnings(found, count))
    return found


def _warnings(found: Diagnosis, count: int) -> list[str]:
    checks = [
        (
            found.pareto_k > HEAVY,
            f"the terminal weights have a heavy tail (Pareto k = {found.pareto_k:.2f} > {HEAVY}): the look-ahead is over-confident or the "
            "guidance too strong; take a calibrated look-ahead, less guidance, or more particles",
        ),
        (
            abs(found.halves_apart) > 3,
            f"two halves of the groups disagree about the evidence by {found.halves_apart:.1f} standard errors; take more particles",
        ),
        (
            found.smallest_ess * count < 2 < count,
            f"at its worst stage only {found.smallest_ess * count:.1f} of {count} particles count: take more particles, a calibrated "
            "look-ahead, or a stronger guidance",
        ),
        (
            found.unique_end_points < 0.3 and count > 3,
            f"only {found.unique_end_points:.0%} of the end points differ; take noise > 0 or an extra_window",
        ),
        (
            abs(found.discretisation) > 3,
            f"twice the steps move the log evidence by {found.discretisation:.1f} standard errors; take more steps",
        ),
    ]
    return [sentence for applies, sentence in checks if applies]


def pareto_shape(log_ratios: Tensor) -> float:
    """Shape k of a generalised Pareto law fitted to the largest min(n/5, 3 sqrt n) ratios above the one before them."""
    from scipy.stats import genpareto

    ratios = log_ratios[torch.isfinite(log_ratios)].double().sort().values
    size = int(min(len(ratios) / 5, 3 * math.sqrt(len(ratios))))
    if size < FEWEST_IN_TAIL:
        return math.nan
    tail = torch.exp(ratios[-size:] - ratios[-1]) - torch.exp(ratios[-size - 1] - ratios[-1])
    if float(tail.max()) <= 1e-12:
        return -math.inf  # all ratios are the same: no tail
    shape, _, _ = genpareto.fit((tail / tail.max()).clamp(min=1e-300).numpy(), floc=0)
    return float(shape)


def _apart(first: Tensor, second: Tensor) -> float:
    """Difference of two log evidences over its standard error."""
    top = max(float(first.max()), float(second.max()))
    means, errors = [], []
    for one in (first, second):
        z = torch.exp(one - top)
        means.append(float(z.mean()))
        errors.append(float(z.std()) / max(float(z.mean()), 1e-300) / math.sqrt(len(z)))
    gap = math.log(max(means[0], 1e-300)) - math.log(max(means[1], 1e-300))
    error = math.hypot(*errors)
    return gap / error if error > 0 else 0.0 if gap == 0 else math.copysign(math.inf, gap)
