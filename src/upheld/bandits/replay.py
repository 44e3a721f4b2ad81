"""What would another policy have earned on a log of choices? Rejection sampling (Li, Chu, Langford & Wang 2011).

The log's arms must have been drawn at random, independently of the rewards. A policy walks along the rows; where its
choice equals the logged arm, it learns the reward and moves on, elsewhere the row is skipped. With uniform choices the
rows it accepts are distributed as if it had played live; with known propensities p_row a match is accepted with
probability p_min / p_row, which makes them uniform again. What is left, the *effective horizon*, is about a K-th of the
log; below 30 accepted rows an arm nothing is ranked.

For a log that was not randomised there is only the bootstrap: `ReplayBandit` draws rewards of each arm from those logged
for it, and `simulate` plays on that. It answers another question (rewards as logged, whoever got them) and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from upheld.bandits.environments import ReplayBandit
from upheld.bandits.policies import REGISTRY, RulePolicy, make, names
from upheld.bandits.policy import Policy
from upheld.bandits.streams import DECISIONS, run_keys

UNIFORMITY_LEVEL = 1e-6
ROWS_AN_ARM = 30


@dataclass(frozen=True)
class ReplayResults:
    """Outcome of replaying a log.

    Attributes
    ----------
    runs : one row a policy and run: ``policy``, ``run``, ``horizon`` (accepted rows), ``mean_reward``, the three regrets
        at ``horizon`` and the same ``_common`` at `common_horizon`, ``certified_arm``, ``certified_at`` (accepted row of
        the first certificate still held at the end, 0 if none)
    means : (K,) mean reward of each arm over the whole log, by label; regrets are measured with these estimates
    common_horizon : accepted rows that every run of every policy reached
    threshold : S
    """

    runs: pd.DataFrame
    means: pd.Series
    common_horizon: int
    threshold: float

    def ranking(self) -> pd.DataFrame:
        """Policies by mean refined regret at the common horizon.

        Raises
        ------
        ValueError
            If some run accepted fewer than 30 rows an arm.
        """
        needed = ROWS_AN_ARM * len(self.means)
        if self.common_horizon < needed:
            raise ValueError(
                f"the effective horizon is {self.common_horizon} accepted rows, below {ROWS_AN_ARM} for each of the "
                f"{len(self.means)} arms ({needed}); policies are not ranked on so little: pass a longer log"
            )
        columns = ["mean_reward", "regret_common", "regret_threshold_common", "regret_refined_common"]
        table = self.runs.groupby("policy", sort=False)[columns].mean()
        table["q99_refined"] = self.runs.groupby("policy")["regret_refined_common"].quantile(0.99)
        return table.sort_values("regret_refined_common")


def check_uniform(log: pd.DataFrame) -> float:
    """P-value of the chi-square test that the logged arms were chosen uniformly.

    Raises
    ------
    ValueError
        If it is below 1e-6; names the counts and the two ways out.
    """
    counts = log["arm"].value_counts()
    p_value = float(stats.chisquare(counts).pvalue)
    if p_value < UNIFORMITY_LEVEL:
        shown = ", ".join(f"{arm}: {n}" for arm, n in counts.items())
        raise ValueError(
            f"the logged arms were not chosen uniformly (counts {shown}; p = {p_value:.1g}); pass --propensity with the "
            "column that holds the probability of each choice, or --bootstrap to resample the rewards of each arm"
        )
    return p_value


def replay(
    log: pd.DataFrame,
    policies: Sequence[str] | Mapping[str, str],
    threshold: float,
    *,
    sigma: float = 0.5,
    runs: int = 20,
    seed: int = 0,
) -> ReplayResults:
    """Replay a randomised log under each policy; run r shuffles the rows in the same way for all of them.

    Parameters
    ----------
    log : columns ``arm``, ``reward`` and, if the choices were not uniform, ``propensity`` (see `data.read_log`)
    policies : names, or label -> name
    threshold : S
    sigma : sub-Gaussian constant that policies are told
    runs : shuffles
    seed : of shuffles, acceptance and policies

    Raises
    ------
    ValueError
        On an unknown policy, or choices that were not uniform without propensities.
    """
    if "propensity" not in log.columns:
        check_uniform(log)
    pairs = dict(policies) if isinstance(policies, Mapping) else {name: name for name in policies}
    for name in pairs.values():
        if name not in REGISTRY:
            raise ValueError(f"no policy is called {name!r}; there are {', '.join(names())}")
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}")
    labels = sorted(log["arm"].unique(), key=str)
    code = pd.Categorical(log["arm"], categories=labels).codes.astype(np.int64)
    reward = log["reward"].to_numpy(dtype=float)
    weight = 1 / log["propensity"].to_numpy(dtype=float) if "propensity" in log.columns else np.ones(len(log))
    total = np.bincount(code, weight, len(labels))
    means = pd.Series(np.bincount(code, weight * reward, len(labels)) / total, index=labels, name="mean")
    acceptance = weight / weight.max()  # p_min / p_row
    traces = {}
    for run, key in enumerate(run_keys(seed, DECISIONS, np.arange(runs))):
        rng = np.random.default_rng(int(key))
        order = rng.permutation(len(log))
        open_rows = order[rng.random(len(log)) < acceptance[order]]
        for label, name in pairs.items():
            extra = {} if not _takes_sigma(name) else {"sigma": sigma}
            policy = make(name, labels, threshold, random_state=int(key), **extra)
            traces[label, run] = _walk(policy, code[open_rows], reward[open_rows], labels)
    common = min(len(arms) for arms, _, _ in traces.values())
    rows = [
        _row(label, run, trace, means.to_numpy(), threshold, common, labels) for (label, run), trace in traces.items()
    ]
    return ReplayResults(pd.DataFrame(rows), means, common, threshold)


def bootstrap_bandit(log: pd.DataFrame, threshold: float, *, sigma: float | None = None) -> ReplayBandit:
    """The arms of `log`, with rewards to be resampled, for `simulate`; its name says that it is a bootstrap."""
    groups: dict[Any, Any] = {
        arm: group.to_numpy(dtype=float) for arm, group in log.groupby("arm", sort=True)["reward"]
    }
    return ReplayBandit(groups, threshold, sigma=sigma, name="bootstrap of the log")


def _takes_sigma(name: str) -> bool:
    cls, preset = REGISTRY[name]
    if "sigma" in preset:
        return False
    return not issubclass(cls, RulePolicy) or cls.rule(**preset).sigma is None


def _walk(
    policy: Policy, code: np.ndarray, reward: np.ndarray, labels: list[Any]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Arms and rewards of the rows that `policy` accepts, and the accepted row since which a certificate has held."""
    position = {label: i for i, label in enumerate(labels)}
    rows_of = [np.flatnonzero(code == i) for i in range(len(labels))]
    pointer = np.zeros(len(labels), dtype=np.int64)
    arms: list[int] = []
    seen: list[float] = []
    certified_since, at = 0, 0
    while True:
        arm = position[policy.select()]
        pointer[arm] += np.searchsorted(rows_of[arm][pointer[arm] :], at)
        if pointer[arm] == rows_of[arm].size:
            return np.array(arms, dtype=np.int64), np.array(seen), certified_since
        row = rows_of[arm][pointer[arm]]
        policy.update(labels[arm], reward[row])
        arms.append(arm)
        seen.append(float(reward[row]))
        at = row + 1
        if not getattr(policy, "certified_", ()):
            certified_since = 0
        elif certified_since == 0:
            certified_since = len(arms)


def _row(
    label: str,
    run: int,
    trace: tuple[np.ndarray, np.ndarray, int],
    means: np.ndarray,
    threshold: float,
    common: int,
    labels: list[Any],
) -> dict[str, Any]:
    arms, rewards, certified_since = trace
    gaps = means.max() - means
    per_pull = {
        "regret": gaps,
        "regret_threshold": np.maximum(0, min(threshold, means.max()) - means),
        "regret_refined": np.where(means < threshold, gaps, 0.0),
    }
    row: dict[str, Any] = {
        "policy": label,
        "run": run,
        "horizon": len(arms),
        "mean_reward": rewards.mean() if len(arms) else np.nan,
    }
    for name, cost in per_pull.items():
        row[name] = cost[arms].sum()
        row[f"{name}_common"] = cost[arms[:common]].sum()
    row["certified_arm"] = labels[arms[-1]] if certified_since else None
    row["certified_at"] = certified_since
    return row
