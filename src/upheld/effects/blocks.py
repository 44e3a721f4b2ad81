"""Blocks: time as a confounder, removed by balancing within short stretches (section 6; ours).

If assignment and outcomes both move in time, time itself confounds, and balancing x alone is biased however good the weights. Each
block b has its own coresets; closed, it leaves its effect tau_b, variance V_b and weight w_b (its rows of the target population):

    tau = sum w_b tau_b / sum w_b,        V = sum w_b^2 V_b / (sum w_b)^2

A block closes at `block_size` rows once every arm has 512, or at 100,000 rows. Beyond 4,096 closed blocks neighbours are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd

from upheld.effects.arms import Sums
from upheld.effects.estimate import LEAST_ROWS, ArmMean, Evidence, Recipe, common_lambda, refused
from upheld.effects.features import FeatureMap
from upheld.effects.rows import FloatArray, IntArray, Label
from upheld.effects.uniform import UniformSample

LEAST_ARM_ROWS = 512
MOST_ROWS = 100_000
MOST_BLOCKS = 4096
POPULATION_ROWS = 512


def population_sample(d: int) -> UniformSample:
    """A uniform sample of a block's rows, for the spread of the effect over the population."""
    kinds: dict[str, Any] = {"X": ((d,), float), "t": ((), float), "treatment": ((), object), "ident": ((), np.int64)}
    return UniformSample(POPULATION_ROWS, kinds)


class Arm(Protocol):
    """What keeps an arm's rows."""

    sums: Sums

    def add(
        self, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, phi: FloatArray, rng: np.random.Generator
    ) -> None: ...

    def evidence(self, gamma: float = 1.0, now: float = 0.0) -> Evidence: ...

    def remove(self, ident: int) -> tuple[FloatArray, float, float] | None: ...

    def merge(self, other: Any, rng: np.random.Generator) -> None: ...

    @property
    def nbytes(self) -> int: ...


@dataclass
class Block:
    """The open block: each arm's rows, and the exact sum of the features of all of them.

    `recent` and `recent_rows` are the sums discounted to the time `now`: S <- gamma S + phi. `population` samples rows uniformly.
    """

    features: FeatureMap
    new_arm: Callable[[], Arm]
    gamma: float = 1.0
    population: UniformSample | None = None
    arms: dict[Label, Arm] = field(default_factory=dict)
    n: int = 0
    start: float = np.nan
    now: float = -np.inf
    phi: FloatArray = field(init=False)
    recent: FloatArray = field(init=False)
    recent_rows: float = 0.0

    def __post_init__(self) -> None:
        self.phi = np.zeros(self.features.n_features)
        self.recent = np.zeros(self.features.n_features)

    @property
    def labels(self) -> list[Label]:
        return sorted(self.arms, key=lambda label: (isinstance(label, str), label))

    @property
    def nbytes(self) -> int:
        rest = 0 if self.population is None else self.population.nbytes
        return self.phi.nbytes + self.recent.nbytes + rest + sum(arm.nbytes for arm in self.arms.values())

    def add(
        self, X: FloatArray, treatment: Any, y: FloatArray, t: FloatArray, ident: IntArray, rng: np.random.Generator
    ) -> None:
        """Rows in order of arrival: X (n, d) coordinates, labels (n,), outcomes (n,), times (n,), ids (n,)."""
        phi = self.features(X, t)
        self.start = float(t[0]) if self.n == 0 else min(self.start, float(t.min()))
        self.phi += phi.sum(axis=0)
        self._discount(phi, t)
        self.n += len(y)
        if self.population is not None:
            self.population.add(rng, X=X, t=t, treatment=treatment, ident=ident)
        for label in sorted(set(treatment)):  # whatever the order of a set of words, the same randomness for each arm
            rows = treatment == label
            if label not in self.arms:
                self.arms[label] = self.new_arm()
            self.arms[label].add(X[rows], y[rows], t[rows], ident[rows], phi[rows], rng)

    def _discount(self, phi: FloatArray, t: FloatArray) -> None:
        now = max(self.now, float(t.max()))
        if self.gamma < 1:
            fade = self.gamma ** (now - self.now) if np.isfinite(self.now) else 0.0
            weight = self.gamma ** (now - t)
            self.recent = fade * self.recent + weight @ phi
            self.recent_rows = fade * self.recent_rows + float(weight.sum())
        self.now = now

    def remove(self, ident: int) -> Label | None:
        """Take back a row that is still stored by itself; the arm it was in."""
        for label, arm in self.arms.items():
            taken = arm.remove(ident)
            if taken is not None:
                phi = self.features(taken[0][None], np.array([taken[2]]))[0]
                self.phi -= phi
                self.n -= 1
                if self.gamma < 1:
                    weight = self.gamma ** (self.now - taken[2])
                    self.recent -= weight * phi
                    self.recent_rows -= weight
                if self.population is not None:
                    self.population.remove(ident)
                return label
        return None

    def merge(self, other: Block, rng: np.random.Generator) -> None:
        """Rows of another open block with the same feature map."""
        if not other.n:
            return
        now = max(self.now, other.now)
        fades = [self.gamma ** (now - block.now) if np.isfinite(block.now) else 0.0 for block in (self, other)]
        self.recent = fades[0] * self.recent + fades[1] * other.recent
        self.recent_rows = fades[0] * self.recent_rows + fades[1] * other.recent_rows
        self.now, self.start = now, other.start if not self.n else min(self.start, other.start)
        self.n += other.n
        self.phi += other.phi
        if self.population is not None and other.population is not None:
            self.population.merge(other.population, rng)
        for label, arm in other.arms.items():
            if label not in self.arms:
                self.arms[label] = self.new_arm()
            self.arms[label].merge(arm, rng)

    def least_rows(self, labels: Sequence[Label]) -> int:
        """Rows of the rarest of the arms `labels`."""
        return min((self.arms[label].sums.n if label in self.arms else 0 for label in labels), default=0)


@dataclass(frozen=True)
class BlockContrast:
    """Effect of an arm against the reference in one block; weight: rows of the target population; `reason` why there is none."""

    tau: float
    variance: float
    weight: float
    treated: ArmMean
    base: ArmMean

    @property
    def reason(self) -> str:
        return self.treated.reason or self.base.reason

    @property
    def allowance(self) -> float:
        return self.treated.allowance + self.base.allowance


@dataclass(frozen=True)
class BlockEstimate:
    """Effects of one block by arm, the reference left out, and what is known of every arm."""

    contrasts: dict[Label, BlockContrast]
    evidence: dict[Label, Evidence]

    def models(self) -> dict[Label, tuple[float, FloatArray]]:
        """theta_hat of the arm minus that of the reference, intercept and coefficients, where estimated."""
        return {
            label: (one.treated.intercept - one.base.intercept, one.treated.coef - one.base.coef)
            for label, one in self.contrasts.items()
            if not one.reason
        }


def estimate_block(block: Block, reference: Label, estimand: str, recipe: Recipe) -> BlockEstimate:
    """Effects of every arm of the block against `reference`, for the rows of the block that the estimand names."""
    gamma = block.gamma if estimand == "recent" else 1.0
    evidence = {label: arm.evidence(gamma, block.now) for label, arm in block.arms.items() if arm.sums.n}
    others = [label for label in block.labels if label != reference and label in evidence]
    if reference not in evidence:
        nothing = BlockContrast(np.nan, np.nan, float(block.n), refused(0, "overlap"), refused(0, "overlap"))
        return BlockEstimate(dict.fromkeys(others, nothing), evidence)
    usable = [one for one in evidence.values() if one.n >= LEAST_ROWS]
    lam = common_lambda(usable, recipe.lam) if usable else np.nan
    base = evidence[reference]
    contrasts = {}
    if estimand in ("ate", "recent"):
        weight = block.recent_rows if gamma < 1 else float(block.n)
        target = (block.recent if gamma < 1 else block.phi) / weight
        means = {label: one.mean_at(target, recipe, lam) for label, one in evidence.items()}
        for label in others:
            contrasts[label] = _contrast(block, means[label], means[reference], weight, None)
    for label in others if estimand in ("att", "atc") else ():
        whom = label if estimand == "att" else reference
        sums = block.arms[whom].sums
        target = sums.phi / sums.n
        treated, control = (
            (evidence[label].own_mean(lam), base.mean_at(target, recipe, lam))
            if estimand == "att"
            else (evidence[label].mean_at(target, recipe, lam), base.own_mean(lam))
        )
        contrasts[label] = _contrast(block, treated, control, float(sums.n), whom)
    return BlockEstimate(contrasts, evidence)


def _contrast(block: Block, treated: ArmMean, base: ArmMean, weight: float, whom: Label | None) -> BlockContrast:
    """tau and V, for the population with the spread of the effect over its rows, Var(theta_1 . phi - theta_0 . phi) / n."""
    variance = treated.variance + base.variance
    if block.population is not None and np.isfinite(variance):
        sample = block.population
        rows = np.ones(sample.size, dtype=bool) if whom is None else sample.held("treatment") == whom
        effects = block.features(sample.held("X")[rows], sample.held("t")[rows]) @ (treated.coef - base.coef)
        variance += float(np.var(effects, ddof=1)) / weight if len(effects) > 1 else np.nan
    return BlockContrast(treated.mean - base.mean, variance, weight, treated, base)


@dataclass
class ClosedBlock:
    """What a closed block leaves: rows, and by arm its effect, variance, weight, and diagnostics.

    mean, ess, imbalance: of each arm's balanced mean; p_covariates, p_assignment: of no shift since the block before; moved: arms
    whose effect a CUSUM found moved.
    """

    start: float
    end: float
    n: int
    n_arm: dict[Label, int]
    tau: dict[Label, float]
    variance: dict[Label, float]
    weight: dict[Label, float]
    allowance: dict[Label, float]
    mean: dict[Label, float]
    ess: dict[Label, float]
    imbalance: dict[Label, float]
    reason: dict[Label, str]
    p_covariates: float = np.nan
    p_assignment: float = np.nan
    moved: list[Label] = field(default_factory=list)

    @classmethod
    def of(cls, block: Block, estimate: BlockEstimate, reference: Label) -> ClosedBlock:
        contrasts = estimate.contrasts
        closed = cls(
            block.start, block.now, block.n, {label: arm.sums.n for label, arm in block.arms.items()},
            {label: one.tau for label, one in contrasts.items()},
            {label: one.variance for label, one in contrasts.items()},
            {label: one.weight for label, one in contrasts.items()},
            {label: one.allowance for label, one in contrasts.items()},
            {}, {}, {}, {label: one.reason for label, one in contrasts.items()},
        )  # fmt: skip
        for label, one in contrasts.items():
            for arm, mean in ((label, one.treated), (reference, one.base)):
                closed.mean[arm], closed.ess[arm], closed.imbalance[arm] = mean.mean, mean.ess, mean.imbalance
        return closed

    @property
    def nbytes(self) -> int:
        """Eight bytes a number."""
        numbers = (
            self.n_arm,
            self.tau,
            self.variance,
            self.weight,
            self.allowance,
            self.mean,
            self.ess,
            self.imbalance,
        )
        return 8 * (5 + sum(len(one) for one in numbers))

    def joined(self, later: ClosedBlock) -> ClosedBlock:
        """Two neighbours as one; where one of them has no effect, the other's stands for both (and `reason` is kept)."""
        answer = ClosedBlock(
            min(self.start, later.start), max(self.end, later.end), self.n + later.n, {}, {}, {}, {}, {}, {}, {}, {}, {},
            float(np.nanmin([self.p_covariates, later.p_covariates, 1.0])),
            float(np.nanmin([self.p_assignment, later.p_assignment, 1.0])),
            [*self.moved, *(label for label in later.moved if label not in self.moved)],
        )  # fmt: skip
        both = (self, later)
        for label in self.n_arm | later.n_arm:
            answer.n_arm[label] = sum(one.n_arm.get(label, 0) for one in both)
        for label in self.tau | later.tau:
            known = [one for one in both if np.isfinite(one.tau.get(label, np.nan))]
            total = sum(one.weight[label] for one in known)
            answer.weight[label] = total if known else sum(one.weight.get(label, 0.0) for one in both)
            shares = [one.weight[label] / total for one in known]
            answer.tau[label] = _weighted(shares, [one.tau[label] for one in known])
            answer.variance[label] = _weighted([share**2 for share in shares], [one.variance[label] for one in known])
            answer.allowance[label] = _weighted(shares, [one.allowance[label] for one in known])
            answer.reason[label] = "" if known else "overlap"
        for label in self.mean | later.mean:
            known = [one for one in both if np.isfinite(one.mean.get(label, np.nan))]
            shares = [one.n / sum(other.n for other in known) for one in known]
            for name in ("mean", "imbalance"):
                getattr(answer, name)[label] = _weighted(shares, [getattr(one, name)[label] for one in known])
            answer.ess[label] = sum(one.ess[label] for one in known) if known else np.nan
        return answer

    def state(self) -> dict[str, Any]:
        fields = asdict(self)
        return {
            name: [[label, one] for label, one in value.items()] if isinstance(value, dict) else value
            for name, value in fields.items()
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ClosedBlock:
        arms = {"n_arm", "tau", "variance", "weight", "allowance", "mean", "ess", "imbalance", "reason"}
        fields: dict[str, Any] = {name: dict(value) if name in arms else value for name, value in state.items()}
        return cls(**fields)


def _weighted(shares: Sequence[float], values: Sequence[float]) -> float:
    return float(np.dot(shares, values)) if len(values) else np.nan


@dataclass(frozen=True)
class Pooled:
    """Effect of one arm over several blocks: `covered` of all weight has an effect; n rows in those blocks."""

    tau: float
    variance: float
    allowance: float
    covered: float
    n: int


def pooled(blocks: Sequence[ClosedBlock], label: Label, fade: Callable[[ClosedBlock], float]) -> Pooled:
    """tau and V over blocks weighted by `fade` times the rows of their target population; blocks without an effect are left out."""
    mine = [one for one in blocks if label in one.tau]
    known = [one for one in mine if not one.reason[label]]
    weights = np.array([one.weight[label] * fade(one) for one in known])
    total = float(weights.sum())
    if not total > 0:
        return Pooled(np.nan, np.nan, np.nan, 0.0, 0)
    shares = weights / total
    rows = sum(one.n for one in blocks)
    return Pooled(
        float(shares @ [one.tau[label] for one in known]),
        float(shares**2 @ [one.variance[label] for one in known]),
        float(shares @ [one.allowance[label] for one in known]),
        sum(one.n for one in known) / rows,
        sum(one.n for one in known),
    )


def thinned(closed: list[ClosedBlock]) -> list[ClosedBlock]:
    """Neighbours joined pairwise once there are more than 4,096."""
    if len(closed) <= MOST_BLOCKS:
        return closed
    return [
        pair[0] if len(pair) == 1 else pair[0].joined(pair[1])
        for pair in (closed[at : at + 2] for at in range(0, len(closed), 2))
    ]


def block_table(closed: Sequence[ClosedBlock]) -> pd.DataFrame:
    """One row a block and contrast: when, rows, effect, standard error, reason, and the alarms."""
    return pd.DataFrame(
        [
            {
                "block": number, "start": one.start, "end": one.end, "n": one.n, "arm": label, "effect": one.tau[label],
                "se": float(np.sqrt(one.variance[label])), "reason": one.reason[label],
                "p_covariates": one.p_covariates, "p_assignment": one.p_assignment, "moved": label in one.moved,
            }
            for number, one in enumerate(closed)
            for label in one.tau
        ],
        columns=["block", "start", "end", "n", "arm", "effect", "se", "reason", "p_covariates", "p_assignment", "moved"],
    )  # fmt: skip
