"""Streams whose effect is known, and the real data on which streaming balancing is judged.

`DriftStream` is the generator of all simulated claims. Real data come from the packages that ship them: NHEFS and LaLonde from causaldata
(MIT), the covariates and responses of the 2016 ACIC competition from causallib (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from upheld.effects.rows import FloatArray

SCENARIOS = ("none", "assignment", "outcome", "both")
FAMILIES = ("smooth", "linear", "step", "interaction")
LOGITS = ("nonlinear", "linear")
PACES = ("gradual", "abrupt")
LEAST_COVARIATES = 4


def _smooth(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    base = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 / 2 + x[:, 2] * x[:, 3] + x[:, 0] / 2
    return base, 1 + x[:, 0] / 2 + np.cos(x[:, 1]) / 2


def _linear(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    return x[:, 0] + x[:, 1] / 2 + x[:, 2] / 2, 1 + x[:, 0] / 2


def _step(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = ((x[:, 1] > 0) & (x[:, 2] > 0)).astype(float)
    high = (x[:, 0] > 0).astype(float)
    return 2 * high + both, 1 + high


def _interaction(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    return x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + x[:, 0] / 2, 1 + x[:, 0] * x[:, 1] / 2


OUTCOMES: dict[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "smooth": _smooth, "linear": _linear, "step": _step, "interaction": _interaction,
}  # fmt: skip


@dataclass
class DriftStream:
    """n rows of a stream in which the assignment, the outcomes, both or nothing drifts.

    x ~ N(0, I_d), u = t/n; treatment by a logit clipped to +-3, unit noise on the outcomes.

    Parameters
    ----------
    n, d : rows and covariates, at least 4
    scenario : "none"; "assignment": logit <- logit (1.2 - 0.8u) - 1.5 sin(2 pi u); "outcome": f0 += 2u + (2u - 1) x1, tau += u; "both"
    family : outcome function f0 and effect tau: "smooth", "linear", "step", "interaction"
    logit : "nonlinear" x1 + 0.7 sin 2 x2 + 0.5 x3 x4, "linear" x1 + x2/2
    pace : "gradual", or "abrupt": u is 0, then 1 from the middle on, and the sine is +1, then -1
    mean_drift : of an AR(1) mean of the covariates, standard deviation at equilibrium; 0 for none
    seed : of everything

    Attributes
    ----------
    X (n, d), w (n,) 0/1, y (n,); tau (n,) effect of each row; effect : their mean, the target

    Examples
    --------
    >>> stream = DriftStream(8000, 6, "both", seed=0)
    >>> naive = stream.y[stream.w == 1].mean() - stream.y[stream.w == 0].mean()
    >>> round(stream.effect, 1), bool(naive - stream.effect > 1)
    (1.8, True)
    """

    n: int
    d: int
    scenario: str
    family: str = "smooth"
    logit: str = "nonlinear"
    pace: str = "gradual"
    seed: int = 0
    mean_drift: float = 0.0
    X: FloatArray = field(init=False, repr=False)
    w: NDArray[np.int64] = field(init=False, repr=False)
    y: FloatArray = field(init=False, repr=False)
    tau: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, allowed in (("scenario", SCENARIOS), ("family", FAMILIES), ("logit", LOGITS), ("pace", PACES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; take one of {', '.join(allowed)}")
        if self.d < LEAST_COVARIATES or self.n < 1:
            raise ValueError(
                f"a stream has at least {LEAST_COVARIATES} covariates and one row, got d={self.d}, n={self.n}; enlarge them"
            )
        rng = np.random.default_rng(self.seed)
        x = rng.standard_normal((self.n, self.d)) + self._mean(rng)
        u, shift = self._progress()
        drifting = {"assignment": (True, False), "outcome": (False, True)}.get(
            self.scenario, (self.scenario == "both",) * 2
        )
        logit = self._logit(x)
        if drifting[0]:
            logit = logit * (1.2 - 0.8 * u) + shift
        propensity = 1 / (1 + np.exp(-np.clip(logit, -3, 3)))
        base, tau = OUTCOMES[self.family](x)
        if drifting[1]:
            base, tau = base + 2 * u + (2 * u - 1) * x[:, 0], tau + u
        self.w = (rng.random(self.n) < propensity).astype(np.int64)
        self.X, self.tau = x, tau
        self.y = base + self.w * tau + rng.standard_normal(self.n)

    @property
    def effect(self) -> float:
        """Mean effect over the rows."""
        return float(self.tau.mean())

    def _mean(self, rng: np.random.Generator) -> FloatArray:
        if not self.mean_drift:
            return np.zeros((1, self.d))
        memory = np.exp(-10 / self.n)
        mean = np.zeros((self.n, self.d))
        steps = rng.standard_normal((self.n, self.d)) * self.mean_drift * np.sqrt(1 - memory**2)
        for t in range(1, self.n):
            mean[t] = memory * mean[t - 1] + steps[t]
        return mean

    def _progress(self) -> tuple[FloatArray, FloatArray]:
        """u, and what the assignment's drift adds to the logit."""
        u = np.arange(self.n) / self.n
        if self.pace == "gradual":
            return u, -1.5 * np.sin(2 * np.pi * u)
        late = (u >= 0.5).astype(float)
        return late, 3.0 * late - 1.5

    def _logit(self, x: FloatArray) -> FloatArray:
        if self.logit == "linear":
            return x[:, 0] + x[:, 1] / 2
        return x[:, 0] + 0.7 * np.sin(2 * x[:, 1]) + 0.5 * x[:, 2] * x[:, 3]


@dataclass(frozen=True)
class ObservedRows:
    """A real data set: covariates, arm (0/1), outcome; `effect` where it is known, and in what way."""

    X: pd.DataFrame
    w: NDArray[np.int64]
    y: FloatArray
    effect: float | None
    source: str

    def __getitem__(self, rows: NDArray[np.intp]) -> ObservedRows:
        return ObservedRows(
            self.X.iloc[rows].reset_index(drop=True), self.w[rows], self.y[rows], self.effect, self.source
        )

    def ordered(self, order: str, seed: int = 0) -> ObservedRows:
        """As a stream: "random", by "covariate" (the first one that varies most), or by "treatment" (at random within it)."""
        rows = np.random.default_rng(seed).permutation(len(self.y))
        if order == "covariate":
            column = self.X.select_dtypes("number").nunique().idxmax()
            rows = rows[np.argsort(self.X[column].to_numpy()[rows], kind="stable")]
        elif order == "treatment":
            rows = rows[np.argsort(self.w[rows], kind="stable")]
        elif order != "random":
            raise ValueError(f"unknown order {order!r}; take random, covariate or treatment")
        return self[rows]


def load_nhefs() -> ObservedRows:
    """Smoking cessation and weight gain, 1971 to 1982: 1,566 complete rows, nine confounders (Hernan & Robins, *What If*).

    Published effect of quitting: 3.4 kg by inverse weighting (95 % interval 2.4 to 4.5), 3.5 by standardisation.
    """
    import causaldata

    table = causaldata.nhefs_complete.load_pandas().data
    words, numbers = ["sex", "race", "education", "exercise", "active"], ["age", "wt71", "smokeintensity", "smokeyrs"]
    X = pd.concat([table[words].astype(float).astype(int).astype("category"), table[numbers].astype(float)], axis=1)
    return ObservedRows(
        X, table["qsmk"].to_numpy(dtype=np.int64), table["wt82_71"].to_numpy(float), None, "NHEFS (causaldata)"
    )


LALONDE = ("age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75")


def load_lalonde(controls: str = "cps") -> ObservedRows:
    """Job training and earnings of 1978 (US dollars; LaLonde 1986, Dehejia & Wahba 1999): 185 treated men.

    controls : "experimental", 260 randomised ones, from which the effect on the treated is 1,794; or "cps", 15,992 of a survey.
    """
    import causaldata

    experiment = causaldata.nsw_mixtape.load_pandas().data
    y, w = experiment["re78"].to_numpy(float), experiment["treat"].to_numpy(dtype=np.int64)
    effect = float(y[w == 1].mean() - y[w == 0].mean())
    if controls == "experimental":
        table = experiment
    elif controls == "cps":
        survey = causaldata.cps_mixtape.load_pandas().data
        table = pd.concat([experiment[experiment["treat"] == 1], survey], ignore_index=True)
    else:
        raise ValueError(f"unknown controls {controls!r}; take experimental or cps")
    X = table[list(LALONDE)].astype(float).reset_index(drop=True)
    return ObservedRows(
        X, table["treat"].to_numpy(dtype=np.int64), table["re78"].to_numpy(float), effect, "LaLonde (causaldata)"
    )


@cache
def _acic(instance: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    if instance not in range(1, 11):
        raise ValueError(f"there is no response file zymu_{instance}; take 1 to 10")
    from causallib.datasets import load_acic16

    X, responses = load_acic16(instance, raw=True)
    return X, responses


def load_acic(instance: int = 1) -> ObservedRows:
    """Covariates of 4,802 pregnancies with simulated arms and outcomes, `instance` 1 to 10 (Dorie et al. 2019); the effect is known."""
    X, responses = _acic(instance)
    w = responses["z"].to_numpy(dtype=np.int64)
    y = np.where(w == 1, responses["y1"], responses["y0"])
    return ObservedRows(
        X, w, y, float((responses["mu1"] - responses["mu0"]).mean()), f"ACIC 2016 zymu_{instance} (causallib)"
    )


def replicated_acic(instance: int, n: int, seed: int) -> ObservedRows:
    """A longer stream with ACIC's covariates: n rows drawn with replacement, each with a residual drawn from the arm's own ones."""
    X, responses = _acic(instance)
    data = load_acic(instance)
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(data.y), size=n)
    means = responses[["mu0", "mu1"]].to_numpy()
    residual = data.y - means[np.arange(len(data.y)), data.w]
    w = data.w[rows]
    y = means[rows, w]
    for arm in (0, 1):
        mine = w == arm
        y[mine] += rng.choice(residual[data.w == arm], size=int(mine.sum()))
    effect = float((means[rows, 1] - means[rows, 0]).mean())
    return ObservedRows(X.iloc[rows].reset_index(drop=True), w, y, effect, f"{data.source}, {n} rows with replacement")
