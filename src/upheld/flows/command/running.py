"""One run: load, sample, judge, compare, write and say."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from upheld.flows.command.loading import load_flow, load_module
from upheld.flows.command.terminal import show
from upheld.flows.diagnostics import Diagnosis, diagnose
from upheld.flows.likelihoods import ClassifierLikelihood, Decoded, Likelihood
from upheld.flows.lookahead import CalibratedLookAhead, TemperedLookAhead
from upheld.flows.rivals import BestOf, FlowChef, Particles, Rival, at_cost
from upheld.flows.sampler import TargetedFlow
from upheld.flows.samples import FlowSamples
from upheld.flows.velocity import FlowField
from upheld.report.progress import Progress

SCHEMA = "upheld.flows.run/1"
CHEF_STEPS = (0.01, 0.05)


@dataclass(frozen=True)
class Options:
    """The command line."""

    velocity: str
    likelihood: Path
    target: int
    shape: str
    judge: Path | None
    loader: str | None
    prediction: str
    coupling: str
    path: str
    n: int
    particles: int | None
    steps: int | None
    preset: str
    guidance: float | None
    window: str
    lookahead: str
    kappa: float | None
    ladder: bool
    noise: float
    temperature: float
    prompt: str
    compare: bool
    seed: int
    out: Path | None
    json: bool

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

    def stretch(self) -> tuple[float, float] | str | None:
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
        try:
            first, last = (float(part) for part in self.window.split(","))
        except ValueError:
            raise ValueError(f"--window {self.window!r} is none; write auto, adaptive, none, or 0.1875,0.875") from None
        return first, last


@dataclass
class Row:
    """What the table says of one method."""

    method: str
    guide: float
    judge: float | None
    seconds: float
    evaluations: int


def sample(options: Options) -> None:
    """The whole command."""
    from upheld.report.content import json_text

    shape = options.example_shape()
    if options.temperature <= 0 or not math.isfinite(options.temperature):
        raise ValueError(f"--temperature {options.temperature:g} is none; it must be above 0")
    _usable(options.out)
    field = load_flow(options.velocity, options.loader, options.prediction, options.coupling, options.prompt, shape)
    guide = ClassifierLikelihood(load_module(options.likelihood, "--likelihood"), options.target, options.temperature)
    judge = None if options.judge is None else load_module(options.judge, "--judge")
    likelihood: Likelihood = guide if field.decode is None else Decoded(guide, field.decode)
    _try(options, field, guide, judge, shape)
    flow = _flow(options, field, likelihood, shape)
    with Progress() as progress, progress.part("sampling", flow.n_steps, "steps") as part:
        begin = time.perf_counter()
        found = flow.sample(
            options.n,
            shape=shape,
            generator=torch.Generator().manual_seed(options.seed),
            callback=lambda at: part.reach(at.step),
        )
        seconds = time.perf_counter() - begin
    cost = Particles(flow).cost
    rows = [Row("TFTF", *_accuracy(found.samples, options, field, guide, judge), seconds, cost)]
    rows += _beside(options, flow, field, guide, judge, likelihood, shape, cost) if options.compare else []
    diagnosis = diagnose(found)
    document = _document(options, flow, found, diagnosis, rows)
    if options.out is not None:
        _write(options, found, document, shape, field)
    if options.json:
        print(json_text(document), end="")
    else:
        show(document, options.out)


def _try(options: Options, field: FlowField, guide: ClassifierLikelihood, judge: Any, shape: tuple[int, ...]) -> None:
    """Ask every model for three examples, so that one that does not take them is named before anything runs."""
    x = torch.zeros(3, *shape)
    calls: dict[str, Callable[[], object]] = {
        f"--velocity {options.velocity}": lambda: field.predict(x, torch.tensor(0.5))
    }
    if field.decode is None:
        calls[f"--likelihood {options.likelihood}"] = lambda: guide.module(x)
        if judge is not None:
            calls[f"--judge {options.judge}"] = lambda: judge(x)
    with torch.no_grad():
        for name, call in calls.items():
            try:
                call()
            except (RuntimeError, TypeError) as error:
                reason = str(error).strip().splitlines()[-1][:200]
                raise ValueError(f"{name} does not take examples of --shape {options.shape}: {reason}") from error


def _usable(out: Path | None) -> None:
    """Say now that the results cannot be written, not after the run."""
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file, so nothing can be written to it; name a folder with --out")


def _flow(options: Options, field: FlowField, likelihood: Likelihood, shape: tuple[int, ...]) -> TargetedFlow:
    """What was asked for, with all that a pilot has to find found."""
    further: dict[str, Any] = {} if options.guidance is None else {"guidance": options.guidance}
    flow = TargetedFlow(
        field, likelihood, path=options.path, n_steps=options.steps, n_particles=options.particles, preset=options.preset,
        window=options.stretch(), lookahead=options.lookahead, noise=options.noise, **further,
    )  # fmt: skip
    if (options.lookahead == "calibrated") != bool(options.kappa):
        raise ValueError(
            "--lookahead calibrated softens a classifier by --kappa, and only with one above 0; give both, or neither"
        )
    if options.kappa:
        flow = replace(
            flow,
            lookahead=CalibratedLookAhead(
                replace(flow, window="auto", lookahead="point").planned(shape).data_variance(), options.kappa
            ),
        )
    if flow.window == "adaptive":
        flow = flow.piloted(shape)
    if options.ladder:
        flow = flow.tempered(shape)
    decided = flow.decided()
    return replace(flow, n_steps=len(decided.times) - 1, n_particles=decided.count)


def _accuracy(
    x: Tensor, options: Options, field: FlowField, guide: ClassifierLikelihood, judge: Any
) -> tuple[float, float | None]:
    """Shares that guide and judge take for the target."""
    with torch.no_grad():
        seen = x if field.decode is None else field.decode(x)
        shares = [
            float((net(seen).argmax(1) == options.target).double().mean())
            for net in (guide.module, judge)
            if net is not None
        ]
    return shares[0], shares[1] if judge is not None else None


def _beside(
    options: Options, flow: TargetedFlow, field: FlowField, guide: ClassifierLikelihood, judge: Any, likelihood: Likelihood,
    shape: tuple[int, ...], cost: int,
) -> Iterator[Row]:  # fmt: skip
    """What else one could do, at the same number of evaluations or, where more does not help, fewer."""
    steps = int(flow.n_steps or 128)
    others: dict[str, Rival] = {"importance sampling": at_cost(Particles(replace(flow, window=None)), cost)}
    if options.path == "linear" and field.times is None:
        others |= {f"FlowChef, step {step:g}": FlowChef(field, likelihood, step, steps) for step in CHEF_STEPS}
        others["no condition"] = BestOf(field, likelihood, steps, 1)
    for name, rival in others.items():
        begin = time.perf_counter()
        x = rival.sample(options.n, shape, torch.Generator().manual_seed(options.seed))
        yield Row(name, *_accuracy(x, options, field, guide, judge), time.perf_counter() - begin, rival.cost)


def _document(
    options: Options, flow: TargetedFlow, found: FlowSamples, diagnosis: Diagnosis, rows: list[Row]
) -> dict[str, Any]:
    """``summary.json``."""
    import importlib.metadata
    import platform

    import upheld
    from upheld.report.content import plain

    settings = {
        name: (value.name if isinstance(value, Path) else value)
        for name, value in vars(options).items()
        if name not in ("out", "json")
    }
    return {
        "schema": SCHEMA,
        "settings": settings,
        "versions": {
            "upheld": upheld.__version__,
            "python": platform.python_version(),
            "torch": importlib.metadata.version("torch"),
        },
        "methods": [{name: plain(value) for name, value in vars(row).items()} for row in rows],
        "particles": int(found.particles.shape[1]),
        "window": _window(flow),
        "ladder": list(flow.lookahead.betas) if isinstance(flow.lookahead, TemperedLookAhead) else None,
        "log_evidence": plain(found.log_evidence),
        "log_evidence_se": plain(found.log_evidence_se),
        "diagnosis": {name: plain(value) for name, value in vars(diagnosis).items()},
        "ess": {
            "time": found.stage_times.tolist(),
            "mean": found.ess_trace.mean(1).tolist(),
            "resampled": found.resampled_at.double().mean(1).tolist(),
        },
    }


def _window(flow: TargetedFlow) -> list[float] | None:
    """Where noise was added, on the grid."""
    decided = flow.decided()
    first, last = decided.window
    return [float(decided.times[first]), float(decided.times[last])] if first < last else None


def _write(
    options: Options, found: FlowSamples, document: dict[str, Any], shape: tuple[int, ...], field: FlowField
) -> None:
    import io

    from upheld.flows import plots
    from upheld.report.content import drawn, json_text
    from upheld.report.writing import write_files

    assert options.out is not None
    arrays = io.BytesIO()
    np.savez_compressed(
        arrays, samples=found.samples.numpy(), log_weights=found.log_weights.numpy(), particles=found.particles.numpy(),
        particle_log_weights=found.particle_log_weights.numpy(), group_log_evidence=found.group_log_evidence.numpy(),
    )  # fmt: skip
    with torch.no_grad():
        seen = found.samples if field.decode is None else field.decode(found.samples)
    figures = {"samples": plots.sample_grid(seen), "ess": plots.ess_over_time(document["ess"], document["particles"])}
    contents: dict[str, str | bytes] = {"samples.npz": arrays.getvalue(), "summary.json": json_text(document)}
    for name, figure in figures.items():
        contents |= {f"{name}.{ending}": drawn(figure, ending) for ending in ("png", "svg")}
    write_files(options.out, contents)
