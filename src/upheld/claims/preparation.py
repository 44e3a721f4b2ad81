"""Expensive shared work that trials stand on, done once and cached by content: a trained model, a generated corpus.

A preparation writes files into a folder. Its result is found again by the hash of its name, its parameters and the sources of
the method it belongs to, so that a changed training loop trains anew and an unchanged one never does::

    FLOW = Preparation("flows.digits", train_digits_flow, timeout_s=600)

    RACE = Experiment("flows.race", race, ..., prepare=lambda trial: [FLOW(seed=trial.seed)])

    def race(trial):
        model = load(FLOW(seed=trial.seed).folder())
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.claims.fingerprint import fingerprint
from upheld.claims.trial import NotRun, Scalar, Trial, canonical
from upheld.storage import built_once, cache_folder

if TYPE_CHECKING:
    from upheld.claims.experiment import Experiment


@dataclass(frozen=True)
class Preparation:
    """How a folder of files comes to be.

    Parameters
    ----------
    name : ``"flows.digits"``: the method's package, then what is prepared
    build : called as ``build(folder, **parameters)``; writes its files there. A module-level function.
    timeout_s : seconds one build may take
    """

    name: str
    build: Callable[..., None]
    timeout_s: float

    def __call__(self, **parameters: Scalar) -> Recipe:
        return Recipe(self, canonical(parameters), parameters)


@dataclass(frozen=True)
class Recipe:
    """A preparation with its parameters; equal recipes are the same folder."""

    preparation: Preparation
    key: str
    parameters: Mapping[str, Scalar]

    def __hash__(self) -> int:
        return hash((self.preparation.name, self.key))

    def __str__(self) -> str:
        return f"{self.preparation.name}({', '.join(f'{key}={value}' for key, value in self.parameters.items())})"

    @property
    def path(self) -> Path:
        """Where the files are, or will be."""
        name = self.preparation.name
        digest = hashlib.sha256(f"{name}\n{self.key}\n{fingerprint(name.split('.')[0])}".encode()).hexdigest()[:20]
        return cache_folder() / name / digest

    @property
    def ready(self) -> bool:
        return self.path.is_dir()

    def folder(self) -> Path:
        """The prepared files; builds them first when they are not there."""
        return built_once(self.path, lambda folder: self.preparation.build(folder, **self.parameters))


def lacking(trials: Iterable[tuple[Experiment, Trial]]) -> list[Recipe]:
    """What trials stand on that is not there yet, each once. A trial that cannot say what it needs is told of when it is its turn."""
    recipes: dict[Recipe, None] = {}
    for experiment, trial in trials:
        with suppress(Exception):  # code of the experiment, whose error is that trial's failure
            recipes |= dict.fromkeys(experiment.prepare(trial))
    return [recipe for recipe in recipes if not recipe.ready]


def prepare(recipe: Recipe) -> str:
    """Build a recipe in a worker; returns why it cannot be built on this machine, or nothing when it is there."""
    try:
        recipe.folder()
    except NotRun as reason:
        return str(reason) or "cannot be prepared here"
    return ""
