"""Measures what the ledger lacks: enumerate the trials, skip those that are there, hand the rest to the workers, commit each result."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from upheld.claims.experiment import Experiment
from upheld.claims.fingerprint import fingerprint
from upheld.claims.ledger import Ledger, Result, Status
from upheld.claims.preparation import Recipe, prepare
from upheld.claims.trial import Measurement, NotRun, Scale, Trial, canonical
from upheld.compute import Compute, Job, Outcome


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and how much is there already."""

    scale: Scale
    pending: tuple[tuple[Experiment, Trial], ...]
    present: int
    stale: int


def plan(experiments: Sequence[Experiment], scale: Scale, ledger: Ledger, *, retry_failed: bool = False) -> Plan:
    """The trials that the ledger lacks for the present sources.

    Trials that could not be run are tried again, since what was missing may be there now; failed ones only on request.
    """
    pending: list[tuple[Experiment, Trial]] = []
    present = stale = 0
    for experiment in experiments:
        sources = fingerprint(experiment.method)
        statuses = ledger.statuses(experiment.name, scale, sources)
        stale += ledger.stale(experiment.name, scale, sources)
        for trial in experiment.trials(scale):
            status = statuses.get((canonical(trial.condition), trial.seed))
            if status == "done" or (status == "failed" and not retry_failed):
                present += 1
            else:
                pending.append((experiment, trial))
    return Plan(scale, tuple(pending), present, stale)


def run(plan: Plan, ledger: Ledger, compute: Compute) -> Iterator[Result]:
    """Measure what is pending; every result is in the ledger before it is yielded.

    What trials stand on is prepared first, each recipe once. A trial whose preparation failed is a failed trial.
    """
    broken = _prepare([recipe for experiment, trial in plan.pending for recipe in experiment.prepare(trial)], compute)
    sound: list[tuple[Experiment, Trial]] = []
    for experiment, trial in plan.pending:
        why = next((broken[recipe] for recipe in experiment.prepare(trial) if recipe in broken), None)
        if why is None:
            sound.append((experiment, trial))
        else:
            yield _committed(Result(trial, "failed", reason=why), experiment, ledger)
    yield from _measure([one for one in sound if not one[0].alone], ledger, compute)
    for one in sound:
        if one[0].alone:
            yield from _measure([one], ledger, compute)


def _prepare(recipes: Iterable[Recipe], compute: Compute) -> dict[Recipe, str]:
    """Build what is not there yet; returns why, for those that failed."""
    needed = [recipe for recipe in dict.fromkeys(recipes) if not recipe.ready]
    jobs = [Job(index, prepare, (recipe,), recipe.preparation.timeout_s) for index, recipe in enumerate(needed)]
    return {
        needed[outcome.key]: f"preparing {needed[outcome.key]} failed: {outcome.reason}"
        for outcome in compute.run(jobs)
        if outcome.status == "failed"
    }


def _measure(pending: Sequence[tuple[Experiment, Trial]], ledger: Ledger, compute: Compute) -> Iterator[Result]:
    jobs = (
        Job(index, measure, (experiment.measure, trial, experiment.method), experiment.timeout_s[trial.scale])
        for index, (experiment, trial) in enumerate(pending)
    )
    with contextlib.closing(compute.run(jobs)) as outcomes:
        for outcome in outcomes:
            experiment, trial = pending[outcome.key]
            yield _committed(_result(trial, outcome), experiment, ledger)


def _committed(result: Result, experiment: Experiment, ledger: Ledger) -> Result:
    ledger.record(result, fingerprint(experiment.method))
    return result


def _result(trial: Trial, outcome: Outcome) -> Result:
    measured: Measured = outcome.value if outcome.status == "done" else Measured((), "", {})
    status: Status = "failed" if outcome.status == "failed" else "not run" if measured.not_run else "done"
    return Result(
        trial,
        status,
        measured.measurements,
        reason=outcome.reason or measured.not_run,
        seconds=outcome.seconds,
        peak_memory=outcome.peak_memory,
        host=outcome.host,
        versions=measured.versions,
    )


# -- in the worker


@dataclass(frozen=True)
class Measured:
    """What a worker sends back."""

    measurements: tuple[Measurement, ...]
    not_run: str
    versions: dict[str, str]


def measure(experiment: Callable[[Trial], Iterable[Measurement]], trial: Trial, method: str) -> Measured:
    """One trial's measurements, in a worker."""
    try:
        return Measured(tuple(experiment(trial)), "", versions(method))
    except NotRun as reason:
        return Measured((), str(reason) or "cannot be run here", versions(method))


@lru_cache
def versions(method: str) -> dict[str, str]:
    """Versions of Python, of upheld, of its core and of what the method's extra brings."""
    wanted = ["upheld"]
    for requirement in importlib.metadata.requires("upheld") or []:
        name, _, marker = requirement.partition(";")
        if not marker or f'extra == "{method}"' in marker:
            wanted.append(re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0])
    found = {"python": platform.python_version()}
    for name in wanted:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
