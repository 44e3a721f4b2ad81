"""What the ledger holds of an experiment at one scale for the present sources: read once, whatever number of claims are about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from upheld.claims.experiment import Experiment
from upheld.claims.fingerprint import fingerprint
from upheld.claims.ledger import Ledger
from upheld.claims.measurements import Measurements
from upheld.claims.trial import Scale


@dataclass(frozen=True, eq=False)
class Evidence:
    """The trials that an experiment wants, as far as they are there.

    Parameters
    ----------
    wanted : number of trials
    frame : measurements in long format, see `Ledger.measurements`
    costs : trials with status, reason, seconds, peak memory, see `Ledger.costs`
    units : see `Experiment`
    sources : fingerprint of what they were measured with
    """

    wanted: int
    frame: pd.DataFrame
    costs: pd.DataFrame
    units: str
    sources: str

    @cached_property
    def measurements(self) -> Measurements:
        """As the rules read them."""
        return Measurements(self.frame, self.units)


def evidence(experiment: Experiment, scale: Scale, ledger: Ledger) -> Evidence:
    """Read an experiment's results."""
    sources, wanted = fingerprint(experiment.method), experiment.keys(scale)
    return Evidence(
        len(wanted),
        ledger.measurements(experiment.name, scale, sources, wanted),
        ledger.costs(experiment.name, scale, sources, wanted),
        experiment.units,
        sources,
    )
