"""Results as a real run leaves them: every outcome, failures, twelve rivals, and names that would like to be HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from upheld.claims import (
    All,
    Any,
    AtLeast,
    Claim,
    Difference,
    Equivalent,
    Experiment,
    GeometricRatio,
    Ledger,
    Mean,
    Measurement,
    NeverViolated,
    Rate,
    Reported,
    Result,
    Scale,
    Superior,
    Trial,
    Within,
    fingerprint,
    grid,
)
from upheld.report.results import MethodResults, gather

HOSTILE = "<script>alert('x')</script>"
RIVALS = (
    "sample mean", "trimmed mean", "huber", "winsorised", "tukey biweight", "hodges-lehmann", "median", "catoni", "lepski",
    "shorth", "half-sample mode", f"{HOSTILE} & co",
)  # fmt: skip
N = [30, 100, 300, 1000, 3000]
VERSIONS = {"python": "3.11.9", "upheld": "0.1.0", "numpy": "2.4.1", "scipy": "1.17.0", "scikit-learn": "1.9.0"}


def race(trial: Trial) -> Iterator[Measurement]:
    """Errors that shrink with n; the method wins clearly where tails are heavy, and hardly elsewhere."""
    rng = trial.rng()
    n, gain = float(trial.condition["n"]), {"pareto": 0.35, "normal": 0.02}[str(trial.condition["law"])]
    sample = rng.normal(scale=0.1)
    for rank, name in enumerate(("mom", *RIVALS)):
        error = (
            np.exp(sample + rng.normal(scale=0.15)) * (1 if name == "mom" else 1 + gain + 0.04 * rank) * 3 / np.sqrt(n)
        )
        yield Measurement(name, "error", float(error))
        yield Measurement(name, "coverage", float(np.clip(0.95 - 0.01 * rank + rng.normal(scale=0.03), 0, 1)))
        yield Measurement(name, "seconds", float(np.exp(rng.normal(scale=0.2)) * (1 + rank) * n * 1e-6))
    yield Measurement("mom", "excess over the bound", float(-abs(rng.normal())))


def accuracy(trial: Trial) -> Iterator[Measurement]:
    rng = trial.rng()
    base = rng.normal(0.7, 0.05)
    for name, shift in {"mom": 0.0, "huber": 0.002, "median": -0.004, "worse": -0.08, "better": 0.06}.items():
        yield Measurement(name, "accuracy", float(base + shift + rng.normal(scale=0.015)))


RACE = Experiment(
    "toymethod.race", race, {Scale.QUICK: grid(n=N, law=["pareto", "normal"]), Scale.SMOKE: grid(n=N[:2], law=["pareto"])},
    {Scale.QUICK: 12, Scale.SMOKE: 2}, {Scale.QUICK: 10, Scale.SMOKE: 10},
)  # fmt: skip
ACCURACY = Experiment(
    "toymethod.accuracy",
    accuracy,
    {Scale.QUICK: [{"data": "digits", "folds": 5}]},
    {Scale.QUICK: 20},
    {Scale.QUICK: 10},
)
BROKEN = Experiment("toymethod.broken", accuracy, {Scale.QUICK: grid(p=[60, 400])}, {Scale.QUICK: 8}, {Scale.QUICK: 10})
ABSENT = Experiment("toymethod.absent", accuracy, {Scale.QUICK: [{}]}, {Scale.QUICK: 5}, {Scale.QUICK: 10})
LATER = Experiment("toymethod.later", accuracy, {Scale.FULL: [{}]}, {Scale.FULL: 5}, {Scale.FULL: 10})
UNMEASURED = Experiment("toymethod.unmeasured", accuracy, {Scale.QUICK: [{}]}, {Scale.QUICK: 6}, {Scale.QUICK: 10})

CLAIMS = (
    Claim(
        "toymethod.beats-rivals",
        "its error is below every rival's on heavy tails, at every sample size",
        "30 to 60 % lower (Table 2)",
        RACE,
        Superior("error", "mom", RIVALS, lower_is_better=True, relative=True, where={"law": "pareto"}, per=("n",)),
    ),
    Claim(
        "toymethod.rate",
        "its error falls as the square root of the sample size",
        "exponent −1/2",
        RACE,
        Rate("error", "mom", x="n", low=-0.6, high=-0.4),
    ),
    Claim(
        "toymethod.everywhere",
        "it is at least as accurate as the strongest competitor",
        None,
        ACCURACY,
        Superior("accuracy", "mom", ("better", "worse")),
    ),
    Claim(
        "toymethod.median",
        "it is more accurate than the median",
        None,
        ACCURACY,
        Superior("accuracy", "mom", ("median",), margin=0.002),
        note="the margin is the authors' own rounding",
    ),
    Claim(
        "toymethod.bound",
        "its error never exceeds the bound of Theorem 1",
        "never",
        RACE,
        NeverViolated("excess over the bound", "mom", at_most=0.0),
    ),
    Claim(
        "toymethod.cheap",
        f"it costs no more than the mean {HOSTILE}",
        "“negligible” <b>overhead</b>",
        RACE,
        Within(GeometricRatio("seconds", "mom", "sample mean"), high=1.0),
    ),
    Claim("toymethod.large", "it stays accurate at p = 400", None, BROKEN, AtLeast(Mean("accuracy", "mom"), 0.5)),
    Claim(
        "toymethod.private",
        "it finds the genes that the clinic's own data show",
        None,
        ABSENT,
        AtLeast(Mean("accuracy", "mom"), 0.5),
    ),
    Claim(
        "toymethod.paper-scale",
        "it scales to a million variables",
        "two hours",
        LATER,
        AtLeast(Mean("accuracy", "mom"), 0.5),
    ),
    Claim(
        "toymethod.unmeasured", "its accuracy survives noise", None, UNMEASURED, AtLeast(Mean("accuracy", "mom"), 0.5)
    ),
    Claim(
        "toymethod.equal",
        "it is equivalent to Huber's estimator on clean data",
        None,
        ACCURACY,
        Equivalent("accuracy", "mom", "huber", 0.02),
        ours=True,
    ),
    Claim(
        "toymethod.either",
        "it beats at least one rival in accuracy and never loses coverage",
        None,
        ACCURACY,
        Any((Superior("accuracy", "mom", ("worse",)), Superior("accuracy", "mom", ("better",)))),
        ours=True,
    ),
    Claim(
        "toymethod.both",
        "its coverage is nominal and its speed is the mean's",
        None,
        RACE,
        All(
            (
                Within(Mean("coverage", "mom"), 0.93, 0.97, per=("n",)),
                Within(GeometricRatio("seconds", "mom", "huber"), high=0.5),
            )
        ),
        ours=True,
    ),
    Claim(
        "toymethod.figures",
        "what it costs and reaches",
        None,
        RACE,
        Reported(
            (
                Mean("seconds", "mom"),
                Mean("coverage", "mom"),
                Difference(Mean("error", "mom"), Mean("error", "median")),
            ),
            per=("n",),
        ),
        ours=True,
    ),
)

PLAIN_RACE = Experiment(
    "plainmethod.race", accuracy, {Scale.QUICK: grid(k=[2, 4, 8])}, {Scale.QUICK: 10}, {Scale.QUICK: 10}
)
PLAIN_CLAIMS = (
    Claim(
        "plainmethod.wins",
        "it is more accurate than the usual choice",
        "4 points",
        PLAIN_RACE,
        Superior("accuracy", "mom", ("worse",), per=("k",)),
    ),
    Claim(
        "plainmethod.margin",
        "by five points at least",
        "5 points",
        PLAIN_RACE,
        Superior("accuracy", "mom", ("worse",), margin=0.078, per=("k",)),
    ),
)


def errors(frame: pd.DataFrame) -> Figure:
    """Error against sample size, on logarithmic axes."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    means = (
        frame[(frame["metric"] == "error") & (frame["law"] == "pareto")]
        .groupby(["method", "n"])["value"]
        .mean()
        .unstack()
    )
    for name in ("median", "huber", "mom"):
        axes.loglog(means.columns, means.loc[name], marker="o", label=name)
    axes.set(xlabel="sample size n", ylabel="mean absolute error", title=f"Error on heavy tails {HOSTILE}")
    axes.legend(frameon=False)
    return figure


def undrawable(frame: pd.DataFrame) -> Figure:
    raise KeyError(f"no column {HOSTILE}")


PICTURES = {"toymethod.beats-rivals": errors, "toymethod.rate": errors, "toymethod.bound": undrawable}


def _fate(trial: Trial) -> Result:
    costs: Mapping[str, object] = {
        "seconds": float(trial.rng("seconds").gamma(4, 0.4)), "peak_memory": 180_000_000 + 1_000_000 * trial.seed,
        "host": "workbench", "versions": VERSIONS,
    }  # fmt: skip
    measure = {one.name: one.measure for one in (RACE, ACCURACY, BROKEN, ABSENT, PLAIN_RACE)}[trial.experiment]
    if trial.experiment == ABSENT.name:
        return Result(trial, "not run", reason=f"needs the clinic's table, name it with --data {HOSTILE}", **costs)  # type: ignore[arg-type]
    if trial.experiment == BROKEN.name and trial.condition["p"] == 400 and trial.seed % 2:
        return Result(trial, "failed", reason=f"MemoryError: cannot allocate {HOSTILE}", **costs)  # type: ignore[arg-type]
    if trial.experiment == RACE.name and trial.seed == 3 and trial.condition["n"] == 3000:
        return Result(trial, "failed", reason="timed out after 10 s", **costs)  # type: ignore[arg-type]
    return Result(trial, "done", tuple(measure(trial)), **costs)  # type: ignore[arg-type]


def make_packages(folder: Path) -> None:
    for package in ("toymethod", "plainmethod"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(f'NAME = "{package}"\n')


def build(folder: Path, scale: Scale = Scale.QUICK) -> list[MethodResults]:
    """Results of two methods, whose packages are in `folder`, which is on the path."""
    with Ledger(folder / f"{scale}.sqlite") as ledger:
        for experiment in (RACE, ACCURACY, BROKEN, ABSENT, PLAIN_RACE):
            for trial in experiment.trials(scale):
                ledger.record(_fate(trial), fingerprint(experiment.method))
        ledger.remember_verdict(
            "toymethod.median", scale, fingerprint("toymethod"), f"Superior(margin=0.0, {HOSTILE})", "upheld"
        )
        return [
            gather(
                "toymethod", f"Median of means {HOSTILE}", "robust statistics", "a mean that a few wild values cannot move",
                "G. Lugosi & S. Mendelson: Mean estimation, <i>FoCM</i> 2019", CLAIMS, PICTURES, scale, ledger,
            ),
            gather(
                "plainmethod", "A plain method", "toys", "two claims and nothing to hide", "A. Author: A paper, ICML 2026",
                PLAIN_CLAIMS, {}, scale, ledger,
            ),
        ]  # fmt: skip
