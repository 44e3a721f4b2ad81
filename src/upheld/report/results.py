"""What a report is made of: for each method its claims, their verdicts, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from upheld.claims import Claim, Ledger, Scale, Verdict, evidence, fingerprint, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Callable[[pd.DataFrame], "Figure"]


@dataclass(frozen=True)
class MethodResults:
    """One method's results at one scale.

    Parameters
    ----------
    name, title, field, summary, paper : as in the catalog
    claims, verdicts : in the same order
    frames : measurements in long format by experiment name (see `Ledger.measurements`)
    costs : trials with status, reason, seconds, peak memory in bytes, host, versions by experiment name (see `Ledger.costs`)
    pictures : by claim id, a function from its experiment's measurements to a figure
    """

    name: str
    title: str
    field: str
    summary: str
    paper: str
    scale: Scale
    fingerprint: str
    claims: Sequence[Claim]
    verdicts: Sequence[Verdict]
    frames: Mapping[str, pd.DataFrame]
    costs: Mapping[str, pd.DataFrame]
    pictures: Mapping[str, Picture]


def gather(
    name: str, title: str, field: str, summary: str, paper: str,
    claims: Sequence[Claim], pictures: Mapping[str, Picture], scale: Scale, ledger: Ledger,
) -> MethodResults:  # fmt: skip
    """Judge every claim of a method on what the ledger holds."""
    sources = fingerprint(name)
    experiments = {claim.experiment.name: claim.experiment for claim in claims}
    found = {name: evidence(experiment, scale, ledger) for name, experiment in experiments.items()}
    return MethodResults(
        name, title, field, summary, paper, scale, sources, claims,
        verdicts=[judge(claim, scale, ledger, found[claim.experiment.name]) for claim in claims],
        frames={name: one.frame for name, one in found.items()},
        costs={name: one.costs for name, one in found.items()},
        pictures=pictures,
    )  # fmt: skip
