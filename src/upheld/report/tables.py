"""What was measured, in tables: the race of every metric, what it cost, and how many claims hold."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from upheld.claims import Claim, Experiment, Mean, Measurements, Outcome, Scale, Superior, Verdict
from upheld.claims.trial import Condition, Scalar, canonical
from upheld.report.digits import SMALL, spans, together
from upheld.report.results import MethodResults

MOST_COLUMNS = 6  # a race of more conditions than this and than methods has them as rows
ERROR_RATE = 0.025  # of each end of an interval, as in the rules


# -- the race


@dataclass(frozen=True)
class Entry:
    """One method's mean of a metric under one condition.

    `low` and `high` are NaN when there is no interval: fewer than two units, or values that are not finite.
    """

    mean: float
    low: float
    high: float
    units: int
    best: bool = False


@dataclass(frozen=True)
class Race:
    """One metric of one experiment.

    Parameters
    ----------
    metric : its name
    better : "higher" or "lower", as a claim of superiority says; "lower" for seconds; "" where nobody says
    decides : whether a claim is read from it
    methods : in the order in which they were measured
    fixed : condition keys that never vary
    conditions : the rest of each condition, in the experiment's order
    entries : by method and index of condition; what was not measured is not there
    """

    metric: str
    better: str
    decides: bool
    methods: tuple[str, ...]
    fixed: Condition
    conditions: tuple[Condition, ...]
    entries: Mapping[tuple[str, int], Entry]

    def units(self, index: int | None = None) -> int | None:
        """Number of units that all entries share, of one condition or of all; None where they differ."""
        found = {entry.units for (_, place), entry in self.entries.items() if index in (None, place)}
        return found.pop() if len(found) == 1 else None

    def figures(self, method: str, index: int) -> tuple[str, str, str]:
        """Mean and interval of an entry, written like its neighbours under the same condition unless it is far more precise."""
        column = [entry for (_, place), entry in self.entries.items() if place == index]
        widths = [entry.high - entry.low for entry in column if entry.high > entry.low]
        usual = statistics.median(widths) if widths else math.nan
        entry = self.entries[method, index]
        own = entry.high - entry.low
        mean, low, high = together(
            [entry.mean, entry.low, entry.high], own if 0 < own < usual / 5 else usual,
            scientific=statistics.median(abs(one.mean) for one in column) < SMALL,
        )  # fmt: skip
        return mean, low, high

    @property
    def conditions_as_rows(self) -> bool:
        return len(self.conditions) > max(MOST_COLUMNS, len(self.methods))


def experiments(results: MethodResults) -> list[Experiment]:
    """The experiments that the claims read, each once."""
    return list({claim.experiment.name: claim.experiment for claim in results.claims}.values())


def races(results: MethodResults, experiment: Experiment) -> list[Race]:
    """A table a metric; those that a claim is read from come first."""
    frame = results.frames[experiment.name]
    if frame.empty:
        return []
    readers = [claim for claim in results.claims if claim.experiment.name == experiment.name]
    decisive, better = _metrics_read(readers), _directions(readers)
    groups = _by_condition(frame, experiment, results.scale)
    fixed, conditions = _split([condition for condition, _ in groups])
    entries = [
        (metric, method, index, entry)
        for index, (_, group) in enumerate(groups)
        for metric, method, entry in _entries(group, experiment.units)
    ]
    found = []
    for metric in dict.fromkeys(metric for metric, *_ in entries):
        mine = {(method, index): entry for name, method, index, entry in entries if name == metric}
        present = sorted({index for _, index in mine})
        mine = {(method, present.index(index)): entry for (method, index), entry in mine.items()}
        direction = better.get(metric, "lower" if metric == "seconds" else "")
        found.append(
            Race(
                metric,
                direction,
                metric in decisive,
                tuple(dict.fromkeys(method for method, _ in mine)),
                fixed,
                tuple(conditions[index] for index in present),
                _best_marked(mine, direction),
            )
        )
    return sorted(found, key=lambda race: not race.decides)


def _by_condition(frame: pd.DataFrame, experiment: Experiment, scale: Scale) -> list[tuple[Condition, pd.DataFrame]]:
    """Measurements of every condition, in the experiment's order; condition keys that are the sample stay together."""
    keys = [
        key
        for key in frame.columns
        if key not in {"seed", "item", "method", "metric", "value", *_sampled(experiment.units)}
    ]
    if not keys:
        return [({}, frame)]
    # The order of the plan, and its values: a column in which a key is missing somewhere holds its integers as floats.
    planned = [
        {key: value for key, value in one.items() if key in keys} for one in experiment.conditions.get(scale, ())
    ]
    order: dict[frozenset[tuple[str, object]], int] = {}
    for condition in planned:
        order.setdefault(frozenset(condition.items()), len(order))
    groups: list[tuple[int, Condition, pd.DataFrame]] = []
    for values, group in frame.groupby(keys, dropna=False, sort=False):
        found = {
            key: value
            for key, value in zip(keys, cast("tuple[Scalar, ...]", values), strict=True)
            if not pd.isna(value)
        }
        place = order.get(frozenset(found.items()), len(order))
        condition = next((one for one in planned if one == found), found)
        groups.append((place, condition, group))
    return [(condition, group) for _, condition, group in sorted(groups, key=lambda one: one[0])]


def _sampled(units: str) -> list[str]:
    """The columns whose values are the sample: seeds, items, or a condition key."""
    return units.replace("*", "/").split("/")


def _split(conditions: Sequence[Condition]) -> tuple[Condition, list[Condition]]:
    """What all conditions share, and what is left of each."""
    shared = {
        key: value
        for key, value in conditions[0].items()
        if all(key in condition and condition[key] == value for condition in conditions)
    }
    return shared, [{key: value for key, value in condition.items() if key not in shared} for condition in conditions]


def _entries(group: pd.DataFrame, units: str) -> Iterator[tuple[str, str, Entry]]:
    """Mean and interval of every metric and method, from the bench's own units and intervals."""
    data = Measurements(group, units)
    for pair, values in group.groupby(["metric", "method"], sort=False)["value"]:
        metric, method = map(str, cast("tuple[str, str]", pair))
        if np.isfinite(values).all():
            interval = Mean(metric, method).interval(data, ERROR_RATE, ERROR_RATE)
            known = math.isfinite(interval.low) and math.isfinite(interval.high)
            ends = (interval.low, interval.high) if known else (math.nan, math.nan)
            yield metric, method, Entry(interval.estimate, *ends, interval.n_units)
        else:
            units_here = len(group.loc[values.index, _sampled(units)].drop_duplicates())
            yield metric, method, Entry(float(values.mean()), math.nan, math.nan, units_here)


def _best_marked(entries: Mapping[tuple[str, int], Entry], better: str) -> dict[tuple[str, int], Entry]:
    """Marks the best mean of every condition that more than one method ran, ties all of them."""
    marked = dict(entries)
    for index in {index for _, index in entries} if better else ():
        column = {key: entry for key, entry in entries.items() if key[1] == index}
        best = (max if better == "higher" else min)(entry.mean for entry in column.values())
        if len(column) > 1:
            marked |= {key: dataclasses.replace(entry, best=entry.mean == best) for key, entry in column.items()}
    return marked


def _metrics_read(claims: Iterable[Claim]) -> set[str]:
    return {
        part.metric for claim in claims for part in _parts(claim.rule) if isinstance(getattr(part, "metric", None), str)
    }


def _directions(claims: Iterable[Claim]) -> dict[str, str]:
    """Which way a metric is better, where a claim of superiority says so."""
    rules = [part for claim in claims for part in _parts(claim.rule) if isinstance(part, Superior)]
    return {rule.metric: "lower" if rule.lower_is_better else "higher" for rule in rules}


def _parts(rule: object) -> Iterator[Any]:
    """A rule and everything it is made of."""
    if isinstance(rule, list | tuple):
        for part in rule:
            yield from _parts(part)
    elif dataclasses.is_dataclass(rule):
        yield rule
        for field in dataclasses.fields(rule):
            yield from _parts(getattr(rule, field.name))


# -- what it cost, and what was lost


@dataclass(frozen=True)
class Loss:
    """Trials of one condition that gave no measurement, for one reason."""

    condition: Condition
    seeds: str
    count: int
    status: str
    reason: str


@dataclass(frozen=True)
class Cost:
    """What the trials of an experiment cost; `seconds` and `peak_memory` (bytes) are NaN when nothing ran."""

    experiment: str
    conditions: int
    repeats: int
    wanted: int
    done: int
    failed: int
    not_run: int
    missing: int
    total_seconds: float
    median_seconds: float
    peak_memory: float
    losses: tuple[Loss, ...]


def cost(results: MethodResults, experiment: Experiment) -> Cost:
    """Time, memory and the fate of every trial that the experiment wants at this scale."""
    rows = results.costs[experiment.name]
    wanted = {(canonical(trial.condition), trial.seed): trial.condition for trial in experiment.trials(results.scale)}
    found = {(row.condition, row.seed): (str(row.status), str(row.reason)) for row in rows.itertuples(index=False)}
    fates = {key: found.get(key, ("missing", "not measured yet")) for key in wanted}
    count = Counter(status for status, _ in fates.values())
    ran = rows[rows["status"] != "not run"]
    memory = ran["peak_memory"][ran["peak_memory"] > 0]
    return Cost(
        experiment.name, len(experiment.conditions.get(results.scale, ())), experiment.repeats.get(results.scale, 0), len(wanted),
        count["done"], count["failed"], count["not run"], count["missing"],
        total_seconds=float(ran["seconds"].sum()) if len(ran) else math.nan,
        median_seconds=float(ran["seconds"].median()) if len(ran) else math.nan,
        peak_memory=float(memory.max()) if len(memory) else math.nan,
        losses=tuple(_losses(wanted, fates)),
    )  # fmt: skip


def _losses(
    wanted: Mapping[tuple[str, int], Condition], fates: Mapping[tuple[str, int], tuple[str, str]]
) -> Iterator[Loss]:
    """Lost trials, those of one condition and reason together."""
    lost: dict[tuple[str, str, str], list[int]] = {}
    conditions = {key[0]: condition for key, condition in wanted.items()}
    for (condition, seed), (status, reason) in fates.items():
        if status != "done":
            lost.setdefault((status, reason, condition), []).append(seed)
    for (status, reason, condition), seeds in sorted(lost.items(), key=lambda item: item[0][0]):
        yield Loss(conditions[condition], spans(seeds), len(seeds), status, reason)


# -- where and when


@dataclass(frozen=True)
class Provenance:
    """Where and when results were measured, and with what."""

    hosts: tuple[str, ...]
    first: str
    last: str
    versions: Mapping[str, str]

    @property
    def dates(self) -> str:
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


def provenance(results: Sequence[MethodResults]) -> Provenance:
    """Hosts, days (UTC) and versions of all trials; a package that changed between trials shows every version."""
    rows = [rows for one in results for rows in one.costs.values() if len(rows)]
    if not rows:
        return Provenance((), "", "", {})
    trials = pd.concat(rows)
    days = sorted(trials["finished"].str[:10])
    versions: dict[str, set[str]] = {}
    for text in trials["versions"].unique():
        for package, version in json.loads(text).items():
            versions.setdefault(package, set()).add(version)
    hosts = tuple(sorted(host for host in trials["host"].unique() if host))
    return Provenance(
        hosts, days[0], days[-1], {package: ", ".join(sorted(found)) for package, found in sorted(versions.items())}
    )


# -- how many claims hold


@dataclass(frozen=True)
class Tally:
    """Number of claims by outcome."""

    counts: Mapping[Outcome, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def tested(self) -> int:
        """Claims that got a verdict, inconclusive ones among them."""
        return sum(self.counts[outcome] for outcome in (Outcome.UPHELD, Outcome.NOT_UPHELD, Outcome.INCONCLUSIVE))


def tally(judged: Iterable[tuple[Claim, Verdict]]) -> Tally:
    found = Counter(verdict.outcome for _, verdict in judged)
    return Tally({outcome: found[outcome] for outcome in Outcome})


def judged(results: MethodResults, *, ours: bool) -> list[tuple[Claim, Verdict]]:
    """The authors' claims with their verdicts, or our own checks with theirs."""
    return [pair for pair in zip(results.claims, results.verdicts, strict=True) if pair[0].ours is ours]
