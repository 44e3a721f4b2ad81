"""The alternatives, under the same protocol.

To add one: write its formulas (see `upheld.bandits.rule`), or `select` and `update` for an adapter, in a subclass whose
`variants` name it. Nothing else has to be touched: it can then be played step by step, simulated, and raced by name.

All of them take the same `sigma`; published constants for unit variance are multiplied by it. In every index t counts
the round being decided, K + 1 at the first decision.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from upheld.bandits.elementwise import choose, elementwise, larger, ln
from upheld.bandits.index import (
    draw_beta,
    draw_normal,
    index_kl,
    index_sub_gaussian,
    level_asymptotic,
    level_safe,
)
from upheld.bandits.policy import Policy, RulePolicy, _reward
from upheld.bandits.rule import Rule
from upheld.bandits.streams import normal_quantile

KAPPA = float(np.sqrt(2 * np.pi * np.e))


@elementwise
def level_log(t: Any) -> Any:
    return ln(t)


@elementwise
def rank_index(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    """One tier: the index m + sigma sqrt(2 L / n)."""
    return 0.0, index_sub_gaussian(mean, n, level, sigma)


@elementwise
def rank_kl(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    return 0.0, index_kl(mean, n, level, sigma)


@elementwise
def rank_draw(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    return 0.0, draw


@elementwise
def level_ucb1(t: Any) -> Any:
    return ln(t - 1.0)


class UCB(RulePolicy):
    """UCB: argmax m_i + sigma sqrt(2 L(t) / n_i).

    `index`: "asymptotic" L = ln(1 + t ln^2 t) (Lattimore & Szepesvari 2020, chapter 8), "safe" L = 3 ln t, or "ucb1"
    L = ln(t - 1), which with sigma = 1 is UCB1 of Auer, Cesa-Bianchi & Fischer (2002), who count the plays done so far.
    """

    variants: ClassVar = {"ucb": {}, "ucb-safe": {"index": "safe"}, "ucb1": {"index": "ucb1"}}
    levels: ClassVar = {"asymptotic": level_asymptotic, "safe": level_safe, "ucb1": level_ucb1}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0, index: str = "asymptotic") -> Rule:
        if index not in UCB.levels:
            raise ValueError(f"index must be one of {', '.join(UCB.levels)}, got {index!r}")
        name = {"asymptotic": "ucb", "safe": "ucb-safe", "ucb1": "ucb1"}[index]
        return Rule(name=name, rank=rank_index, level=UCB.levels[index], sigma=sigma, width=width)


class KLUCB(RulePolicy):
    """KL-UCB for rewards in [0, 1] (Garivier & Cappe 2011), with L = ln(1 + t ln^2 t)."""

    variants: ClassVar = {"kl-ucb": {}}

    @staticmethod
    def rule(*, sigma: float | None = 0.5, width: float = 1.0) -> Rule:
        return Rule(name="kl-ucb", rank=rank_kl, level=level_asymptotic, unit_rewards=True, sigma=sigma, width=width)


@elementwise
def own_moss(n: Any, t: Any, n_arms: Any) -> Any:
    return ln(n_arms * n)


@elementwise
def rank_moss(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    """m + sigma sqrt(4 ln+(t / (K n)) / n)."""
    return 0.0, mean + sigma * np.sqrt(4.0 * larger(level - own, 0.0) / n)


class MOSS(RulePolicy):
    """Anytime MOSS (Audibert & Bubeck 2009; Degenne & Perchet 2016): the horizon in MOSS's index replaced by t."""

    variants: ClassVar = {"moss": {}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0) -> Rule:
        return Rule(name="moss", rank=rank_moss, level=level_log, own=own_moss, sigma=sigma, width=width)


class Thompson(RulePolicy):
    """Thompson sampling: argmax of a posterior draw; `posterior` "normal" (flat prior) or "beta" (0/1 rewards)."""

    variants: ClassVar = {"ts": {}, "ts-beta": {"posterior": "beta"}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0, posterior: str = "normal") -> Rule:
        if posterior == "normal":
            return Rule(name="ts", rank=rank_draw, draw=draw_normal, sigma=sigma, width=width)
        if posterior != "beta":
            raise ValueError(f"posterior must be 'normal' or 'beta', got {posterior!r}")
        if width != 1.0:
            raise ValueError(f"the beta posterior has no width to multiply; leave width at 1, got {width}")
        return Rule(name="ts-beta", rank=rank_draw, draw=draw_beta, unit_rewards=True, sigma=sigma)


@elementwise
def rank_simple_sat(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    """Best mean if it reaches S, else any arm."""
    enough = mean >= threshold
    return choose(enough, 1.0, 0.0), choose(enough, mean, 0.0)


class SimpleSat(RulePolicy):
    """Simple-Sat (Michel, Hajiabolhassan & Ortner 2023, algorithm 1): linear regret where no arm is good enough."""

    variants: ClassVar = {"simple-sat": {}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0) -> Rule:
        return Rule(name="simple-sat", rank=rank_simple_sat, sigma=sigma, width=width)


@elementwise
def satisficing_ratio(mean: Any, radius: Any, threshold: Any) -> Any:
    """(UCB - max(LCB, S)) / radius: the share of the interval above S; exactly 2 where all of it is."""
    return choose(mean - radius >= threshold, 2.0, (mean + radius - threshold) / radius)


@elementwise
def rank_sat_ucb(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    """Some mean reaches S: the ratio (it is at least 1 just for those arms). Else any arm whose UCB does. Else UCB."""
    radius = sigma * np.sqrt(2.0 * level / n)
    upper = mean + radius
    good, possible = mean >= threshold, upper >= threshold
    score = choose(good, satisficing_ratio(mean, radius, threshold), choose(possible, 0.0, upper))
    return choose(good, 2.0, choose(possible, 1.0, 0.0)), score


class SatUCB(RulePolicy):
    """SAT-UCB (Michel, Hajiabolhassan & Ortner 2023, algorithm 2), radius sigma sqrt(2 ln(1 + t ln^2 t) / n)."""

    variants: ClassVar = {"sat-ucb": {}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0) -> Rule:
        return Rule(name="sat-ucb", rank=rank_sat_ucb, level=level_asymptotic, sigma=sigma, width=width)


@elementwise
def rank_sat_ucb_plus(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    """Some UCB reaches S: the ratio (not negative just for those arms). Else UCB."""
    radius = sigma * np.sqrt(2.0 * level / n)
    upper = mean + radius
    possible = upper >= threshold
    return choose(possible, 1.0, 0.0), choose(possible, satisficing_ratio(mean, radius, threshold), upper)


class SatUCBPlus(RulePolicy):
    """SAT-UCB+ (Michel, Hajiabolhassan & Ortner 2023, algorithm 3): no random exploration, and no guarantee."""

    variants: ClassVar = {"sat-ucb+": {}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0) -> Rule:
        return Rule(name="sat-ucb+", rank=rank_sat_ucb_plus, level=level_asymptotic, sigma=sigma, width=width)


@elementwise
def begin_select(coin: Any) -> Any:
    """Registers: held arm, clear, 4^r, step of the oracle, step to draw from, arm drawn, pulls and sum of the hold."""
    nothing = 0.0 * coin
    return nothing - 1.0, nothing, nothing + 4.0, nothing, 1.0 + np.floor(4.0 * coin), nothing - 1.0, nothing, nothing


@elementwise
def transition_select(registers: Any, arm: Any, reward: Any, coin: Any, threshold: Any, sigma: Any) -> Any:
    """One observation of SELECT, in either phase."""
    held, _, length, step, target, drawn, pulls, total = registers
    oracle = held < 0.0
    step = step + choose(oracle, 1.0, 0.0)
    drawn = choose(oracle & (step == target), arm, drawn)
    pulls = choose(oracle, 0.0, pulls + 1.0)
    total = choose(oracle, 0.0, total + reward)
    count = larger(pulls, 1.0)
    low = total / count - sigma * np.sqrt(4.0 * ln(count) / count)
    given_up = (held >= 0.0) & (pulls >= length) & (low < threshold)
    held = choose(oracle & (step >= length), drawn, choose(given_up, -1.0, held))
    length = choose(given_up, 4.0 * length, length)
    step = choose(given_up, 0.0, step)
    target = choose(given_up, 1.0 + np.floor(length * coin), target)
    return held, choose(given_up, 1.0, 0.0), length, step, target, drawn, pulls, total


class Select(RulePolicy):
    """SELECT (Feng, Ma & Zhu 2025) for finitely many arms, with UCB (L = 3 ln t) as its oracle.

    Round r = 1, 2, ...: a fresh oracle plays 4^r steps; one arm is drawn uniformly from those it played; the arm is
    pulled 4^r times, and on, while mean - sigma sqrt(4 ln k / k) >= S after k pulls; then the next round begins.
    """

    variants: ClassVar = {"select": {}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0) -> Rule:
        return Rule(
            name="select",
            rank=rank_index,
            level=level_safe,
            begin=begin_select,
            transition=transition_select,
            sigma=sigma,
            width=width,
        )


@elementwise
def level_ucl(t: Any) -> Any:
    """Normal quantile at 1 - 1/(kappa t), kappa = sqrt(2 pi e)."""
    return -normal_quantile(1.0 / (KAPPA * t))


@elementwise
def rank_ucl(
    mean: Any,
    n: Any,
    variance: Any,
    lower: Any,
    own: Any,
    level: Any,
    draw: Any,
    prefer: Any,
    threshold: Any,
    sigma: Any,
) -> Any:
    return 0.0, mean + sigma * level / np.sqrt(n)


class UCL(RulePolicy):
    """Deterministic UCL with an uninformative prior (Reverdy, Srivastava & Leonard 2014): a Bayesian quantile index."""

    variants: ClassVar = {"ucl": {}}

    @staticmethod
    def rule(*, sigma: float | None = None, width: float = 1.0) -> Rule:
        return Rule(name="ucl", rank=rank_ucl, level=level_ucl, sigma=sigma, width=width)


class MABWiser(Policy):
    """MABWiser's own policies behind this protocol: one pull of each arm first, then its predict / partial_fit cycle.

    Parameters
    ----------
    policy : "ucb1" (mean + alpha sqrt(2 ln t / n), alpha = sigma), "thompson" (Beta posterior; a reward counts as a
        success if it reaches the threshold, exact for 0/1 rewards), "epsilon-greedy" (epsilon 0.1)
    sigma : scales UCB1's bonus

    Raises
    ------
    ModuleNotFoundError
        If mabwiser is not installed.
    """

    variants: ClassVar = {
        "mabwiser-ucb1": {"policy": "ucb1"},
        "mabwiser-thompson": {"policy": "thompson"},
        "mabwiser-egreedy": {"policy": "epsilon-greedy"},
    }
    max_horizon: ClassVar[int] = 10_000  # its cycle takes a good part of a millisecond

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        threshold: float = np.inf,
        *,
        policy: str = "ucb1",
        sigma: float = 0.5,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(arms, threshold, random_state=random_state)
        if policy not in ("ucb1", "thompson", "epsilon-greedy"):
            raise ValueError(f"policy must be 'ucb1', 'thompson' or 'epsilon-greedy', got {policy!r}")
        self.policy = policy
        self.sigma = sigma
        self.reset()

    def reset(self) -> None:
        try:
            from mabwiser.mab import MAB, LearningPolicy
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError('mabwiser is not installed; pip install "upheld[bandits]"') from missing
        law = {
            "ucb1": lambda: LearningPolicy.UCB1(alpha=self.sigma),
            "thompson": lambda: LearningPolicy.ThompsonSampling(binarizer=self._success),
            "epsilon-greedy": lambda: LearningPolicy.EpsilonGreedy(epsilon=0.1),
        }[self.policy]()
        self._mab = MAB(arms=list(self.arms), learning_policy=law, seed=self.seed_ % 2**32)
        self._first: list[tuple[Hashable, float]] = []
        self._choice: Hashable | None = None

    def _success(self, arm: Hashable, reward: float) -> int:
        return int(reward >= 1 or (reward > 0 and reward >= self.threshold))

    def select(self) -> Hashable:
        seen = {arm for arm, _ in self._first}
        if len(seen) < len(self.arms):
            return next(arm for arm in self.arms if arm not in seen)
        if self._choice is None:
            self._choice = self._mab.predict()
        return self._choice

    def update(self, arm: Hashable, reward: float) -> None:
        self._arm_index(arm)
        value = _reward(reward, arm, unit=False, rule="mabwiser")
        fed = len({a for a, _ in self._first}) == len(self.arms)
        if fed:
            self._mab.partial_fit([arm], [value])
        else:
            self._first.append((arm, value))
            if len({a for a, _ in self._first}) == len(self.arms):
                self._mab.fit([a for a, _ in self._first], [r for _, r in self._first])
        self._choice = None
