"""Bandits to play: arms with known means, whose rewards are functions of (seed, run, arm, pull).

    GaussianBandit   N(mean, sd^2)
    BernoulliBandit  1 with probability mean, else 0
    BetaBandit       Beta(c mean, c (1 - mean)), rounded to 4096 equally likely values so that the mean is exact
    RareBandit       mean + a jump with small probability, a little below the mean otherwise: wilder than its variance
    ReplayBandit     a draw from the rewards that a log holds for the arm

`RewardTable` plays one run of a bandit step by step with the very rewards the simulator uses; `BanditEnv` (needs
gymnasium) is the same as an environment.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from upheld.bandits.elementwise import choose, elementwise
from upheld.bandits.streams import REWARDS, arm_keys, normal_quantile, run_keys, uniform

if TYPE_CHECKING:
    from upheld.bandits.gym import BanditEnv as BanditEnv

GAUSSIAN, TWO_POINT, TABLE = 0, 1, 2
BETA_CELLS = 4096
REGRETS = ("regret", "regret_threshold", "regret_refined")


@elementwise
def reward_gaussian(u: Any, a: Any, b: Any, c: Any, table: Any) -> Any:
    """Mean `a`, standard deviation `b`."""
    return a + b * normal_quantile(u)


@elementwise
def reward_two_point(u: Any, a: Any, b: Any, c: Any, table: Any) -> Any:
    """`b` with probability `a`, else `c`."""
    return choose(u < a, b, c)


@elementwise
def reward_table(u: Any, a: Any, b: Any, c: Any, table: Any) -> Any:
    """One of the `b` values from offset `a` of the table, all equally likely."""
    return table[np.int64(a + np.floor(u * b))]


REWARD_LAWS = (reward_gaussian, reward_two_point, reward_table)


def regret_per_pull(means: np.ndarray, threshold: float) -> dict[str, np.ndarray]:
    """(K,) what a pull of each arm adds to each of the `REGRETS`, Delta_i being the gap to the best mean.

    regret            Delta_i
    regret_threshold  max(0, min(S, best mean) - mean_i)            Michel, Hajiabolhassan & Ortner (2023)
    regret_refined    Delta_i if mean_i < S, else 0
    """
    gaps = means.max() - means
    below = np.maximum(0.0, min(threshold, means.max()) - means)
    return dict(zip(REGRETS, (gaps, below, np.where(means < threshold, gaps, 0.0)), strict=True))


@dataclass(frozen=True, eq=False)
class Bandit:
    """K arms with a threshold.

    Attributes
    ----------
    means : (K,) mean rewards
    threshold : S
    sigma : the constant that policies are told (as their `sigma`)
    proxy : a constant for which the rewards are truly sub-Gaussian; the simulator's early stop relies on it
    name : how results call the instance
    labels : arm labels
    law : which of `REWARD_LAWS`; params (3, K) and table are its numbers
    bounded : whether all rewards lie in [0, 1]
    """

    means: np.ndarray
    threshold: float
    sigma: float
    proxy: float
    name: str
    law: int
    params: np.ndarray
    table: np.ndarray = field(default_factory=lambda: np.zeros(1))
    labels: tuple[Hashable, ...] = ()
    bounded: bool = False

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(range(len(self.means))))
        if len(self.labels) != len(self.means):
            raise ValueError(f"{self.name} has {len(self.means)} arms and {len(self.labels)} labels; give one an arm")
        if np.isnan(self.threshold):
            raise ValueError(f"the threshold of {self.name} is not a number")

    @property
    def n_arms(self) -> int:
        return len(self.means)

    @property
    def gaps(self) -> np.ndarray:
        """(K,) Delta_i, from the best mean."""
        return self.costs["regret"]

    @property
    def costs(self) -> dict[str, np.ndarray]:
        """What a pull of each arm adds to each regret, see `regret_per_pull`."""
        return regret_per_pull(self.means, self.threshold)

    @property
    def bad(self) -> np.ndarray:
        """(K,) whether the arm's mean lies below S."""
        return np.asarray(self.means < self.threshold)

    def table_of_run(self, seed: int, run: int = 0) -> RewardTable:
        """The rewards of run `run` under `seed`, to be pulled one at a time."""
        return RewardTable(self, seed, run)


def _checked(means: ArrayLike, what: str) -> np.ndarray:
    means = np.asarray(means, dtype=float)
    if means.ndim != 1 or means.size == 0:
        raise ValueError(f"means must be a non-empty list of numbers, one an arm, got shape {means.shape}")
    if not np.isfinite(means).all():
        raise ValueError(f"mean of arm {int(np.flatnonzero(~np.isfinite(means))[0])} is not finite")
    if what == "unit" and not ((means >= 0) & (means <= 1)).all():
        i = int(np.flatnonzero((means < 0) | (means > 1))[0])
        raise ValueError(f"mean of arm {i} is {means[i]}, but rewards in [0, 1] have their mean there")
    return means


class GaussianBandit(Bandit):
    """Normal rewards with standard deviation `sd`; policies are told sigma = `sd`.

    Examples
    --------
    >>> table = GaussianBandit([0.4, 0.7], threshold=0.5, sd=0.5).table_of_run(seed=0)
    >>> [round(table.pull(arm), 3) for arm in (0, 1, 1)]
    [-0.423, 0.427, 0.996]
    """

    def __init__(
        self,
        means: ArrayLike,
        threshold: float,
        *,
        sd: float = 0.5,
        name: str = "gaussian",
        labels: Sequence[Hashable] = (),
    ) -> None:
        means = _checked(means, "real")
        if not (np.isfinite(sd) and sd > 0):
            raise ValueError(f"sd must be a positive number, got {sd}")
        params = np.stack([means, np.full(means.size, sd), np.zeros(means.size)])
        super().__init__(means, float(threshold), sd, sd, name, GAUSSIAN, params, labels=tuple(labels))


class BernoulliBandit(Bandit):
    """0/1 rewards; policies are told sigma = 1/2."""

    def __init__(
        self, means: ArrayLike, threshold: float, *, name: str = "bernoulli", labels: Sequence[Hashable] = ()
    ) -> None:
        means = _checked(means, "unit")
        params = np.stack([means, np.ones(means.size), np.zeros(means.size)])
        super().__init__(means, float(threshold), 0.5, 0.5, name, TWO_POINT, params, labels=tuple(labels), bounded=True)


class BetaBandit(Bandit):
    """Rewards in (0, 1), Beta(c mean, c (1 - mean)) with c = `concentration`; policies are told sigma = 1/2.

    The law is cut into 4096 cells of equal probability and each is replaced by its mean, so the arm's mean is exact.
    """

    def __init__(self, means: ArrayLike, threshold: float, *, concentration: float = 2.0, name: str = "beta") -> None:
        means = _checked(means, "unit")
        if ((means <= 0) | (means >= 1)).any():
            raise ValueError("a beta arm needs its mean strictly between 0 and 1; use BernoulliBandit for 0 or 1")
        if not (np.isfinite(concentration) and concentration > 0):
            raise ValueError(f"concentration must be a positive number, got {concentration}")
        table = np.concatenate([_beta_cell_means(m, concentration) for m in means])
        offsets = BETA_CELLS * np.arange(means.size, dtype=float)
        params = np.stack([offsets, np.full(means.size, float(BETA_CELLS)), np.zeros(means.size)])
        super().__init__(means, float(threshold), 0.5, 0.5, name, TABLE, params, table, bounded=True)


def _beta_cell_means(mean: float, concentration: float) -> np.ndarray:
    """(4096,) mean of the beta law within each of its 4096-quantile cells: E[X; X <= q] = mean I_q(a + 1, b).

    The upper half is taken from the mirrored law, 1 - X: differences of numbers near 1 would lose their digits.
    """
    half = np.linspace(0, 0.5, BETA_CELLS // 2 + 1)

    def lower_half(mean: float) -> np.ndarray:
        a, b = concentration * mean, concentration * (1 - mean)
        return np.asarray(np.diff(mean * special.betainc(a + 1, b, special.betaincinv(a, b, half))) * BETA_CELLS)

    return np.concatenate([lower_half(mean), 1 - lower_half(1 - mean)[::-1]])


class RareBandit(Bandit):
    """Rare large rewards: variance `sd`^2 as a Gaussian arm would have, but all of it in a jump of probability `p`.

    Policies are told sigma = `sd`, which is too small: the law is sub-Gaussian only for a larger constant (Kearns &
    Saul 1998). A stress test of the assumption, not a case in which any of them has a guarantee.
    """

    def __init__(
        self, means: ArrayLike, threshold: float, *, sd: float = 0.5, p: float = 0.02, name: str = "rare"
    ) -> None:
        means = _checked(means, "real")
        if not 0 < p < 0.5:
            raise ValueError(f"p must lie strictly between 0 and 1/2, got {p}")
        jump = sd / np.sqrt(p * (1 - p))
        params = np.stack([np.full(means.size, p), means + jump * (1 - p), means - jump * p])
        proxy = jump * np.sqrt((1 - 2 * p) / (2 * np.log((1 - p) / p)))
        super().__init__(means, float(threshold), sd, float(proxy), name, TWO_POINT, params)


class ReplayBandit(Bandit):
    """Draws, with replacement, from the rewards a log holds for each arm: a bootstrap of the log, not a replay of it.

    Parameters
    ----------
    rewards : arm label -> rewards
    threshold : S
    sigma : constant that policies are told; None takes 1/2 and requires rewards in [0, 1]
    """

    def __init__(
        self,
        rewards: Mapping[Hashable, ArrayLike],
        threshold: float,
        *,
        sigma: float | None = None,
        name: str = "log",
    ) -> None:
        if len(rewards) < 2:
            raise ValueError(f"a log needs rewards of at least 2 arms, got {len(rewards)}")
        columns = {label: np.asarray(r, dtype=float) for label, r in rewards.items()}
        for label, r in columns.items():
            if r.ndim != 1 or r.size == 0 or not np.isfinite(r).all():
                raise ValueError(f"arm {label!r} needs a non-empty list of finite rewards")
        table = np.concatenate(list(columns.values()))
        bounded = bool(table.min() >= 0 and table.max() <= 1)
        if sigma is None and not bounded:
            raise ValueError("rewards lie outside [0, 1], so sigma is not 1/2; pass the sub-Gaussian constant as sigma")
        sizes = np.array([r.size for r in columns.values()], dtype=float)
        params = np.stack([np.cumsum(sizes) - sizes, sizes, np.zeros(sizes.size)])
        means = np.array([r.mean() for r in columns.values()])
        spread = max(float(np.ptp(table)) / 2, 1e-12)  # Hoeffding's constant of the resampled law
        told = 0.5 if sigma is None else float(sigma)
        super().__init__(
            means, float(threshold), told, spread, name, TABLE, params, table, tuple(columns), bounded=bounded
        )


class RewardTable:
    """One run of a bandit: `pull(i)` returns the next reward of arm number i."""

    def __init__(self, bandit: Bandit, seed: int, run: int = 0) -> None:
        self.bandit = bandit
        with np.errstate(over="ignore"):
            self._keys = arm_keys(run_keys(seed, REWARDS, np.array([run])), bandit.n_arms)[0]
        self.pulls = np.zeros(bandit.n_arms, dtype=np.int64)

    def pull(self, arm: int) -> float:
        if not 0 <= arm < self.bandit.n_arms:
            raise ValueError(f"arm {arm} is not one of 0 ... {self.bandit.n_arms - 1}")
        self.pulls[arm] += 1
        return float(rewards(self.bandit, self._keys[arm], self.pulls[arm], arm))


def rewards(bandit: Bandit, keys: Any, pull: Any, arm: Any) -> np.ndarray:
    """(R,) rewards of pull number `pull` (from 1) of `arm`, whose key is in `keys`; or one, of numbers."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        u = uniform(keys, np.asarray(pull, dtype=np.uint64))
        a, b, c = bandit.params[:, arm]
        return np.asarray(REWARD_LAWS[bandit.law](u, a, b, c, bandit.table), dtype=float)


LAWS: dict[str, type[Bandit]] = {
    "gaussian": GaussianBandit,
    "bernoulli": BernoulliBandit,
    "beta": BetaBandit,
    "rare": RareBandit,
}


def with_law(law: str, means: Sequence[float] | np.ndarray, threshold: float, *, name: str) -> Bandit:
    """Arms with these `means` under one of the laws "gaussian" (sd 1/2), "bernoulli", "beta", "rare"."""
    if law not in LAWS:
        raise ValueError(f"law must be one of {', '.join(LAWS)}, got {law!r}")
    build: Any = LAWS[law]
    bandit: Bandit = build(means, threshold, name=name)
    return bandit


def __getattr__(name: str) -> Any:
    if name == "BanditEnv":  # gymnasium is an optional dependency
        from upheld.bandits.gym import BanditEnv

        return BanditEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
