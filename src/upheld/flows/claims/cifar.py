"""CIFAR-10 with the user's own data and models, at the full scale only: the published settings against FlowChef.

``UPHELD_CIFAR`` names the folder of the data, as `upheld.flows.folders.cifar10` takes it, in which flow.pt, guide.pt and judge.pt lie too:
TorchScript files of a flow f(x, t) on the linear path and of two classifiers of other families, the judge trained on rows that the guide
never saw. Pictures are in [-1, 1].
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from upheld.claims import Measurement, NotRun, Scale, Trial
from upheld.flows.claims import race
from upheld.flows.folders import cifar10
from upheld.flows.rivals import FlowChef, Particles, Rival, at_cost
from upheld.flows.sampler import TargetedFlow
from upheld.flows.velocity import FlowField

FOLDER = "UPHELD_CIFAR"
MODELS = ("flow", "guide", "judge")
SHAPE, EACH, TUNE_EACH, TUNING_ROWS = (3, 32, 32), 10, 2, 1000
PUBLISHED: dict[str, Any] = {"preset": "paper", "n_steps": 800, "n_particles": 16}
TUNED_AT = 100  # steps of the flow while FlowChef's own step is chosen
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def folder() -> Path:
    """Where data and models lie.

    Raises
    ------
    NotRun
        If no folder is named, or something is not in it.
    """
    named = os.environ.get(FOLDER)
    if not named:
        raise NotRun(
            f"CIFAR-10 and a flow checkpoint of it are the user's own: name with {FOLDER} the folder that holds cifar-10-batches-py (or "
            "-bin), flow.pt, guide.pt and judge.pt; it is measured at the full scale"
        )
    missing = [f"{name}.pt" for name in MODELS if not (Path(named) / f"{name}.pt").is_file()]
    if missing:
        raise NotRun(f"{named}, which {FOLDER} names, has no {missing[0]}; put the TorchScript file there")
    return Path(named)


def measure_cifar(trial: Trial) -> Iterator[Measurement]:
    """TFTF as published against FlowChef at as many evaluations, its step chosen by distance to training rows; the judge unseen."""
    place = folder()
    if trial.scale != Scale.FULL:
        raise NotRun("CIFAR-10 takes hours; it is measured at the full scale")
    try:
        data = cifar10(place)
    except FileNotFoundError as error:
        raise NotRun(f"{error}, or name another with {FOLDER}") from error
    nets: dict[str, Any] = {name: _loaded(place / f"{name}.pt") for name in MODELS}
    flow, models = FlowField(nets["flow"], parametrization="velocity"), SimpleNamespace(guide=nets["guide"])
    x, labels = data.train
    step = _chosen_step(flow, models, (x[-TUNING_ROWS:], labels[-TUNING_ROWS:]))
    likelihood = race.all_classes(models, EACH)
    for name, method in _methods(flow, likelihood, step).items():
        drawn = method.sample(len(likelihood.wanted), SHAPE, trial.torch_generator(name))
        with torch.no_grad():
            shares = {of: float((nets[of](drawn).argmax(1) == likelihood.wanted).double().mean()) for of in MODELS[1:]}
        yield Measurement(name, "judge accuracy", shares["judge"])
        yield Measurement(name, "guide accuracy", shares["guide"])
        yield Measurement(name, "guide above judge", shares["guide"] - shares["judge"])
        yield Measurement(name, "energy distance", race.distance(drawn, likelihood.wanted, data.test))


def _loaded(path: Path) -> Any:
    module: Any = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module.eval()


def _methods(flow: FlowField, likelihood: race.PerGroup, step: float) -> dict[str, Rival]:
    ours = Particles(TargetedFlow(flow, likelihood, particles_per_chunk=race.WHOLE, **PUBLISHED))
    return {"TFTF": ours, "FlowChef": at_cost(FlowChef(flow, likelihood, step, PUBLISHED["n_steps"]), ours.cost)}


def _chosen_step(flow: FlowField, models: Any, rows: tuple[torch.Tensor, torch.Tensor]) -> float:
    """FlowChef's step whose samples, one start each, come nearest to training rows of their class."""
    likelihood = race.all_classes(models, TUNE_EACH)

    def far(step: float) -> float:
        method = FlowChef(flow, likelihood, step, TUNED_AT)
        x = method.sample(len(likelihood.wanted), SHAPE, torch.Generator().manual_seed(10_000))
        return race.distance(x, likelihood.wanted, rows)

    return min(STEPS, key=far)
