"""What is claimed of the median of means, made falsifiable."""

from __future__ import annotations

from collections.abc import Iterator

from mom.data import LAWS
from mom.estimator import error_bound, median_of_means
from mom.rivals import RIVALS
from upheld.claims import (
    AtLeast,
    Claim,
    Experiment,
    Measurement,
    NeverViolated,
    Scale,
    Share,
    Superior,
    Trial,
    grid,
)


def estimation_error(trial: Trial) -> Iterator[Measurement]:
    """One sample of size n from a law of mean 0 and variance 1; squared error of every estimator."""
    rng, n = trial.rng(), int(trial.condition["n"])
    x = LAWS[str(trial.condition["law"])](rng, n)
    error = abs(median_of_means(x, rng=rng))
    yield Measurement("mom", "squared error", error**2)
    yield Measurement("mom", "within bound", float(error <= error_bound(1.0, n)))
    yield Measurement("mom", "error over bound", error / error_bound(1.0, n))
    for name, estimate in RIVALS.items():
        yield Measurement(name, "squared error", estimate(x, rng) ** 2)


ERRORS = Experiment(
    "mom.errors",
    estimation_error,
    conditions={
        Scale.SMOKE: grid(law=["pareto"], n=[200]),
        Scale.QUICK: grid(law=["normal", "pareto"], n=[200]),
        Scale.STANDARD: grid(law=list(LAWS), n=[200, 2000]),
    },
    repeats={Scale.SMOKE: 5, Scale.QUICK: 200, Scale.STANDARD: 5000},
    timeout_s={Scale.SMOKE: 20, Scale.QUICK: 20, Scale.STANDARD: 20},
)

CLAIMS = [
    Claim(
        "mom.bound",
        "the error stays within bound (2) in at least 95 % of samples, whatever the tail",
        reported="delta = 0.05",
        experiment=ERRORS,
        rule=AtLeast(Share("within bound", "mom"), 0.95, per=("law",)),
    ),
    Claim(
        "mom.far-below-bound",
        "the error never exceeds the bound at all",
        reported=None,
        experiment=ERRORS,
        rule=NeverViolated("error over bound", "mom", at_most=1.0),
        ours=True,
    ),
    Claim(
        "mom.beats-mean-on-normal",
        "its squared error is below the plain mean's on normal data too",
        reported=None,
        experiment=ERRORS,
        rule=Superior("squared error", ours="mom", rivals=("mean",), lower_is_better=True, where={"law": "normal"}),
        ours=True,
    ),
]
