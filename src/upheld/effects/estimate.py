"""From items to an average effect with its standard error, or a refusal (section 5).

Arm mean at the target mean mu of the features, with balancing weights alpha and ridge regression theta_hat (intercept included):

    mu_a = theta_hat_a . mu + sum_j alpha_j (y_j - theta_hat_a . phi_j)            augmented
    mu_a = sum_j alpha_j y_j                                                      not augmented
    V_a  = sum_j alpha_j^2 q_j / m_j + |theta_a|^2 discrepancy_sq_a / (D M^2)      (alpha_j^2 q_j where y_j is one row's outcome)

The second term is the error of the compressed features read as spread evenly over D directions; the worst case,
|theta_a| sqrt(discrepancy_sq_a) / M, is reported as `compression_allowance` and never added. Rows effectively used:
1 / sum_j (alpha_j^2 / m_j). Below 20, or with an arm of fewer than 20 rows, there is no estimate but the reason `overlap`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from upheld.effects.pooling import GcvTerms, least_gcv, ridge
from upheld.effects.rows import FloatArray, Label
from upheld.effects.weights import entropy_weights, quadratic_weights

LEAST_ROWS = 20
ESTIMANDS = ("ate", "att", "atc", "recent")
ASSUMPTIONS = (
    "one unit's treatment does not change another's outcome (SUTVA)",
    "every kind of unit could have received every arm (positivity)",
    "given the covariates and calendar position, treatment is as good as random (ignorability)",
)


@dataclass(frozen=True)
class Recipe:
    """How items become an estimate: `loss`, `constraints`, `lam` (number or "gcv"), `augment` as in `StreamingBalancer`."""

    loss: str
    constraints: str
    lam: float | str
    augment: bool


@dataclass(frozen=True)
class ArmMean:
    """Mean outcome of the target had it received this arm; `reason` says why there is none.

    weights (N,) of the arm's items; intercept, coef (D,): theta_hat; x_mean (d,), phi_mean (D,): weighted means
    of coordinates and features; observed: whether it is the arm's mean over its own rows.
    """

    mean: float
    variance: float
    ess: float
    imbalance: float
    allowance: float
    n: int
    reason: str = ""
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    intercept: float = 0.0
    coef: FloatArray = field(default_factory=lambda: np.empty(0))
    x_mean: FloatArray = field(default_factory=lambda: np.empty(0))
    phi_mean: FloatArray = field(default_factory=lambda: np.empty(0))
    observed: bool = False


def refused(n: int, reason: str) -> ArmMean:
    return ArmMean(np.nan, np.nan, np.nan, np.nan, np.nan, n, reason)


class Evidence(Protocol):
    """What is known of an arm, ready for a query."""

    @property
    def n(self) -> int:
        """Rows seen."""
        ...

    def mean_at(self, target: FloatArray, recipe: Recipe, lam: float) -> ArmMean:
        """Mean outcome of the target whose features have mean `target` (D,), had it received this arm."""
        ...

    def own_mean(self, lam: float) -> ArmMean:
        """Mean outcome of the arm itself."""
        ...

    def gcv_terms(self) -> GcvTerms:
        """For the choice of lambda over all arms."""
        ...

    def second_moment(self) -> FloatArray:
        """(D, D): mean of phi phi' over the arm's rows."""
        ...


def common_lambda(arms: Sequence[Evidence], lam: float | str) -> float:
    """`lam` itself, or the choice of generalised cross-validation over all arms together."""
    return least_gcv([arm.gcv_terms() for arm in arms]) if lam == "gcv" else float(lam)


@dataclass(frozen=True)
class Sample:
    """N weighted items of an arm of n rows.

    X (N, d) coordinates; phi (N, D); y (N,); mass (N,): rows they stand for, discounted or not; averaged (N,): how many outcomes
    y_j is the mean of; q (N,): mean squared residual of those, None for the item's own; half (N,): 0/1 under cross-fitting, else 0;
    y_mean, x_mean (d,), phi_mean (D,): exact means over the arm.
    """

    n: int
    y_mean: float
    x_mean: FloatArray
    phi_mean: FloatArray
    X: FloatArray
    phi: FloatArray
    y: FloatArray
    mass: FloatArray
    averaged: FloatArray
    q: FloatArray | None
    half: NDArray[np.intp]
    discrepancy_sq: float

    def gcv_terms(self) -> GcvTerms:
        return GcvTerms.of(self.phi, self.y, self.mass)

    def second_moment(self) -> FloatArray:
        moment: FloatArray = (self.phi * (self.mass / self.mass.sum())[:, None]).T @ self.phi
        return moment

    def mean_at(self, target: FloatArray, recipe: Recipe, lam: float) -> ArmMean:
        """mu_a and V_a by balancing."""
        if self.n < LEAST_ROWS:
            return refused(self.n, "overlap")
        total = float(self.mass.sum())
        if recipe.loss == "entropy":
            weights = entropy_weights(self.phi, self.mass, target, lam / total)
        else:
            weights = quadratic_weights(self.phi, self.mass, target, lam, recipe.constraints)
        alpha = weights.alpha
        ess = 1 / float(np.sum(alpha**2 / self.averaged))
        if not weights.converged:
            return refused(self.n, f"the balancing weights did not converge (residual {weights.residual:.1e})")
        if ess < LEAST_ROWS:
            return refused(self.n, "overlap")
        at_target, fitted, coef = self._outcome_models(target, lam)
        residual = self.y - fitted
        mean = at_target + float(alpha @ residual) if recipe.augment else float(alpha @ self.y)
        q = residual**2 if self.q is None else self.q
        spread = float(coef @ coef) * self.discrepancy_sq / total**2
        variance = float(np.sum(alpha**2 * q / self.averaged)) + spread / len(target)
        phi_mean = alpha @ self.phi
        imbalance = float(np.linalg.norm(phi_mean - target))
        return ArmMean(
            mean, variance, ess, imbalance, float(np.sqrt(spread)), self.n, "", alpha,
            at_target - float(coef @ target), coef, alpha @ self.X, phi_mean,
        )  # fmt: skip

    def own_mean(self, lam: float) -> ArmMean:
        if self.n < LEAST_ROWS:
            return refused(self.n, "overlap")
        model = ridge(self.phi, self.y, self.mass, lam)
        alpha = self.mass / self.mass.sum()
        q = (self.y - model(self.phi)) ** 2 if self.q is None else self.q
        return ArmMean(
            self.y_mean, float(alpha @ q) / self.n, float(self.n), 0.0, 0.0, self.n, "", alpha,
            model.intercept, model.coef, self.x_mean, self.phi_mean, observed=True,
        )  # fmt: skip

    def _outcome_models(self, target: FloatArray, lam: float) -> tuple[float, FloatArray, FloatArray]:
        """Prediction at the target, fitted values (N,) and mean coefficients; each half by the other half's ridge."""
        numbers = np.unique(self.half)
        fitted, at_target, coef = np.empty(len(self.y)), 0.0, np.zeros(len(target))
        for number in numbers:
            own = self.half == number
            source = ~own if len(numbers) > 1 else own
            model = ridge(self.phi[source], self.y[source], self.mass[source], lam)
            share = float(self.mass[own].sum() / self.mass.sum())
            fitted[own] = model(self.phi[own])
            at_target += share * float(model(target))
            coef += share * model.coef
        return at_target, fitted, coef


@dataclass(frozen=True)
class Contrast:
    """Effect of an arm against the reference arm, in the outcome's unit."""

    arm: Label
    reference: Label
    ate: float
    se: float
    ci_low: float
    ci_high: float
    reason: str = ""


@dataclass(frozen=True)
class EffectEstimate:
    """An average effect with its interval and what it rests on.

    Attributes
    ----------
    estimand : "ate", "att", "atc" or "recent"
    contrasts : one for each arm but the reference; `ate`, `se`, `ci_low`, `ci_high`, `reason` read the only one of two arms
    mu : mean outcome of the target had it received each arm
    ess : rows effectively used, of each arm; imbalance : |sum alpha phi - mu|, of each arm
    compression_allowance : worst-case error of the effect through compression, outcome's unit; not part of the interval
    n, n_arm : rows seen, in all and of each arm
    memory_bytes : held by the sketch
    level : of the interval, for instance 0.95
    warnings : sentences
    """

    estimand: str
    contrasts: tuple[Contrast, ...]
    mu: dict[Label, float]
    ess: dict[Label, float]
    imbalance: dict[Label, float]
    compression_allowance: float
    n: int
    n_arm: dict[Label, int]
    memory_bytes: int
    level: float
    warnings: tuple[str, ...] = ()

    @property
    def _only(self) -> Contrast:
        if len(self.contrasts) != 1:
            raise ValueError(f"there are {len(self.contrasts)} contrasts, not one; read them in .contrasts")
        return self.contrasts[0]

    @property
    def ate(self) -> float:
        return self._only.ate

    @property
    def se(self) -> float:
        return self._only.se

    @property
    def ci_low(self) -> float:
        return self._only.ci_low

    @property
    def ci_high(self) -> float:
        return self._only.ci_high

    @property
    def reason(self) -> str:
        return self._only.reason

    def to_json(self) -> str:
        """One line; NaN becomes null."""
        fields: dict[str, Any] = asdict(self)
        fields["assumptions"] = ASSUMPTIONS
        return json.dumps(_plain(fields))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
