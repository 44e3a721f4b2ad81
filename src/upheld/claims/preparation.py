"""Expensive shared work that trials stand on, done once and cached by content: a trained model, a generated corpus.

A preparation writes files into a folder. Its result is found again by the hash of its name, its parameters and the sources of
the method it belongs to, so that a changed training loop trains anew and an unchanged one never does::

    FLOW = Preparation("flows.digits", train_digits_flow, timeout_s=600)

    RACE = Experiment("flows.race", race, ..., prepare=lambda trial: [FLOW(seed=trial.seed)])

    def race(trial):
        model = load(FLOW(seed=trial.seed).folder())
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from upheld.claims.fingerprint import fingerprint
from upheld.claims.trial import NotRun, Scalar, canonical


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
        """The prepared files; builds them first when they are not there (other processes wait, they do not build twice)."""
        path = self.path
        if path.is_dir():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            if not path.is_dir():
                self._build(path)
        return path

    def _build(self, path: Path) -> None:
        # Built elsewhere and renamed: a build that is killed leaves nothing that looks finished, and the next one clears it.
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        try:
            self.preparation.build(unfinished, **self.parameters)
            _flush(unfinished)
            unfinished.rename(path)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def prepare(recipe: Recipe) -> str:
    """Build a recipe in a worker; returns why it cannot be built on this machine, or nothing when it is there."""
    try:
        recipe.folder()
    except NotRun as reason:
        return str(reason) or "cannot be prepared here"
    return ""


def _flush(folder: Path) -> None:
    """Have the files on the disk before their folder gets its name: what has the name is whole, even after a power cut."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def cache_folder() -> Path:
    """``$UPHELD_CACHE``, else the user's cache directory."""
    chosen = os.environ.get("UPHELD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("upheld"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
