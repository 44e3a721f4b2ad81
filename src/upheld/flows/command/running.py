"""One run: load, sample, judge, compare, write and say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from upheld.compute import Compute, choose
from upheld.diffusion.paths import affine_path
from upheld.flows.command.loading import load_flow, load_module
from upheld.flows.command.options import Options
from upheld.flows.command.terminal import show
from upheld.flows.diagnostics import Diagnosis, diagnose
from upheld.flows.likelihoods import ClassifierLikelihood, Decoded, Likelihood
from upheld.flows.lookahead import CalibratedLookAhead, TemperedLookAhead
from upheld.flows.rivals import BestOf, FlowChef, Particles, Rival, at_cost
from upheld.flows.sampler import TargetedFlow
from upheld.flows.samples import FlowSamples
from upheld.flows.sharded import GROUPS_A_JOB, JobFailed, sample_sharded
from upheld.flows.velocity import FlowField, UnlikelyVelocity, check_parametrization
from upheld.report.progress import Progress
from upheld.report.writing import expect_folder

SCHEMA = "upheld.flows.run/1"
CHEF_STEPS = (0.01, 0.05)
LONGEST_JOB_S = 7 * 24 * 3600.0


@dataclass
class Row:
    """What the table says of one method."""

    method: str
    guide: float
    judge: float | None
    ess: float | None
    """Effective particles at the end over K; None for what has no particles."""
    seconds: float
    evaluations: int


def sample(options: Options) -> None:
    """The whole command."""
    from upheld.report.content import json_text

    options.check()
    shape = options.example_shape()
    if options.out is not None:
        expect_folder(options.out)
    compute = choose(options.ray, options.jobs) if options.sharded else None
    field = load_flow(options.velocity, options.loader, options.prediction, options.coupling, options.prompt, shape)
    classifier = load_module(options.likelihood, "--likelihood", "--likelihood-loader", options.likelihood_loader)
    guide = ClassifierLikelihood(classifier, options.target, options.temperature)
    judge = None
    if options.judge is not None:
        judge = load_module(options.judge, "--judge", "--judge-loader", options.judge_loader)
    likelihood: Likelihood = guide if field.decode is None else Decoded(guide, field.decode)
    _try(options, field, guide, judge, shape)
    flow = _flow(options, field, likelihood, shape)
    begin = time.perf_counter()
    found = _sampled(options, flow, shape, compute)
    seconds = time.perf_counter() - begin
    cost = Particles(flow).cost
    diagnosis = diagnose(found)
    rows = [Row("TFTF", *_accuracy(found.samples, options, field, guide, judge), diagnosis.final_ess, seconds, cost)]
    rows += _beside(options, flow, field, guide, judge, likelihood, shape, cost) if options.compare else []
    document = _document(options, flow, found, diagnosis, rows)
    if options.out is not None:
        _write(options, found, document, shape, field)
    if options.json:
        print(json_text(document), end="")
    else:
        show(document, options.out)


def _sampled(options: Options, flow: TargetedFlow, shape: tuple[int, ...], compute: Compute | None) -> FlowSamples:
    """Here in one batch, or in jobs of some groups elsewhere."""
    generator = torch.Generator().manual_seed(options.seed)
    with Progress() as progress:
        if compute is None:
            with progress.part("sampling", flow.n_steps, "steps") as part:
                return flow.sample(options.n, shape=shape, generator=generator, callback=lambda at: part.reach(at.step))
        with progress.part("sampling", options.n, "samples") as part:
            try:
                return sample_sharded(
                    flow, options.n, shape=shape, compute=compute, generator=generator, callback=part.reach,
                    groups_per_job=options.groups or GROUPS_A_JOB, timeout_s=LONGEST_JOB_S,
                )  # fmt: skip
            except JobFailed as error:
                raise ValueError(str(error)) from error


def _try(options: Options, field: FlowField, guide: ClassifierLikelihood, judge: Any, shape: tuple[int, ...]) -> None:
    """Ask every model for three examples, so that one that does not take them is named before anything runs."""
    x = torch.zeros(3, *shape)
    name = f"--velocity {options.velocity}"
    with torch.no_grad():
        out = _answer(name, options.shape, lambda: field.predict(x, torch.tensor(0.5)))
        if out.shape != x.shape:
            raise ValueError(
                f"{name} gives shape {tuple(out.shape)} for examples of {tuple(x.shape)}; it must give the same"
            )
        try:
            check_parametrization(field, affine_path(options.path), shape)
        except UnlikelyVelocity as error:
            raise ValueError(
                f"{error.seen.replace('this field', name)}; say --prediction {error.likely}, or --prediction velocity if it is one"
            ) from error
    if field.decode is not None:
        return
    seen = x.clone().requires_grad_()
    logits = _logits(f"--likelihood {options.likelihood}", guide.module, seen, options)
    if not logits.requires_grad and options.guidance != 0:
        raise ValueError(f"--likelihood {options.likelihood} has no gradient to guide by; take --guidance 0")
    if judge is not None:
        with torch.no_grad():
            _logits(f"--judge {options.judge}", judge, x, options)


def _answer(name: str, shape: str, call: Callable[[], Tensor]) -> Tensor:
    """What a model of the user's says, or that it does not take such examples."""
    try:
        out = call()
    except (RuntimeError, TypeError) as error:
        reason = str(error).strip().splitlines()[-1][:200]
        raise ValueError(f"{name} does not take examples of --shape {shape}: {reason}") from error
    if not isinstance(out, Tensor):
        raise ValueError(f"{name} gives a {type(out).__name__}; it must give one tensor")
    return out


def _logits(name: str, module: Any, x: Tensor, options: Options) -> Tensor:
    """A classifier's, with the wanted class among them."""
    out = _answer(name, options.shape, lambda: module(x))
    if out.dim() != 2 or len(out) != len(x):
        raise ValueError(
            f"{name} gives shape {tuple(out.shape)} for {len(x)} examples; give logits, (examples, classes)"
        )
    if options.target >= out.shape[1]:
        raise ValueError(f"--target {options.target} is no class of {name}; it has 0 to {out.shape[1] - 1}")
    if torch.isnan(out).any():
        raise ValueError(f"{name} gives NaN for examples of zeros; mend the model")
    return out


def _flow(options: Options, field: FlowField, likelihood: Likelihood, shape: tuple[int, ...]) -> TargetedFlow:
    """What was asked for, with all that a pilot has to find found."""
    further: dict[str, Any] = {} if options.guidance is None else {"guidance": options.guidance}
    flow = TargetedFlow(
        field, likelihood, path=options.path, n_steps=options.steps, n_particles=options.particles, preset=options.preset,
        window=options.stretch(), extra_window=options.further_stretch(), lookahead=options.lookahead, noise=options.noise,
        eps2=options.eps2, **further,
    )  # fmt: skip
    if options.kappa:
        flow = replace(
            flow,
            lookahead=CalibratedLookAhead(
                replace(flow, window="auto", lookahead="point").planned(shape).data_variance(),
                options.kappa,
                options.eps2,
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
    others: dict[str, Rival] = {
        "importance sampling": at_cost(Particles(replace(flow, window=None, extra_window=None)), cost)
    }
    if options.path == "linear" and field.times is None:
        others |= {f"FlowChef, step {step:g}": FlowChef(field, likelihood, step, steps) for step in CHEF_STEPS}
        others["no condition"] = BestOf(field, likelihood, steps, 1)
    for name, rival in others.items():
        begin, generator, ess = time.perf_counter(), torch.Generator().manual_seed(options.seed), None
        if isinstance(rival, Particles):
            found = rival.flow.sample(options.n, shape=shape, generator=generator)
            x, ess = found.samples, float(found.ess_trace[-1].mean()) / found.particles.shape[1]
        else:
            x = rival.sample(options.n, shape, generator)
        seconds = time.perf_counter() - begin
        yield Row(name, *_accuracy(x, options, field, guide, judge), ess, seconds, rival.cost)


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
