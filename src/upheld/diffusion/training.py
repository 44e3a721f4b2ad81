"""One training loop: a loss, an optimiser with a schedule, a moving average of the weights, and going on after an interruption.

The loop owns the random numbers: a generator is handed to the loss at every step and its state is part of the checkpoint, so that
a run that was stopped and resumed ends with the same weights, bit for bit, as one that was not.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from upheld.storage import whole_file

Loss = Callable[[nn.Module, torch.Generator], Tensor]


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast.

    Parameters
    ----------
    steps : gradient steps
    learning_rate : at its highest; it rises linearly over the first `warm_up` share of steps and falls as a cosine to 0
    weight_decay : of AdamW
    clip : largest norm of the gradient, infinity for none
    ema : decay of the moving average, reached as min(ema, (1 + i)/(10 + i)) at step i
    """

    steps: int
    learning_rate: float = 2e-3
    warm_up: float = 0.0
    weight_decay: float = 0.0
    clip: float = 1.0
    ema: float = 0.999

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.learning_rate > 0 or not self.clip > 0:
            raise ValueError(
                f"steps ({self.steps}), learning_rate ({self.learning_rate}) and clip ({self.clip}) must be above 0"
            )
        if not 0 <= self.ema < 1 or not 0 <= self.warm_up < 1:
            raise ValueError(f"ema ({self.ema}) and warm_up ({self.warm_up}) must lie in [0, 1)")

    def rate(self, step: int) -> float:
        """Learning rate of a step."""
        rising = self.warm_up * self.steps
        if step < rising:
            return self.learning_rate * (step + 1) / rising
        return self.learning_rate * (1 + math.cos(math.pi * (step - rising) / (self.steps - rising))) / 2


@dataclass
class Trained:
    """What training leaves: the network as it stands, the averaged one to use, the loss of every step."""

    network: nn.Module
    averaged: nn.Module
    losses: list[float] = field(default_factory=list)


def train(
    network: nn.Module, loss: Loss, plan: TrainingPlan, *, seed: int, checkpoint: Path | None = None, every: int = 500,
    told: Callable[[int, float], None] | None = None, stop_after: int | None = None,
) -> Trained:  # fmt: skip
    """Fit `network` in place by AdamW.

    Parameters
    ----------
    loss : called as ``loss(network, generator)``, draws its own batch; a scalar
    seed : of everything the loss draws
    checkpoint : a file; where it is there, training goes on from it, and it is renewed every `every` steps and at the end
    told : called with the step and its loss
    stop_after : leave after so many steps of this call, with a checkpoint written: for jobs with a time limit

    Raises
    ------
    FloatingPointError
        If the loss is not finite.
    ValueError
        If the checkpoint is of another plan or seed.

    Examples
    --------
    >>> net = nn.Linear(1, 1)
    >>> def loss(net, generator):
    ...     x = torch.randn(32, 1, generator=generator)
    ...     return ((net(x) - 2 * x) ** 2).mean()
    >>> found = train(net, loss, TrainingPlan(steps=300, learning_rate=0.1), seed=0)
    >>> round(found.averaged.weight.item(), 1)
    2.0
    """
    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
    generator = torch.Generator().manual_seed(seed)
    result = Trained(network, copy.deepcopy(network).requires_grad_(False))
    if checkpoint is not None and checkpoint.exists():
        _resume(checkpoint, result, optimiser, generator, plan, seed)
    network.train()
    last = plan.steps if stop_after is None else min(plan.steps, len(result.losses) + stop_after)
    for step in range(len(result.losses), last):
        for group in optimiser.param_groups:
            group["lr"] = plan.rate(step)
        optimiser.zero_grad(set_to_none=True)
        value = loss(network, generator)
        result.losses.append(float(value.detach()))
        if not math.isfinite(result.losses[-1]):
            raise FloatingPointError(
                f"the loss is {result.losses[-1]} at step {step}; lower learning_rate ({plan.learning_rate:g}) or check the data"
            )
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), plan.clip)
        optimiser.step()
        _average(result, min(plan.ema, (1 + step) / (10 + step)))
        if told is not None:
            told(step, result.losses[-1])
        if checkpoint is not None and ((step + 1) % every == 0 or step + 1 == last):
            _save(checkpoint, result, optimiser, generator, plan, seed)
    network.eval()
    result.averaged.eval()
    return result


def _average(result: Trained, decay: float) -> None:
    with torch.no_grad():
        for mean, now in zip(result.averaged.parameters(), result.network.parameters(), strict=True):
            mean.lerp_(now, 1 - decay)
        for kept, new in zip(result.averaged.buffers(), result.network.buffers(), strict=True):
            kept.copy_(new)


def _save(
    path: Path, result: Trained, optimiser: torch.optim.Optimizer, generator: torch.Generator, plan: TrainingPlan, seed: int
) -> None:  # fmt: skip
    state = {
        "plan": asdict(plan), "seed": seed, "network": result.network.state_dict(), "averaged": result.averaged.state_dict(),
        "optimiser": optimiser.state_dict(), "generator": generator.get_state(), "losses": result.losses,
    }  # fmt: skip
    with whole_file(path, "wb") as file:
        torch.save(state, file)


def _resume(
    path: Path, result: Trained, optimiser: torch.optim.Optimizer, generator: torch.Generator, plan: TrainingPlan, seed: int
) -> None:  # fmt: skip
    state: dict[str, Any] = torch.load(path, weights_only=True)
    if state["plan"] != asdict(plan) or state["seed"] != seed:
        raise ValueError(
            f"{path} is a checkpoint of {state['plan']} and seed {state['seed']}, not of {asdict(plan)} and seed {seed}; name another file"
        )
    result.network.load_state_dict(state["network"])
    result.averaged.load_state_dict(state["averaged"])
    optimiser.load_state_dict(state["optimiser"])
    generator.set_state(state["generator"])
    result.losses[:] = state["losses"]
