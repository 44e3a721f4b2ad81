"""Uncertain-UCB and the step-by-step protocol that all policies share.

Uncertain-UCB (a reconstruction, see the package's docstring). State: counts n_i, means m_i, and the number u of rounds
in which no arm was certified. Each arm is played once (u = K); then, in every round,

    1. certified arms  C = {i : LCB_i >= S},  LCB_i = m_i - sigma sqrt(2 ln(K n_i^2) / n_i).
       If C is not empty, play argmax_C LCB_i: a certain round, u stays.
    2. Otherwise u <- u + 1, and play argmax_i m_i + sigma sqrt(2 L(w_i) / n_i),  w_i = max(u, n_i).

All samples update m_i. UCB's clock counts uncertain rounds alone, so exploration is paid at rate ln u, not ln t, and u
stays near K ln(K / excess) / excess^2 once some arm exceeds S.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from upheld.bandits.certificate import (
    anytime_p_value,
    confidence_sequence,
    lower_empirical,
    lower_kl,
    lower_sub_gaussian,
)
from upheld.bandits.elementwise import choose, elementwise
from upheld.bandits.index import (
    draw_beta,
    draw_normal,
    index_empirical,
    index_kl,
    index_sub_gaussian,
    level_asymptotic,
    level_empirical,
    level_none,
    level_safe,
    own_asymptotic,
    own_empirical,
    own_none,
    own_safe,
)
from upheld.bandits.rule import Rule, State, decide, observe, uncertain_runs
from upheld.bandits.streams import DECISIONS, child, run_keys

REGISTRY: dict[str, tuple[type[Policy], dict[str, Any]]] = {}


class Policy:
    """Chooses one of K arms, learns its reward, chooses again.

    A subclass provides `select` and `update`, and lists in `variants` the names under which it can be raced, each with
    the constructor arguments it stands for; that alone adds a rival to `upheld.bandits.policies`.

    Parameters
    ----------
    arms : number of arms, or their labels (distinct and hashable); policies take and return labels
    threshold : S, the mean reward that is good enough, in the rewards' unit
    random_state : seed, or a generator to draw one from; None takes fresh entropy
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, parameters in cls.__dict__.get("variants", {}).items():
            if name in REGISTRY and REGISTRY[name][0].__qualname__ != cls.__qualname__:
                raise ValueError(f"two policies are called {name!r}; rename one of them")
            REGISTRY[name] = (cls, parameters)

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        threshold: float,
        *,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.arms = _labels(arms)
        self.threshold = _threshold(threshold)
        self.seed_ = _seed(random_state)
        self._position = {label: i for i, label in enumerate(self.arms)}

    def select(self) -> Hashable:
        """The arm to play now. Nothing changes until `update`, so asking twice gives the same answer."""
        raise NotImplementedError

    def update(self, arm: Hashable, reward: float) -> None:
        """Learn that `arm` gave `reward`."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all rewards."""
        raise NotImplementedError

    def partial_fit(self, decisions: Iterable[Hashable], rewards: Iterable[float]) -> Policy:
        """Learn a batch, in its order; MABWiser's name for `update` in a loop."""
        decisions, rewards = list(decisions), list(rewards)
        if len(decisions) != len(rewards):
            raise ValueError(f"decisions and rewards differ in length: {len(decisions)} and {len(rewards)}")
        for arm, reward in zip(decisions, rewards, strict=True):
            self.update(arm, reward)
        return self

    def fit(self, decisions: Iterable[Hashable], rewards: Iterable[float]) -> Policy:
        """Forget everything, then `partial_fit`."""
        self.reset()
        return self.partial_fit(decisions, rewards)

    def predict(self) -> Hashable:
        """MABWiser's name for `select`."""
        return self.select()

    def _arm_index(self, arm: Hashable) -> int:
        if arm not in self._position:
            raise ValueError(f"arm {arm!r} is not one of the {len(self.arms)} arms {_some(self.arms)}")
        return self._position[arm]


class RulePolicy(Policy):
    """A policy given by a `Rule`; `rule(**parameters)` builds it, for the constructor and for simulations alike."""

    rule: ClassVar[Callable[..., Rule]]

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        threshold: float = np.inf,
        *,
        random_state: int | np.random.Generator | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(arms, threshold, random_state=random_state)
        self.parameters = parameters
        self.rule_ = type(self).rule(**parameters)
        self._sigma = self.rule_.effective_sigma(0.5)
        self._prefer = self.rule_.preferences(len(self.arms))
        self._key = run_keys(self.seed_, DECISIONS, np.array([0]))[0]
        self.reset()

    def reset(self) -> None:
        self.rounds_ = 0
        with np.errstate(over="ignore"):
            self._state = State.empty(self.rule_, 1, len(self.arms), self._round_keys(0))

    def select(self) -> Hashable:
        return self.arms[self._decide(self.rounds_ + 1)]

    def select_many(self, m: int) -> list[Hashable]:
        """`m` arms to play before the next reward is known (batched or delayed feedback).

        While some arms have no reward these come first, and the rest of the batch goes round all arms; after that, the
        decisions of the next `m` rounds under the counts as they are.
        """
        if m < 1:
            raise ValueError(f"m must be at least 1, got {m}")
        unplayed = np.flatnonzero(self._state.n[0] == 0)
        if unplayed.size:
            order = [*unplayed, *np.flatnonzero(self._state.n[0] > 0)]
            return [self.arms[i] for i in itertools.islice(itertools.cycle(order), m)]
        return [self.arms[self._decide(self.rounds_ + 1 + ahead)] for ahead in range(m)]

    def update(self, arm: Hashable, reward: float) -> None:
        """Learn that `arm` gave `reward`; the clock counts the round if no arm was certified before it.

        Raises
        ------
        ValueError
            If the arm is unknown, the reward is not a finite number, or it lies outside [0, 1] where the rule needs it.
        """
        i = self._arm_index(arm)
        value = _reward(reward, arm, unit=self.rule_.unit_rewards, rule=self.rule_.name)
        rule, state = self.rule_, self._state
        uncertain = uncertain_runs(rule, state, self.threshold)
        keys = self._round_keys(self.rounds_ + 1)
        with np.errstate(all="ignore"):
            observe(rule, state, np.array([i]), np.array([value]), uncertain, keys, self.threshold, self._sigma)
        self.rounds_ += 1

    def _decide(self, t: int) -> int:
        keys = self._round_keys(t)
        with np.errstate(all="ignore"):  # unplayed arms divide by zero, and are masked
            return int(decide(self.rule_, self._state, keys, self.threshold, self._sigma, self._prefer)[0])

    def _round_keys(self, t: int) -> np.ndarray:
        """(1,) key of round t in the decision stream."""
        with np.errstate(over="ignore"):  # 64-bit words are meant to wrap
            return np.array([child(self._key, np.uint64(t))])

    @property
    def uncertain_rounds_(self) -> int:
        """u: rounds so far in which no arm was certified (all rounds, for policies without a certificate)."""
        return int(self._state.clock[0])

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on later, as plain numbers, strings and lists (labels as they are)."""
        s = self._state
        return {
            "policy": self.rule_.name,
            "parameters": {k: list(v) if isinstance(v, tuple) else v for k, v in self.parameters.items()},
            "arms": list(self.arms),
            "threshold": repr(self.threshold),
            "seed": self.seed_,
            "rounds": self.rounds_,
            "clock": float(s.clock[0]),
            "n": s.n[0].tolist(),
            "mean": s.mean[0].tolist(),
            "m2": s.m2[0].tolist(),
            "index_n": s.index_n[0].tolist(),
            "index_mean": s.index_mean[0].tolist(),
            "index_m2": s.index_m2[0].tolist(),
            "registers": s.registers[:, 0].tolist(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state saved by `state_dict` of a policy with the same parameters, arms and threshold.

        Raises
        ------
        ValueError
            If the state belongs to another policy, names what differs.
        """
        own = self.state_dict()
        if missing := sorted(own.keys() - state.keys()):
            raise ValueError(f"the state lacks {', '.join(missing)}; pass what state_dict() returned")
        for field in ("policy", "parameters", "arms", "threshold"):
            if json.dumps(own[field], default=str) != json.dumps(state[field], default=str):
                raise ValueError(
                    f"the state was saved with {field} {state[field]!r}, but this policy has {own[field]!r}"
                )
        self.seed_ = int(state["seed"])
        self._key = run_keys(self.seed_, DECISIONS, np.array([0]))[0]
        self.reset()
        self.rounds_ = int(state["rounds"])
        s = self._state
        for field in ("n", "mean", "m2", "index_n", "index_mean", "index_m2"):
            getattr(s, field)[0] = state[field]
        s.clock[0] = state["clock"]
        s.registers[:, 0] = state["registers"]
        seen = np.flatnonzero(s.n[0] > 0)
        n, n_arms = s.n[0, seen], float(len(self.arms))
        variance = _sample_variance(n, s.m2[0, seen])
        tried = np.flatnonzero(s.index_n[0] > 0)
        s.variance[0] = _sample_variance(s.index_n[0], s.index_m2[0])
        with np.errstate(all="ignore"):
            s.lower[0, seen] = self.rule_.lower(s.mean[0, seen], variance, n, n_arms, self._sigma)
            s.own[0, tried] = self.rule_.own(s.index_n[0, tried], s.clock[0], n_arms)


@elementwise
def rank_certified(
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
    """Certified arms by preference, then lower bound; the others by the index (3)."""
    certified = lower >= threshold
    index = index_sub_gaussian(mean, n, choose(own > level, own, level), sigma)
    return choose(certified, 1.0 + prefer, 0.0), choose(certified, lower, index)


@elementwise
def rank_certified_kl(
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
    """As `rank_certified`, with the index (3-kl)."""
    certified = lower >= threshold
    index = index_kl(mean, n, choose(own > level, own, level), sigma)
    return choose(certified, 1.0 + prefer, 0.0), choose(certified, lower, index)


@elementwise
def rank_certified_empirical(
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
    """As `rank_certified`, with the index (3-V)."""
    certified = lower >= threshold
    index = index_empirical(mean, n, variance, choose(own > level, own, level), sigma)
    return choose(certified, 1.0 + prefer, 0.0), choose(certified, lower, index)


@elementwise
def rank_certified_draw(
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
    """As `rank_certified`, with a posterior draw as index (3-TS)."""
    certified = lower >= threshold
    return choose(certified, 1.0 + prefer, 0.0), choose(certified, lower, draw)


INDICES: dict[str, dict[str, Any]] = {
    "asymptotic": {"rank": rank_certified, "level": level_asymptotic, "own": own_asymptotic},
    "safe": {"rank": rank_certified, "level": level_safe, "own": own_safe},
    "kl": {"rank": rank_certified_kl, "level": level_asymptotic, "own": own_asymptotic},
    "thompson": {"rank": rank_certified_draw, "level": level_none, "own": own_none, "draw": draw_normal},
    "thompson-beta": {"rank": rank_certified_draw, "level": level_none, "own": own_none, "draw": draw_beta},
}


class UncertainUCB(RulePolicy):
    """Plays until an arm is certified good enough, then stops paying for exploration.

    If some arm's mean exceeds the threshold, its satisficing regret stays bounded for ever; if none does, it plays as
    UCB does, step by step. The bound is proved for ``index="safe"`` with shared samples (see `upheld.bandits.theory` and
    ``docs/bandits-theory.md``), measured for the others.

    Parameters
    ----------
    arms : number of arms, or their labels
    threshold : S, the mean reward that is good enough; may be infinite
    sigma : sub-Gaussian constant of the rewards, in their unit: 1/2 for rewards in [0, 1], the standard deviation for
        Gaussian ones; or "empirical", which learns the variance of rewards in [0, 1]
    index : "asymptotic", "safe", "kl" (rewards in [0, 1]), "thompson" (normal posterior) or "thompson-beta" (0/1)
    share_samples : whether rewards of certain rounds enter the index; False gives textbook UCB on the uncertain rounds
    costs : (K,) cost of a pull of each arm; of the certified arms the cheapest is played. Exploration ends with the first
        certificate, so this matters where several arms are certified together, as after `fit` on a log
    width : multiplies every confidence width
    random_state : breaks ties and draws for Thompson

    Attributes
    ----------
    certified_ : labels of the arms whose lower bound reaches the threshold now
    uncertain_rounds_ : u

    Raises
    ------
    ValueError
        On fewer than one arm, repeated labels, a threshold that is not a number, a sigma that is not positive, an
        unknown index, or a combination of index and sigma that is not defined.

    Warns
    -----
    A certificate is only as good as `sigma`: rewards wilder than it says are certified too early.

    References
    ----------
    C. Rouyer, R. Ortner, P. Auer, Understanding the Gaps in Satisficing Bandits, ICML 2026 (abstract); reconstruction.

    Examples
    --------
    >>> rewards = {"a": 0.2, "b": 0.9, "c": 0.6}
    >>> policy = UncertainUCB(["a", "b", "c"], threshold=0.5, sigma=0.1, random_state=0)
    >>> for _ in range(50):
    ...     arm = policy.select()
    ...     policy.update(arm, rewards[arm])
    >>> policy.certified_, policy.uncertain_rounds_
    (['b'], 3)
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "uncertain-ucb": {},
        "uncertain-ucb-safe": {"index": "safe"},
        "uncertain-kl-ucb": {"index": "kl"},
        "uncertain-ts": {"index": "thompson"},
        "uncertain-ts-beta": {"index": "thompson-beta"},
        "uncertain-ucb-empirical": {"sigma": "empirical"},
        "uncertain-ucb-separate": {"share_samples": False},
    }

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        threshold: float,
        *,
        sigma: float | str = 0.5,
        index: str = "asymptotic",
        share_samples: bool = True,
        costs: Sequence[float] | None = None,
        width: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            arms,
            threshold,
            random_state=random_state,
            sigma=sigma,
            index=index,
            share_samples=share_samples,
            costs=None if costs is None else tuple(float(c) for c in costs),
            width=width,
        )

    @staticmethod
    def rule(
        *,
        sigma: float | str | None = None,
        index: str = "asymptotic",
        share_samples: bool = True,
        costs: Sequence[float] | None = None,
        width: float = 1.0,
    ) -> Rule:
        """The policy without arms, for simulations; `sigma` None takes that of the instance."""
        if index not in INDICES:
            raise ValueError(f"index must be one of {', '.join(INDICES)}, got {index!r}")
        shared: dict[str, Any] = {
            "counts": "uncertain",
            "shares_samples": share_samples,
            "width": width,
            "costs": None if costs is None else tuple(costs),
        }
        suffix = "" if share_samples else "-separate"
        if isinstance(sigma, str):
            if sigma != "empirical":
                raise ValueError(f"sigma must be a positive number or 'empirical', got {sigma!r}")
            if index != "asymptotic":
                raise ValueError(f"sigma='empirical' has its own index; leave index at 'asymptotic', got {index!r}")
            return Rule(
                name=f"uncertain-ucb-empirical{suffix}",
                rank=rank_certified_empirical,
                level=level_empirical,
                own=own_empirical,
                lower=lower_empirical,
                certificate="empirical",
                unit_rewards=True,
                sigma=1.0,
                **shared,
            )
        certificate, lower = ("kl", lower_kl) if index == "kl" else ("sub-gaussian", lower_sub_gaussian)
        names = {
            "asymptotic": "uncertain-ucb",
            "safe": "uncertain-ucb-safe",
            "kl": "uncertain-kl-ucb",
            "thompson": "uncertain-ts",
            "thompson-beta": "uncertain-ts-beta",
        }
        return Rule(
            name=names[index] + suffix,
            lower=lower,
            certificate=certificate,
            unit_rewards=index in ("kl", "thompson-beta"),
            sigma=None if sigma is None else float(sigma),
            **INDICES[index],
            **shared,
        )

    @property
    def certified_(self) -> list[Hashable]:
        return [label for label, low in zip(self.arms, self._state.lower[0], strict=True) if low >= self.threshold]

    def certificates(self, alpha: float = 0.05) -> pd.DataFrame:
        """The evidence on each arm, valid whenever one chooses to look.

        Returns
        -------
        One row an arm: ``arm``, ``pulls``, ``mean``, ``lower`` (the certificate's bound), ``certified``, ``p_value``
        (for "the mean lies below the threshold"), ``low`` and ``high`` (a confidence sequence at level 1 - `alpha`).
        """
        s = self._state
        n, mean = s.n[0], np.where(s.n[0] > 0, s.mean[0], np.nan)
        variance = _sample_variance(n, s.m2[0])
        kind = str(self.rule_.certificate)
        low, high = confidence_sequence(s.mean[0], variance, n, alpha, kind=kind, sigma=self._sigma)
        return pd.DataFrame(
            {
                "arm": pd.Series(list(self.arms), dtype=object),
                "pulls": n.astype(int),
                "mean": mean,
                "lower": s.lower[0],
                "certified": s.lower[0] >= self.threshold,
                "p_value": anytime_p_value(s.mean[0], variance, n, self.threshold, kind=kind, sigma=self._sigma),
                "low": low,
                "high": high,
            }
        )


def _labels(arms: int | Sequence[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(arms, (int, np.integer)):
        labels: tuple[Hashable, ...] = tuple(range(int(arms)))
    elif isinstance(arms, str):
        raise TypeError(f"arms must be a number or a sequence of labels, got the string {arms!r}; put it in a list")
    else:
        labels = tuple(arms)
    if not labels:
        raise ValueError("there must be at least one arm; pass their number or their labels")
    if len(set(labels)) < len(labels):
        twice = next(a for i, a in enumerate(labels) if a in labels[:i])
        raise ValueError(f"arm labels must be distinct, but {twice!r} occurs twice")
    return labels


def _threshold(threshold: float) -> float:
    if threshold is None or isinstance(threshold, str):
        raise TypeError(f"threshold must be a number, the mean reward that is good enough; got {threshold!r}")
    value = float(threshold)
    if np.isnan(value):
        raise ValueError("threshold is not a number (NaN); pass the mean reward that is good enough")
    return value


def _seed(random_state: int | np.random.Generator | None) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(random_state)


def _reward(reward: float, arm: Hashable, *, unit: bool, rule: str) -> float:
    try:
        value = float(reward)
    except (TypeError, ValueError):
        raise ValueError(f"the reward of arm {arm!r} must be a number, got {reward!r}") from None
    if not np.isfinite(value):
        raise ValueError(f"the reward of arm {arm!r} is {value}; drop the observation or pass a finite number")
    if unit and not 0 <= value <= 1:
        raise ValueError(f"{rule} needs rewards in [0, 1], but arm {arm!r} gave {value}; rescale rewards and threshold")
    return value


def _sample_variance(n: np.ndarray, m2: np.ndarray) -> np.ndarray:
    return np.where(n > 1, m2 / np.maximum(n - 1, 1), 0.0)


def _some(labels: Sequence[Hashable]) -> str:
    shown = ", ".join(repr(a) for a in labels[:5])
    return shown + (", ..." if len(labels) > 5 else "")
