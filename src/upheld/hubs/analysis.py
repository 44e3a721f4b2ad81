"""Everything one asks of one data set: the hubs, how sure they are, what others say of the same samples.

Each part that the data do not allow (half-samples too small, too few samples for cross-validation) is left out with its reason,
and the rest goes on; a reason is part of the answer, never a number made up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from upheld.hubs.contest import HubCall, seconds_of
from upheld.hubs.detector import JointHubs
from upheld.hubs.enrichment import enrichment, read_gmt
from upheld.hubs.rivals import race, rival, warm_up
from upheld.hubs.table import hub_table
from upheld.hubs.uncertainty import NullReference, bootstrap_interval, null_reference, stability_selection

Tables = Mapping[Any, pd.DataFrame]
Part = Callable[[str, int], AbstractContextManager[Callable[[], object]]]
"""``with part(what, total) as tick``: a display of one long part."""

COMPARED = (
    "average-ipc",
    "ipc-sqrt",
    "pooled-ipc",
    "graphical-lasso",
    "group-lasso",
    "fused-lasso",
    "hub-weighted-lasso",
    "hub-lasso",
    "marginal",
)


@dataclass(frozen=True)
class Analysis:
    """The answer for one data set.

    Attributes
    ----------
    estimator : fitted
    seconds : of one fit
    table : of `hub_table`; with ``rank_<rival>`` and ``selected_<rival>`` for each rival
    null_lines : by null, the influence that its largest exceeds in 5 % of draws
    calls : what the rivals said of the variables that screening left
    enriched : of `upheld.hubs.enrichment`
    not_computed : what could not be computed, and why
    remarks : warnings given on the way
    """

    estimator: JointHubs
    seconds: float
    table: pd.DataFrame
    null_lines: Mapping[str, float]
    calls: Sequence[HubCall]
    enriched: pd.DataFrame | None
    not_computed: Mapping[str, str]
    remarks: Sequence[str]

    def hubs(self) -> list[str]:
        """Names of the selected variables, largest influence first."""
        return [str(self.estimator.feature_names_in_[i]) for i in self.estimator.hubs_]

    def selected_by(self, call: HubCall) -> dict[str, list[str]]:
        """Names of the variables that a rival selects, by rule."""
        ranked = self.estimator.feature_names_in_[~self.estimator.screened_out_]
        return {rule: [str(name) for name in ranked[mask]] for rule, mask in call.selected.items()}


def analyse(
    estimator: JointHubs,
    tables: Tables,
    *,
    half_samples: int,
    resamples: int,
    null_draws: int,
    compare: bool,
    gene_sets: Path | None,
    seed: int,
    part: Part,
) -> Analysis:
    """Fit, and whatever else is asked for.

    Parameters
    ----------
    tables : by group label, (n_k, p) with the same columns
    half_samples, resamples, null_draws : how often for stability, intervals and either null; 0 for none
    compare : whether to ask the rivals
    gene_sets : a GMT file
    part : shows how far a long part is

    Raises
    ------
    ValueError
        As `JointHubs.fit_many`; or if the gene sets cannot be read or match no variable.
    """
    sets = None if gene_sets is None else read_gmt(gene_sets)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit_many(tables)
        names, ranked = estimator.feature_names_in_, ~estimator.screened_out_
        enriched = None if sets is None else enrichment(names[estimator.get_support()], names[ranked], sets)
        seconds = seconds_of(lambda: estimator.fit_many(tables))
        sure = _Uncertainty(estimator, tables, seed, part)
        sure.ask("stability", f"stability, {half_samples} half-samples", half_samples, stability_selection)
        sure.ask("interval", f"intervals, {resamples} resamples", resamples, bootstrap_interval)
        for kind in ("permutation", "rotation"):
            sure.ask(kind, f"{kind} null, {null_draws} draws", null_draws, partial(null_reference, kind=kind))
    calls, absent = _rivals(tables, ranked, seed, part) if compare else ([], {})
    nulls = [known for known in sure.known.values() if isinstance(known, NullReference)]
    return Analysis(
        estimator,
        seconds,
        _beside(sure.table(), names[ranked], calls),
        {null.kind: null.line() for null in nulls},
        calls,
        enriched,
        sure.refused | absent,
        list(dict.fromkeys(str(warning.message) for warning in caught)),
    )


COLUMNS = {
    "stability": ["stability"],
    "interval": ["low", "high"],
    "permutation": ["p_value_permutation"],
    "rotation": ["p_value_rotation"],
}


@dataclass
class _Uncertainty:
    """What resampling says, and what it refused to say."""

    estimator: JointHubs
    tables: Tables
    seed: int
    part: Part
    known: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def ask(self, name: str, title: str, how_often: int, compute: Callable[..., Any]) -> None:
        if not how_often:
            return
        with self.part(title, how_often) as tick:
            try:
                self.known[name] = compute(
                    self.estimator, self.tables, n_resamples=how_often, random_state=self.seed, tick=tick
                )
            except ValueError as error:
                self.refused[name] = str(error)

    def table(self) -> pd.DataFrame:
        """`hub_table`; columns that were refused are there and empty."""
        table = hub_table(
            self.estimator,
            stability=self.known.get("stability"),
            interval=self.known.get("interval"),
            null=[known for known in self.known.values() if isinstance(known, NullReference)],
        )
        empty = [column for name in self.refused for column in COLUMNS[name]]
        return table.assign(**dict.fromkeys(empty, np.nan))


def _rivals(tables: Tables, ranked: NDArray[np.bool_], seed: int, part: Part) -> tuple[list[HubCall], dict[str, str]]:
    """What the rivals say of the variables that were ranked, penalties chosen by cross-validation; and who could not, and why."""
    first, *_ = tables.values()
    Xs = [table[first.columns].to_numpy(float)[:, ranked] for table in tables.values()]
    calls: list[HubCall] = []
    absent: dict[str, str] = {}
    with part(f"{len(COMPARED)} rivals (compiling comes first)", len(COMPARED)) as tick:
        warm_up()
        for name in COMPARED:
            try:
                calls += race(Xs, rivals=[name], tunings=("cv",), rng=np.random.default_rng(seed))
            except ValueError as error:
                absent[rival(name).title] = str(error)
            tick()
    return calls, absent


def _beside(table: pd.DataFrame, ranked: NDArray[np.object_], calls: Sequence[HubCall]) -> pd.DataFrame:
    """The table with every rival's rank and selection by its score; empty for what screening left out."""
    columns = {}
    for call in calls:
        columns[f"rank_{call.detector}"] = (-pd.Series(call.score, ranked)).rank(method="min").astype(int)
        columns[f"selected_{call.detector}"] = pd.Series(call.selected["score"], ranked)
    return table.join(pd.DataFrame(columns), on="variable") if columns else table
