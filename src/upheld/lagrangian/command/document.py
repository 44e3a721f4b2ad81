"""What a run found, as one JSON document and as tables."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import upheld
from upheld.lagrangian.command.bounding import LEARNED, Bounded, Run
from upheld.lagrangian.command.learning import Learned
from upheld.lagrangian.command.options import Options
from upheld.lagrangian.command.reading import Reader
from upheld.report.content import plain

SCHEMA = "upheld.lagrangian.run/1"
UNLIKE = 0.05  # p-value of an instance that is told to be unlike the past
NO_PRICE = 1e-9  # of pi_max: below, a row is said to have the price 0


def run_document(options: Options, reader: Reader, found: Learned, results: Sequence[Bounded]) -> dict[str, Any]:
    """``report.json``; bounds and plans in the sense in which the user stated the problem."""
    assert reader.first is not None  # something was read
    P = reader.first.M
    pi = results[-1].pi
    return {
        "schema": SCHEMA,
        "settings": options.settings(),
        "versions": {
            "upheld": upheld.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "highspy")},
        },
        "sense": "max" if P.maximise else "min",
        "coupling": {
            "found_by": reader.found_by,
            "rows": list(P.row_names),
            "equations": int(P.equality.sum()),
            "blocks": P.n_blocks,
            "block_rows": int(P.d.size),
            "variables": int(P.c.size),
            "whole_number_variables": int(P.integrality.sum()),
        },
        "learning": {name: _plain(value) for name, value in found.account.items()},
        "multipliers": dict(zip(P.row_names, pi.tolist(), strict=True)),
        "rows_without_price": int((np.abs(pi) <= NO_PRICE * max(1.0, float(np.abs(pi).max(initial=0.0)))).sum()),
        "instances": [_instance(one) for one in results],
        "remarks": _remarks(P.n_blocks, int(P.d.size), bool(P.integrality.any()), results),
    }


def _plain(value: Any) -> Any:
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else plain(value)


def _instance(one: Bounded) -> dict[str, Any]:
    ours, plan = one.runs[LEARNED], one.plan
    return {
        "instance": one.read.title,
        "lp_bound": plain(one.lp_bound),
        "learned_bound": ours.first,
        "bound_after_steps": ours.best,
        "steps": int(ours.u.size - 1),
        "plan": None if plan is None else plain(plan.value),
        "bound": plain(one.bound),
        "gap": one.gap,
        "nodes": None if plan is None else plan.nodes,
        "exact": ours.exact,
        "p_value_of_drift": one.strangeness,
        "highs_root_bound": None if one.highs_root is None else plain(one.highs_root.bound),
        "gcg_root_bound": None if one.gcg_root is None else plain(one.gcg_root.bound),
        "not_run": one.not_run,
        "rivals": {name: {"first": run.first, "best": run.best} for name, run in one.runs.items() if name != LEARNED},
        "seconds": {
            "lp": one.lp_seconds,
            **{name: float(run.seconds[-1]) for name, run in one.runs.items()},
            **({} if plan is None else {"plan": plan.seconds}),
            **({} if one.highs_root is None else {"HiGHS root": one.highs_root.seconds}),
            **({} if one.gcg_root is None else {"GCG root": one.gcg_root.seconds}),
        },
    }


def _remarks(blocks: int, block_rows: int, mixed: bool, results: Sequence[Bounded]) -> list[str]:
    """What a user should know before trusting or tuning."""
    remarks = []
    if block_rows == 0:
        remarks.append(
            "no row is left for the blocks, so that the Lagrangian bound cannot be above the LP's; couple fewer rows"
        )
    elif blocks == 1:
        remarks.append("without the coupling rows the model does not fall apart: it is one block, as hard as the whole")
    if not mixed:
        remarks.append("no variable must be a whole number: the LP itself solves this, and no multipliers do better")
    for one in results:
        if one.strangeness is not None and one.strangeness <= UNLIKE:
            remarks.append(
                f"{one.read.name} is unlike the past (p = {one.strangeness:.2g}): its learned multipliers may be poor, its bounds hold"
            )
        if one.plan is not None and one.gap is None:
            remarks.append(f"no plan for {one.read.name} was found in time; give it more --seconds")
        if not one.runs[LEARNED].exact:
            remarks.append(f"some blocks of {one.read.name} stopped early; their proven bounds were used")
    below = [one for one in results if not _better(one.runs[LEARNED].best, one.lp_bound, one.read.P.maximise)]
    if below:
        which = "every instance" if len(below) == len(results) else f"{len(below)} of {len(results)} instances"
        remarks.append(
            f"on {which} the LP bound is as good or better; more --steps close in on the best Lagrangian bound"
        )
    return remarks


def _better(bound: float, than: float, maximise: bool) -> bool:
    return bound < than if maximise else bound > than


def bounds_table(results: Sequence[Bounded], document: dict[str, Any]) -> pd.DataFrame:
    """``bounds.parquet``, one row a block solution.

    Its columns are instance, learner, start, step, u, g_norm, upper_bound (the plan), gap, seconds, oracle_calls, exact.
    """
    learner = document["learning"].get("learner", "loaded")
    return pd.DataFrame([row for one in results for run in one.runs.values() for row in _steps(one, run, learner)])


def _steps(one: Bounded, run: Run, learner: str) -> list[dict[str, Any]]:
    value = None if one.plan is None or not np.isfinite(one.plan.value) else one.plan.value
    best = np.minimum.accumulate(run.u) if run.maximise else np.maximum.accumulate(run.u)
    return [
        {
            "instance": one.read.name, "learner": learner, "start": "learned" if run.start == LEARNED else run.start, "step": step,
            "u": float(run.u[step]), "g_norm": float(run.g_norm[step]), "upper_bound": np.nan if value is None else value,
            "gap": np.nan if value is None else abs(value - best[step]) / max(1.0, abs(value)),
            "seconds": float(run.seconds[step]), "oracle_calls": step + 1, "exact": run.exact,
        }
        for step in range(run.u.size)
    ]  # fmt: skip


def prices_table(found: Learned, last: Bounded) -> pd.DataFrame:
    """A row a coupling row: the multiplier in the sense of the objective, and the LP multipliers of the past, mean and spread."""
    past = found.duals
    return pd.DataFrame(
        {
            "row": last.read.P.row_names,
            "multiplier": last.pi,
            "mean_lp_multiplier": past.mean(axis=0) if len(past) else np.nan,
            "sd_lp_multiplier": past.std(axis=0, ddof=1) if len(past) > 1 else np.nan,
        }
    )


def plan_table(results: Sequence[Bounded]) -> pd.DataFrame:
    """What is not zero in the plans: instance, variable, value."""
    rows = [
        {"instance": one.read.name, "variable": one.read.columns[j], "value": float(one.plan.x[j])}
        for one in results
        if one.plan is not None and one.plan.x is not None
        for j in np.flatnonzero(np.abs(one.plan.x) > 1e-9).tolist()
    ]
    return pd.DataFrame(rows, columns=["instance", "variable", "value"])
