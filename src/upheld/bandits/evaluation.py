"""Policies on a user's arms: replayed on a log, on a bootstrap of it, or simulated from given means.

All three give the same table of results. What is known of an arm differs: given means are exact; a log gives an estimate,
and with it the probability that the arm's mean reaches the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy import stats

from upheld.bandits.environments import REGRETS, Bandit, BernoulliBandit, GaussianBandit
from upheld.bandits.policies import make
from upheld.bandits.policy import Policy, UncertainUCB
from upheld.bandits.replay import Log, bootstrap_bandit, replay, takes_sigma, walk
from upheld.bandits.simulate import simulate
from upheld.bandits.streams import DECISIONS, run_keys

MARKS_PER_DECADE = 40
FOLLOWED = 5_000  # rounds of the one run that is followed step by step
COMPILE_FROM = 30_000  # rounds; shorter runs are played with NumPy sooner than a compiler is started
Told = Callable[[str], None]


@dataclass(frozen=True)
class Evaluation:
    """What policies did on the arms of one log, or of one list of means.

    Attributes
    ----------
    kind : "replay", "bootstrap" or "simulation"
    instance : how every output calls the arms; says which of the three it is
    threshold, sigma, seed : as played
    horizon : rounds that every run reached
    lengths : policy -> (R,) rounds of each run
    arms : one row an arm: ``arm``, ``rows`` (of the log; absent for given means), ``mean``, ``se`` (its standard error),
        ``satisficing`` (probability that the mean reaches the threshold, given the whole log)
    frame : one row a policy, run and mark: ``instance``, ``policy``, ``run``, ``mark``, the three regrets,
        ``uncertain_rounds``, ``certified_arm`` (label, None if none), ``seed``
    source : what was played on
    """

    kind: str
    instance: str
    threshold: float
    sigma: float
    seed: int
    horizon: int
    lengths: dict[str, np.ndarray]
    arms: pd.DataFrame
    frame: pd.DataFrame
    source: Log | Bandit

    @property
    def policies(self) -> list[str]:
        return list(self.lengths)

    def summary(self) -> pd.DataFrame:
        """Policies by mean refined regret, at the horizon.

        Returns
        -------
        One row a policy: ``policy``; mean and 99 % quantile of each regret (``regret_refined``, ``regret_refined_q99``,
        ...); ``uncertain_rounds``, their mean; ``certified``, the share of runs that end with a certificate;
        ``certified_arm``, the arm it is mostly for; ``certified_by``, the median over these runs of the first mark since
        which a certificate was held; ``satisficing``, the probability that the certified arm's mean reaches the
        threshold, averaged over these runs.
        """
        rows = [self._row(policy, runs) for policy, runs in self.frame.groupby("policy", sort=False)]
        table = pd.DataFrame(rows)
        table["certified_arm"] = pd.Series([row["certified_arm"] for row in rows], dtype=object)
        return table.sort_values("regret_refined", kind="stable", ignore_index=True)

    def _row(self, policy: Any, runs: pd.DataFrame) -> dict[str, Any]:
        last = runs[runs["mark"] == self.horizon]
        held = last.dropna(subset="certified_arm").set_index("run")["certified_arm"]
        probability = self.arms.set_index("arm")["satisficing"]
        row: dict[str, Any] = {"policy": policy}
        for name in reversed(REGRETS):
            row[name] = last[name].mean()
            row[f"{name}_q99"] = last[name].quantile(0.99)
        return row | {
            "uncertain_rounds": last["uncertain_rounds"].mean(),
            "certified": len(held) / len(last),
            "certified_arm": held.mode().iloc[0] if len(held) else None,
            "certified_by": _held_since(runs).loc[held.index].median() if len(held) else np.nan,
            "satisficing": probability.loc[held].mean() if len(held) else np.nan,
        }

    def timeline(self, policy: str) -> pd.DataFrame:
        """The evidence in run 0 of an uncertain policy, at log-spaced rounds (at most 5,000 of them).

        Returns
        -------
        One row a mark and arm: ``mark``, ``arm``, ``pulls``, ``lower`` (the certificate's lower bound), ``certified``.
        """
        # A replay gives each run a seed of its own; run 0 of a simulation decides as a policy with its seed does.
        replay = self.kind == "replay"
        seed = int(run_keys(self.seed, DECISIONS, np.array([0]))[0]) if replay else self.seed
        extra = {"sigma": self.sigma} if takes_sigma(policy) else {}
        played = make(policy, self.source.labels, self.threshold, random_state=seed, **extra)
        if not isinstance(played, UncertainUCB):
            raise ValueError(f"{policy} certifies nothing; name a policy that starts with uncertain")
        rounds = (
            walk(played, self.source, self.source.open_rows(seed))
            if isinstance(self.source, Log)
            else _pulls(played, self.source, self.seed)
        )
        horizon = min(self.horizon, FOLLOWED)
        marks = set(np.round(np.geomspace(1, horizon, int(MARKS_PER_DECADE * np.log10(horizon)) + 2)).astype(int))
        seen = []
        for t, _ in enumerate(rounds, start=1):
            if t in marks:
                evidence = played.certificates()[["arm", "pulls", "lower", "certified"]]
                seen.append(evidence.assign(mark=t))
            if t == horizon:
                break
        return pd.concat(seen, ignore_index=True)


def _pulls(policy: Policy, bandit: Bandit, seed: int) -> Iterator[tuple[int, float]]:
    """Run 0 of `simulate`, step by step: yields arm and reward of each round."""
    table = bandit.table_of_run(seed)
    position = {label: i for i, label in enumerate(bandit.labels)}
    while True:
        label = policy.select()
        reward = table.pull(position[label])
        policy.update(label, reward)
        yield position[label], reward


def _held_since(runs: pd.DataFrame) -> pd.Series:
    """By run, the first mark from which a certificate was held at every later one; NaN where it is not held at the last."""
    without = runs["mark"].where(runs["certified_arm"].isna(), 0)
    last_without = without.groupby(runs["run"]).max()
    marks = np.sort(runs["mark"].unique())
    following = np.append(marks, np.nan)[np.searchsorted(marks, last_without.to_numpy(), side="right")]
    return pd.Series(following, index=last_without.index)


def replayed(
    log: pd.DataFrame,
    policies: Sequence[str],
    threshold: float,
    *,
    name: str,
    sigma: float = 0.5,
    runs: int = 200,
    horizon: int | None = None,
    seed: int = 0,
    told: Told = lambda policy: None,
) -> Evaluation:
    """Rejection-sampling replay of a randomised log (see `upheld.bandits.replay`), as far as every run of every policy got.

    Raises
    ------
    ValueError
        As `replay`, and if the effective horizon is below 30 rows an arm: policies are not ranked on so little.
    """
    result = replay(log, policies, threshold, sigma=sigma, runs=runs, horizon=horizon, seed=seed, replayed=told)
    result.ranking()  # refuses what is too short
    labels = [*result.means.index, None]
    frame = result.marked.assign(
        instance=f"replay of {name}",
        certified_arm=_named(result.marked["certified_arm"], labels),
        seed=seed,
    )
    lengths = {str(policy): runs["horizon"].to_numpy() for policy, runs in result.runs.groupby("policy", sort=False)}
    return Evaluation(
        "replay", f"replay of {name}", threshold, sigma, seed, result.common_horizon, lengths,
        arms_of(log, threshold), _in_order(frame), Log.of(log),
    )  # fmt: skip


def bootstrapped(
    log: pd.DataFrame,
    policies: Sequence[str],
    threshold: float,
    *,
    name: str,
    sigma: float | None = None,
    runs: int = 200,
    horizon: int = 10_000,
    seed: int = 0,
    told: Told = lambda policy: None,
) -> Evaluation:
    """Play on rewards drawn with replacement from those logged for each arm, whoever chose them and why."""
    bandit = bootstrap_bandit(log, threshold, sigma=sigma)
    arms = arms_of(log.drop(columns="propensity", errors="ignore"), threshold)
    return _played("bootstrap", f"bootstrap of {name}", bandit, arms, policies, runs, horizon, seed, told)


def simulated(
    means: pd.Series,
    policies: Sequence[str],
    threshold: float,
    *,
    name: str,
    sigma: float | None = None,
    runs: int = 200,
    horizon: int = 10_000,
    seed: int = 0,
    told: Told = lambda policy: None,
) -> Evaluation:
    """Play on arms with these means: rewards 0 and 1, or with `sigma` Gaussian ones of that standard deviation.

    Raises
    ------
    ValueError
        If a mean lies outside [0, 1] and there is no `sigma`; names the arm.
    """
    outside = ~means.between(0, 1)
    if sigma is None and outside.any():
        raise ValueError(
            f"{name}: the mean {means[outside].iloc[0]:g} of arm {means.index[outside][0]!r} lies outside [0, 1], so its "
            "rewards cannot be 0 and 1; pass --sigma, their standard deviation"
        )
    if sigma is None:
        law, bandit = "0/1 rewards", cast(Bandit, BernoulliBandit(means, threshold, labels=list(means.index)))
    else:
        law = f"Gaussian rewards, sigma {sigma:g}"
        bandit = GaussianBandit(means, threshold, sd=sigma, labels=list(means.index))
    arms = pd.DataFrame(
        {
            "arm": pd.Series(list(means.index), dtype=object),
            "mean": means.to_numpy(),
            "se": 0.0,
            "satisficing": (means >= threshold).to_numpy(dtype=float),
        }
    )
    return _played("simulation", f"simulation of {name}, {law}", bandit, arms, policies, runs, horizon, seed, told)


def _played(
    kind: str,
    instance: str,
    bandit: Bandit,
    arms: pd.DataFrame,
    policies: Sequence[str],
    runs: int,
    horizon: int,
    seed: int,
    told: Told,
) -> Evaluation:
    labels = [*bandit.labels, None]
    engine = "numpy" if horizon < COMPILE_FROM else "auto"
    frames = []
    for policy in policies:
        found = simulate([policy], bandit, horizon, runs, engine=engine, seed=seed).to_frame()
        frames.append(found.assign(certified_arm=_named(found["certified_arm"], labels), policy=policy))
        told(policy)
    frame = pd.concat(frames, ignore_index=True).assign(instance=instance)
    lengths = {policy: np.full(runs, horizon) for policy in policies}
    return Evaluation(
        kind, instance, bandit.threshold, bandit.sigma, seed, horizon, lengths, arms, _in_order(frame), bandit
    )


def _named(positions: pd.Series, labels: Sequence[Any]) -> pd.Series:
    """Labels as they are: whole numbers stay whole where some run has none."""
    return pd.Series([labels[position] for position in positions], dtype=object, index=positions.index)


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    columns = ["instance", "policy", "run", "mark", *REGRETS, "uncertain_rounds", "certified_arm", "seed"]
    return frame[columns]


def arms_of(log: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """What the whole log says of each arm; columns as in `Evaluation.arms`.

    The probability that the mean reaches the threshold is the posterior one under a flat prior: Beta for 0/1 rewards from
    uniform choices, else Student's t with the standard error of the weighted mean.
    """
    rows = Log.of(log)
    zero_one = bool(np.isin(rows.reward, (0.0, 1.0)).all() and np.ptp(rows.weight) == 0)
    means = rows.means()
    table = []
    for i, label in enumerate(rows.labels):
        chosen = rows.code == i
        n, weight = int(chosen.sum()), rows.weight[chosen]
        deviation = rows.reward[chosen] - means.iloc[i]
        correction = np.sqrt(n / (n - 1)) if n > 1 else np.inf
        se = float(np.sqrt(np.sum((weight * deviation) ** 2)) / weight.sum() * correction) if n > 1 else np.inf
        if zero_one:
            good = rows.reward[chosen].sum()
            satisficing = float(stats.beta.sf(threshold, 1 + good, 1 + n - good))
        else:
            satisficing = _reaches(means.iloc[i], se, n, threshold)
        table.append({"arm": label, "rows": n, "mean": means.iloc[i], "se": se, "satisficing": satisficing})
    return pd.DataFrame(table).astype({"arm": object})


def _reaches(mean: float, se: float, n: int, threshold: float) -> float:
    if n < 2:
        return 0.5  # one reward says nothing of its own spread
    if se == 0:
        return float(mean >= threshold)
    return float(stats.t.cdf((mean - threshold) / se, n - 1))
