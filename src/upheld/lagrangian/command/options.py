"""What ``upheld run lagrangian`` was asked for, and everything that can be found wrong with it before a file is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upheld.lagrangian.dual import METHODS
from upheld.lagrangian.saving import ENDINGS
from upheld.report.writing import expect_file, expect_folder

LEARNERS = ("sga", "paper", "tracking", "erm", "warm-start", "contextual")
CONTEXTUAL_ENDING = ".safetensors"


@dataclass(frozen=True)
class Options:
    """As they were given; see `run`."""

    train: list[str]
    test: list[str]
    coupling: str | None
    capacity: float | None
    vehicles: int | None
    maximise: bool
    learner: str | None
    multipliers: Path | None
    save: Path | None
    online: bool
    pi_max: float | None
    learn_calls: int | None
    epochs: int | None
    steps: int
    method: str
    seconds: float
    block_gap: float
    jobs: int
    compare: bool
    seed: int
    out: Path | None
    json: bool

    @property
    def learner_name(self) -> str:
        return self.learner or "sga"

    def settings(self) -> dict[str, Any]:
        """For the report."""
        given = {name: value for name, value in vars(self).items() if value is not None and name != "json"}
        if self.multipliers is None:
            given["learner"] = self.learner_name
        return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}


def check(options: Options) -> None:
    """Say now what cannot be done."""
    if not options.test:
        raise ValueError("there is nothing to bound: name new instances with --test")
    if not options.train and options.multipliers is None:
        raise ValueError(
            "there is nothing to learn from: name past instances with --train, or saved multipliers with --multipliers"
        )
    if options.train and options.multipliers is not None:
        raise ValueError("--train learns multipliers and --multipliers takes saved ones; give one of them")
    for name, value, among in (("learner", options.learner, LEARNERS), ("method", options.method, METHODS)):
        if value is not None and value not in among:
            raise ValueError(f"--{name} must be one of {', '.join(among)}, got {value!r}")
    _check_learning(options)
    for name, number, least in (("seconds", options.seconds, 0.0), ("block-gap", options.block_gap, 0.0)):
        if not (math.isfinite(number) and number >= least):
            raise ValueError(f"--{name} must be {least:g} or more, got {number:g}")
    if options.pi_max is not None and not (math.isfinite(options.pi_max) and options.pi_max > 0):
        raise ValueError(f"--pi-max must be positive, got {options.pi_max:g}")
    if options.capacity is not None and not (math.isfinite(options.capacity) and options.capacity > 0):
        raise ValueError(f"--capacity must be positive, got {options.capacity:g}")
    _check_places(options)


def _check_learning(options: Options) -> None:
    """Options of a learner go with that learner."""
    if options.multipliers is not None:
        for name in ("learner", "save", "pi_max", "learn_calls", "epochs"):
            if getattr(options, name) is not None:
                raise ValueError(
                    f"--{name.replace('_', '-')} is for learning, and --multipliers are learned already; leave it out"
                )
        if options.online:
            raise ValueError(
                "--online learns on, and saved multipliers do not hold what they were learned from; give --train"
            )
        return
    if options.learn_calls is not None and options.learner_name not in ("erm", "warm-start"):
        raise ValueError("--learn-calls goes with --learner erm or warm-start; the others take one call an instance")
    if options.epochs is not None and options.learner_name != "contextual":
        raise ValueError("--epochs goes with --learner contextual; leave it out")
    if options.online and options.learner_name == "paper":
        raise ValueError(
            "--learner paper fixes its step by the number of instances beforehand; take --learner sga with --online"
        )
    if options.save is not None:
        endings = (CONTEXTUAL_ENDING,) if options.learner_name == "contextual" else ENDINGS
        if options.save.suffix not in endings:
            raise ValueError(
                f"--save {options.save} ends in no format for these multipliers; name a file in {' or '.join(endings)}"
            )


def _check_places(options: Options) -> None:
    """Outputs can be written."""
    if options.multipliers is not None and not options.multipliers.is_file():
        raise ValueError(f"there is no file {options.multipliers}; --multipliers names one that --save or --out wrote")
    if options.save is not None:
        expect_file(options.save, "--save")
    if options.out is not None:
        import pyarrow  # noqa: F401 - writes bounds.parquet

        expect_folder(options.out)
