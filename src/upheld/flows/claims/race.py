"""The race on digits: every conditional sampler at the same number of network evaluations, tuned without the judge.

Each method is built from a likelihood, the setting that its tuning chose, and the budget. Settings are chosen on rows and seeds of
their own by the race's first metric; TFTF runs as it comes, with its default settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from upheld.claims import Preparation
from upheld.flows.claims.models import CLASSES, digit_models
from upheld.flows.data import digits
from upheld.flows.metrics import energy_distance
from upheld.flows.rivals import DFlow, FeynmanKac, FlowChef, Particles, Posterior, Rival, at_cost, tds
from upheld.flows.sampler import TargetedFlow

STEPS, PARTICLES = 64, 16
WHOLE = 2**20
Setting = dict[str, Any]
Build = Callable[[Any, Any, Setting], Any]


@dataclass
class PerGroup:
    """A likelihood with a wanted outcome for every sample, so that all classes run in one batch.

    Parameters
    ----------
    log_probs : from (B, \\*shape) to (B, outcomes), logarithms of probabilities
    wanted : (n,): the outcome of every sample; B is n times the particles (or starts) of one, in this order
    """

    log_probs: Callable[[Tensor], Tensor]
    wanted: Tensor
    differentiable: bool = True

    def log_prob(self, x: Tensor) -> Tensor:
        wanted = self.wanted.repeat_interleave(len(x) // len(self.wanted))
        return self.log_probs(x).gather(1, wanted[:, None])[:, 0]


def tftf(velocity: Any, likelihood: Any, **options: Any) -> Particles:
    """The method as it comes, at the race's number of steps."""
    return Particles(
        TargetedFlow(
            velocity, likelihood, n_steps=STEPS, n_particles=PARTICLES, **{"particles_per_chunk": WHOLE, **options}
        )
    )  # fmt: skip


def _window(end: str) -> tuple[float, float]:
    return (int(end) / 16, 14 / 16)


METHODS: dict[str, Build] = {
    "TFTF": lambda v, of, s: tftf(v, of),
    "importance sampling": lambda v, of, s: tftf(v, of, window=None),
    "bootstrap": lambda v, of, s: tftf(v, of, guidance=0.0, window=_window(s["window"]), ess_threshold=s["tau"]),
    "TDS": lambda v, of, s: _whole(tds(v, of, STEPS, PARTICLES, s["guidance"])),
    "FK steering": lambda v, of, s: FeynmanKac(v, of, STEPS, PARTICLES, s["strength"], s["potential"]),
    "DPS": lambda v, of, s: Posterior(v, of, s["step"], STEPS),
    "FlowChef": lambda v, of, s: FlowChef(v, of, s["step"], STEPS),
    "D-Flow": lambda v, of, s: DFlow(v, of, regulariser=s["regulariser"]),
}
RIVALS = tuple(name for name in METHODS if name != "TFTF")
STARTS = ({"restarts": "one"}, {"restarts": "budget"})
GRIDS: dict[str, list[Setting]] = {
    "TFTF": [{}],
    "importance sampling": [{}],
    "bootstrap": [{"window": window, "tau": tau} for window in ("3", "7") for tau in (0.5, 0.9)],
    "TDS": [{"guidance": guidance} for guidance in (0.5, 1.0, 2.0, 3.0)],
    "FK steering": [{"strength": strength, "potential": "difference"} for strength in (1.0, 2.0, 5.0)]
    + [{"strength": 1.0, "potential": "max"}],
    "DPS": [{"step": step, **starts} for step in (0.005, 0.02) for starts in STARTS],
    "FlowChef": [{"step": step, **starts} for step in (0.005, 0.01) for starts in STARTS],
    "D-Flow": [{"regulariser": weight, **starts} for weight in (0.1, 1.0) for starts in STARTS],
}
WIDER: dict[str, list[Setting]] = {
    "bootstrap": [{"window": window, "tau": tau} for window in ("5", "9") for tau in (0.5, 0.9)],
    "TDS": [{"guidance": guidance} for guidance in (0.25, 0.75, 1.5, 4.0)],
    "FK steering": [{"strength": 10.0, "potential": "difference"}]
    + [{"strength": strength, "potential": "max"} for strength in (2.0, 5.0, 10.0)],
    "DPS": [{"step": step, **starts} for step in (0.001, 0.05) for starts in STARTS],
    "FlowChef": [{"step": step, **starts} for step in (0.0025, 0.02) for starts in STARTS],
    "D-Flow": [{"regulariser": weight, **starts} for weight in (0.0, 10.0) for starts in STARTS],
}
"""Four further settings a method; the first four of both are tried at the quick scale, all from the standard scale on."""


def built(name: str, velocity: Any, likelihood: Any, setting: Setting, budget: int) -> Rival:
    """A method with its setting, at the budget; one start only where its tuning prefers that."""
    method: Rival = METHODS[name](velocity, likelihood, setting)
    if name != "TFTF" and setting.get("restarts") != "one":
        method = at_cost(method, budget)
    return method


def budget(velocity: Any, likelihood: Any) -> int:
    """Evaluations an output sample that TFTF takes."""
    return tftf(velocity, likelihood).cost


def all_classes(models: Any, each: int) -> PerGroup:
    """The guide's likelihood for `each` samples of every class."""
    wanted = torch.arange(CLASSES).repeat_interleave(each)
    return PerGroup(lambda x: torch.log_softmax(models.guide(x), 1), wanted)


def distance(x: Tensor, wanted: Tensor, held_out: tuple[Tensor, Tensor]) -> float:
    """Energy distance to held-out digits of the class, mean over classes."""
    real, labels = held_out
    each = [energy_distance(x[wanted == c], real[labels == c]) for c in range(CLASSES)]
    return sum(each) / CLASSES


def tune(folder: Path, model_steps: int, each: int, runs: int, settings: int) -> None:
    """The setting of every method that comes nearest to the tuning rows, by the mean of some runs."""
    torch.set_num_threads(1)
    found = chosen(digit_models(model_steps), (64,), each, runs, settings, digits().tuning)
    (folder / "settings.json").write_text(json.dumps(found, indent=2))


def chosen(
    models: Any, shape: tuple[int, ...], each: int, runs: int, settings: int, rows: tuple[Tensor, Tensor]
) -> dict[str, Setting]:
    """The first so many settings of every method's grid, and of them the one whose samples come nearest to the rows."""
    likelihood = all_classes(models, each)
    allowed, best = budget(models.flow, likelihood), {}

    def far(name: str, setting: Setting) -> float:
        """Mean distance over runs; the same noise for every setting."""
        method, total = built(name, models.flow, likelihood, setting, allowed), 0.0
        for run in range(runs):
            x = method.sample(len(likelihood.wanted), shape, torch.Generator().manual_seed(10_000 + run))
            total += distance(x, likelihood.wanted, rows)
        return total

    for name, grid in GRIDS.items():
        tried = (grid + WIDER.get(name, []))[:settings]
        best[name] = tried[0] if len(tried) == 1 else min(tried, key=partial(far, name))
    return best


TUNING = Preparation("flows.tuning", tune, timeout_s=600)


def settings(**parameters: Any) -> dict[str, Setting]:
    """What tuning chose, from the cache or found now."""
    found: dict[str, Setting] = json.loads((TUNING(**parameters).folder() / "settings.json").read_text())
    return found


def _whole(method: Particles) -> Particles:
    method.flow.particles_per_chunk = WHOLE
    return method
