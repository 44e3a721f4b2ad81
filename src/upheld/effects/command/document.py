"""What a run found, as JSON: a line a report, and one document at the end."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
from dataclasses import asdict
from typing import Any

import upheld
from upheld.effects.balancer import StreamingBalancer
from upheld.effects.command.columns import Columns
from upheld.effects.command.journey import Journey
from upheld.effects.command.options import Options
from upheld.effects.command.watching import Report
from upheld.effects.estimate import ASSUMPTIONS, EffectEstimate
from upheld.effects.stream import EffectStream
from upheld.report.content import records

SCHEMA, LINE_SCHEMA = "upheld.effects.run/1", "upheld.effects.report/1"
NOTICE = (
    "A reconstruction: of the paper (ICML 2026) the abstract alone is public. Residual pooling, blocks and confidence sequences are not "
    "the paper's; --as-described goes without the first two."
)
FEW_ARMS = "all rows so far have the same treatment; there is nothing to compare with"
REASONS = {
    "overlap": "overlap is lost: fewer than 20 rows were seen, or are effectively used, in one of the arms, so that nothing like it "
    "was observed for many rows; more rows of that arm, fewer covariates, or --estimand att may help",
    "fewer than two arms seen": FEW_ARMS,
}


def in_words(reason: str) -> str:
    """Why there is no effect."""
    return REASONS.get(reason, reason)


def report_line(report: Report) -> str:
    """One line of strict JSON."""
    estimate = json.loads(report.estimate.to_json())
    estimate.pop("assumptions")
    return json.dumps(
        {"schema": LINE_SCHEMA, "rows_read": report.rows, "rows_per_second": round(report.rate), **estimate},
        ensure_ascii=False,
        allow_nan=False,
    )


def run_document(
    options: Options,
    balancer: StreamingBalancer,
    columns: Columns | None,
    journey: Journey,
    estimate: EffectEstimate,
    beside: dict[str, EffectStream],
) -> dict[str, Any]:
    """``report.json``."""
    found = json.loads(estimate.to_json())
    assumptions = found.pop("assumptions")
    return {
        "schema": SCHEMA,
        "notice": NOTICE,
        "assumptions": assumptions,
        "settings": options.settings(),
        "columns": None
        if columns is None
        else {name: getattr(columns, name) for name in ("treatment", "outcome", "time", "covariates")},
        "versions": {
            "upheld": upheld.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pandas")},
        },
        "files": [{"name": one.name, "rows": one.rows} for one in journey.files],
        "skipped": {} if columns is None else dict(columns.skipped),
        "estimate": found,
        "refused": {str(one.arm): in_words(one.reason) for one in estimate.contrasts if one.reason},
        "difference_in_means": {str(label): gap for label, gap in journey.differences().items()},
        "beside": {name: _beside(other) for name, other in beside.items()},
        "sensitivity": []
        if balancer.feature_map_ is None
        else [_finite(one.state()) for one in balancer.sensitivity()],
        "balance": records(balancer.balance_table()),
        "blocks": {
            "closed": int(balancer.blocks_["block"].nunique()),
            "rows_open": balancer.n_seen_ - _closed_rows(balancer),
        },
        "estimates": [asdict(one) for one in journey.way],
    }


def _finite(value: Any) -> Any:
    """NaN and infinity, which JSON lacks, as null."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _closed_rows(balancer: StreamingBalancer) -> int:
    return int(balancer.blocks_.drop_duplicates("block")["n"].sum())


def _beside(other: EffectStream) -> dict[str, Any]:
    estimate = other.estimate()
    return {
        "memory_bytes": other.memory_bytes_,
        "contrasts": [json.loads(estimate.to_json())["contrasts"][number] for number in range(len(estimate.contrasts))],
    }


def assumptions() -> str:
    return "Causal only if " + "; ".join(ASSUMPTIONS) + "."
