"""Measures what the ledger lacks: enumerate the trials, skip those that are there, hand the rest to the workers, commit each result."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import platform
import re
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from upheld.claims.experiment import Experiment
from upheld.claims.fingerprint import fingerprint
from upheld.claims.ledger import Ledger, Result, Status
from upheld.claims.preparation import Recipe, prepare
from upheld.claims.trial import Measurement, NotRun, Scale, Trial, canonical
from upheld.compute import Compute, Job, Outcome
from upheld.compute.job import one_line


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

    Raises
    ------
    ValueError
        If two experiments have one name, or a name does not begin with that of its method's package.
    """
    pending: list[tuple[Experiment, Trial]] = []
    present = stale = 0
    for name, count in Counter(experiment.name for experiment in experiments).items():
        if count > 1:
            raise ValueError(
                f"{count} experiments have the name {name!r}; rename all but one, results are kept by name"
            )
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
    # One seed of everything before the next: what each experiment costs is known early, and a stopped run is balanced.
    pending.sort(key=lambda one: one[1].seed)
    return Plan(scale, tuple(pending), present, stale)


def run(plan: Plan, ledger: Ledger, compute: Compute) -> Generator[Result, None, None]:
    """Measure what is pending; every result is in the ledger before it is yielded.

    What trials stand on is prepared first, each recipe once. A trial whose preparation failed is a failed trial, one whose
    preparation cannot be made here is not run.
    """
    needs = [_needs(experiment, trial) for experiment, trial in plan.pending]
    lacking = _prepare([recipe for one in needs if not isinstance(one, Lack) for recipe in one], compute)
    sound: list[tuple[Experiment, Trial]] = []
    for (experiment, trial), need in zip(plan.pending, needs, strict=True):
        lack = need if isinstance(need, Lack) else next((lacking[one] for one in need if one in lacking), None)
        if lack is None:
            sound.append((experiment, trial))
        else:
            yield _committed(Result(trial, lack.status, reason=lack.reason), experiment, ledger)
    yield from _measure([one for one in sound if not one[0].alone], ledger, compute)
    # A single worker, kept from trial to trial, imports and loads once what all of them need.
    yield from _measure([one for one in sound if one[0].alone], ledger, compute, workers=1)


@dataclass(frozen=True)
class Lack:
    """Why a trial has not what it stands on."""

    status: Status
    reason: str


def _needs(experiment: Experiment, trial: Trial) -> tuple[Recipe, ...] | Lack:
    """What the trial stands on. That is said by code of the experiment, whose error is this one trial's failure."""
    try:
        return tuple(experiment.prepare(trial))
    except Exception as error:
        return Lack("failed", f"what to prepare cannot be told: {one_line(error)}")


def _prepare(recipes: Iterable[Recipe], compute: Compute) -> dict[Recipe, Lack]:
    """Build what is not there yet; returns what is lacking then, and why."""
    needed: dict[Hashable, Recipe] = dict(enumerate(recipe for recipe in dict.fromkeys(recipes) if not recipe.ready))
    jobs = [Job(index, prepare, (recipe,), recipe.preparation.timeout_s) for index, recipe in needed.items()]
    lacking = {}
    for outcome in _outcomes(jobs, compute):
        recipe = needed[outcome.key]
        if outcome.status == "failed":
            lacking[recipe] = Lack("failed", _printable(f"preparing {recipe} failed: {outcome.reason}"))
        elif outcome.value:
            lacking[recipe] = Lack("not run", _printable(outcome.value))
    return lacking


def _measure(
    trials: Sequence[tuple[Experiment, Trial]], ledger: Ledger, compute: Compute, workers: int | None = None
) -> Iterator[Result]:
    """Seed by seed; within a seed the longest first, as far as the run has shown, so that none is left to one worker at the end."""
    took: dict[tuple[str, str], float] = {}
    pending: dict[Hashable, tuple[Experiment, Trial]] = dict(enumerate(trials))
    with contextlib.closing(_outcomes(_jobs(trials, took) if trials else (), compute, workers)) as outcomes:
        for outcome in outcomes:
            experiment, trial = pending[outcome.key]
            took[experiment.name, canonical(trial.condition)] = outcome.seconds
            yield _committed(_result(trial, outcome), experiment, ledger)


def _jobs(trials: Sequence[tuple[Experiment, Trial]], took: Mapping[tuple[str, str], float]) -> Iterator[Job]:
    """One job a trial, its key the trial's number. `took` is read when a job is drawn: it may have grown since the last one."""
    for _, of_seed in itertools.groupby(enumerate(trials), key=lambda one: one[1][1].seed):
        left = list(of_seed)
        while left:
            longest = max(left, key=lambda one: took.get((one[1][0].name, canonical(one[1][1].condition)), 0.0))
            left.remove(longest)
            number, (experiment, trial) = longest
            yield Job(
                number, measure, (experiment.measure, trial, experiment.method, fingerprint(experiment.method)),
                experiment.timeout_s[trial.scale],
            )  # fmt: skip


def _outcomes(jobs: Iterable[Job], compute: Compute, workers: int | None = None) -> Generator[Outcome, None, None]:
    """What became of the jobs. No workers, and no cluster, are started for none; none goes on when nobody listens."""
    if jobs:
        with contextlib.closing(cast("Generator[Outcome, None, None]", compute.run(jobs, workers))) as outcomes:
            yield from outcomes


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
        reason=_printable(outcome.reason or measured.not_run),
        seconds=outcome.seconds,
        peak_memory=outcome.peak_memory,
        host=outcome.host,
        versions=measured.versions,
    )


def _printable(reason: str) -> str:
    """A reason may quote a file name that is no text; it must not keep the result from being written."""
    return reason.encode(errors="backslashreplace").decode()


# -- in the worker


@dataclass(frozen=True)
class Measured:
    """What a worker sends back."""

    measurements: tuple[Measurement, ...]
    not_run: str
    versions: dict[str, str]


def measure(experiment: Callable[[Trial], Iterable[Measurement]], trial: Trial, method: str, sources: str) -> Measured:
    """One trial's measurements, in a worker.

    A worker may start long after the run did, or on another machine: `sources` is the fingerprint that its results will bear.
    """
    try:
        if fingerprint(method) != sources:
            raise NotRun(f"the sources of {method} were changed during the run; run it again")
        measurements = tuple(experiment(trial))
    except NotRun as reason:
        return Measured((), str(reason) or "cannot be run here", versions(method))
    if not measurements:
        raise ValueError("nothing was measured; a trial that cannot measure should say why by raising NotRun")
    stranger = next((one for one in measurements if not isinstance(one, Measurement)), None)
    if stranger is not None:
        raise TypeError(f"a trial yields Measurement(method, metric, value), this one yielded {stranger!r}")
    return Measured(measurements, "", versions(method))


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
