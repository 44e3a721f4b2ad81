"""The test bench: a claim is a falsifiable sentence, an experiment that measures it, and a rule fixed before anything is measured.

::

    RACE = Experiment(
        "toy.race", race,                                # race(trial) yields Measurement(method, metric, value)
        conditions={Scale.QUICK: grid(n=[30, 60])}, repeats={Scale.QUICK: 20}, timeout_s={Scale.QUICK: 10})

    CLAIMS = [Claim("toy.wins", "its error is below the plain mean's at every n", reported=None, experiment=RACE,
                    rule=Superior("error", ours="toy", rivals=("mean",), lower_is_better=True, per=("n",)))]
"""

from upheld.claims.claim import Claim
from upheld.claims.estimands import Difference, GeometricRatio, Mean, Quantile, QuantileRatio, Ratio, Share, Slope
from upheld.claims.evidence import Evidence, evidence
from upheld.claims.experiment import Experiment, grid
from upheld.claims.fingerprint import fingerprint
from upheld.claims.judging import judge
from upheld.claims.ledger import Ledger, LedgerError, Result
from upheld.claims.measurements import Measurements
from upheld.claims.preparation import Preparation
from upheld.claims.rules import (
    All,
    Any,
    AtLeast,
    AtMost,
    Equivalent,
    NeverViolated,
    Rate,
    Reported,
    Rule,
    Superior,
    Within,
)
from upheld.claims.runner import Plan, plan, run
from upheld.claims.trial import Measurement, NotRun, Scale, Trial
from upheld.claims.verdict import Finding, Judgement, Outcome, Verdict

__all__ = [
    "All", "Any", "AtLeast", "AtMost", "Claim", "Difference", "Equivalent", "Evidence", "Experiment", "Finding", "GeometricRatio",
    "Judgement", "Ledger", "LedgerError", "Mean", "Measurement", "Measurements", "NeverViolated", "NotRun", "Outcome", "Plan",
    "Preparation", "Quantile", "QuantileRatio", "Rate", "Ratio", "Reported", "Result", "Rule", "Scale", "Share", "Slope",
    "Superior", "Trial", "Verdict", "Within", "evidence", "fingerprint", "grid", "judge", "plan", "run",
]  # fmt: skip
