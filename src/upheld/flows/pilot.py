"""What a pilot finds before a run: where the noisy window should begin, and how fast the condition should be let in.

The pilot has groups and seeds of its own. What it finds is fixed before the run begins, so that the run's evidence stays unbiased
whatever the pilot found; only the variance depends on it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from upheld.flows.lookahead import TemperedLookAhead
from upheld.flows.sampler import PRESETS, Run, TargetedFlow, Window
from upheld.flows.smc import effective_sample_size, normalised, resampler
from upheld.flows.streams import GroupStreams

PILOT_PARTICLES = 128
HALF = 0.5
HALVINGS = 30
LEAST_BETA = 1e-6
EARLIEST = 1 / 16  # nearer to the noise, steps of the memoryless schedule are too long: eta^2 grows as 2/t


def adaptive_window(flow: TargetedFlow, shape: tuple[int, ...], seed: int = 0) -> Window:
    """From the first time, not before 1/16, at which the predicted effective sample size of a pilot group falls below one half, to the
    preset's end.

    The pilot follows the plain flow and asks at every time of the grid what the look-ahead would make of it.

    Parameters
    ----------
    shape : of one example
    seed : of the pilot

    Returns
    -------
    (t_a, t_b); the preset's window where the effective sample size never falls so low: then any will do
    """
    preset: tuple[float, float] = PRESETS[flow.preset]["window"]
    run, streams = _pilot(replace(flow, window="auto"), shape, seed)
    end = run.window[1]
    with torch.no_grad():
        x = streams.start()
        for k in range(1, end):
            x = run.flow_between(x, None, k - 1, k, lambda progress: None)
            if float(run.times[k]) < EARLIEST:
                continue
            log_g = run.look_ahead(x, k, streams)[1]
            if float(effective_sample_size(log_g)) < HALF * PILOT_PARTICLES:
                return float(run.times[k]), float(run.times[end])
    return preset


def temperature_ladder(flow: TargetedFlow, shape: tuple[int, ...], seed: int = 0) -> TemperedLookAhead:
    """g^beta with the ladder of beta that keeps the effective sample size of an unguided pilot at one half (or higher, at beta = 1).

    At every time of the window beta rises as far as it may: the largest in [the last one, 1] under which the weights
    w g(x)^beta still have an effective sample size of at least one half, or not at all. A pilot whose weights are that uneven already is
    resampled.

    Parameters
    ----------
    shape : of one example
    seed : of the pilot

    Raises
    ------
    ValueError
        If the flow has no window.
    """
    run, streams = _pilot(flow, shape, seed)
    first, last = run.window
    if not first < last:
        raise ValueError("a ladder rises inside the window, and this flow has none; give window=(t_a, t_b)")
    beta, betas = LEAST_BETA, []
    with torch.no_grad():
        x = run.flow_between(streams.start(), None, 0, first, lambda progress: None)
        cloud, past = run.begin(x, first, streams), torch.zeros(1, PILOT_PARTICLES, dtype=torch.float64)
        for k in range(first, last + 1):
            beta = _highest(past, cloud.log_g, beta)
            betas.append(beta)
            log_w = past + beta * cloud.log_g
            if float(effective_sample_size(log_w)) <= (HALF + 0.01) * PILOT_PARTICLES:
                kept = resampler("systematic")(normalised(log_w), streams.uniform())
                cloud, past = cloud.take(kept), torch.zeros_like(past)
                past = past - beta * cloud.log_g
            if k < last:
                cloud = run.step(cloud, k, streams)
    return TemperedLookAhead(run.look, [float(t) for t in run.times[first : last + 1]], betas)


def _pilot(flow: TargetedFlow, shape: tuple[int, ...], seed: int) -> tuple[Run, GroupStreams]:
    """One unguided group of many particles."""
    run = replace(flow, n_particles=PILOT_PARTICLES, guidance=0.0, resampling="systematic").planned(shape)
    return run, GroupStreams([2**61 + seed], PILOT_PARTICLES, shape, run.flow.device)


def _highest(past: Tensor, log_g: Tensor, beta: float) -> float:
    """The largest exponent from `beta` to 1 that leaves half of the particles, by bisection; `beta` if none does."""

    def leaves_half(exponent: float) -> bool:
        return float(effective_sample_size(past + exponent * log_g)) >= HALF * log_g.shape[1]

    if leaves_half(1.0):
        return 1.0
    low, high = beta, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if leaves_half(middle) else (low, middle)
    return low
