"""What a policy is, written once: a rule that ranks the arms, and the state it ranks them by.

Every policy here plays, in each round, an arm of the highest *(tier, score)*: first the tier decides, then the score
within it, and ties go to a random arm. Uncertain-UCB puts certified arms in tier 1 with their lower bound as score, and
all others in tier 0 with their index; plain UCB has one tier; Simple-Sat has "mean at least S" above "anything, scores
equal". A rule is a handful of elementwise formulas (see `upheld.bandits.elementwise`), so the same rule is played step
by step, simulated over many runs with NumPy, and compiled.

    clock u            counts the rounds won by tier 0 (`counts="uncertain"`) or all rounds (`counts="all"`)
    level(u + 1)       the part of the index that depends on the clock of the round being decided
    own(n_i, u)        the part that depends on the arm's own count, taken when the arm is pulled
    lower(...)         lower confidence bound of the certificate, taken when the arm is pulled
    draw(key, ...)     a random index (Thompson)
    rank(...)          (tier, score) of each arm
    begin, transition  registers of a policy with phases (SELECT): which arm it holds, when its statistics are cleared
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from upheld.bandits.certificate import lower_none
from upheld.bandits.elementwise import choose, elementwise, larger
from upheld.bandits.index import draw_none, level_none, own_none
from upheld.bandits.streams import ARMS, COIN, TIE, child, uniform

Formula = Callable[..., Any]
HELD, CLEARS = 0, 1  # of the 8 registers: the arm being held or -1; 1 when the statistics are to start afresh


@elementwise
def begin_none(coin: Any) -> Any:
    nothing = 0.0 * coin
    return nothing - 1.0, nothing, nothing, nothing, nothing, nothing, nothing, nothing


@elementwise
def transition_none(registers: Any, arm: Any, reward: Any, coin: Any, threshold: Any, sigma: Any) -> Any:
    return registers


@dataclass(frozen=True)
class Rule:
    """A policy without arms, threshold or data; see the module's docstring for the formulas.

    `sigma` None means "that of the instance" in a simulation; `width` multiplies every confidence width. `certificate`
    names the form of the lower bound (see `upheld.bandits.certificate`) or is None. `unit_rewards` says that the rule
    is meaningless for rewards outside [0, 1]. `costs` holds a cost per arm: of the certified arms the cheapest is
    played.
    """

    name: str
    rank: Formula
    level: Formula = level_none
    own: Formula = own_none
    lower: Formula = lower_none
    draw: Formula = draw_none
    begin: Formula = begin_none
    transition: Formula = transition_none
    counts: Literal["all", "uncertain"] = "all"
    shares_samples: bool = True
    certificate: str | None = None
    unit_rewards: bool = False
    sigma: float | None = None
    width: float = 1.0
    costs: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width > 0):
            raise ValueError(f"width must be a positive number, got {self.width}")
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma > 0):
            raise ValueError(
                f"sigma must be a positive number, got {self.sigma}; it is the rewards' sub-Gaussian constant, 1/2 for "
                "rewards in [0, 1]"
            )

    @property
    def phased(self) -> bool:
        return self.transition is not transition_none

    @property
    def random(self) -> bool:
        return self.draw is not draw_none

    def effective_sigma(self, instance_sigma: float) -> float:
        return self.width * (instance_sigma if self.sigma is None else self.sigma)

    def preferences(self, n_arms: int) -> np.ndarray:
        """(K,) 0 for the most expensive arms, 1 for the next cheaper ones, and so on; all 0 without costs."""
        if self.costs is None:
            return np.zeros(n_arms)
        costs = np.asarray(self.costs, dtype=float)
        if costs.shape != (n_arms,) or not np.isfinite(costs).all():
            raise ValueError(f"costs must hold one finite number for each of the {n_arms} arms, got {self.costs}")
        return np.searchsorted(np.unique(-costs), -costs).astype(float)


@dataclass
class State:
    """Statistics of R runs over K arms: what `decide` reads and `observe` writes."""

    n: np.ndarray  # (R, K) rewards seen
    mean: np.ndarray
    m2: np.ndarray  # sum of squared deviations from the mean (Welford)
    index_n: np.ndarray  # the same for the index, which may use the samples of uncertain rounds alone
    index_mean: np.ndarray
    index_m2: np.ndarray
    variance: np.ndarray  # (R, K) sample variance of the rewards that the index sees, 0 before the second
    lower: np.ndarray  # (R, K) lower bound of the certificate
    own: np.ndarray  # (R, K) own level
    clock: np.ndarray  # (R,) u
    registers: np.ndarray  # (8, R)

    @classmethod
    def empty(cls, rule: Rule, runs: int, n_arms: int, round_keys: np.ndarray) -> State:
        n, mean, m2 = (np.zeros((runs, n_arms)) for _ in range(3))
        index = (n, mean, m2) if rule.shares_samples else (n.copy(), mean.copy(), m2.copy())
        variance, own = np.zeros((runs, n_arms)), np.zeros((runs, n_arms))
        lower = np.full((runs, n_arms), -np.inf)
        registers = np.array(rule.begin(uniform(round_keys, COIN)), dtype=float)
        return cls(n, mean, m2, *index, variance, lower, own, np.zeros(runs), registers)

    def keep(self, rows: np.ndarray) -> State:
        """The runs in `rows` alone."""
        kept = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "registers"}
        if self.index_n is self.n:
            kept |= {"index_n": kept["n"], "index_mean": kept["mean"], "index_m2": kept["m2"]}
        return replace(self, **kept, registers=self.registers[:, rows])


def uncertain_runs(rule: Rule, state: State, threshold: float) -> np.ndarray:
    """(R,) whether the clock counts the round being decided: no arm is certified, or the rule counts all rounds."""
    if rule.counts == "all":
        return np.full(len(state.clock), True)
    return np.asarray((state.n == 0).any(axis=1) | ~(state.lower >= threshold).any(axis=1))


def decide(
    rule: Rule, state: State, round_keys: np.ndarray, threshold: float, sigma: float, prefer: np.ndarray
) -> np.ndarray:
    """(R,) arm to play in each run: the highest (tier, score), ties broken at random.

    Parameters
    ----------
    rule, state : the policy and its R runs over K arms
    round_keys : (R,) key of the round in the decision stream of each run
    threshold, sigma, prefer : S, effective sigma, and (K,) preferences among certified arms
    """
    runs, n_arms = state.n.shape
    unplayed, held = state.n == 0, state.registers[HELD]
    forced = unplayed.any(axis=1) | (held >= 0)  # a new arm is tried, or a phase holds one
    n_forced = np.count_nonzero(forced)
    if n_forced == runs:
        return _forced(held, unplayed)
    n = np.maximum(state.index_n, 1.0)
    level = rule.level((state.clock[:, None] if runs > 1 else state.clock[0]) + 1.0)
    draw: Any = 0.0
    if rule.random:
        keys = child(round_keys[:, None], ARMS + np.arange(n_arms, dtype=np.uint64)[None, :])
        draw = rule.draw(keys, state.index_mean, n, sigma)
    tier, score = rule.rank(
        state.index_mean, n, state.variance, state.lower, state.own, level, draw, prefer[None, :], threshold, sigma
    )
    tied = _best(tier, score, runs, n_arms)
    arm = tied.argmax(axis=1)
    if np.count_nonzero(tied) > runs:
        count = tied.sum(axis=1)
        rows = np.flatnonzero(count > 1)
        pick = np.floor(uniform(round_keys[rows], TIE) * count[rows])
        arm[rows] = (tied[rows].cumsum(axis=1) > pick[:, None]).argmax(axis=1)
    return np.where(forced, _forced(held, unplayed), arm) if n_forced else arm


def _forced(held: np.ndarray, unplayed: np.ndarray) -> np.ndarray:
    """(R,) the arm that a phase holds, else the first that was never played."""
    return np.asarray(np.where(held >= 0, held, unplayed.argmax(axis=1)), dtype=np.int64)


def _best(tier: Any, score: Any, runs: int, n_arms: int) -> np.ndarray:
    """(R, K) which arms have the highest (tier, score); at least one in each run."""
    if np.shape(score) != (runs, n_arms):
        score = np.broadcast_to(score, (runs, n_arms))
    if np.ndim(tier) == 0:  # one tier
        return np.asarray(score == score.max(axis=1, keepdims=True))
    top = tier == tier.max(axis=1, keepdims=True)
    score = np.where(top, score, -np.inf)
    return np.asarray(top & (score == score.max(axis=1, keepdims=True)))


def observe(
    rule: Rule,
    state: State,
    arm: np.ndarray,
    reward: np.ndarray,
    uncertain: np.ndarray,
    round_keys: np.ndarray,
    threshold: float,
    sigma: float,
) -> None:
    """Enter the `reward` (R,) of the `arm` (R,) played in each run into `state`."""
    if len(arm) == 1 and not rule.phased:
        _learn(rule, state, (0, int(arm[0])), reward[0], uncertain[0], sigma)
    else:
        active = np.flatnonzero(state.registers[HELD] < 0)  # a held arm's rewards belong to its phase alone
        _learn(rule, state, (active, arm[active]), reward[active], uncertain[active], sigma)
    state.clock += uncertain
    if rule.phased:
        coin = uniform(round_keys, COIN)
        registers = rule.transition(tuple(state.registers), arm.astype(float), reward, coin, threshold, sigma)
        state.registers = np.array(np.broadcast_arrays(*registers), dtype=float)
        _clear(state, state.registers[CLEARS] > 0)


def _learn(rule: Rule, state: State, at: tuple[Any, Any], reward: Any, uncertain: Any, sigma: float) -> None:
    """Enter rewards into the cells `at`, (run, arm): arrays, or two numbers, which is faster where there is one run."""
    n_arms = float(state.n.shape[1])
    n, mean, variance = _welford(state.n, state.mean, state.m2, at, reward)
    state.lower[at] = rule.lower(mean, variance, n, n_arms, sigma)
    if rule.shares_samples:
        state.variance[at], index_n = variance, n
    else:
        to_index = tuple(np.asarray(place)[uncertain] for place in at)
        _, _, variance = _welford(
            state.index_n, state.index_mean, state.index_m2, to_index, np.asarray(reward)[uncertain]
        )
        state.variance[to_index], index_n = variance, state.index_n[at]
    state.own[at] = rule.own(index_n, state.clock[at[0]], n_arms)


def _welford(n: np.ndarray, mean: np.ndarray, m2: np.ndarray, at: Any, reward: Any) -> tuple[Any, Any, Any]:
    """Update count, mean and squared deviations in place; return count, mean and sample variance of the cells."""
    count = n[at] + 1.0
    deviation = reward - mean[at]
    centre = mean[at] + deviation / count
    squares = m2[at] + deviation * (reward - centre)
    n[at], mean[at], m2[at] = count, centre, squares
    return count, centre, choose(count > 1.0, squares / larger(count - 1.0, 1.0), 0.0)


def _clear(state: State, rows: np.ndarray) -> None:
    for array in (
        state.n,
        state.mean,
        state.m2,
        state.index_n,
        state.index_mean,
        state.index_m2,
        state.variance,
        state.own,
    ):
        array[rows] = 0.0
    state.lower[rows] = -np.inf
    state.clock[rows] = 0.0
