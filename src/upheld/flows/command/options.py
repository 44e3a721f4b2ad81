"""The command line, and what is refused before any model is loaded or asked; messages speak of its options."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from upheld.diffusion.paths import PATHS
from upheld.flows.command.loading import DIFFUSERS
from upheld.flows.sampler import PRESETS
from upheld.flows.velocity import PREDICTIONS

Stretch = tuple[float, float]


@dataclass(frozen=True)
class Options:
    """The command line."""

    velocity: str
    likelihood: Path
    target: int
    shape: str
    judge: Path | None
    loader: str | None
    likelihood_loader: str | None
    judge_loader: str | None
    prediction: str
    coupling: str
    path: str
    n: int
    particles: int | None
    steps: int | None
    preset: str
    guidance: float | None
    window: str
    extra_window: str | None
    lookahead: str
    kappa: float | None
    eps2: float
    ladder: bool
    noise: float
    temperature: float
    prompt: str
    compare: bool
    jobs: int | None
    ray: str | None
    groups: int | None
    seed: int
    out: Path | None
    json: bool

    @property
    def sharded(self) -> bool:
        """Whether groups run in other processes."""
        return self.jobs is not None or self.ray is not None

    def example_shape(self) -> tuple[int, ...]:
        """--shape as numbers.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            sizes = tuple(int(part) for part in self.shape.split(","))
        except ValueError:
            sizes = ()
        if not sizes or min(sizes) < 1:
            raise ValueError(f"--shape {self.shape!r} is none; write 64, or 1,28,28")
        return sizes

    def stretch(self) -> Stretch | str | None:
        """--window as `TargetedFlow` takes it.

        Raises
        ------
        ValueError
            If it is none.
        """
        if self.window in ("auto", "adaptive"):
            return self.window
        if self.window == "none":
            return None
        return _stretch("--window", self.window, "auto, adaptive, none, or 0.1875,0.875")

    def further_stretch(self) -> Stretch | None:
        """--extra-window as `TargetedFlow` takes it.

        Raises
        ------
        ValueError
            If it is none.
        """
        return None if self.extra_window is None else _stretch("--extra-window", self.extra_window, "0.875,0.95")

    def check(self) -> None:
        """Refuse what no model could mend.

        Raises
        ------
        ValueError
            If an option is none, or does not go with another.
        """
        _one_of("--prediction", self.prediction, ("auto", *PREDICTIONS))
        _one_of("--path", self.path, PATHS)
        _one_of("--preset", self.preset, PRESETS)
        _one_of("--lookahead", self.lookahead, ("auto", "point", "calibrated"))
        self.stretch(), self.further_stretch()
        for name, value in (("--temperature", self.temperature), ("--noise", self.noise), ("--eps2", self.eps2)):
            if not math.isfinite(value) or value < 0 or (name == "--temperature" and value == 0):
                raise ValueError(
                    f"{name} {value:g} is none; it must be a number {'above' if name == '--temperature' else 'of at least'} 0"
                )
        still = self.noise == 0 or (self.window == "none" and self.extra_window is None)
        if self.coupling != "independent" and not still:
            raise ValueError(
                f"--coupling {self.coupling}: the velocity of such a flow gives no score, so noise would change its law; take --noise 0, "
                "or a flow trained on independent pairs"
            )
        if (self.lookahead == "calibrated") != bool(self.kappa):
            raise ValueError(
                "--lookahead calibrated softens a classifier by --kappa, and only with one above 0; give both, or neither"
            )
        if self.ladder and self.window == "none":
            raise ValueError("--ladder rises inside the window, and --window none leaves none; leave out one of them")
        self._check_kind()

    def _check_kind(self) -> None:
        """What goes with files only, with pipelines only, or with several processes only."""
        pipeline = self.velocity.startswith(DIFFUSERS)
        if self.prompt and not pipeline:
            raise ValueError(
                f"--prompt is for --velocity diffusers:FOLDER, and {self.velocity} is no such; leave it out"
            )
        for name, given in (("--loader", self.loader is not None), ("--prediction", self.prediction not in ("auto", "velocity")),
                            ("--jobs", self.jobs is not None), ("--ray", self.ray is not None)):  # fmt: skip
            if pipeline and given:
                raise ValueError(f"{name} does not go with --velocity diffusers:FOLDER; leave it out")
        if self.judge_loader is not None and self.judge is None:
            raise ValueError("--judge-loader makes the network for the weights of --judge; give both, or neither")
        if self.groups is not None and not self.sharded:
            raise ValueError("--groups says how many samples go into one job; it needs --jobs or --ray")


def _one_of(option: str, given: str, names: Iterable[str]) -> None:
    if given not in names:
        raise ValueError(f"{option} {given!r} is none; there are {', '.join(names)}")


def _stretch(option: str, given: str, wanted: str) -> Stretch:
    try:
        first, last = (float(part) for part in given.split(","))
    except ValueError:
        raise ValueError(f"{option} {given!r} is none; write {wanted}") from None
    if not 0 < first < last < 1:
        raise ValueError(f"{option} {given!r} must be two times with 0 < t_a < t_b < 1; write {wanted}")
    return first, last
